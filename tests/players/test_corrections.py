"""Rewards that change: several conversions in one window, refunds, and what comes too late."""

import itertools
import math
from datetime import timedelta

import numpy as np
import pytest

from abex import UCB1, Evidence, Exp3, Player, Thompson, UserError
from abex.graphs import cliques
from abex.kinds import saved
from abex.players.events import ArmRemoved, Decided, Rewarded, decode, encode
from abex.players.ids import Life
from abex.players.player_file import player_text, read_player, state_text
from abex.players.player_settings import new_state, terms
from abex.players.state import CONVERSIONS
from abex.policies.attribution import can_weigh
from tests.each import each
from tests.examples import all_examples

MINUTE = 60_000
BEGIN = 10**12
LEARNERS = [policy for policy in all_examples() if can_weigh(policy) and not policy.needs_graph]


class Lived:
    """A state and the events that it has seen, with ids and moments of one process."""

    def __init__(
        self, policy, conversions="first", window=True, rewards=(0.0, 1.0), n_arms=3, corrections=86_400.0
    ):
        expire, window = (None, 600.0) if window else (600.0, None)
        self.settings = terms(rewards, expire, 0.0, None, window, conversions, corrections)
        self.state = new_state(self.settings, policy, n_arms, None, None, 1000, False, 1000, is_shared=True)
        self.life, self.rng = Life(), np.random.default_rng(0)

    def happen(self, event):
        return self.state.apply(decode(encode(event)), self.rng)

    def decide(self, arm, minute):
        name = self.life.next_id(BEGIN + int(minute * MINUTE))
        self.happen(Decided(name, BEGIN + int(minute * MINUTE), arm, self.state.steps + 1))
        return name

    def told(self, name, reward, minute, key=None, corrects=False):
        moment = BEGIN + int(minute * MINUTE)
        scaled = self.settings.scaled(reward)
        return self.happen(Rewarded(self.life.next_id(moment), moment, name, None, scaled, {}, key, corrects))

    def settled(self):
        self.state.settle()
        return self

    def text(self):
        return state_text(self.state, 0)

    def numbers(self):
        """All numbers that the policy has learned, and those of windows."""
        found = _arrays(saved(self.state.state))
        windows = self.state.windows
        if windows is not None:
            found |= {"decisions": windows.attribution.decisions, "zeros": windows.attribution.zeros}
            found |= {"excess": windows.excess, "converted": windows.attribution.converted}
        return found | {"sums": self.state.tallies.sums, "count": self.state.tallies.observations}


def _arrays(values, at=""):
    found = {}
    for name, value in values.items():
        found |= _arrays(value, f"{at}{name}.") if isinstance(value, dict) else {at + name: np.asarray(value)}
    return found


@each("policy", LEARNERS)
@pytest.mark.parametrize("window", [True, False])
def test_a_correction_leaves_the_state_as_if_the_right_reward_had_been_learned(policy, window):
    if window and getattr(policy, "resample", False):
        return  # coins are tossed for fractions, and in a window 0 is silence
    rng, values = np.random.default_rng(1), (0.25, 1.0) if window else (0.0, 1.0)
    told, corrected, wrong = Lived(policy, window=window), Lived(policy, window=window), []
    for minute in range(60):
        arm, right = minute % 3, values[rng.integers(2)]
        first, second = told.decide(arm, minute), corrected.decide(arm, minute)
        if rng.random() < 0.7:
            assert told.told(first, right, minute + 0.5)
            assert corrected.told(second, values[rng.integers(2)], minute + 0.5)
            wrong.append((second, right))
        if wrong and rng.random() < 0.5:
            corrected.told(*wrong.pop(rng.integers(len(wrong))), minute + 0.5, corrects=True)
    for name, right in wrong:
        corrected.told(name, right, 59.5, corrects=True)
    assert corrected.state.tallies.corrected > 5
    ours, theirs = told.settled().numbers(), corrected.settled().numbers()
    for name, numbers in ours.items():  # the range of the rewards is of all that were ever reported
        if not name.startswith(("lowest", "highest", "least", "largest")):
            assert np.allclose(numbers, theirs[name], atol=1e-9), name


# -- in every order -----------------------------------------------------------------------------------


def pays(conversions, events):
    """What a decision pays, in words: each event is (kind, key, reward), in the order of the journal."""
    known, whole = {}, None
    for kind, key, reward in events:
        if kind == "correction" and (key is None or conversions == "first"):
            if conversions == "first" and known and key not in (None, *known):
                continue  # of a conversion that did not count
            whole, known = reward, dict.fromkeys([*known, key]) if known else {key: None}
        elif kind == "correction" or (key not in known and (conversions != "first" or not known)):
            known[key] = reward
    paid = [one for one in known.values() if one is not None] + ([] if whole is None else [whole])
    if conversions == "first":
        return whole if whole is not None else paid[0]
    return min(10.0, math.fsum(paid)) if conversions == "sum" else max(paid)


EVENTS = [
    ("conversion", "one", 4.0),
    ("conversion", "two", 7.0),
    ("correction", "one", 1.0),
    ("correction", "two", 0.0),
]


@each("conversions", ["first", "sum", "max"])
def test_every_order_of_conversions_and_corrections(conversions):
    """Keyed ones commute; and one that comes a second time, at any later moment, changes nothing, bit for bit."""
    ends = set()
    for order in itertools.permutations([*EVENTS, ("conversion", None, 2.0)], 4):
        for again, place in [(None, 0), *((one, at) for one in range(4) for at in range(one + 1, 5))]:
            lived = Lived(UCB1(), conversions, rewards=(0.0, 10.0))
            name = lived.decide(1, 0)
            moment = BEGIN + MINUTE
            written = [
                Rewarded(
                    lived.life.next_id(moment),
                    moment,
                    name,
                    None,
                    reward / 10.0,
                    {},
                    key,
                    kind == "correction",
                )
                for kind, key, reward in order
            ]
            for event in written[: place if again is not None else 4]:
                lived.happen(event)
            if again is not None:
                before = lived.state.answers.find(name), lived.numbers()["means"].tolist()
                lived.happen(written[again])
                assert (lived.state.answers.find(name), lived.numbers()["means"].tolist()) == before
                for event in written[place:]:
                    lived.happen(event)
            found = lived.settings.shown(lived.state.answers.find(name).reward)
            assert found == pytest.approx(pays(conversions, order)), order
            assert lived.state.tallies.sums[1] == pytest.approx(found / 10.0)
            assert lived.state.windows.excess[1] == pytest.approx(found / 10.0)
            assert lived.state.tallies.rewarded == lived.state.tallies.observations[1] == 1
            if sorted(map(str, order)) == sorted(map(str, EVENTS)):
                ends.add(found)
    assert conversions == "first" or len(ends) == 1


def test_a_correction_that_stands_in_the_journal_twice_counts_where_it_stands_first():
    """A network delivers what was sent before the connection broke; another correction was written meanwhile."""
    for answered in (True, False):
        lived = Lived(UCB1())
        name, moment = lived.decide(0, 0), BEGIN + MINUTE
        if answered:
            lived.told(name, 1.0, 0.5)
        half = Rewarded(lived.life.next_id(moment), moment, name, None, 0.5, {}, None, True)
        assert lived.happen(half)
        assert lived.told(name, 0.25, 2, corrects=True)
        assert not lived.happen(half)
        assert lived.state.answers.find(name).reward == 0.25


@each("conversions", ["first", "sum", "max"])
@each("policy", [Thompson(), Evidence(), "KLUCB"])
def test_a_file_holds_what_may_change(policy, conversions):
    """Saved and read at any moment, a player goes on as the one that was not."""
    now, rng = [1e9], np.random.default_rng(2)
    options = {
        "window": 600,
        "conversions": conversions,
        "corrections": 1800,
        "seed": 1,
        "clock": lambda: now[0],
    }
    ours = Player(policy, arms=["a", "b"], compiled=False, **options)
    told = []
    for step in range(150):
        now[0] += rng.exponential(30.0)
        told.append(ours.decide().id)
        name, key = told[int(rng.integers(max(0, step - 40), step + 1))], [None, "x", "y"][rng.integers(3)]
        if rng.random() < 0.5:
            ours.update(name, rng.random(), key=key)
        else:
            ours.correct(name, rng.random(), key)
        if step % 10 == 0:
            theirs = read_player(player_text(ours), "a player", False, lambda: now[0])
            for player in (ours, theirs):
                player.correct(told[step // 2], 0.5)
                player.update(told[-1], 1.0, key="z")
            assert player_text(ours) == player_text(theirs)
            assert repr(ours.summary()) == repr(theirs.summary())
    assert ours._state.tallies.corrected > 20


# -- what counts --------------------------------------------------------------------------------------


@each(
    ("conversions", "paid", "mean"),
    [
        ("first", [4.0, 9.0], 0.4),
        ("sum", [4.0, 3.0], 0.7),
        ("sum", [4.0, 9.0], 1.0),
        ("max", [4.0, 9.0, 5.0], 0.9),
    ],
)
def test_several_conversions_of_a_decision(conversions, paid, mean):
    lived = Lived(UCB1(), conversions, rewards=(0.0, 10.0))
    name = lived.decide(0, 0)
    new = [lived.told(name, one, 1 + k, f"order {k}") for k, one in enumerate(paid)]
    assert new == [k == 0 or conversions != "first" for k in range(len(paid))]
    assert not lived.told(name, paid[0], 5, "order 0")
    assert not lived.told(
        name, 2.0, 10, "order 9"
    )  # the window began with the decision, not with a conversion
    lived.decide(1, 30)
    assert lived.settled().numbers()["means"][0] == pytest.approx(mean)
    assert lived.state.tallies.table[CONVERSIONS, 0] == sum(new)
    assert lived.state.tallies.late == 1


def test_a_sum_is_of_amounts_whatever_the_range():
    player = Player("UCB1", 1, rewards=(-5, 15), window=3600, conversions="sum", compiled=False)
    one = player.decide()
    assert player.update(one, 7.0, key="order 1")
    assert player.update(one, 6.5, key="order 2")
    assert player.update(one, -3.5, key="sent back 1")
    assert player._state.answers.find(one.id).reward == pytest.approx((10.0 + 5.0) / 20.0)
    assert player.correct(one, 1.0)
    assert player._state.answers.find(one.id).reward == pytest.approx((1.0 + 5.0) / 20.0)


def test_delays_of_all_conversions_count_that_change_what_is_paid():
    """Every second decision has a conversion at once and one after half the window: G is a half until then."""
    lived = Lived(UCB1(), "sum", n_arms=1)
    names = []
    for minute in range(120):
        names.append(lived.decide(0, minute))
        lived.told(names[-1], 0.25, minute, "now")
        if minute >= 6:
            lived.told(names[minute - 6], 0.25, minute, "later")
    attribution = lived.settled().state.windows.attribution
    assert attribution.weights[9] == pytest.approx(0.5, abs=0.03)  # ages from 1.25 to 2.5 minutes
    assert attribution.weights[12] == 1.0
    assert lived.state.windows.weighed(np.array([0])).means()[0] == pytest.approx(0.5, abs=0.02)


def test_a_refund_after_the_window_is_learned_until_its_time_is_over():
    now = [0.0]
    player = Player(
        "UCB1", 1, window=60, corrections=timedelta(hours=1), clock=lambda: now[0], compiled=False
    )
    sold = player.decide()
    assert player.update(sold, True)
    now[0] = 600.0
    player.decide()
    assert player.summary()[0].mean > 0.5
    assert player.correct(sold, 0.0)
    assert not player.correct(sold.id, 0.0)
    assert player.summary()[0].mean == 0.0
    now[0] = 3_600.0
    assert not player.correct(sold, 1.0)
    assert player.summary()[0].mean == 0.0
    assert "1 late, 1 corrected" in player.summary().caption


def test_a_refund_that_comes_before_its_conversion_is_all_there_is():
    player = Player("UCB1", 1, window=60, compiled=False)
    sold, other = player.decide(), player.decide()
    assert player.correct(sold, 0.0)
    assert not player.update(sold, 1.0)
    assert not player._state.windows.reported  # nobody reports silence: what follows waits for its window
    assert player.update(other, 1.0)
    assert player._state.tallies.sums[0] == 1.0


@each("silence", ["window", "expire"])
def test_a_reward_that_is_late_is_counted_once_and_teaches_nothing(silence):
    now = [1e9]
    player = Player("UCB1", 2, clock=lambda: now[0], compiled=False, **{silence: 60})
    early, answered = player.decide(), player.decide()
    assert player.update(answered, 1.0)
    assert not player.update(answered, 1.0)
    now[0] += 61.0
    assert player.pending() == []
    before = player._state.tallies.sums.tolist(), player._state.state.means.tolist()
    for _ in range(3):
        assert not player.update(early, 1.0)
    assert (player._state.tallies.sums.tolist(), player._state.state.means.tolist()) == before
    assert player._state.tallies.late == 1
    assert "1 late" in player.summary().caption


def test_a_window_is_over_although_nobody_has_said_so():
    """In a journal decisions expire when somebody looks; what counts is the time of the reward."""
    for minute, learned in ((9.9, True), (10, False)):
        for corrects in (False, True):
            lived = Lived(UCB1())
            name = lived.decide(0, 0)
            assert lived.told(name, 1.0, minute, corrects=corrects) == learned
            assert lived.state.tallies.late == (not learned)
            assert (name in lived.state.pending) != learned


def test_what_is_forgotten_is_no_more_than_asked_for():
    now = [1e9]
    player = Player("UCB1", 2, window=60, max_pending=3, clock=lambda: now[0], compiled=False)
    made = [player.decide() for _ in range(3)]
    for one in made:
        player.update(one, 1.0)
    many = player.decide()
    player.update(many, 1.0)
    assert not player.correct(made[0], 0.0)
    assert player.correct(made[1], 0.0)
    now[0] += 60.0
    player.decide()
    assert player._state.answers.written() == []


def test_an_arm_that_is_gone_cannot_be_corrected():
    lived = Lived(UCB1())
    name = lived.decide(1, 0)
    lived.told(name, 1.0, 1)
    lived.happen(ArmRemoved(lived.life.next_id(BEGIN + 2 * MINUTE), BEGIN + 2 * MINUTE, 1))
    assert not lived.told(name, 0.0, 3, corrects=True)


# -- what is refused ----------------------------------------------------------------------------------


@each(
    ("options", "message"),
    [
        ({"conversions": "sum"}, "counts what comes within a window: give the player one"),
        ({"conversions": "last", "window": 60}, "unknown conversions 'last'"),
        ({"corrections": 0}, "corrections must be a time"),
        (
            {"policy": Exp3(gamma=0.1), "corrections": 60},
            "cannot take back what it has learned: leave corrections out",
        ),
        ({"policy": Exp3(gamma=0.1), "window": 60}, "cannot weigh silence"),
        ({"graph": cliques(2, 1), "corrections": 60}, "cannot take back what it has learned"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_sentence(options, message):
    options = {"policy": UCB1(), "n_arms": 2} | options
    with pytest.raises(UserError, match=message):
        Player(options.pop("policy"), **options)


def test_corrections_that_cannot_be_are_refused_in_one_sentence():
    with pytest.raises(UserError, match="the rewards of this player are final: make it with corrections="):
        Player("UCB1", 2).correct("x", 0.0)
    player = Player("UCB1", arms=["red", "green"], corrections=60, rewards=(0, 5))
    with pytest.raises(UserError, match="what is corrected must be a decision or its id, got 'red'"):
        player.correct("red", 0.0)
    one = player.decide()
    with pytest.raises(UserError, match="reward must be >= 0 and <= 5"):
        player.correct(one, 6.0)
    with pytest.raises(UserError, match="a key must be 1 to 200 printable characters"):
        player.update(one, 1.0, key="")


# -- in a journal -------------------------------------------------------------------------------------


def test_processes_agree_and_the_log_has_what_was_really_paid(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    options = {
        "arms": ["red", "green"],
        "window": 600,
        "conversions": "sum",
        "corrections": 86_400,
        "rewards": (0, 10),
    }
    with Player.open(url, "banner", "Thompson", **options) as first, Player.open(url, "banner") as second:
        made = [first.decide() for _ in range(8)]
        first.flush()
        assert first.update(made[0], 3.0, key="one")
        assert second.update(made[0], 4.0, key="two")
        assert not first.update(made[0], 4.0, key="two")
        assert second.correct(made[0], 1.0, key="one")
        assert first.update_many([(made[1], 2.0), (made[2], 1.0, None, "x"), (made[2], 1.0, None, "y")]) == 3
        assert first.correct(made[1], 0.0)
        first.refresh(), second.refresh()
        assert first.text() == second.text()
        log = first.log().set_index("decision")
        assert log.loc[made[0].id, "reward"] == 5.0
        assert log.loc[made[0].id, "conversions"] == '{"one": 1.0, "two": 4.0}'
        assert log.loc[made[1].id, "reward"] == 0.0
        assert log.loc[made[2].id, "reward"] == 2.0
        text = first.text()
        first.compact()
    with Player.open(url, "banner") as third:  # from the snapshot
        assert third.text() == text
        assert third.correct(made[2], 0.0)
        assert third._state.answers.find(made[2].id).reward == 0.0
    for name, value in {"conversions": "max", "corrections": 60}.items():
        with pytest.raises(UserError, match=f"{name} is"):
            Player.open(url, "banner", "Thompson", **options | {name: value})
