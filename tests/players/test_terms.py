"""What an application and its player agree on: names of arms, the range of rewards, expiry; and the summary of it all."""

import copy
import math
import pickle
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex import ABE, UCB1, EpsilonGreedy, Exp3, Player, Thompson, Uniform, UserError
from abex.inference import interval
from abex.inference.moments import interval_by_moments
from abex.players.ids import Life
from tests.each import each
from tests.players.test_player import snapshot


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


# -- names --------------------------------------------------------------------------------------------


def test_arms_have_names_everywhere():
    named = Player(Exp3(gamma=0.3), arms=["red", "green", "blue"], seed=4)
    plain = Player(Exp3(gamma=0.3), n_arms=3, seed=4)
    names = dict(enumerate(named.arms))
    for step in range(40):
        one, two = named.decide(), plain.decide()
        assert one.arm == names[two.arm]
        assert named.update(one.id, step % 2)
        assert plain.update(two.id, step % 2)
    assert named.update("red", 1.0, also={"blue": 0.0})
    assert plain.update(0, 1.0, also={2: 0.0})
    assert np.array_equal(named.probabilities(), plain.probabilities())
    assert set(named.select(3)) == {"red", "green", "blue"}


def test_named_arms_come_go_and_change_their_names():
    player = Player(UCB1(), arms=["red", 7], seed=1)
    waiting = {}
    while len(waiting) < 2:
        decision = player.decide()
        waiting[decision.arm] = decision
    assert player.add_arm("blue") == "blue"
    player.rename_arm("red", "crimson")
    assert player.arms == ["crimson", 7, "blue"]
    assert player.update(waiting["red"].id, 1.0)
    assert player.update("crimson", 0.0)
    player.remove_arm(7)
    assert player.arms == ["crimson", "blue"]
    assert not player.update(waiting[7], 1.0)
    assert player.add_arm(7) == 7  # an arm of its own, whatever had the name before
    assert player.summary()[2][:3] == (7, 0, 0)
    with pytest.raises(UserError, match="there is an arm 'blue' already"):
        player.rename_arm(7, "blue")
    with pytest.raises(UserError, match="there is an arm 'blue' already"):
        player.add_arm("blue")
    with pytest.raises(
        UserError, match=r"there is no arm 'blu' \(did you mean 'blue'\?\): arms are blue, crimson, 7"
    ):
        player.remove_arm("blu")
    with pytest.raises(
        UserError, match=r"there is no arm 'blu' .did you mean 'blue'.*: arms are blue, crimson, 7"
    ):
        player.update("blu", 1.0)


def test_numbered_arms_may_get_names_later():
    player = Player(UCB1(), n_arms=2, seed=1)
    player.rename_arm(1, "one")
    assert player.arms == [0, "one"]
    assert player.update("one", 1.0)
    assert player.add_arm("two") == "two"


@each(
    ("options", "message"),
    [
        ({"arms": []}, "n_arms must be a whole number >= 1"),
        ({"arms": ["a", "a"]}, "two arms are called 'a'"),
        ({"arms": ["a", ""]}, "1 to 200 printable characters"),
        ({"arms": ["a", "x\n"]}, "1 to 200 printable characters"),
        ({"arms": ["a", "x" * 201]}, "1 to 200 printable characters"),
        ({"arms": ["a", 1.5]}, "must be a word or a whole number"),
        ({"arms": ["a", True]}, "must be a word or a whole number"),
        ({"arms": ["a", None]}, "must be a word or a whole number"),
        ({"arms": ["a", Life().next_id()]}, "must not look like the id of a decision"),
        ({"arms": "red"}, "arms must be a list of names"),
        ({"arms": 3}, "arms must be a list of names"),
        ({"arms": ["a"], "n_arms": 2}, "n_arms is 2, but there are 1 names"),
        ({}, "a player needs arms"),
        ({"n_arms": 2, "rewards": (1, 0)}, "rewards must be a range"),
        ({"n_arms": 2, "rewards": 5}, "rewards must be a range"),
        ({"n_arms": 2, "rewards": (0, math.inf)}, "rewards must be a finite number"),
        ({"n_arms": 2, "expire": "5"}, "expire must be a time in seconds or a timedelta, more than 0"),
        (
            {"n_arms": 2, "expire": timedelta(0)},
            "expire must be a time in seconds or a timedelta, more than 0",
        ),
        (
            {"n_arms": 2, "expire": 1e300},
            "expire must be a time in seconds or a timedelta, more than 0 and up to 100",
        ),
        ({"n_arms": 2, "expire": timedelta(1), "unrewarded": 2.0}, "unrewarded must be"),
        ({"n_arms": 2, "propensities": 1}, "propensities must be True or False"),
    ],
)
def test_terms_that_cannot_be_met_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        Player(UCB1(), **options)


def test_numbered_players_do_not_take_names():
    with pytest.raises(UserError, match=r"without a name the next one is 2"):
        Player(UCB1(), 2).add_arm("blue")
    with pytest.raises(UserError, match="give the new one a name"):
        Player(UCB1(), arms=["a"]).add_arm()


# -- rewards ------------------------------------------------------------------------------------------


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=50)
def test_a_range_of_rewards_is_a_change_of_units(low, width, shares):
    high = low + width
    player, plain = Player(UCB1(), 2, rewards=(low, high), seed=1), Player(UCB1(), 2, seed=1)
    for share in shares:
        reward = min(high, max(low, low + share * (high - low)))
        player.update(0, reward)
        plain.update(0, min(1.0, max(0.0, (reward - low) / (high - low))))
    assert np.array_equal(player._state.state.means, plain._state.state.means)
    one, two = player.summary()[0], plain.summary()[0]
    assert one.mean == pytest.approx(low + two.mean * (high - low))
    assert one.low - 1e-9 * width <= one.mean <= one.high + 1e-9 * width
    with pytest.raises(UserError, match="reward must be"):
        player.update(0, high + 2e-3 * width + 1e-3 * abs(high))


def test_clicks_are_rewards_of_any_range_that_has_them():
    player = Player(UCB1(), 2, rewards=(-1, 1), seed=1)
    player.update(0, True)
    assert player._state.state.means[0] == 1.0
    with pytest.raises(UserError, match="reward must be >= 2"):
        Player(UCB1(), 2, rewards=(2, 3)).update(0, True)


# -- expiry -------------------------------------------------------------------------------------------


def test_decisions_expire_with_a_default_reward():
    clock = Clock()
    player = Player(UCB1(), n_arms=3, seed=1, expire=timedelta(seconds=10), unrewarded=0.0, clock=clock)
    early = player.decide()
    clock.now += 6
    late = player.decide()
    clock.now += 3.999
    assert len(player.pending()) == 2
    clock.now += 0.001  # ten seconds after the first
    assert player.pending() == [late]
    assert not player.update(early, 1.0)
    summary = {row.arm: row for row in player.summary()}
    assert (summary[early.arm].observations, summary[early.arm].mean) == (1, 0.0)
    assert player.update(late, 1.0)
    assert "1 rewarded, 0 waiting, 1 expired" in player.summary().caption
    twin = Player(UCB1(), n_arms=3, seed=1)
    twin.update(twin.decide(), 0.0)
    assert twin._state.state.means[early.arm] == 0.0


def test_expired_decisions_may_teach_nothing():
    clock = Clock()
    player = Player(UCB1(), n_arms=2, seed=1, expire=timedelta(seconds=1), unrewarded=None, clock=clock)
    player.decide()
    clock.now += 2
    assert player.pending() == []
    assert player._state.state.observations.tolist() == [0.0, 0.0]


def test_expiry_is_a_function_of_the_moments_and_survives_a_file(tmp_path):
    clock = Clock()
    player = Player(
        Exp3(gamma=0.3),
        arms=["a", "b"],
        seed=1,
        expire=timedelta(minutes=1),
        rewards=(-1, 1),
        unrewarded=-1,
        clock=clock,
    )
    for _ in range(30):
        player.decide()
        clock.now += 7
    path = tmp_path / "player.json"
    player.save(path)
    twin = Player.load(path, clock=clock)
    assert snapshot(twin) == snapshot(player)
    assert twin.summary() == player.summary()
    clock.now += 20
    assert twin.pending() == player.pending()
    assert np.array_equal(twin._state.state.scores, player._state.state.scores)
    assert len(player.pending()) < 9


# -- the summary --------------------------------------------------------------------------------------


def test_the_summary_counts_what_happened():
    player = Player(EpsilonGreedy(epsilon=0.2), arms=["a", "b", "c"], seed=2)
    pulls, paid = {"a": 0, "b": 0, "c": 0}, {"a": [], "b": [], "c": []}
    for step in range(1_500):
        decision = player.decide()
        pulls[decision.arm] += 1
        also = {"c": 0.25} if decision.arm != "c" and step % 5 == 0 else {}
        player.update(decision, float(decision.arm == "b"), also)
        paid[decision.arm].append(float(decision.arm == "b"))
        paid["c"] += also.values()
    for row in player.summary():
        assert row.pulls == pulls[row.arm]
        assert row.observations == len(paid[row.arm])
        assert row.mean == pytest.approx(np.mean(paid[row.arm]))
        assert row.low <= row.mean <= row.high
    rows = {row.arm: row for row in player.summary()}
    assert rows["b"].probability == pytest.approx(0.8 + 0.2 / 3)
    assert sum(row.recent_share for row in rows.values()) == pytest.approx(1.0)
    assert len(player._state.tallies.recent) == 1_000
    frame = player.summary().frame()
    assert frame["pulls"].sum() == 1_500


@pytest.mark.parametrize("gone", ["a", "b", "c", "d"])
def test_counts_stay_with_their_arms_when_one_goes(gone):
    player = Player("Uniform", arms=["a", "b", "c", "d"], seed=3)
    for _ in range(80):
        decision = player.decide()
        for _ in range(
            "abcd".index(decision.arm) + 1
        ):  # the first is the decision's, all others are from elsewhere
            player.update(decision.arm, "abcd".index(decision.arm) / 4)
    before = {row.arm: row[1:4] for row in player.summary()}
    assert len(set(before.values())) == 4
    player.remove_arm(gone)
    new = player.add_arm("e")
    after = {row.arm: row[1:4] for row in player.summary()}
    assert after.pop(new)[:2] == (0, 0)
    del before[gone]
    assert after == before


def test_the_summary_is_a_table_everywhere():
    player = Player(UCB1(), arms=["<b>red</b>", "green"], seed=2)
    text, page = repr(player.summary()), player._repr_html_()
    assert text.splitlines()[1].split() == [
        "arm",
        "pulls",
        "observations",
        "mean",
        "interval",
        "probability",
        "recent",
        "share",
    ]
    assert len(text.splitlines()) == 4
    assert "&lt;b&gt;red&lt;/b&gt;" in page
    assert "<b>" not in page
    many = Player(UCB1(), n_arms=500, seed=1)
    pulled = many.decide()
    many.update(pulled, 1.0)
    many.update_many([(arm, 0.0) for arm in range(100, 140) if arm != pulled.arm])  # observed, not pulled
    lines = repr(many.summary()).splitlines()
    assert len(lines) == 33
    assert lines[2].split()[:2] == [str(pulled.arm), "1"]
    assert lines[-1] == "the 30 of 500 arms pulled most"


@pytest.mark.parametrize("paid", [10.0, 5.0])
def test_intervals_of_a_summary_hold_at_every_moment(paid):
    """By sums of coins, by moments of other rewards, in their unit; and all there is where nothing was observed."""
    player = Player("Uniform", arms=["a", "b", "c"], rewards=(0, 10), seed=0)
    player.update_many([("a", 10.0), ("a", 0.0), ("a", 0.0), ("b", paid)] * 50)
    rows, share = player.summary(), paid / 10
    for row, known in zip(rows[:2], ((150, 50, 50), (50, 50 * share, 50 * share * share)), strict=True):
        found = interval(*known[:2]) if paid == 10.0 else interval_by_moments(*known, 0.05)
        assert (row.low, row.high) == pytest.approx(tuple(10 * end for end in found), abs=1e-6)
    assert (rows[2].low, rows[2].high) == (0.0, 10.0)


# -- keeping ------------------------------------------------------------------------------------------


def test_names_terms_and_tallies_go_along():
    player = Player(
        Thompson(), arms=["x", "y"], rewards=(0, 5), propensities=False, expire=timedelta(1), seed=3
    )
    for step in range(20):
        player.update(player.decide(), step % 6)
    player.rename_arm("x", "z")
    player.decide()
    for twin in (player.copy(), copy.deepcopy(player), pickle.loads(pickle.dumps(player))):
        assert twin.arms == ["z", "y"]
        assert repr(twin.summary()) == repr(player.summary())
        assert twin.settings == player.settings
        assert [twin.select() for _ in range(9)] == [player.copy().select()] + [
            arm for arm in [twin.select() for _ in range(0)]
        ] or twin.n_arms == 2
        twin.update("z", 5)
    assert pickle.loads(pickle.dumps(player.pending()[0])) == player.pending()[0]


@pytest.mark.parametrize("policy", ["UCB1", "Thompson", "ABE", "Exp3(gamma=0.1)", "BoltzmannGumbel"])
def test_a_player_that_does_not_fit_into_memory_is_refused_before_it_is_made(policy, monkeypatch):
    monkeypatch.setattr("abex.players.player_settings.memory", lambda: 2e9)
    with pytest.raises(
        UserError, match=r"1,000,000,000 arms of .* would take .* GB of memory.*: use fewer arms"
    ):
        Player(policy, n_arms=10**9)


def test_a_million_arms_fit():
    player = Player(Uniform(), n_arms=1_000_001, seed=1, compiled=False)
    assert player.n_arms == 1_000_001


def test_abe_names_its_arms_in_reports():
    player = Player(ABE(eta=1.0, c=1.0, alpha=0.5), arms=["a", "b"], seed=1)
    player.update(player.select(), 1.0)
    assert player.report()["exploration_slots"] == 1.0


def test_the_time_until_decisions_expire_is_a_number_of_seconds_or_a_timedelta(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "x", "UCB1", n_arms=2, expire=90.0) as player:
        assert player.settings == Player("UCB1", n_arms=2, expire=timedelta(seconds=90)).settings
    with pytest.raises(UserError, match=r"expire is 90\.0 seconds in the journal, not 60\.0 seconds"):
        Player.open(url, "x", "UCB1", n_arms=2, expire=timedelta(minutes=1))
