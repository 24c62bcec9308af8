"""The record most policies learn: how often each arm was observed and its mean reward."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.policies.base import PerArm
from abex.policies.statistics import Known, weigh_in, weigh_mean
from abex.schema import Count, MeanOf, Scratch


class Means(NamedTuple):
    """Observations and mean reward of each arm. An unobserved arm's mean is the policy's initial value."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,)
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    scale: float


def new_means(n_arms: int, scale: float = 0.0, initial: float = np.inf) -> Means:
    """A fresh record. With the default, arms never observed come before all others."""
    return Means(np.zeros(n_arms), np.full(n_arms, initial), np.zeros(n_arms), float(scale))


@kernel
def largest(values: NDArray[np.float64]) -> float:
    """The largest value."""
    top = -math.inf
    for k in range(values.size):
        top = max(top, values[k])
    return top


@kernel
def smallest(values: NDArray[np.float64]) -> float:
    """The smallest value."""
    least = math.inf
    for k in range(values.size):
        least = min(least, values[k])
    return least


@kernel
def learn_mean(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Running mean; the first observation replaces the initial value."""
    n = state.observations[seen] + 1.0
    state.observations[seen] = n
    if n == 1.0:
        state.means[seen] = reward
    else:
        state.means[seen] += (reward - state.means[seen]) / n


@weigh_in.register(Means)
@kernel
def weigh_in_means(state: Means, blank: Known, seen: int, reward: float, weight: float) -> None:
    """The weighted mean."""
    weigh_mean(state, blank, seen, reward, weight)
