"""The two ends of exploration: any arm always, and explore first, then commit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.kernels import Scalars, kernel
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.means import learn_mean
from abex.schema import ArmNumbers, Count, FixedAtStart, MeanOf, Scratch, UpToArms, agree
from abex.support.parameters import MOST_STEPS, whole
from abex.support.randomness import argmax, below, share_among_largest


class ArmCount(NamedTuple):
    """All that uniform choice knows."""

    n_arms: Annotated[int, FixedAtStart()]


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

    also_known_as = ("Random",)

    def start(self, setting: Setting) -> ArmCount:
        """The number of arms."""
        return ArmCount(setting.n_arms)

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


class CommitmentClock(Scalars):
    """How far the exploration is."""

    short: Annotated[int, UpToArms()]  # arms still short of their observations
    committed: Annotated[int, ArmNumbers(least=-1)]  # the arm played for ever, -1 before


class Commitment(NamedTuple):
    """Means, the observations due per arm, and how far they are."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,)
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    progress: CommitmentClock
    due: float

    def restored(self, fresh: Commitment) -> Commitment:
        """Arms short of their observations are counted; an arm is committed when there is none."""
        short = int(np.count_nonzero(self.observations < self.due))
        agree((self.progress.committed >= 0) == (short == 0), "an arm must be committed when none is short")
        self.progress.short = short
        return self


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
        n = setting.n_arms
        return Commitment(
            np.zeros(n), np.zeros(n), np.zeros(n), CommitmentClock(short=n, committed=-1), float(due)
        )

    @staticmethod
    @kernel
    def select(state: Commitment, t: int, rng: Any) -> int:
        """The arm observed least while any is short, else the committed one."""
        if state.progress.short == 0:
            return state.progress.committed
        score_fewest_first(state)
        return argmax(state.score, rng)

    @staticmethod
    @kernel
    def probabilities(state: Commitment, t: int, out: Any) -> None:
        """Even among the arms observed least, or all for the committed one."""
        for k in range(out.size):
            out[k] = 0.0
        if state.progress.short > 0:
            score_fewest_first(state)
            share_among_largest(state.score, 1.0, out)
        else:
            out[state.progress.committed] = 1.0

    @staticmethod
    @kernel
    def update(state: Commitment, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean; commit when no arm is short any more."""
        learn_mean(state, t, arm, seen, reward, rng)
        if state.observations[seen] == state.due:
            state.progress.short -= 1
        if seen == arm and state.progress.short == 0 and state.progress.committed < 0:
            state.progress.committed = argmax(state.means, rng)
