"""The two ends of exploration: any arm always, and explore first, then commit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel
from abex.kinds import Arm, Count, Mean, agree
from abex.policies.learner import Learned
from abex.policies.means import learn_mean
from abex.policies.policy import Policy, Setting
from abex.support.parameters import MOST_STEPS, whole
from abex.support.randomness import argmax, below, share_among_largest


class ArmCount(Record):
    """All that uniform choice knows."""

    n_arms: int


@dataclass(frozen=True)
class Uniform(Policy[ArmCount]):
    r"""Any arm, always: the baseline that learns nothing.

    Play every arm with probability :math:`p_k = 1/K`.

    Notes
    -----
    Cost O(1) per step. Regret :math:`T\,\frac1K\sum_k\Delta_k`.

    References
    ----------
    Lattimore and Szepesvári 2020, Section 4.5 (the regret decomposition).

    Examples
    --------
    >>> from abex import Player
    >>> Player(Uniform(), n_arms=4, seed=0).probabilities().tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    cheap_probabilities: ClassVar[bool] = True

    also_known_as = ("Random",)

    def start(self, setting: Setting) -> ArmCount:
        """The number of arms."""
        return ArmCount(n_arms=setting.n_arms)

    @staticmethod
    @kernel
    def select(state: ArmCount, t: int, rng: Any) -> int:
        """Any arm."""
        return below(state.n_arms, rng)

    @staticmethod
    @kernel
    def update(state: ArmCount, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Nothing to learn."""

    @staticmethod
    @kernel
    def probabilities(state: ArmCount, t: int, out: Any) -> None:
        """1/K each."""
        for k in range(out.size):
            out[k] = 1.0 / out.size


class Commitment(Learned):
    """Means, the observations due of each arm, how many arms are short of them, and the arm that is played for ever."""

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    committed: Arm  # -1 before
    score: NDArray[np.float64]  # (K,), written anew at every decision
    short: int  # arms still short of their observations
    initial: float  # the mean of an arm without observations
    due: float


@kernel
def score_fewest_first(state: Commitment) -> None:
    """Score the arms so that the largest scores are of those observed least."""
    for k in range(state.observations.size):
        state.score[k] = -state.observations[k]


@dataclass(frozen=True)
class ExploreThenCommit(Policy[Commitment]):
    r"""Observe every arm m times, then play the arm with the largest mean for ever.

    Parameters
    ----------
    observations : int or None
        The number m. None takes :math:`m=\lceil (T/K)^{2/3} (\ln T)^{1/3}\rceil` (at least 1), which
        balances the cost of exploring and the risk of a wrong choice without knowing the gaps; it
        needs the horizon T.

    Notes
    -----
    Cost O(K) while exploring, O(1) after.

    References
    ----------
    Lattimore and Szepesvári 2020, Theorem 6.1 and exercise 6.2.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(ExploreThenCommit(observations=1), n_arms=2, seed=0)
    >>> for _ in range(4):
    ...     arm = player.select()
    ...     _ = player.update(arm, reward=float(arm))
    >>> arm
    1
    """

    observations: int | None = whole(None, least=1, most=MOST_STEPS, or_none=True)
    resizable = False
    also_known_as = ("ETC",)
    horizon_sets = ("observations",)

    def start(self, setting: Setting) -> Commitment:
        """Every arm is short of observations, nothing is committed."""
        due = self.observations
        if due is None:
            horizon = self.horizon_of(setting)
            due = max(1, math.ceil((horizon / setting.n_arms) ** (2 / 3) * math.log(horizon) ** (1 / 3)))
        return self.prepare(Commitment.of_arms(setting.n_arms, committed=-1, due=float(due)))

    def prepare(self, state: Commitment) -> Commitment:
        """Count the arms that are short of observations; one is committed to when there is none."""
        state.short = int(np.count_nonzero(state.observations < state.due))
        agree((state.committed >= 0) == (state.short == 0), "an arm must be committed when none is short")
        return state

    @staticmethod
    @kernel
    def select(state: Commitment, t: int, rng: Any) -> int:
        """The arm observed least while any is short, else the committed one."""
        if state.short == 0:
            return state.committed
        score_fewest_first(state)
        return argmax(state.score, rng)

    @staticmethod
    @kernel
    def probabilities(state: Commitment, t: int, out: Any) -> None:
        """Even among the arms observed least, or all for the committed one."""
        for k in range(out.size):
            out[k] = 0.0
        if state.short > 0:
            score_fewest_first(state)
            share_among_largest(state.score, 1.0, out)
        else:
            out[state.committed] = 1.0

    @staticmethod
    @kernel
    def update(state: Commitment, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean; commit when no arm is short any more."""
        learn_mean(state, seen, reward, 1.0)
        if state.observations[seen] == state.due:
            state.short -= 1
        if seen == arm and state.short == 0 and state.committed < 0:
            state.committed = argmax(state.means, rng)
