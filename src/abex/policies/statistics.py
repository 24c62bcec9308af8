"""How an observation enters what a policy knows, with any weight; how it leaves; how all that is known fades.

A plain policy learns every observation once and for ever. Policies around it that forget (`Discounted`, `Windowed`,
`Restarting`) let it read the same fields, with other numbers in them: counts that are sums of weights, means that are weighted.
They do so by the kernels below, which dispatch on the class of the policy's state; a policy whose state they serve says
``forgettable = True``. There is one place for each kind of statistics, and none for each policy. They are handed what stands
for an arm of which nothing is known: a `Blank`, or a record with its fields that keeps sums as well (`abex.policies.windowed`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, single_dispatch
from abex.samplers import changed

UNITS = 2**31  # of a sum, in 1, and in each of them once more
LEAST_WEIGHT = 1e-280  # of what was observed ages ago: still more than nothing


class Blank(NamedTuple):
    """What stands for an arm of which nothing is known: its mean, or both parameters of its prior."""

    first: float
    second: float


class Sums(NamedTuple):
    """Exact sums of the rewards that count, which leave no rounding behind when one leaves; and a `Blank`.

    Rewards stand in units of 2^-31 and, what is left, of 2^-62. So two arms that know the same have the same mean to the last
    bit, whatever they knew before, and so have two whose means are equal as fractions (up to four million observations).
    """

    first: float
    second: float
    counts: NDArray[np.int64]  # (K,)
    high: NDArray[np.int64]  # (K,)
    low: NDArray[np.int64]  # (K,), less than one unit of ``high``


Known = Blank | Sums


def blank_of(state: Any) -> Blank:
    """What a fresh state knows of an arm: the initial mean, or both parameters of the prior."""
    if hasattr(state, "successes"):
        return Blank(float(state.successes[0]), float(state.failures[0]))
    return Blank(float(state.means[0]), 0.0)


@single_dispatch
def weigh_in(state: Any, blank: Known, seen: int, reward: float, weight: float) -> None:
    """Arm ``seen`` was observed to pay ``reward``, with this weight; of weight -1, an observation leaves (kernel)."""
    weigh_mean(state, blank, seen, reward, weight)
    changed(state.sampler, state, seen)


@single_dispatch
def fade(state: Any, blank: Known, factor: float) -> None:
    """Multiply the weights of all observations, of every arm; samplers are not told (kernel)."""
    fade_counts(state, factor)


@single_dispatch
def forget(state: Any, blank: Known, arm: int) -> None:
    """Nothing is known of an arm any more (kernel)."""
    weigh_in(state, blank, arm, 0.0, -state.observations[arm])


@single_dispatch
def entering(state: Any, reward: float, rng: Any) -> float:
    """The reward as the policy counts it: Thompson sampling tosses a coin for a fraction (kernel)."""
    return reward


@single_dispatch
def noted(state: Any, arm: int, seen: int) -> None:
    """What the policy does at an observation beside learning: ABE's schedule advances (kernel)."""


@kernel
def weigh_mean(state: Any, blank: Known, seen: int, reward: float, weight: float) -> None:
    """The weighted mean; `learn_mean` is the case of weight 1. An arm without observations is as it was at the start."""
    before = state.observations[seen]
    count = max(before + weight, 0.0)
    state.observations[seen] = count
    state.means[seen] = (
        mean_after(blank, seen, before, state.means[seen], reward, weight) if count > 0.0 else blank.first
    )


@single_dispatch
def mean_after(blank: Known, seen: int, before: float, mean: float, reward: float, weight: float) -> float:
    """The mean of an arm whose ``before`` observations had another: worked out from that, unless the memory has sums (kernel)."""
    return reward if before == 0.0 else mean + (reward - mean) * weight / (before + weight)


@single_dispatch
def beta_after(
    blank: Known, seen: int, successes: float, failures: float, reward: float, weight: float
) -> tuple[float, float]:
    """The posterior of an arm that had another one: worked out from that, unless the memory has sums (kernel)."""
    return successes + weight * reward, failures + weight * (1.0 - reward)


@kernel
def count_in(sums: Sums, seen: int, reward: float, sign: int) -> None:
    """A reward comes (1) or leaves (-1)."""
    units = reward * UNITS
    whole = math.floor(units)
    low = sums.low[seen] + sign * math.floor((units - whole) * UNITS + 0.5)
    carry = low // UNITS
    sums.counts[seen] += sign
    sums.high[seen] += sign * whole + carry
    sums.low[seen] = low - carry * UNITS


@mean_after.register(Sums)
@kernel
def mean_of_sums(sums: Sums, seen: int, before: float, mean: float, reward: float, weight: float) -> float:
    """The sum over the count; of equal fractions whole parts and rests are equal, and so are the rounded ones."""
    count = max(sums.counts[seen], 1)  # a damaged file may know of observations that the window does not hold
    whole = sums.high[seen] // count
    rest = (sums.high[seen] - whole * count) * UNITS + sums.low[seen]
    return float((whole + rest / count / UNITS) / UNITS)


@beta_after.register(Sums)
@kernel
def beta_of_sums(
    sums: Sums, seen: int, successes: float, failures: float, reward: float, weight: float
) -> tuple[float, float]:
    """The prior and the sums."""
    total = (sums.high[seen] + sums.low[seen] / UNITS) / UNITS
    return sums.first + total, sums.second + (sums.counts[seen] - total)


@kernel
def fade_counts(state: Any, factor: float) -> None:
    """Means stay, counts shrink."""
    for k in range(state.observations.size):
        if state.observations[k] > 0.0:
            state.observations[k] = max(state.observations[k] * factor, LEAST_WEIGHT)
