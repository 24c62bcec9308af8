"""Bets and sums against their slow companions, in every order of arrival; who wins, and how often wrongly."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from abex import UserError
from abex.inference import betting, moments, sums, winner
from abex.inference.betting import compared, new_comparison, take_in
from abex.kernels import compile_alone, kernel
from tests.naive import inference as naive

FRACTIONS = some.sampled_from([0.0, 0.125, 0.5, 1.0])
ROWS = some.lists(some.tuples(some.integers(0, 2), FRACTIONS), min_size=1, max_size=25)


@kernel
def growth_by_moments(count, total, squares, mean, sign):
    """Evidence that a mean is above (sign 1) or below (sign -1) ``mean``."""
    _, shift, spread = moments.by_bound(count, total, squares, mean, sign)
    return moments.mixed(shift, spread)


def played(rows, seed):
    """A comparison of three arms that were drawn with probabilities of which some are 0, and what it was told."""
    arms, rewards = np.array([arm for arm, _ in rows]), np.array([paid for _, paid in rows])
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet([0.5] * 3, len(rows)) * (rng.random((len(rows), 3)) < 0.9)
    state = new_comparison(3)
    for arm, reward, chance in zip(arms, rewards, chances, strict=True):
        take_in(state, int(arm), float(reward), chance)
    return state, arms, rewards, chances


@settings(max_examples=40, deadline=None)
@given(ROWS, some.integers(0, 1000), some.randoms(use_true_random=False))
def test_bets_are_as_they_are_defined_in_every_order_of_arrival(rows, seed, order):
    order.shuffle(rows)
    state, arms, rewards, chances = played(rows, seed)
    wealth, best = naive.bets(arms, rewards, chances, 3)
    assert np.allclose(state.wealth, wealth, rtol=1e-9)
    assert np.allclose(state.evidence, best, rtol=1e-9)
    assert np.allclose([state.leading, state.leading_sums], naive.leaders_sums(arms, rewards, 3))
    assert np.allclose(state.sums, np.bincount(arms, rewards, 3))
    assert np.allclose(state.squares, np.bincount(arms, rewards**2, 3))


def test_compiled_bets_are_the_interpreted_ones_to_the_last_bit():
    rng = np.random.default_rng(1)
    rows = list(zip(rng.integers(0, 3, 300).tolist(), rng.random(300).tolist(), strict=True))
    slow, arms, rewards, chances = played(rows, 5)
    fast, _ = compared(arms, rewards, chances, 3)
    for name in ("wealth", "evidence", "sums", "leading", "leading_sums"):
        assert np.array_equal(getattr(slow, name), getattr(fast, name)), name


def test_wealth_is_neither_lost_nor_endless():
    """The worst that can come, for long: nothing overflows, and no bet loses more than it has."""
    state, _ = compared([0, 1] * 20_000, [1.0, 0.0] * 20_000, [[0.5, 0.5]], 2)
    assert np.isfinite(state.wealth).all()
    assert state.wealth.max() <= betting.RICHEST
    assert (state.wealth >= 0.0).all()
    assert betting.left_over(state, 1e100) == 0


@settings(max_examples=60, deadline=None)
@given(
    some.integers(1, 5000), some.floats(0.0, 1.0), some.floats(0.001, 0.999), some.sampled_from([1.0, -1.0])
)
def test_growth_of_sums(n, rate, mean, sign):
    found = sums.log_growth(float(n), n * rate, mean, sign)
    assert found == pytest.approx(naive.log_growth(n, n * rate, mean, sign), rel=1e-9, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    some.lists(FRACTIONS, min_size=1, max_size=60), some.floats(0.01, 0.99), some.sampled_from([1.0, -1.0])
)
def test_growth_of_moments(rewards, mean, sign):
    x = np.array(rewards)
    found = growth_by_moments(float(x.size), x.sum(), (x * x).sum(), mean, sign)
    assert found == pytest.approx(naive.log_growth_of_moments(x, mean, sign), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(("n", "s", "m", "t"), [(50, 30, 80, 20), (10, 0, 10, 4), (1000, 21, 400, 2)])
def test_ends_are_where_the_evidence_reaches_the_level(n, s, m, t):
    level, grid = math.log(40.0), np.linspace(0.0, 1.0, 4001)
    low, high = sums.interval(n, s)
    for end, sign, beyond in ((low, 1.0, -1e-6), (high, -1.0, 1e-6)):
        if 0.0 < end < 1.0:
            assert naive.log_growth(n, s, end + beyond, sign) >= level
            assert naive.log_growth(n, s, end - beyond, sign) < level
    low, high = sums.difference(n, s, m, t)
    assert low < s / n - t / m < high
    for d, sign in ((low, 1.0), (high, -1.0)):
        assert naive.least_difference((n, s), (m, t), d, sign, grid) == pytest.approx(level, abs=0.02)
    low, high = sums.ratio(n, s, m, t)
    assert low <= (s + 0.5) * (m + 1) / (t + 0.5) / (n + 1) <= high


def test_a_difference_by_moments_is_refuted_for_every_mean_of_the_second_arm():
    """The least over a grid sixty times as fine reaches the level too."""
    rng = np.random.default_rng(2)
    x, y = rng.beta(2.0, 20.0, 500), rng.beta(2.0, 22.0, 300)
    one, other = ((z.size, z.sum(), (z * z).sum()) for z in (x, y))
    low, high = moments.difference_by_moments(one, other)
    assert low < x.mean() - y.mean() < high
    level = math.log(2.0 / (0.9 * 0.05))
    (lowest, highest), (least, most) = (
        moments.interval_by_moments(*arm, 0.1 * 0.05 / 2.0) for arm in (one, other)
    )
    for d, sign in ((low, 1.0), (high, -1.0)):
        first, last = max(least, lowest - d), min(most, highest - d)
        grid = np.linspace(first, last, 2001)
        growth = min(naive.log_growth_of_both(x, y, m + d, m, sign) for m in grid)
        assert growth == pytest.approx(level, abs=0.01)


def test_a_difference_by_moments_is_left_at_any_time_in_few_runs():
    """500 runs in which the second arm comes four times as often as the first, at the true means; 5 % of each side."""
    rng, runs, left = np.random.default_rng(9), 500, 0
    looks, growth = (
        np.unique(np.geomspace(5, 3_000, 40).astype(int)),
        compile_alone(moments.log_growth_of_both),
    )
    for _ in range(runs):
        x, y = rng.beta(1.0, 4.0, looks[-1]), 0.1 * (rng.random(4 * looks[-1]) < 0.5)
        sums_of = [np.cumsum([np.ones(z.size), z, z * z], axis=1) for z in (x, y)]
        known = [(*sums_of[0][:, n - 1], 0.2, *sums_of[1][:, 4 * n - 1], 0.05) for n in looks]
        left += np.array(
            [[growth(*one, sign) >= math.log(20.0) for sign in (1.0, -1.0)] for one in known]
        ).any(0)
    assert (left / runs <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / runs)).all()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_intervals_leave_the_mean_at_any_time_in_few_runs(scale):
    """400 runs of 3,000 rewards, looked at at every one of the first 100 and every 20th; the bound is 5 %."""
    rng, runs, mu, level = np.random.default_rng(3), 400, 0.3 * scale, math.log(40.0)
    looks = [*range(1, 100), *range(100, 3001, 20)]
    by_sums, by_moments = compile_alone(sums.log_growth), compile_alone(growth_by_moments)
    left = np.zeros(2)
    for _ in range(runs):
        x = scale * (rng.random(3000) < 0.3)
        s, q = np.cumsum(x)[np.array(looks) - 1], np.cumsum(x * x)[np.array(looks) - 1]
        totals = list(zip(map(float, looks), s, q, strict=True))
        signed = [(*one, sign) for one in totals for sign in (1.0, -1.0)]
        left += [
            any(by_sums(n, s, mu, sign) >= level for n, s, _, sign in signed),
            any(by_moments(n, s, q, mu, sign) >= level for n, s, q, sign in signed),
        ]
    assert (left / runs <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / runs)).all()


def season(n_steps):
    """A level that moves by half, for all arms alike."""
    return 1.0 + 0.5 * np.sin(np.arange(n_steps) / n_steps * 8.0 * math.pi)


@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_bets_name_wrong_winners_at_most_at_the_risk_though_levels_move_and_the_allocation_follows(risk):
    """1,000 runs of 2,000 steps on arms .31 and .30 in seasons, drawn by a greedy rule that seasons fool."""
    wrong, runs, steps = 0, 1000, 2000
    level = season(steps)
    for run in range(runs):
        rng = np.random.default_rng([4, run])
        uniforms, coins = rng.random(steps), rng.random(steps)
        wrong += greedy_run(uniforms, coins, level, risk) == 1
    assert wrong / runs <= risk + 2.0 * math.sqrt(risk / runs)


def greedy_run(uniforms, coins, level, risk):
    """Which arm is named the winner where the arm of the larger mean is drawn with probability .9."""
    return compile_alone(greedy_steps)(new_comparison(2), uniforms, coins, level, 1.0 / risk, np.zeros(2))


def greedy_steps(state, uniforms, coins, level, bar, chances):
    for t in range(uniforms.size):
        lead = betting.leading_arm(state)
        chances[:] = 0.5 if lead < 0 else 0.1
        if lead >= 0:
            chances[lead] = 0.9
        arm = 0 if uniforms[t] < chances[0] else 1
        betting.take_in(state, arm, 1.0 if coins[t] < (0.31 - 0.01 * arm) * level[t] else 0.0, chances)
        found = betting.left_over(state, bar)
        if found >= 0:
            return found
    return -1


def test_sums_name_the_winner_of_arms_that_do_not_move_without_any_probability():
    rng = np.random.default_rng(6)
    arms = np.arange(4000) % 3
    rewards = (rng.random(4000) < np.array([0.3, 0.5, 0.35])[arms]).astype(float)
    state, when = compared(arms, rewards, np.zeros((1, 3)), 3)
    assert when == -1, "nothing is bet without probabilities"
    found = winner.verdict(state, ["a", "b", "c"], method=winner.SUMS)
    assert found.winner == "b"
    assert "level of no arm moves" in found.sentence
    count, total = state.leading.sum(), state.leading_sums.sum()
    grid = np.linspace(0.0, 1.0, 2001)
    slow = [
        naive.least_sum(
            lambda m, k=k: naive.log_growth(count - state.leading[k], total - state.leading_sums[k], m, 1.0),
            lambda m, k=k: naive.log_growth(state.observations[k], state.sums[k], m, -1.0),
            grid,
        )
        for k in range(3)
    ]
    assert winner.log_evidence(state, winner.SUMS) == pytest.approx(slow, abs=0.02)


def test_equal_arms_are_found_alike_and_a_forecast_says_how_long_it_takes():
    arms = np.arange(20_000) % 2
    rewards = ((np.arange(20_000) // 2) % 10 == 0).astype(float)
    state, _ = compared(arms, rewards, [[0.5, 0.5]], 2)
    found = winner.verdict(state, ["a", "b"], at_least=0.03)
    assert found.winner is None
    assert found.alike == ("a", "b")
    assert found.sentence.startswith("keep a: b cannot be better by 0.03")
    early = winner.verdict(state, ["a", "b"], at_least=0.001)
    assert not early.alike
    assert early.remaining is not None
    assert "roughly" in early.sentence


def test_a_forecast_falls_also_where_the_rival_is_played_ever_less_often():
    """As a policy of small regret plays: by log t, so that all decisions so far say nothing of those that are missing."""
    rows, forecasts = 100_000, []
    law = np.minimum(0.5, 300.0 / np.arange(1, rows + 1))
    for seed in range(9):
        rng = np.random.default_rng(seed)
        arms = (rng.random(rows) < law).astype(np.int64)  # arm 1 is the worse one
        rewards = (rng.random(rows) < np.where(arms, 0.4, 0.5)).astype(float)
        chances = np.column_stack([1.0 - law, law])
        _, stop = compared(arms, rewards, chances, 2)
        assert stop > 0
        told = []
        for share in (0.3, 0.6, 0.9):  # of the rival's plays up to the winner
            at = int(np.searchsorted(np.cumsum(arms), share * arms[:stop].sum()))
            found = winner.verdict(compared(arms[:at], rewards[:at], chances[:at], 2)[0], ["a", "b"])
            assert found.rival == "b"
            told.append(found.remaining / arms[at:stop].sum())
        forecasts.append(told)
    early, middle, late = np.median(forecasts, axis=0)
    assert 0.3 < early < 3.0, early  # of what is truly missing, the median of nine runs
    assert 0.3 < middle < 3.0, middle
    assert 0.3 < late < 5.0, late


def test_a_best_arm_that_changes_is_said():
    arms = np.arange(8000) % 2
    rewards = ((arms == 0) == (np.arange(8000) < 2000)).astype(float)
    state, _ = compared(arms, rewards, [[0.5, 0.5]], 2)
    assert "best one changes" in winner.verdict(state, ["a", "b"]).sentence


@pytest.mark.parametrize("risk", [0.0, 1.0, -1.0, float("nan"), "0.05", True])
def test_a_risk_that_is_none_is_named(risk):
    with pytest.raises(UserError, match="risk must be"):
        winner.verdict(new_comparison(2), ["a", "b"], risk=risk)


def test_one_arm_alone_has_no_winner():
    with pytest.raises(UserError, match="one alone"):
        winner.verdict(new_comparison(1), ["a"])


def test_nothing_observed_says_nothing():
    found = winner.verdict(new_comparison(3), ["a", "b", "c"])
    assert found.winner is found.leader is found.remaining is None


def test_shares_that_are_right_seldom_alarm_and_wrong_ones_are_found():
    rng, alarms = np.random.default_rng(7), 0
    for _ in range(300):
        counts = np.cumsum(rng.random(5000) < 0.5)
        alarms += any(
            sums.sample_ratio([counts[i], i + 1 - counts[i]], [0.5, 0.5]) >= 20.0
            for i in range(19, 5000, 120)
        )
    assert alarms / 300 <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / 300)
    assert sums.sample_ratio([5_600, 4_400], [0.5, 0.5]) > 100.0


def test_intervals_of_many_arms_at_once_are_those_one_by_one_and_end_at_the_level():
    counts, totals = np.array([0, 10, 10, 1000]), np.array([0, 0, 10, 37])
    assert np.transpose(sums.interval(counts, totals)) == pytest.approx(
        np.array([sums.interval(n, s) for n, s in zip(counts, totals, strict=True)]), abs=1e-12
    )
    squares = np.array([0.0, 0.0, 10.0, 12.5])
    low, high = moments.interval_by_moments(counts, totals, squares)
    assert np.transpose([low, high]) == pytest.approx(
        np.array([moments.interval_by_moments(*one) for one in zip(counts, totals, squares, strict=True)]),
        abs=1e-12,
    )
    for end, sign in ((low[3], 1.0), (high[3], -1.0)):
        assert growth_by_moments(1000.0, 37.0, 12.5, end, sign) == pytest.approx(math.log(40.0), abs=1e-6)
