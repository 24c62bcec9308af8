"""The record most policies learn: how often each arm was observed and its mean reward."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.kernels import kernel
from abex.policies.base import PerArm
from abex.schema import Count, MeanOf, Scratch


class Means(NamedTuple):
    """Observations and mean reward of each arm. An unobserved arm's mean is the policy's initial value."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,)
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    scale: float


def new_means(n_arms: int, scale: float = 0.0, initial: float = np.inf) -> Means:
    """A fresh record. With the default, arms never observed come before all others."""
    return Means(np.zeros(n_arms), np.full(n_arms, initial), np.zeros(n_arms), float(scale))


@kernel
def learn_mean(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Running mean; the first observation replaces the initial value."""
    n = state.pulls[seen] + 1.0
    state.pulls[seen] = n
    if n == 1.0:
        state.means[seen] = reward
    else:
        state.means[seen] += (reward - state.means[seen]) / n
