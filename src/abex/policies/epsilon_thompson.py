"""Thompson sampling that draws for a few arms only, the others at their means; and mixed with uniform exploration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.policies.learner import Learner
from abex.policies.policy import Setting
from abex.policies.thompson import (
    MAX_PRIOR,
    BetaState,
    coin,
    learn_posterior,
    prior,
)
from abex.samplers import distribution, draw
from abex.samplers.largest_beta import largest_beta_or_point
from abex.support.parameters import real, truth
from abex.support.randomness import argmax, below, share_among_largest


class ExploringBeta(BetaState):
    """Posteriors on top of the uniform prior, room for a score of each arm, the share of arms that are drawn."""

    score: NDArray[np.float64]  # (K,), written anew at every decision
    epsilon: float


@kernel
def mean_or_first(state: ExploringBeta, arm: int) -> float:
    """The mean of an arm, +inf before the first observation."""
    seen = state.successes[arm] + state.failures[arm] - 2.0
    return math.inf if seen < 0.5 else (state.successes[arm] - 1.0) / seen


@dataclass(frozen=True)
class EpsilonThompson(Learner[ExploringBeta]):
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
    learn = staticmethod(learn_posterior)
    counted = staticmethod(coin)

    def start(self, setting: Setting) -> ExploringBeta:
        """The uniform prior, for every arm."""
        n = setting.n_arms
        epsilon = 1.0 / n if self.epsilon is None else float(self.epsilon)
        return ExploringBeta.of_arms(n, **prior(n, 1.0, 1.0), resample=self.resample, epsilon=epsilon)

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


class MixedBeta(BetaState):
    """Beta posteriors, what finds the largest draw, and the share of uniform pulls."""

    epsilon: float  # nan: it follows the step


@kernel
def uniform_share(state: MixedBeta, t: int) -> float:
    """How many of the pulls are uniform at step t."""
    return 1.0 / math.sqrt(t) if math.isnan(state.epsilon) else state.epsilon


@dataclass(frozen=True)
class TSU(Learner[MixedBeta]):
    r"""Thompson sampling for directed graphs: with probability :math:`\epsilon` a uniform arm, else the largest draw.

    The mixture keeps every arm's probability above :math:`\epsilon/K`, which the analysis of directed graphs needs. No graph
    knowledge.

    Parameters
    ----------
    epsilon : float or None
        None takes :math:`1/\sqrt T`, or :math:`1/\sqrt t` at step t where the horizon is not known: our choice.
    successes, failures, resample : float, float, bool
        As in `Thompson`.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.exceedance`); O(K) draws for a few arms or a prior below 1.
    Plays every graph.

    References
    ----------
    Liu, Zheng, Shroff 2018, "Analysis of Thompson Sampling for Graphical Bandits Without the Graphs" (TS-U). Of it the abstract
    could be read, which says that Thompson sampling is mixed with uniform exploration, and no Algorithm or Theorem: the mixing
    rate is ours.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(TSU(epsilon=0.0), n_arms=2, seed=0)
    >>> player.update_many([(1, 1.0)] * 40 + [(0, 0.0)] * 40), player.select()
    (80, 1)
    """

    epsilon: float | None = real(None, least=0.0, most=1.0, or_none=True)
    successes: float = real(1.0, above=0.0, most=MAX_PRIOR)
    failures: float = real(1.0, above=0.0, most=MAX_PRIOR)
    resample: bool = truth(True)
    also_known_as = ("TS-U",)
    law = "Beta"
    learn = staticmethod(learn_posterior)
    counted = staticmethod(coin)

    def start(self, setting: Setting) -> MixedBeta:
        """The prior, for every arm."""
        n = setting.n_arms
        epsilon = self.epsilon
        if epsilon is None:
            epsilon = math.nan if setting.horizon is None else 1.0 / math.sqrt(max(setting.horizon, 1))
        known = prior(n, self.successes, self.failures)
        return self.prepare(MixedBeta(**known, resample=self.resample, epsilon=epsilon))

    @staticmethod
    @kernel
    def select(state: MixedBeta, t: int, rng: Any) -> int:
        """A uniform arm now and then, else the largest draw."""
        if rng.random() < uniform_share(state, t):
            return below(state.successes.size, rng)
        return draw(state.sampler, state, t, rng)

    @staticmethod
    @kernel
    def probabilities(state: MixedBeta, t: int, out: Any) -> None:
        """The mixture."""
        epsilon = uniform_share(state, t)
        distribution(state.sampler, state, t, out)
        for k in range(out.size):
            out[k] = epsilon / out.size + (1.0 - epsilon) * out[k]
