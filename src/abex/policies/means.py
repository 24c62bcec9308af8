"""Means of rewards: the record that most policies learn, and how an observation enters it with any weight."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, single_dispatch
from abex.kinds import Count, Mean
from abex.policies.learner import Learned
from abex.samplers import changed

Known = TypeVar("Known", bound=Learned)


class Means(Learned):
    """Number and mean of the rewards of each arm, and room for a score of each."""

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    score: NDArray[np.float64]  # (K,), written anew at every decision
    initial: float  # the mean of an arm without observations


def new_means(record: type[Known], n_arms: int, initial: float = math.inf, **more: Any) -> Known:
    """Nothing observed: a record with means, which arms never observed have in common.

    With the default they come before all others.
    """
    return record.of_arms(n_arms, means=np.full(n_arms, initial), initial=float(initial), **more)


@single_dispatch
def mean_after(memory: Any, arm: int, before: float, mean: float, reward: float, weight: float) -> float:
    """The mean of an arm that had ``before`` observations of another: by that, unless the memory has sums (kernel)."""
    return reward if before == 0.0 else mean + (reward - mean) * weight / (before + weight)


@kernel
def learn_mean(state: Any, arm: int, reward: float, weight: float) -> None:
    r"""The weighted mean, :math:`N_k \mathrel{+}= w`, :math:`\hat\mu_k \mathrel{+}= (x-\hat\mu_k)\,w/N_k`.

    The first observation takes the place of the initial mean, which returns when no observation is left.
    """
    before = state.observations[arm]
    count = before + weight
    if weight <= 0.0 and count <= 0.0:
        state.observations[arm] = 0.0
        state.means[arm] = state.initial
        return
    state.observations[arm] = count
    state.means[arm] = mean_after(state.memory, arm, before, state.means[arm], reward, weight)


@kernel
def learn_arm(state: Any, arm: int, reward: float, weight: float) -> None:
    """The mean, and tell the sampler."""
    learn_mean(state, arm, reward, weight)
    changed(state.sampler, state, arm)


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
