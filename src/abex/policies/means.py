"""The record most policies learn: how often each arm was observed and its mean reward."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.kinds import Count, Mean
from abex.policies.learner import Learned


class Means(Learned):
    """Number and mean of the rewards of each arm, and room for a score of each."""

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    score: NDArray[np.float64]  # (K,), written anew at every decision
    initial: float  # the mean of an arm without observations


def new_means(n_arms: int, initial: float = math.inf) -> Means:
    """Nothing observed. With the default, arms never observed come before all others."""
    return Means(
        observations=np.zeros(n_arms),
        means=np.full(n_arms, initial),
        score=np.zeros(n_arms),
        initial=float(initial),
    )


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
