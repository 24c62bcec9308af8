"""A player whose silence counts when a window ends: what it knows while windows are open."""

import heapq
import math
from datetime import timedelta

import numpy as np
import pytest

from abex import UCB1, Bernoulli, Evidence, Player, Thompson, UserError
from abex.inference.sums import interval
from abex.players.open_windows import Weighed
from abex.simulation import as_checkpoints, play_replication
from abex.simulation.delays import Conversions, Geometric, delay_at, delay_table
from abex.support.randomness import counter_key, stream

RATES = {"red": 0.05, "green": 0.08, "blue": 0.12}
WINDOW = 1800


class Shop:
    """Visitors of a shop on a clock of its own: one a second, clicks after 20 seconds, silence never reported."""

    def __init__(self, policy, seed, **options):
        self.now, self.waiting, self.shown = 0.0, [], []
        self.rng = np.random.default_rng(seed)
        self.player = Player(
            policy,
            arms=list(RATES),
            window=timedelta(seconds=WINDOW),
            seed=seed,
            clock=lambda: self.now,
            **options,
        )

    def visit(self, rates=RATES):
        self.now += 1.0
        while self.waiting and self.waiting[0][0] <= self.now:
            assert self.player.update(heapq.heappop(self.waiting)[1], True)
        shown = self.player.decide()
        self.shown.append(shown.arm)
        if self.rng.random() < rates[shown.arm]:
            heapq.heappush(self.waiting, (self.now + self.rng.exponential(20.0), shown.id))
        return shown


def test_the_head_of_a_summary_counts_as_its_table_does():
    """A decision that has its conversion is pending until its window ends: others may follow."""
    shop = Shop(UCB1(), seed=1)
    first = shop.player.decide()
    shop.player.decide()
    shop.player.update(first, True)
    found = shop.player.summary()
    assert sum(row.pending for row in found) == 2
    assert "1 rewarded, 2 pending, 0 expired" in found.caption


@pytest.mark.parametrize("policy", [UCB1(), Thompson(), Evidence()])
def test_player_and_simulator_agree_event_by_event(policy):
    world, delay, horizon = Bernoulli([0.2, 0.5, 0.7, 0.4]), Conversions(Geometric(12), window=90), 300
    now = [0.0]
    player = Player(
        policy, 4, horizon=horizon, seed=5, window=timedelta(seconds=90), compiled=False, clock=lambda: now[0]
    )
    player._rng = stream(3, 0, "policy", repr(policy))
    opened = world.open(counter_key(3, 0, "environment"), horizon)
    pulls, waiting = [], []
    with np.errstate(over="ignore"):
        table = delay_table(delay, counter_key(3, 0, "delay"), 4)
        for t in range(1, horizon + 1):
            now[0] = float(t)
            for _, decision in sorted((one for one in waiting if one[0] == t), key=lambda one: one[1].id):
                player.update(decision, 1.0)
            decision = player.decide()
            pulls.append(decision.arm)
            late = delay_at(table, t, decision.arm)
            if late <= 90 and world.draw(opened, t, decision.arm) > 0.0:
                waiting.append((t + late, decision))
    steps = as_checkpoints(range(1, horizon + 1), horizon)
    result = play_replication(policy, world, None, steps, 3, 0, delay=delay, interpreted=True)
    assert np.allclose(np.diff(result.regret, prepend=0.0), 0.7 - np.array(world.means)[pulls], atol=1e-12)


def test_a_shop_that_never_reports_silence_finds_its_best_banner():
    """Uniform choice earns 0.083, always the best banner 0.12; counting early clicks alone is no better than chance."""
    earned = []
    for seed in range(4):
        shop = Shop(Evidence(), seed)
        for _ in range(4_000):
            shop.visit()
        earned.append(np.mean([RATES[arm] for arm in shop.shown[2_000:]]))
    assert np.mean(earned) > 0.105


def test_the_summary_never_shows_a_mean_of_early_clicks_alone():
    """Uniform shares: every mean is within four standard errors of its rate at every look."""
    shop = Shop(Thompson(successes=1e9, failures=1e9), 3)  # as good as uniform
    for visitor in range(3_000):
        shop.visit()
        if visitor >= 200 and visitor % 100 == 0:
            for row in shop.player.summary():
                error = math.sqrt(RATES[row.arm] / row.pulls)
                assert abs(row.mean - RATES[row.arm]) < 4 * error + 0.01
                assert row.low <= row.mean <= row.high


@pytest.mark.parametrize("silence", [0.0, 0.3, 1.0])
def test_intervals_are_of_means_that_early_answers_do_not_refute(silence):
    """Of n decisions of the mean weight g, each has paid s + g (m - s) on average: m is in unless that is outside."""
    grid = np.linspace(0.0, 1.0, 2_001)
    for mean, share in ((0.6, 0.25), (0.3, 0.5), (0.9, 1.0)):
        n, paid = 400.0, silence + share * (mean - silence)
        of_arm = Weighed(*np.array([[100.0], [300.0], [n * share], [n * (paid - silence)]]), silence)
        low, high = (end[0] for end in of_arm.intervals(0.05))
        least, most = (end[0] for end in interval(np.array([n]), np.array([n * paid]), 0.05))
        possible = grid[
            (least <= silence + share * (grid - silence)) & (silence + share * (grid - silence) <= most)
        ]
        assert of_arm.means()[0] == pytest.approx(mean)
        assert (low, high) == pytest.approx((possible[0], possible[-1]), abs=1e-3)


def test_a_bad_banner_that_comes_later_gets_no_more_than_its_share():
    shares = []
    for seed in range(3):
        shop = Shop(Evidence(), seed)
        for _ in range(3_000):
            shop.visit()
        shop.player.add_arm("new")
        for _ in range(WINDOW):
            shop.visit(RATES | {"new": 0.02})
        shares.append(np.mean([arm == "new" for arm in shop.shown[3_000:]]))
    assert np.mean(shares) < 1.5 / 4


def test_silence_that_is_reported_counts_at_once_and_in_full():
    now = [0.0]
    player = Player(UCB1(), 1, window=timedelta(seconds=100), clock=lambda: now[0])
    first, second, third = player.decide(), player.decide(), player.decide()
    assert player.update(first, 0.0)
    assert not player.update(first, 1.0)
    assert player._state.state.observations[0] >= 1.0
    assert player.update(second, 1.0)
    now[0] = 101.0
    assert player.pending() == []
    assert not player.update(third, 1.0)
    player.decide()
    (row,) = player.summary()
    assert row.mean == pytest.approx(1 / 3, abs=0.05)


def test_probabilities_of_decisions_are_there_although_a_decision_lets_others_grow_older():
    shop = Shop(Evidence(), 1)
    for _ in range(50):
        shop.visit()
        shop.now += 1.0
        chances = dict(zip(shop.player.arms, shop.player.probabilities(), strict=True))
        shown = shop.player.decide()
        assert shown.probability == pytest.approx(chances[shown.arm])
    batch = shop.player.decide_many(2)
    assert all(0.0 < one.probability <= 1.0 for one in batch)


def test_amounts_and_losses_are_seen_over_what_silence_pays():
    now = [0.0]
    player = Player(
        Thompson(), 2, rewards=(-10, 10), unrewarded=-2.0, window=timedelta(seconds=10), clock=lambda: now[0]
    )
    for step in range(200):
        now[0] = float(step)
        decision = player.decide()
        if step % 2:
            player.update(decision, 4.0)
    now[0] = 300.0
    player.decide()
    for row in player.summary():
        assert row.mean == pytest.approx(1.0, abs=2.0)


def test_where_all_is_reported_at_once_the_mean_is_the_plain_one():
    now = [0.0]
    player = Player(Thompson(), 1, window=timedelta(minutes=30), clock=lambda: now[0])
    for step in range(40):
        now[0] = step / 1000.0  # all in the first of the ages
        player.update(player.decide(), step % 4 == 0)
    (row,) = player.summary()
    assert (row.observations, row.mean) == (40, pytest.approx(0.25, abs=0.02))


def test_a_copy_a_file_and_what_is_asked_between_change_nothing(tmp_path):
    ours, theirs = Shop(Evidence(), 5), Shop(Evidence(), 5)
    for visitor in range(600):
        ours.visit()
        theirs.visit()
        if visitor % 50 == 0:
            theirs.player.summary()
            theirs.player.probabilities()
            theirs.player.save(tmp_path / "player.json")
            ours.player.save(tmp_path / "ours.json")  # who saves makes samplers anew
            theirs.player = Player.load(tmp_path / "player.json", clock=theirs.player._clock)
    assert ours.shown == theirs.shown


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (UCB1(), {"window": timedelta(0)}, "window must be a time"),
        (UCB1(), {"window": timedelta(1), "expire": timedelta(1)}, "give it without expire"),
        (UCB1(), {"window": timedelta(1), "unrewarded": None}, "with unrewarded"),
        ("Uniform", {"window": timedelta(1)}, "cannot weigh silence"),
    ],
)
def test_what_is_no_window_is_refused_in_one_sentence(policy, options, message):
    with pytest.raises(UserError, match=message):
        Player(policy, 2, **options)


def test_processes_of_a_store_know_the_same_of_silence(tmp_path):
    """Two processes' players on one journal: equal after every event, and from a snapshot."""
    url = f"sqlite:///{tmp_path}/shop.db"
    options = {"arms": ["red", "green"], "window": timedelta(minutes=5), "propensities": False}
    with Player.open(url, "banner", Thompson(), **options) as first:
        made = [first.decide() for _ in range(60)]
        for one in made[::6]:
            assert first.update(one, True)
        with Player.open(url, "banner", Thompson(), **options) as second:
            second.refresh()
            ours, theirs = first.summary(), second.summary()
            assert [(row.arm, row.mean, row.observations) for row in ours] == [
                (row.arm, row.mean, row.observations) for row in theirs
            ]
    with pytest.raises(UserError, match=r"window is 300\.0 seconds in the journal, not None"):
        Player.open(url, "banner", Thompson(), arms=["red", "green"], expire=timedelta(minutes=5))
