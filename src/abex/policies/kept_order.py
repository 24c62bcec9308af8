r"""What was known when the level moved: the order of the arms, kept beside what is fresh.

Where the test for changes (`abex.policies.change_test`) finds that an arm no longer pays what it did, either all arms have moved
together, as with the hours of a day, or the order of the arms is new. An alarm begins an *era* with two tables. The *fresh* one,
the policy's own, holds what this era has shown, and two older observations of each arm at most. The *kept* one holds
everything, relative to the *level*: what the arm that was tested, the *unit*, pays now over what it paid before. Rewards of
arm k that sum to :math:`S_k` while the level was :math:`\ell_1,\ell_2,\dots` say that it pays
:math:`R_k=S_k/\sum\ell_i` at level 1, and :math:`\ell R_k` now; second moments move alike, as where the same
rewards come more or less often.

An arm is drawn from the fresh table with the probability p that the order is new, else from the kept one: the mixture is in
closed form, and it is the probe. With n rewards that sum to s in this era, where N older ones make q be expected, an arm
speaks for a new order by

.. math:: v_k=\ln\mathrm{BB}(s;n,q,a)-\ln\mathrm{BB}(s;n,q,b),\quad
    \tfrac1a=\tfrac1N+\tfrac14+\tfrac1{n_u},\ \tfrac1b=\tfrac1N+\tfrac1{n_u},

BB the beta-binomial law of mean q and strength a or b, :math:`n_u` the rewards of the unit in this era, all over the largest
reward seen; and :math:`\ln\frac p{1-p}=B+\sum v_k^+-\min(6,\sum v_k^-)`: many arms that have stayed do not outvote the one
that has not. The next alarm gives the verdict: if the order was new, the fresh table becomes the kept one and B grows; else B
falls, and so do, by a higher threshold, alarms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel
from abex.kinds import Arm, Count, Number, Score, agree
from abex.policies.change_test import COUNT, SQUARES, SUM, ChangeTest, drop_older
from abex.samplers import changed
from abex.samplers.evidence import moments_of, play_all
from abex.samplers.exceedance import log_norm

PER_ARM, MAX_ODDS = (
    0.3,
    math.log(9.0),
)  # of B at the first alarm: for each arm that is not tested, and at most
MIN_ODDS = -2.0
RISE, FALL = 4.0, 2.0  # of B at a verdict
RELAXED, RAISED, MAX_PATIENCE = 0.5, 1.2, 64.0  # of the threshold of the test at a verdict
MAX_AGREEMENT = 6.0  # nats for the kept order from all arms together
FRESH = 2.0  # older observations that count in the fresh table
DIFFERENT = 0.25  # 1 / the strength with which a new order expects what was
LEVEL_MEMORY = 32.0  # expected rewards, in units of the largest
MIN_LEVEL = 1e-3
BELOW = 0.999  # of the largest reward: what an arm may be expected to pay at the present level


class KeptOrder(Record):
    """All that was observed, relative to the level, and how likely the order of the arms is new."""

    unit: Arm  # the arm that tells the level; -1 before the first alarm
    observations: Count  # float64 (K,)
    exposures: Score  # float64 (K,), sum of the levels at which they were made
    means: Score  # float64 (K,), of rewards at level 1
    seconds: Score  # float64 (K,), second moments at level 1
    past: Score  # float64 (K,), observations before this era
    past_means: Score  # float64 (K,), means before this era
    sums: Score  # float64 (K,), of the rewards of this era
    levels: Score  # float64 (K,), of the levels of this era
    odds: Score  # float64 (K,), v_k
    level: Number
    level_paid: Number  # by the unit of late
    level_expected: Number
    largest_reward: Number
    newness: Number  # p
    prior: Number  # B
    against: Number  # sum of the v_k above 0
    agreeing: Number  # sum of the v_k below 0
    sampler: Any = None
    memory: Any = None


def new_order(n_arms: int) -> KeptOrder:
    """Nothing is kept before the first alarm."""
    prior = min(MAX_ODDS, PER_ARM * (n_arms - 1))
    return KeptOrder.of_arms(n_arms, unit=-1, level=1.0, newness=1.0, prior=prior)


def check_order(order: KeptOrder) -> None:
    """See that what is kept can have come from rewards."""
    if order.unit < 0:
        return
    n, past = order.observations, order.past
    of_arms = np.stack([order.exposures, order.means, order.seconds, past, order.sums, order.levels])
    fine = (of_arms >= 0.0).all() and (past <= n).all() and past[order.unit] < n[order.unit]
    fine = fine and bool(((order.exposures > 0.0) | (n == 0.0)).all()) and order.past_means[order.unit] > 0.0
    fine = fine and order.level >= MIN_LEVEL and order.level_expected > 0.0 and order.level_paid >= 0.0
    fine = fine and 0.0 <= order.newness <= 1.0 and 0.0 <= order.largest_reward <= 1.0
    agree(bool(fine), "the order that is kept must be one of rewards")


def keep_arms(order: KeptOrder, before: Any, keep: NDArray[np.int64]) -> None:
    """The order of the arms that stay, where the arm that tells the level does: else what is fresh alone counts."""
    if before["unit"] not in keep:
        return
    for name, value in before.items():
        if isinstance(value, np.ndarray):
            getattr(order, name)[: keep.size] = value[keep]
        else:
            setattr(order, name, value)
    order.unit = int(np.flatnonzero(keep == before["unit"])[0])
    order.against = float(np.maximum(order.odds, 0.0).sum())
    order.agreeing = float(np.minimum(order.odds, 0.0).sum())


@moments_of.register(KeptOrder)
@kernel
def moments_at_level(order: KeptOrder, arm: int) -> tuple[float, float]:
    """Mean and variance of an arm at the present level."""
    mean = min(order.level * order.means[arm], BELOW * order.largest_reward)
    return mean, max(order.level * order.seconds[arm] - mean * mean, 0.0)


@kernel
def learn_relative(order: KeptOrder, arm: int, reward: float, largest_reward: float) -> None:
    """A reward of this era: the unit's tells the level, another arm's how it stands to that."""
    order.largest_reward = largest_reward
    order.observations[arm] += 1.0
    order.sums[arm] += reward
    order.levels[arm] += order.level
    if arm == order.unit:
        follow_level(order, order.level_paid + reward, order.level_expected + order.past_means[arm], 0.0)
    else:
        exposure = order.exposures[arm] + order.level
        order.exposures[arm] = exposure
        order.means[arm] += (reward - order.level * order.means[arm]) / exposure
        order.seconds[arm] += (reward * reward - order.level * order.seconds[arm]) / exposure
        weigh_order(order, arm)
    changed(order.sampler, order, arm)


@kernel
def follow_level(order: KeptOrder, paid: float, expected: float, prior: float) -> None:
    """The level: what the unit was paid over what was expected, of which some rewards are remembered."""
    share = min(1.0, LEVEL_MEMORY * order.largest_reward / expected)
    order.level_paid = share * paid
    order.level_expected = share * expected
    order.level = max((order.level_paid + prior) / (order.level_expected + prior), MIN_LEVEL)


@rare_kernel
def weigh_order(order: KeptOrder, arm: int) -> None:
    """What an arm says for a new order, and with it how likely that is."""
    past, largest = order.past[arm], order.largest_reward
    if past == 0.0 or largest == 0.0:
        return
    n = order.observations[arm] - past
    known = 1.0 / past + 1.0 / (order.observations[order.unit] - order.past[order.unit])
    expected = min(max(order.past_means[arm] * order.levels[arm] / (n * largest), 1e-4), 1.0 - 1e-4)
    paid = min(order.sums[arm] / largest, n)
    odds = log_beta_binomial(paid, n, expected, 1.0 / (known + DIFFERENT))
    odds -= log_beta_binomial(paid, n, expected, 1.0 / known)
    order.against += max(odds, 0.0) - max(order.odds[arm], 0.0)
    order.agreeing += min(odds, 0.0) - min(order.odds[arm], 0.0)
    order.odds[arm] = odds
    order.newness = logistic(order.prior + order.against + max(order.agreeing, -MAX_AGREEMENT))


@kernel
def log_beta_binomial(paid: float, n: float, mean: float, strength: float) -> float:
    """Logarithm of the beta-binomial probability, but for the binomial coefficient."""
    a, b = strength * mean, strength * (1.0 - mean)
    return log_norm(a, b) - log_norm(paid + a, n - paid + b)


@kernel
def logistic(x: float) -> float:
    """The probability of these log-odds."""
    return 1.0 / (1.0 + math.exp(-max(x, -700.0)))


@rare_kernel
def begin_era(order: KeptOrder, state: Any, test: ChangeTest, older: int) -> None:
    """The tested arm has changed after ``older`` of its blocks: judge the last era, keep what was known, begin the next."""
    unit, largest = test.arm, state.largest_reward
    if order.unit < 0 or order.newness > 0.5:
        if order.unit >= 0:
            order.prior = min(order.prior + RISE, MAX_ODDS, PER_ARM * (order.means.size - 1))
            test.patience = max(test.patience * RELAXED, 1.0)
        keep_fresh(order, state, test, older)
    else:
        order.prior = max(order.prior - FALL, MIN_ODDS)
        test.patience = min(test.patience * RAISED, MAX_PATIENCE)
    n, paid, squares = drop_older(test, older)
    for k in range(order.means.size):
        order.past[k] = order.observations[k]
        order.past_means[k] = order.means[k]
        order.sums[k] = order.levels[k] = order.odds[k] = 0.0
    order.unit = unit
    order.largest_reward = largest
    order.past[unit] -= n
    order.past_means[unit] = max(order.means[unit], 1e-4 * largest)
    order.sums[unit] = paid
    follow_level(order, paid, n * order.past_means[unit], 0.5 * largest)
    order.levels[unit] = n * order.level
    order.against = order.agreeing = 0.0
    order.newness = logistic(order.prior)
    for k in range(order.means.size):
        if state.observations[k] > 0.0:
            count = min(order.past[k], FRESH)
            state.means[k], variance = moments_at_level(order, k)
            state.observations[k] = count
            state.squares[k] = count * variance
    state.observations[unit] = n
    state.means[unit] = paid / n
    state.squares[unit] = max(squares - paid * paid / n, 0.0)
    play_all(state.sampler, state)
    play_all(order.sampler, order)


@rare_kernel
def keep_fresh(order: KeptOrder, state: Any, test: ChangeTest, older: int) -> None:
    """The fresh table becomes the kept one, at level 1; of the tested arm, what was before its change."""
    for k in range(order.means.size):
        n, mean = state.observations[k], state.means[k]
        order.observations[k] = order.exposures[k] = n
        order.means[k] = order.seconds[k] = 0.0
        if n > 0.0:
            order.means[k] = mean
            order.seconds[k] = mean * mean + state.squares[k] / n
    n, paid, squares = 0.0, 0.0, 0.0
    for j in range(older):
        n += test.blocks[COUNT, j]
        paid += test.blocks[SUM, j]
        squares += test.blocks[SQUARES, j]
    order.exposures[test.arm] = n
    order.means[test.arm] = paid / n
    order.seconds[test.arm] = squares / n
