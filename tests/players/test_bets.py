"""Bets of a player: by the slow oracle event by event, in files, copies and replicas, whatever comes late, goes or is renamed."""

import numpy as np
import pytest

from abex import Player
from abex.players.events import ArmAdded, ArmRemoved, Decided, Expired, Rewarded, decode
from abex.players.player_file import state_text
from tests.naive.inference import PlayerBets

REWARDS = (0.0, 0.25, 1.0)


class Pair:
    """A player, and the oracle that is told the same."""

    def __init__(self, folder, policy, seed, **settings):
        self.rng, self.now, self.folder = np.random.default_rng(seed), 1_700_000_000.0, folder
        self.player = Player(policy, n_arms=3, seed=seed, clock=lambda: self.now, compiled=False, **settings)
        self.slow = PlayerBets([0, 1, 2], self.player.settings.expire is not None)
        self.open = {}  # id -> arm, moment
        self.settings = settings

    def law(self):
        if not self.player._state.works_out:
            return {}
        found = self.player.probabilities().astype(np.float32).astype(float)
        return dict(zip(self.player.arms, found.tolist(), strict=True)) if (found > 0).sum() > 1 else {}

    def decide(self):
        self.expire()
        law, made = self.law(), self.player.decide()
        self.open[made.id] = made.arm, self.now
        self.slow.decided(made.id, made.arm, law)

    def decide_many(self):
        self.expire()
        for made in self.player.decide_many(2):
            self.open[made.id] = made.arm, self.now
            self.slow.decided(made.id, made.arm, {})

    def side(self, arm):
        others = [one for one in self.player.arms if one != arm]
        chosen = (
            self.rng.choice(others, size=self.rng.integers(0, 2), replace=False).tolist() if others else []
        )
        return {other: self.rng.choice(REWARDS) for other in chosen}

    def reward(self):
        self.expire()
        if self.open:
            name = self.rng.choice(list(self.open))
            arm, _ = self.open.pop(name)
            paid, also = self.rng.choice(REWARDS), self.side(arm)
            assert self.player.update(name, paid, also)
            self.slow.closed(name, paid, also)

    def observe(self):
        self.expire()
        free = [arm for arm in self.player.arms if arm not in [one for one, _ in self.open.values()]]
        if free:
            arm = self.rng.choice(free).item()
            paid, also = self.rng.choice(REWARDS), self.side(arm)
            self.player.update(arm, paid, also)
            self.slow.observed(arm, paid, also)

    def add(self):
        self.expire()
        self.slow.arms.append(self.player.add_arm())

    def remove(self):
        self.expire()
        arm = self.rng.choice(self.player.arms).item()
        if self.player.n_arms > 2:
            self.player.remove_arm(arm)
            self.slow.removed(arm)
            for name in [name for name, (one, _) in self.open.items() if one == arm]:
                del self.open[name]
                self.slow.closed(name, None, {})

    def wait(self):
        self.now += self.rng.choice([0.5, 40.0])

    def expire(self):
        span = None if self.player.settings.expire is None else self.player.settings.expire / 1000
        gone = (
            [] if span is None else [name for name, (_, then) in self.open.items() if then + span <= self.now]
        )
        for name in gone:
            del self.open[name]
            self.slow.closed(name, self.player.settings.unrewarded, {})
        self.player.pending()

    def keep(self):
        path = self.folder / "player.json"
        self.player.save(path)
        again = Player.load(path, compiled=False, clock=lambda: self.now)
        for one in (again, self.player.copy()):
            assert state_text(one._state, 0) == state_text(self.player._state, 0)
        self.player = again

    def agree(self):
        slow, known = self.slow.known(), self.player._state.bets.comparison()
        for name, values in slow.items():
            assert getattr(known, name) == pytest.approx(np.array(values), rel=1e-9), name


STEPS = ["decide"] * 6 + ["reward"] * 5 + ["observe", "wait", "decide_many", "keep", "add", "remove"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("TopTwo", {}),
        ("TopTwo", {"expire": 60.0}),
        ("Evidence", {"expire": 60.0, "unrewarded": None}),
        ("Evidence", {"window": 60.0, "propensities": True}),
        ("UCB1", {"expire": 60.0}),
        ("Thompson", {}),
        ("EpsilonGreedy(epsilon=0.3)", {"propensities": False}),
    ],
)
def test_bets_are_those_of_the_oracle_after_every_event(tmp_path, policy, settings, seed):
    pair = Pair(tmp_path, policy, seed, **settings)
    for _ in range(60):
        step = str(pair.rng.choice(STEPS))
        getattr(pair, step)()
        pair.agree()


def test_a_reward_is_settled_when_it_can_change_no_more():
    now = [1_700_000_000.0]
    options = {"window": 100.0, "conversions": "sum", "corrections": 150.0, "clock": lambda: now[0]}
    player = Player("Evidence", n_arms=2, compiled=False, **options)
    first, second = player.decide(), player.decide()
    player.update(second.id, 1.0)
    player.update(first.id, 0.25, key="a shirt")
    player.update(first.id, 0.5, key="a hat")
    player.correct(first.id, 0.25, key="a hat")
    now[0] += 120.0
    player.decide()
    copied, known = player.copy(), player._state.bets.comparison()
    assert known.observations.sum() == 0, "what they paid may still be corrected"
    now[0] += 50.0
    for one in (player, copied):
        one.decide()
        known = one._state.bets.comparison()
        assert (known.observations.sum(), known.sums.sum()) == (2, 1.5)


def test_what_was_lost_is_known_after_a_save_before_the_first_reward(tmp_path):
    player = Player("Thompson", n_arms=2, compiled=False, max_pending=1)
    player.decide(), player.decide()  # the first is forgotten
    player.save(tmp_path / "player.json")
    again = Player.load(tmp_path / "player.json", compiled=False)
    assert state_text(again._state, 0) == state_text(player._state, 0)
    assert again._state.bets.late


def test_observations_do_not_wait_for_one_decision_without_bounds():
    player = Player("UCB1", arms=["a", "b"], expire=60.0, max_pending=5, compiled=False)
    waits = player.decide()
    other = next(arm for arm in player.arms if arm != waits.arm)
    for _ in range(20):
        player.update(other, 1.0)
    bets = player._state.bets
    assert len(bets.order or ()) <= 5
    assert bets.comparison().observations.sum() >= 15
    assert bets.late
    player.update(waits, 1.0)
    assert (list(bets.order or ()), bets.closed, bets.passed) == ([], {}, {})
    assert bets.comparison().observations.sum() == 20, "what was not waited for is left out"


def test_an_order_that_is_sent_back_counts_as_such_where_it_waits_for_earlier_decisions():
    player = Player("Evidence", n_arms=2, compiled=False, window=100.0)
    first, second = player.decide(), player.decide()
    player.update(second, 1.0)
    player.correct(second, 0.0)
    player.update(first, 1.0)
    known = player._state.bets.comparison()
    assert (known.observations.sum(), known.sums.sum()) == (2, 1.0)


@pytest.mark.parametrize("propensities", [None, True])
def test_probabilities_of_many_arms_are_worked_out_with_a_decision_only_where_asked_for(propensities):
    player = Player("Evidence", n_arms=101, seed=0, compiled=False, propensities=propensities)
    made = player.decide()
    assert (made._probability is None) == (propensities is None)
    player.remove_arm(next(arm for arm in player.arms if arm != made.arm))
    assert player.decide()._probability is not None


@pytest.mark.parametrize("shared", [False, True])
def test_rewards_become_final_though_nothing_is_decided_any_more(tmp_path, shared):
    now = [1_700_000_000.0]
    options = {"n_arms": 2, "compiled": False, "corrections": 100.0, "clock": lambda: now[0]}
    url = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    player = Player.open(url, "shop", "UCB1", **options) if shared else Player("UCB1", **options)
    player.update(player.decide(), 1.0)
    assert player.winner().arms[0].n + player.winner().arms[1].n == 0
    now[0] += 150.0
    if shared:
        player.expire()
        player.flush()
    assert player.winner().arms[0].n + player.winner().arms[1].n == 1
    if shared:
        player.close()


def told(player):
    """The oracle of a journal: it reads the laws that its decisions remember, by the arms that were there then."""
    slow, arms, open_ = PlayerBets([0, 1, 2], player.settings.expire is not None), [[0, 1, 2]], {}
    for _, body in player.events():
        event = decode(body)
        if isinstance(event, Decided):
            shares = np.frombuffer(event.law, "<f4").tolist()
            law = dict(zip(arms[event.epoch], shares, strict=True)) if shares else {}
            if event.arm in slow.arms:
                open_[event.id] = event
                slow.decided(event.id, event.arm, law)
        elif isinstance(event, Rewarded) and event.decision in open_:
            del open_[event.decision]
            slow.closed(event.decision, event.reward, event.also)
        elif isinstance(event, Expired):
            for name in [name for name, one in open_.items() if one.moment <= event.cutoff]:
                del open_[name]
                slow.closed(name, 0.0, {})
        elif isinstance(event, ArmAdded):
            slow.arms.append(max(max(one) for one in arms) + 1)
            arms.append(list(slow.arms))
        elif isinstance(event, ArmRemoved):
            slow.removed(event.arm)
            for name in [name for name, one in open_.items() if one.arm == event.arm]:
                del open_[name]
                slow.closed(name, None, {})
            arms.append(list(slow.arms))
    return slow.known()


@pytest.mark.parametrize("expire", [None, 60.0])
@pytest.mark.parametrize("policy", ["Thompson", "Evidence"])
def test_replicas_bet_alike_compiled_or_not_from_the_journal_and_from_snapshots(tmp_path, policy, expire):
    url, now = f"sqlite:///{tmp_path}/shop.db?synchronous=normal", [1_700_000_000.0]
    options = {"n_arms": 3, "expire": expire, "clock": lambda: now[0], "snapshot_every": 25}
    one = Player.open(url, "x", policy, seed=1, compiled=False, **options)
    two = Player.open(url, "x", policy, seed=2, compiled=True, **options)
    rng, waiting = np.random.default_rng(3), []
    for step in range(90):
        player, other = (one, two) if rng.random() < 0.5 else (two, one)
        waiting.append((player.decide().id, player))
        if step in (30, 70):
            other.add_arm()  # before the decision is written
        if step == 50:
            other.remove_arm(other.arms[0])
        if rng.random() < 0.8:
            name, maker = waiting.pop(rng.integers(len(waiting)))
            maker.flush()
            player.refresh()
            player.update(name, float(rng.choice(REWARDS)))
        now[0] += 5.0
    for player in (one, two, one, two):
        player.refresh()
    assert one.text() == two.text()
    assert one._state.bets.bet > 40
    slow, known = told(one), two._state.bets.comparison()
    for name, values in slow.items():
        assert getattr(known, name) == pytest.approx(np.array(values), rel=1e-9), name
    with Player.open(url, "x") as again:
        assert again.text() == one.text()
    one.close()
    two.close()
