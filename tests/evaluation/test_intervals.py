"""Intervals of values: the bet against its definition, and how often they hold on logs of policies that learn."""

import math

import numpy as np
import pytest

from abex.evaluation import Log, Side, evaluate
from abex.evaluation.estimators import ESTIMATORS
from abex.evaluation.target import as_target
from abex.evaluation.uncertainty import guaranteed, least_mean, likely
from abex.players.player_settings import PlayerSettings
from abex.service.timeline import MAX_BLOCKS, UniformChoice

LOGS, ROWS = 1_000, 400
MEANS = np.array([0.2, 0.4, 0.5, 0.6])
WORST, EVEN = np.array([1.0, 0.0, 0.0, 0.0]), np.full(4, 0.25)
LOWEST = 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / LOGS)


def growth_of_the_best_share(values, v):
    shares = 1.0 / (1.0 + np.exp(-np.linspace(-16.0, 16.0, 4_001)))
    return max(float(np.log1p(share * (values / v - 1.0)).sum()) for share in shares)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).random(40) < 0.3,
        np.random.default_rng(2).pareto(1.5, 40),
        np.append(np.zeros(30), 50.0),
        np.random.default_rng(3).random(20) + 0.5,  # the whole stake is not enough
    ],
)
def test_the_lower_end_is_where_the_best_bet_makes_the_threshold(values):
    values = np.asarray(values, float)
    for threshold in (0.3, 1.92, 6.0):
        v = least_mean(values, threshold)
        assert growth_of_the_best_share(values, v) == pytest.approx(threshold, rel=1e-3)
        assert least_mean(1e-6 * values, threshold) == pytest.approx(1e-6 * v)
    assert least_mean(np.zeros(5), 2.0) == 0.0


def test_the_guaranteed_interval_is_that_of_covers_portfolio():
    """Of n rewards of 1 with weight 1 the best share is all, which makes 1/v to the power of n."""
    n, level = 50, 0.9
    found = ESTIMATORS["IPS"](Log(["a"], np.zeros(n, int), np.ones(n), np.ones(n)), np.ones(1))
    worth = 2.0 / (1.0 - level) * 2.0 * math.sqrt(n + 1.0)
    assert guaranteed(found, (0.0, 1.0), level) == pytest.approx((worth ** (-1.0 / n), 1.0))


def collected(kind, seed=11):
    """Arms, probabilities and rewards of 1,000 lives side by side."""
    rng = np.random.default_rng([seed, len(kind)])
    each, gains, counts = np.arange(LOGS), np.zeros((LOGS, 4)), np.zeros((LOGS, 4))
    columns, rate = [], math.sqrt(2.0 * math.log(4) / (4 * ROWS))
    for _ in range(ROWS):
        if kind == "EXP3":
            p = np.exp(rate * (gains - gains.max(axis=1, keepdims=True)))
            p /= p.sum(axis=1, keepdims=True)
        else:  # greedy with a softmax that sharpens as it learns, and gives up arms that began badly
            seen = (gains + 0.5) / (counts + 1.0)
            p = np.exp(10.0 * (seen - seen.max(axis=1, keepdims=True)))
            p /= p.sum(axis=1, keepdims=True)
        arm = (rng.random((LOGS, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 3)
        reward = (rng.random(LOGS) < MEANS[arm]).astype(float)
        columns.append((arm, p[each, arm], reward))
        gains[each, arm] += reward / p[each, arm] if kind == "EXP3" else reward
        counts[each, arm] += 1.0
    arm, chance, reward = (np.array(column).T for column in zip(*columns, strict=True))
    return [Log(range(4), arm[one], chance[one], reward[one]) for one in range(LOGS)]


@pytest.mark.parametrize("kind", ["EXP3", "softmax"])
@pytest.mark.parametrize("target", [WORST, EVEN], ids=["worst", "uniform"])
def test_intervals_hold_on_logs_of_policies_that_learn(kind, target, lives):
    logs, truth = lives[kind], float(target @ MEANS)
    for name, some in (
        ("IPS", logs),
        ("doubly robust", logs),
        ("replay", logs[:200]),
        ("SNIPS", logs[:200]),
        ("direct", logs[:200]),
    ):
        ends = np.array([likely(ESTIMATORS[name](log, target), (0.0, 1.0), 0.95) for log in some])
        inside = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
        assert inside > 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / len(some)), name
    found = [ESTIMATORS["IPS"](log, target) for log in logs[:200]]
    sure = np.array([guaranteed(one, (0.0, 1.0), 0.95) for one in found])
    assert ((sure[:, 0] <= truth) & (truth <= sure[:, 1])).mean() >= 0.98


RING = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])  # a pull shows the next arm too


def collected_on_a_ring(seed=12):
    """Logs with side observations of 1,000 lives of EXP3-SET side by side."""
    rng, each = np.random.default_rng(seed), np.arange(LOGS)
    gains, rate = np.zeros((LOGS, 4)), math.sqrt(2.0 * math.log(4) / (2 * ROWS))
    columns = []
    for _ in range(ROWS):
        p = np.exp(rate * (gains - gains.max(axis=1, keepdims=True)))
        p /= p.sum(axis=1, keepdims=True)
        arm = (rng.random((LOGS, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 3)
        beside, rewards = (arm + 1) % 4, (rng.random((LOGS, 4)) < MEANS).astype(float)
        seen = p @ RING
        columns.append(
            (
                arm,
                p[each, arm],
                rewards[each, arm],
                seen[each, arm],
                rewards[each, beside],
                seen[each, beside],
            )
        )
        gains -= RING[arm] * (1.0 - rewards) / seen
    for arm, chance, reward, seen, paid, shown in zip(
        *(np.array(column).T for column in zip(*columns, strict=True)), strict=True
    ):
        side = Side(np.arange(ROWS + 1), (arm + 1) % 4, paid, shown)
        yield Log(range(4), arm, chance, reward, observed=seen, side=side)


def test_intervals_of_side_observations_hold_on_logs_of_policies_that_learn():
    logs = list(collected_on_a_ring())
    for target in (WORST, EVEN):
        truth, found = float(target @ MEANS), [ESTIMATORS["graph-IPS"](log, target) for log in logs]
        values = np.array([one.value() for one in found])
        assert abs(values.mean() - truth) < 4.0 * values.std(ddof=1) / math.sqrt(LOGS)
        ends = np.array([likely(one, (0.0, 1.0), 0.95) for one in found])
        assert ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() > LOWEST
        sure = np.array([guaranteed(one, (0.0, 1.0), 0.95) for one in found[:200]])
        assert ((sure[:, 0] <= truth) & (truth <= sure[:, 1])).mean() >= 0.98


@pytest.fixture(scope="module")
def lives():
    return {kind: collected(kind) for kind in ("EXP3", "softmax")}


def test_intervals_as_for_independent_rows_would_not_hold(lives):
    """The test above has the power to see it: the interval of a steady log, on the same logs."""
    found = [ESTIMATORS["IPS"](log, EVEN) for log in lives["softmax"]]
    ends = np.array([likely(one, (0.0, 1.0), 0.95, steady=True) for one in found])
    assert ((ends[:, 0] <= 0.425) & (ends[:, 1] >= 0.425)).mean() < LOWEST


@pytest.mark.parametrize("kind", ["EXP3", "softmax"])
def test_doubly_robust_is_unbiased_on_logs_of_policies_that_learn(kind, lives):
    values = np.array([ESTIMATORS["doubly robust"](log, EVEN).value() for log in lives[kind]])
    assert abs(values.mean() - 0.425) < 4.0 * values.std(ddof=1) / math.sqrt(LOGS)


def test_a_log_of_a_policy_that_learns_that_is_hardly_enough_has_the_guaranteed_interval(lives):
    pairs = [(log, target) for log in lives["EXP3"][:100] for target in (WORST, EVEN)]
    found = [evaluate(log, target, estimators=["SNIPS"])["SNIPS"] for log, target in pairs]
    seen = set()
    for one in found:
        low, high = one.guaranteed
        wide = one.interval == (min(low, one.raw), max(high, one.raw))
        if not one.reason:
            seen.add(wide)
            assert wide == (one.effective < 60.0)
    assert seen == {True, False}


def test_what_the_log_never_tries_may_pay_anything():
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 4_000)
    log = Log(["a", "b", "c"], arm, np.full(4_000, 0.5), rng.random(4_000) < 0.5)
    found = evaluate(log, {"a": 0.5, "c": 0.5})["IPS"]
    assert math.isnan(found.value)
    assert 0.15 < found.interval[0] < 0.25
    assert 0.75 < found.interval[1] < 0.85
    assert found.interval == found.guaranteed


def test_the_live_page_shows_the_interval_of_the_evaluation(lives):
    log = next(one for one in lives["EXP3"] if not evaluate(one, "Uniform")["SNIPS"].reason)
    uniform = UniformChoice(PlayerSettings())
    for reward, chance in zip(log.reward, log.probability, strict=True):
        uniform.add(reward, 1.0 / (4 * chance), None)
    found = evaluate(log, "Uniform")["SNIPS"]
    assert uniform.earned(ROWS) == pytest.approx(
        (ROWS * found.value, *(ROWS * end for end in found.interval))
    )
    truth = 0.425 * ROWS
    inside = 0
    for one in lives["softmax"]:
        page = UniformChoice(PlayerSettings())
        for column, values in (
            ("weights", 0.25 / one.probability),
            ("rewards", one.reward),
            ("units", range(ROWS)),
        ):
            getattr(page, column).extend(values)
        earned = page.earned(ROWS)
        inside += earned is None or earned[1] <= truth <= earned[2]
    assert inside / LOGS > LOWEST


def test_the_live_page_is_as_sure_of_many_decisions_as_of_their_blocks():
    rng, uniform = np.random.default_rng(6), UniformChoice(PlayerSettings(low=-1.0, high=3.0))
    for reward in rng.random(5 * MAX_BLOCKS) < 0.5:
        uniform.add(4.0 * reward - 1.0, 1.0, None)
    value, low, high = (end / (5 * MAX_BLOCKS) for end in uniform.earned(5 * MAX_BLOCKS))
    assert high - low == pytest.approx(2 * 1.96 * 2.0 / math.sqrt(5 * MAX_BLOCKS), rel=0.05)
    assert abs(value - 1.0) < 4 * 2.0 / math.sqrt(5 * MAX_BLOCKS)


# -- what else is scaled, or cut at a level ------------------------------------------------------------------------------


@pytest.mark.parametrize("span", [(-1.0, 1.0), (10.0, 20.0)])
def test_a_policy_learns_rewards_of_any_range_as_if_they_were_from_0_to_1(span):
    """Side observations too: arm 1 is seen beside the others, and pays least."""
    low, width, arm = span[0], span[1] - span[0], np.tile([0, 2], 30)
    side = Side(np.arange(61), np.ones(60, int), np.full(60, low + 0.2 * width), np.full(60, 0.5))
    log = Log(range(3), arm, np.full(60, 0.5), low + width * np.where(arm == 0, 0.3, 0.45), side=side)
    learned = as_target("EpsilonGreedy(epsilon=0.3)", log, 0.5, span).probabilities
    assert learned == pytest.approx([0.1, 0.1, 0.8])
