"""Thompson sampling: play an arm with the probability that it is the best one, given what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.parameters import real, truth
from abex.policies import crossover
from abex.policies.base import Kernels, PerArm, Policy, Setting
from abex.policies.schema import Grown, Scratch
from abex.policies.thompson_levels import learn_levels, new_beta_levels, select_beta
from abex.randomness import argmax

MOST_PRIOR = 1e9  # observations that a prior may be worth: draws of far heavier ones are no longer told apart


class BetaState(NamedTuple):
    """Parameters of each arm's Beta posterior, scratch, and whether fractions are resampled."""

    successes: Annotated[PerArm, Grown()]  # float64 (K,), prior included
    failures: Annotated[PerArm, Grown()]  # float64 (K,), prior included
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    resample: bool


@kernel
def learn_beta(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Count a success or a failure; a reward between 0 and 1 is a coin with that chance."""
    if state.resample and 0.0 < reward < 1.0:
        reward = 1.0 if rng.random() < reward else 0.0
    state.successes[seen] += reward
    state.failures[seen] += 1.0 - reward


@kernel
def update_of_many(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """`Thompson.update` where only arms that can win are drawn."""
    learn_beta(state, t, arm, seen, reward, rng)
    learn_levels(state, seen)


@dataclass(frozen=True)
class Thompson(Policy[BetaState]):
    r"""Sample each arm's mean from its posterior, play the largest.

    Draw :math:`\theta_k\sim\mathrm{Beta}(a+S_k,\,b+F_k)` for every arm, play :math:`\arg\max_k\theta_k`.

    Parameters
    ----------
    successes, failures : float
        The prior's a and b; (1, 1) is uniform, the choice of the analysis.
    resample : bool
        A reward x strictly between 0 and 1 counts as a success with probability x (the theorem's rule).
        False adds x to the successes and 1 - x to the failures: less noise, no theorem.

    References
    ----------
    Agrawal and Goyal 2012, Algorithms 1 and 2, Theorem 2; on feedback graphs TS-N, Tossou et al. 2017.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.thompson_levels`); O(K) draws for a few arms or a prior below 1.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Thompson(), n_arms=2, seed=0)
    >>> player.update_many([(1, 1.0)] * 40 + [(0, 0.0)] * 40)
    80
    >>> player.select()
    1
    """

    successes: float = real(1.0, above=0.0, most=MOST_PRIOR)
    failures: float = real(1.0, above=0.0, most=MOST_PRIOR)
    resample: bool = truth(True)
    also_known_as = ("TS", "TS-N")

    def _many(self, setting: Setting) -> bool:
        # below 1 the density has no tangent above it
        return setting.n_arms > crossover.THOMPSON and min(self.successes, self.failures) >= 1.0

    def kernels(self, setting: Setting) -> Kernels:
        """With many arms, draws only for those that can win."""
        return Kernels(select_beta, update_of_many) if self._many(setting) else super().kernels(setting)

    def with_arms(self, state: Any, setting: Setting, keep: NDArray[np.int64]) -> Any:
        """Posteriors go along."""
        fresh = self.start(setting)
        fresh.successes[: keep.size] = state.successes[keep]
        fresh.failures[: keep.size] = state.failures[keep]
        if not self._many(setting):
            return fresh
        seen = fresh.successes + fresh.failures > self.successes + self.failures
        return new_beta_levels(fresh.successes, fresh.failures, seen, self.resample)

    def start(self, setting: Setting) -> Any:
        """The prior, for every arm."""
        n = setting.n_arms
        if self._many(setting):
            prior = np.full(n, float(self.successes)), np.full(n, float(self.failures))
            return new_beta_levels(*prior, np.zeros(n, bool), self.resample)
        return BetaState(
            np.full(n, float(self.successes)), np.full(n, float(self.failures)), np.zeros(n), self.resample
        )

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest draw."""
        for k in range(state.score.size):
            state.score[k] = rng.beta(state.successes[k], state.failures[k])
        return argmax(state.score, rng)

    update = staticmethod(learn_beta)

    @classmethod
    def examples(cls) -> Any:
        """With and without resampling."""
        yield cls()
        yield cls(resample=False)
