r"""Boltzmann-Gumbel exploration without a draw for every arm: only for those that can win.

The perturbed mean :math:`\hat\mu_k+Z_k/s_k`, :math:`s_k=\sqrt{N_k}/C`, with Gumbel noise is the largest point of a
Poisson process of intensity :math:`s_k e^{-s_k(x-\hat\mu_k)}`: it has :math:`\lambda_k=e^{-s_k(L-\hat\mu_k)}` points above a
level L on average, none with probability :math:`\exp(-\lambda_k)=P(Z_k\le s_k(L-\hat\mu_k))`, and their heights
above L are exponential with rate :math:`s_k`. **So, exactly:** the number of points of all arms above L is Poisson with mean
:math:`\Lambda=\sum\lambda_k`, each belongs to arm k with probability :math:`\lambda_k/\Lambda` (drawn from `Levels` of
:math:`\ln\lambda_k`, whose rejected trials thin a Poisson process of the larger rate of the bounds), and the highest one wins.
If there is none, all arms are drawn given that they are below L: :math:`\hat\mu_k-\ln(E_k+\lambda_k)/s_k` with
exponential :math:`E_k`. L is chosen such that :math:`\Lambda\approx\ln K`: then that happens once in about K steps.

**The leader**, an arm with about the most points, is kept apart. Of it only the largest point matters: it is no higher than
the highest point x of the others (or L) with probability :math:`\exp(-e^{-s(x-\hat\mu)})`, which one uniform number decides,
however many points it has. Late in a run, when one arm wins nearly always, the others have hardly a point above L and a step
is that one number.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

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
from abex.policies.schema import Arms, Checked, Count, MeanOf, Rebuilt, Scratch, Within, agree
from abex.policies.sound_levels import sound_levels
from abex.randomness import below

NOWHERE = 1e300
APART = -1e4  # the logarithm filed for an arm that is drawn anyway: no trial finds it
LEADER_SHARE = 0.5  # of a point of another arm


class GumbelLevels(NamedTuple):
    """Means, the logarithms of what exceeds the level L on average, filed, and L."""

    pulls: Annotated[NDArray[np.float64], Count()]  # (K,)
    means: Annotated[NDArray[np.float64], MeanOf("pulls")]  # (K,), +inf before the first observation
    steep: Annotated[NDArray[np.float64], Rebuilt()]  # (K,), s_k
    logs: Annotated[NDArray[np.float64], Rebuilt()]  # (K,), ln lambda_k
    levels: Annotated[Levels, Checked()]
    cut: Annotated[
        NDArray[np.float64], Within(-NOWHERE, NOWHERE)
    ]  # (1,), L; NOWHERE before the first decision
    leader: Annotated[
        NDArray[np.int64], Arms(least=-1)
    ]  # (1,), the arm kept apart: filed as `APART`; -1 while there is no L
    unit: Annotated[
        NDArray[np.float64], Scratch()
    ]  # (2,), a zero of the levels and points on average for a mass of 1 there
    scale: float

    def restored(self, fresh: GumbelLevels) -> GumbelLevels:
        """The logarithms follow from means, L and leader; levels that do not file them are made anew, and so is L."""
        seen = self.pulls > 0.0
        steep = np.sqrt(self.pulls) / self.scale
        nowhere = self.cut[0] == NOWHERE
        agree(nowhere == (self.leader[0] < 0), "leader must be an arm where there is a level")
        if nowhere:
            logs = np.where(seen, 0.0, math.inf)
        else:
            agree(bool(seen.all()), "there must be no level before every arm was observed")
            logs = steep * (self.means - self.cut[0])
            logs[self.leader[0]] = APART
        levels = sound_levels(self.levels, logs, seen, math.inf)
        if levels is not self.levels:
            return new_gumbel_levels(self.pulls, self.means, self.scale)
        return self._replace(steep=steep, logs=logs)


def new_gumbel_levels(pulls: NDArray[np.float64], means: NDArray[np.float64], scale: float) -> GumbelLevels:
    """The record of arms with these observations."""
    logs = np.full(pulls.size, math.inf)
    levels = new_levels(pulls, math.inf)
    steep = np.sqrt(pulls) / scale
    cut, leader, unit = np.array([NOWHERE]), np.array([-1]), np.array([NOWHERE, 0.0])
    return GumbelLevels(pulls, means, steep, logs, levels, cut, leader, unit, scale)


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
    if rest < 1.0 - average:  # below exp(-average)
        return count
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


@kernel
def burden(others: float, leader: float) -> float:
    """What a step pays for points above the level: the leader's cost nothing, but a level far too low costs others."""
    return others + LEADER_SHARE * leader


@rare_kernel
def choose_cut(state: Any, target: float) -> None:
    """The level whose `burden` is ``target``, by bisection; then the leader and all logarithms anew."""
    n_arms = state.means.size
    low, high = -math.inf, -math.inf
    for k in range(n_arms):
        spread = 1.0 / state.steep[k]
        low = max(low, state.means[k] - spread * math.log(target / LEADER_SHARE))  # so much for one arm alone
        high = max(high, state.means[k] - spread * math.log(target / n_arms))  # no arm does its share
    leader = 0
    for _ in range(40):
        state.cut[0] = 0.5 * (low + high)
        others = 0.0
        most = -math.inf
        for k in range(n_arms):
            log = min(log_exceeding(state, k), 50.0)
            others += math.exp(log)
            if log > most:
                leader, most = k, log
        average = burden(others - math.exp(most), math.exp(most))
        if average > 1.1 * target:
            low = state.cut[0]
        elif average < 0.9 * target:
            high = state.cut[0]
        else:
            break
    for k in range(n_arms):
        state.logs[k] = log_exceeding(state, k)
    state.leader[0] = leader
    state.logs[leader] = APART
    state.levels.clock[STALE] = 1
    make_fit(state.levels, state.logs, 1.0)


@rare_kernel
def replace_leader(state: Any, arm: int) -> None:
    """Another arm has the most points: the old leader goes back to the others."""
    old = state.leader[0]
    state.leader[0] = arm
    state.logs[arm] = APART
    state.logs[old] = log_exceeding(state, old)
    refile_arm(state.levels, arm, state.logs[arm])
    refile_arm(state.levels, old, state.logs[old])


@rare_kernel
def highest_below(state: Any, rng: Any) -> int:
    """The best arm given that no arm exceeds the level."""
    best, top = 0, -math.inf
    for k in range(state.means.size):
        spent = math.log(rng.standard_exponential() + math.exp(log_exceeding(state, k)))
        value = state.means[k] - spent / state.steep[k]
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
    others, leading = 0.0, 0.0
    if state.cut[0] != NOWHERE:
        make_fit(levels, state.logs, 1.0)
        others = average_exceeding(levels, state.unit)
        leading = math.exp(min(log_exceeding(state, state.leader[0]), 50.0))
    if not 0.8 * target < burden(others, leading) < 1.3 * target + 0.6:
        choose_cut(state, target)
        others = average_exceeding(levels, state.unit)
        leading = math.exp(log_exceeding(state, state.leader[0]))
    best, top = -1, 0.0
    for _ in range(poisson(others, rng)):
        arm = try_arm(levels, state.logs, 1.0, rng)
        if arm >= 0:
            height = rng.standard_exponential() / state.steep[arm]
            if height > top:
                best, top = arm, height
    leader = int(state.leader[0])
    if best >= 0:
        leading *= math.exp(-state.steep[leader] * top)  # the leader's points above the best of the others
    if rng.random() >= math.exp(-leading):
        return leader
    return best if best >= 0 else highest_below(state, rng)


@kernel
def update_gumbel(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Running mean, and how often it exceeds the level."""
    learn_mean(state, t, arm, seen, reward, rng)
    state.steep[seen] = math.sqrt(state.pulls[seen]) / state.scale
    if seen != state.leader[0]:
        log = 0.0
        if state.cut[0] != NOWHERE:
            log = log_exceeding(state, seen)
        state.logs[seen] = log
        refile_arm(state.levels, seen, log)
        if state.cut[0] != NOWHERE and log > log_exceeding(state, state.leader[0]) + 1.0:
            replace_leader(state, seen)
