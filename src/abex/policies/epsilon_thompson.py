"""Thompson sampling that draws for a few arms only; the others stand at their means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.kernels import kernel
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.statistics import entering, fade, forget, weigh_in
from abex.policies.thompson import coin, fade_beta, forget_beta, learn_beta, weigh_beta
from abex.samplers.largest_beta import largest_beta_or_point
from abex.schema import Grown, Scratch
from abex.support.parameters import real, truth
from abex.support.randomness import argmax, share_among_largest


class ExploringBeta(NamedTuple):
    """Beta posteriors, room for a score of each arm, the share of arms that are drawn."""

    successes: Annotated[PerArm, Grown()]  # float64 (K,), the prior's 1 included
    failures: Annotated[PerArm, Grown()]  # float64 (K,), the prior's 1 included
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    resample: bool
    epsilon: float


@kernel
def mean_or_first(state: ExploringBeta, arm: int) -> float:
    """The mean of an arm, +inf before the first observation."""
    seen = state.successes[arm] + state.failures[arm] - 2.0
    return math.inf if seen < 0.5 else (state.successes[arm] - 1.0) / seen


weigh_in.register(ExploringBeta)(weigh_beta)
fade.register(ExploringBeta)(fade_beta)
entering.register(ExploringBeta)(coin)
forget.register(ExploringBeta)(forget_beta)


@dataclass(frozen=True)
class EpsilonThompson(Policy[ExploringBeta]):
    r"""Epsilon-exploring Thompson sampling: each arm has a posterior draw with probability epsilon, else its mean.

    For every arm independently, :math:`\theta_k\sim\mathrm{Beta}(1+S_k,1+F_k)` with probability :math:`\epsilon` and
    :math:`\theta_k=\hat\mu_k` otherwise; play :math:`\arg\max_k\theta_k`. An arm never observed comes first.

    Parameters
    ----------
    epsilon : float or None
        The probability of a draw; None takes :math:`1/K`, one draw a step on average.
    resample : bool
        As in `Thompson`.

    Notes
    -----
    Cost O(K) per step, with :math:`\epsilon K` posterior draws on average.

    References
    ----------
    Jin, Yang, Xiao and Xu 2023, "Thompson Sampling with Less Exploration is Fast and Optimal", Algorithm 1 (the coin for each
    arm from memory): minimax and asymptotically optimal for Bernoulli rewards.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(EpsilonThompson(), n_arms=2, seed=0)
    >>> player.update_many([(1, 1.0)] * 40 + [(0, 0.0)] * 40)
    80
    >>> bool(player.probabilities()[1] > 0.99)
    True
    """

    epsilon: float | None = real(None, least=0.0, most=1.0, or_none=True)
    resample: bool = truth(True)
    also_known_as = ("epsilon-TS",)
    forgettable = True

    def start(self, setting: Setting) -> ExploringBeta:
        """The uniform prior, for every arm."""
        n = setting.n_arms
        epsilon = 1.0 / n if self.epsilon is None else float(self.epsilon)
        return ExploringBeta(np.ones(n), np.ones(n), np.zeros(n), self.resample, epsilon)

    @staticmethod
    @kernel
    def select(state: ExploringBeta, t: int, rng: Any) -> int:
        """The largest of means and draws."""
        for k in range(state.score.size):
            state.score[k] = mean_or_first(state, k)
            if state.score[k] < math.inf and rng.random() < state.epsilon:
                state.score[k] = rng.beta(state.successes[k], state.failures[k])
        return argmax(state.score, rng)

    @staticmethod
    @kernel
    def probabilities(state: ExploringBeta, t: int, out: Any) -> None:
        """How likely each arm's mean or draw is the largest."""
        top = 0.0
        for k in range(out.size):
            state.score[k] = mean_or_first(state, k)
            top = max(top, state.score[k])
            out[k] = 0.0
        if top == math.inf or state.epsilon == 0.0:
            share_among_largest(state.score, 1.0, out)
        else:
            largest_beta_or_point(state.successes, state.failures, state.epsilon, state.score, out)

    update = staticmethod(learn_beta)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """One draw a step, and many."""
        yield cls()
        yield cls(epsilon=0.5, resample=False)
