"""Intervals of values: the bet against its definition, and how often they hold on logs of policies that learn."""

import math

import numpy as np
import pytest

from abex import UserError
from abex.evaluation import Log, Side, evaluate
from abex.evaluation.estimators import ESTIMATORS
from abex.evaluation.sequence import ValueSums, add_decisions, value_of
from abex.evaluation.target import as_target
from abex.evaluation.uncertainty import at_every_moment, for_one_look, least_mean
from abex.players.player_settings import PlayerSettings
from abex.service.timeline import MAX_BLOCKS, UniformChoice
from tests.naive import inference as naive

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


def test_the_interval_at_every_moment_is_that_of_covers_portfolio():
    """Of n rewards of 1 with weight 1 the best share is all, which makes 1/v to the power of n."""
    n, level = 50, 0.9
    found = ESTIMATORS["IPS"](Log(["a"], np.zeros(n, int), np.ones(n), np.ones(n)), np.ones(1))
    worth = 2.0 / (1.0 - level) * 2.0 * math.sqrt(n + 1.0)
    assert at_every_moment(found, (0.0, 1.0), level) == pytest.approx((worth ** (-1.0 / n), 1.0))


def season():
    """A level that moves by half, for all arms alike."""
    return 0.75 + 0.25 * np.sin(np.arange(ROWS) / ROWS * 8.0 * math.pi)


def collected(kind, seed=11):
    """Arms, probabilities and rewards of 1,000 lives side by side."""
    level = season() if kind == "moving" else np.ones(ROWS)
    rng = np.random.default_rng([seed, len(kind)])
    each, gains, counts = np.arange(LOGS), np.zeros((LOGS, 4)), np.zeros((LOGS, 4))
    columns, rate = [], math.sqrt(2.0 * math.log(4) / (4 * ROWS))
    for t in range(ROWS):
        if kind == "EXP3":
            p = np.exp(rate * (gains - gains.max(axis=1, keepdims=True)))
            p /= p.sum(axis=1, keepdims=True)
        else:  # greedy with a softmax that sharpens as it learns, and gives up arms that began badly
            seen = (gains + 0.5) / (counts + 1.0)
            p = np.exp(10.0 * (seen - seen.max(axis=1, keepdims=True)))
            p /= p.sum(axis=1, keepdims=True)
        arm = (rng.random((LOGS, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 3)
        reward = (rng.random(LOGS) < level[t] * MEANS[arm]).astype(float)
        columns.append((arm, p[each, arm], reward, p))
        gains[each, arm] += reward / p[each, arm] if kind == "EXP3" else reward
        counts[each, arm] += 1.0
    arm, chance, reward = (np.array(column).T for column in list(zip(*columns, strict=True))[:3])
    laws = np.array([one[3] for one in columns]).transpose(1, 0, 2)
    return [Log(range(4), arm[one], chance[one], reward[one], law=laws[one]) for one in range(LOGS)]


@pytest.mark.parametrize("kind", ["EXP3", "softmax"])
@pytest.mark.parametrize("target", [WORST, EVEN], ids=["worst", "uniform"])
def test_intervals_hold_on_logs_of_policies_that_learn(kind, target, lives):
    logs, truth = lives[kind][:200], float(target @ MEANS)
    for name in ("IPS", "replay"):
        found = [ESTIMATORS[name](log, target) for log in logs]
        sure = np.array([at_every_moment(one, (0.0, 1.0), 0.95) for one in found])
        assert ((sure[:, 0] <= truth) & (truth <= sure[:, 1])).mean() >= 0.98, name


# -- the h-weighted sequence ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_weighted_sequence_is_as_it_is_defined(seed):
    """Some arms have no probability at times, and some no share in the target."""
    rng = np.random.default_rng([13, seed])
    laws, target = rng.dirichlet([0.5] * 3, 200), rng.dirichlet([1.0] * 3)
    target = np.where([seed == 1, False, False], 0.0, target) / (1.0 - target[0] * (seed == 1))
    laws[rng.random(200) < 0.2, 0] = 0.0
    laws /= laws.sum(axis=1, keepdims=True)
    arms = np.array([rng.choice(3, p=law) for law in laws])
    rewards = rng.random(200)
    weight, gain, spread = naive.weighted_sums(arms, rewards, target, laws)
    sums = ValueSums()
    add_decisions(sums, arms, rewards, target, laws)
    assert (sums.weight, sums.gain, sums.spread) == pytest.approx((weight, gain, spread), rel=1e-9)
    value, low, high = value_of(arms, rewards, target, laws, 0.05)
    assert value == pytest.approx(gain / weight)
    for end, sign in ((low, 1.0), (high, -1.0)):
        if 0.0 < end < 1.0:
            growth = naive.mixed(sign * (gain - end * weight), spread)
            assert growth == pytest.approx(math.log(40.0), abs=1e-6)


@pytest.mark.parametrize("kind", ["EXP3", "softmax"])
@pytest.mark.parametrize("target", [WORST, EVEN], ids=["worst", "uniform"])
@pytest.mark.parametrize("moving", [False, True], ids=["constant", "moving"])
def test_few_lives_leave_the_weighted_sequence_at_any_of_their_steps(kind, target, moving, lives):
    """1,000 lives, every step looked at; where levels move, of the h-weighted mean of the values, which it is about then."""
    logs = lives["moving"] if moving else lives[kind]
    level = season() if moving else np.ones(ROWS)
    left = 0
    for log in logs:
        steps = naive.weighted_terms(log.arm, log.reward, target, log.laws)
        _, gain, spread = np.cumsum(steps, axis=1)
        truth = np.cumsum(steps[0] * level * float(target @ MEANS))
        left += max(
            naive.mixed(sign * (gain - truth)[:, None], spread[:, None]).max() for sign in (1, -1)
        ) >= math.log(40)
    assert left / LOGS <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / LOGS)


def test_weights_that_were_not_known_before_the_draw_would_not_hold(lives):
    """The test above has the power to see it: weights of the arms that were drawn in the place of the largest."""
    left = 0
    for log in lives["softmax"][:300]:
        steps = naive.weighted_terms(log.arm, log.reward, EVEN, log.laws, drawn=True)
        h, gain, spread = np.cumsum(steps, axis=1)
        growth = [naive.mixed(sign * (gain - 0.425 * h)[:, None], spread[:, None]).max() for sign in (1, -1)]
        left += max(growth) >= math.log(40)
    assert left / 300 > 0.2


def test_the_weighted_sequence_is_narrower_than_that_of_unknown_laws(lives):
    """In the median, for the arm that the policy prefers; and at most 1.6 times the normal interval of IPS for one look."""
    ratios, best = [], np.array([0.0, 0.0, 0.0, 1.0])
    for log in lives["EXP3"][:100]:
        known = evaluate(log, best, estimators=["IPS"])
        blind = evaluate(Log(range(4), log.arm, log.probability, log.reward), best, estimators=["IPS"])
        normal = 2 * 1.96 * (best[log.arm] / log.probability * log.reward).std() / math.sqrt(ROWS)
        width = np.diff(known.always.interval)
        ratios.append((width / np.diff(blind.always.interval), width / normal))
        assert known["IPS"].interval == known.always.interval
        assert "every moment" in known.note
    assert (np.median(ratios, axis=0).ravel() < [0.92, 1.6]).all()


def test_a_steady_log_has_intervals_for_one_look_and_one_at_every_moment():
    rng = np.random.default_rng(5)
    arm = rng.choice(3, 4_000, p=[0.6, 0.3, 0.1])
    log = Log(range(3), arm, np.array([0.6, 0.3, 0.1])[arm], 5.0 * (rng.random(4_000) < 0.4) - 2.0)
    found = evaluate(log, [0.2, 0.3, 0.5], rewards=(-2.0, 3.0))
    assert log.laws == pytest.approx(np.array([[0.6, 0.3, 0.1]]))
    for one in (found["IPS"].interval, found.always.interval):
        assert one[0] < 0.0 < one[1]
    assert 1.0 < np.diff(found.always.interval) / np.diff(found["IPS"].interval) < 2.0
    assert "for one look" in found.note


def test_decisions_at_which_the_log_could_not_choose_count_nothing():
    law = np.tile([[0.5, 0.5], [1.0, 0.0]], (500, 1))
    arm = np.where(np.arange(1_000) % 2, 0, np.random.default_rng(1).integers(0, 2, 1_000))
    log = Log(["a", "b"], arm, law[np.arange(1_000), arm], arm.astype(float), law=law)
    low, high = evaluate(log, {"b": 1.0}).always.interval
    assert 0.6 < low < high == 1.0
    assert value_of([0], [1.0], np.array([0.0, 1.0]), law[1:2], 0.05)[1:] == (0.0, 1.0)


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ([[0.5, 0.5]], "2 rows of 2 probabilities"),
        ([[0.5, 0.5], [0.6, 0.6]], "row 1 is"),
        ([[0.5, 0.5], [0.3, 0.7]], "row 1 is"),
        ("x", "array of numbers"),
    ],
)
def test_laws_that_are_none_are_refused(law, said):
    with pytest.raises(UserError, match=said):
        Log(["a", "b"], [0, 1], [0.5, 0.5], [0.0, 1.0], law=law)


# -- side observations, and the live page ----------------------------------------------------------------------------------


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
        sure = np.array([at_every_moment(one, (0.0, 1.0), 0.95) for one in found[:200]])
        assert ((sure[:, 0] <= truth) & (truth <= sure[:, 1])).mean() >= 0.98


@pytest.fixture(scope="module")
def lives():
    return {kind: collected(kind) for kind in ("EXP3", "softmax", "moving")}


def test_intervals_as_for_independent_rows_would_not_hold(lives):
    """The test above has the power to see it: the interval of a steady log, on the same logs."""
    found = [ESTIMATORS["IPS"](log, EVEN) for log in lives["softmax"]]
    ends = np.array([for_one_look(one, (0.0, 1.0), 0.95) for one in found])
    assert ((ends[:, 0] <= 0.425) & (ends[:, 1] >= 0.425)).mean() < LOWEST


@pytest.mark.parametrize("kind", ["EXP3", "softmax"])
def test_doubly_robust_is_unbiased_on_logs_of_policies_that_learn(kind, lives):
    values = np.array([ESTIMATORS["doubly robust"](log, EVEN).value() for log in lives[kind]])
    assert abs(values.mean() - 0.425) < 4.0 * values.std(ddof=1) / math.sqrt(LOGS)


def test_what_the_log_never_tries_may_pay_anything():
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 4_000)
    log = Log(["a", "b", "c"], arm, np.full(4_000, 0.5), rng.random(4_000) < 0.5)
    found = evaluate(log, {"a": 0.5, "c": 0.5})["IPS"]
    assert math.isnan(found.value)
    assert 0.15 < found.interval[0] < 0.25
    assert 0.75 < found.interval[1] < 0.85
    assert found.interval == evaluate(log, {"a": 0.5, "c": 0.5}).always.interval


def test_the_live_page_shows_the_interval_of_the_evaluation(lives):
    logs = (Log(range(4), one.arm, one.probability, one.reward) for one in lives["EXP3"])
    log = next(one for one in logs if not evaluate(one, "Uniform")["SNIPS"].reason)
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
    threshold = math.log(40.0) + math.log(2.0 * math.sqrt(MAX_BLOCKS + 1.0))
    assert high - low == pytest.approx(
        2 * math.sqrt(2 * threshold) * 2.0 / math.sqrt(5 * MAX_BLOCKS), rel=0.05
    )
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
