"""The arm with the largest mean, without looking at every arm every time.

The leader is remembered while it is certain: it is looked for again only when it falls to the bound on all others or is tied.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.kernels import Scalars, kernel
from abex.policies.base import PerArm
from abex.policies.means import learn_mean
from abex.schema import HAIR, ArmNumbers, Count, MeanOf, Within
from abex.support.randomness import argmax


class Leader(Scalars):
    """The arm of the largest mean."""

    arm: Annotated[int, ArmNumbers(least=-1)]  # -1: not known
    runner_up: Annotated[float, Within(-1.0, 1.0 + HAIR)]  # an upper bound on all other means


class LeaderMeans(NamedTuple):
    """Means with a remembered leader (see `leader`), and the exploration rate with whether it decays."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,), +inf before the first observation
    leader: Leader
    rate: float
    decays: bool

    def restored(self, fresh: LeaderMeans) -> LeaderMeans:
        """A leader that does not lead is looked for again."""
        arm, runner_up = self.leader.arm, self.leader.runner_up
        others = np.delete(self.means, arm) if arm >= 0 else self.means
        if arm >= 0 and not self.means[arm] > runner_up >= others.max(initial=-1.0):
            self.leader.arm = -1
        return self


def leader_means(n_arms: int, rate: float, decays: bool) -> LeaderMeans:
    """A fresh record."""
    return LeaderMeans(np.zeros(n_arms), np.full(n_arms, np.inf), Leader(arm=-1), rate, decays)


@kernel
def leader(state: LeaderMeans, rng: Any) -> int:
    """The arm with the largest mean; ties are broken uniformly at random, anew at each call."""
    if state.leader.arm >= 0:
        return int(state.leader.arm)
    best = argmax(state.means, rng)
    second = -1.0
    for k in range(state.means.size):
        if k != best and state.means[k] > second:
            second = state.means[k]
    if state.means[best] > second:
        state.leader.arm = best
        state.leader.runner_up = second
    return best


@kernel
def learn_leader(state: LeaderMeans, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Learn the mean and whether the leader still leads."""
    learn_mean(state, t, arm, seen, reward, rng)
    if state.leader.arm < 0:
        return
    if seen != state.leader.arm and state.means[seen] > state.leader.runner_up:
        state.leader.runner_up = state.means[seen]
    if state.means[state.leader.arm] <= state.leader.runner_up:
        state.leader.arm = -1
