r"""Boltzmann-Gumbel exploration without a draw for every arm: only for those that can win.

The perturbed mean :math:`\hat\mu_k+Z_k/s_k`, :math:`s_k=\sqrt{N_k}/C`, with Gumbel noise is the largest point of a
Poisson process of intensity :math:`s_k e^{-s_k(x-\hat\mu_k)}`: it has :math:`\lambda_k=e^{-s_k(L-\hat\mu_k)}` points above a
level L on average, none with probability :math:`\exp(-\lambda_k)=P(Z_k\le s_k(L-\hat\mu_k))`, and their heights
above L are exponential with rate :math:`s_k`. **So, exactly:** the number of points of all arms above L is Poisson with mean
:math:`\Lambda=\sum\lambda_k`, each belongs to arm k with probability :math:`\lambda_k/\Lambda` (drawn from `Levels` of
:math:`\ln\lambda_k`, whose rejected trials thin a Poisson process of the larger rate of the bounds), and the highest one wins.
If there is none, all arms are drawn given that they are below L: :math:`\hat\mu_k-\ln(E_k+\lambda_k)/s_k` with
exponential :math:`E_k`. L is chosen such that :math:`\Lambda\approx\ln K`: then that happens once in about K steps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel
from abex.policies.levels import (
    FRESH,
    ONE,
    STALE,
    TOTAL,
    ZERO,
    Levels,
    make_fit,
    new_levels,
    refile_arm,
    try_arm,
)
from abex.policies.means import learn_mean
from abex.randomness import below

NOWHERE = 1e300


class GumbelLevels(NamedTuple):
    """Means, the logarithms of what exceeds the level L on average, filed, and L."""

    pulls: NDArray[np.float64]  # (K,)
    means: NDArray[np.float64]  # (K,), +inf before the first observation
    steep: NDArray[np.float64]  # (K,), s_k
    logs: NDArray[np.float64]  # (K,), ln lambda_k
    levels: Levels
    cut: NDArray[np.float64]  # (1,), L; NOWHERE before the first decision
    unit: NDArray[np.float64]  # (2,), a zero of the levels and points on average for a mass of 1 there
    scale: float


def new_gumbel_levels(pulls: NDArray[np.float64], means: NDArray[np.float64], scale: float) -> GumbelLevels:
    """The record of arms with these observations."""
    logs = np.full(pulls.size, math.inf)
    levels = new_levels(pulls, math.inf)
    steep = np.sqrt(pulls) / scale
    return GumbelLevels(
        pulls, means, steep, logs, levels, np.array([NOWHERE]), np.array([NOWHERE, 0.0]), scale
    )


@kernel
def average_exceeding(levels: Any, unit: Any) -> float:
    """An upper bound on the average number of points above the level: the rate of trials."""
    grid = levels.grid
    if unit[0] != grid[ZERO]:  # the exponential is worth remembering
        unit[0] = grid[ZERO]
        unit[1] = math.exp(grid[ZERO]) / grid[ONE]
    return float(grid[TOTAL] * unit[1])


@kernel
def poisson(average: float, rng: Any) -> int:
    """A Poisson number of a small average, by inversion: one uniform number, where a clock takes one a point."""
    rest = rng.random()
    count = 0
    chance = math.exp(-average)
    while rest >= chance and count < 1000:
        rest -= chance
        count += 1
        chance *= average / count
    return count


@kernel
def log_exceeding(state: Any, arm: int) -> float:
    """Ln lambda of an arm."""
    return float(state.steep[arm] * (state.means[arm] - state.cut[0]))


@rare_kernel
def choose_cut(state: Any, target: float) -> None:
    """The level that ``target`` points exceed on average, by bisection; then all logarithms anew."""
    n_arms = state.means.size
    low, high = -math.inf, -math.inf
    for k in range(n_arms):
        spread = 1.0 / state.steep[k]
        low = max(low, state.means[k] - spread * math.log(target))  # one arm alone exceeds it so often
        high = max(high, state.means[k] - spread * math.log(target / n_arms))  # no arm does its share
    for _ in range(40):
        state.cut[0] = 0.5 * (low + high)
        average = 0.0
        for k in range(n_arms):
            average += math.exp(min(log_exceeding(state, k), 50.0))
        if average > 1.1 * target:
            low = state.cut[0]
        elif average < 0.9 * target:
            high = state.cut[0]
        else:
            break
    for k in range(n_arms):
        state.logs[k] = log_exceeding(state, k)
    state.levels.clock[STALE] = 1
    make_fit(state.levels, state.logs, 1.0)


@rare_kernel
def highest_below(state: Any, rng: Any) -> int:
    """The best arm given that no arm exceeds the level."""
    best, top = 0, -math.inf
    for k in range(state.means.size):
        value = (
            state.means[k] - math.log(rng.standard_exponential() + math.exp(state.logs[k])) / state.steep[k]
        )
        if value > top:
            best, top = k, value
    return best


@kernel
def select_gumbel(state: Any, t: int, rng: Any) -> int:
    """The largest perturbed mean."""
    levels = state.levels
    if levels.arms[FRESH] > 0:
        return int(levels.order[below(levels.arms[FRESH], rng)])
    target = max(1.5, math.log(state.means.size) - 0.5)
    average = 0.0
    if state.cut[0] != NOWHERE:
        make_fit(levels, state.logs, 1.0)
        average = average_exceeding(levels, state.unit)
    if not 0.8 * target < average < 1.3 * target + 0.6:
        choose_cut(state, target)
        average = average_exceeding(levels, state.unit)
    best, top = -1, 0.0
    for _ in range(poisson(average, rng)):
        arm = try_arm(levels, state.logs, 1.0, rng)
        if arm >= 0:
            height = rng.standard_exponential() / state.steep[arm]
            if height > top:
                best, top = arm, height
    return best if best >= 0 else highest_below(state, rng)


@kernel
def update_gumbel(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Running mean, and how often it exceeds the level."""
    learn_mean(state, t, arm, seen, reward, rng)
    state.steep[seen] = math.sqrt(state.pulls[seen]) / state.scale
    state.logs[seen] = log_exceeding(state, seen) if state.cut[0] != NOWHERE else 0.0
    refile_arm(state.levels, seen, state.logs[seen])
