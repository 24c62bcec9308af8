"""Upper confidence bounds: play the arm whose mean could be the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.kernels import kernel
from abex.parameters import HUGE, real
from abex.policies import crossover
from abex.policies.base import Setting
from abex.policies.index_policy import IndexPolicy, VarianceMeans, WidthMeans, learn_spread, learn_width
from abex.policies.indices import ucb1_bound, variance_bound
from abex.policies.tournament import UCB, VARIANCE
from abex.randomness import argmax


@dataclass(frozen=True)
class UCB1(IndexPolicy):
    r"""Upper confidence bounds of Hoeffding's kind.

    Play the arm with the largest :math:`\hat\mu_k + \sqrt{a \ln t / N_k}`, an unseen arm first.

    Parameters
    ----------
    scale : float
        The factor :math:`a`. 2 is the published rule, regret at most
        :math:`8\sum_k \ln T/\Delta_k + (1+\pi^2/3)\sum_k\Delta_k`; 1/2 is the exact Hoeffding rate for
        rewards in [0, 1] and plays much better, without a UCB1 theorem.

    References
    ----------
    Auer, Cesa-Bianchi, Fischer 2002, Theorem 1; on feedback graphs UCB-N, Caron et al. 2012, Algorithm 1.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.tournament`), O(K) for a few arms.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(UCB1(), n_arms=2, seed=0)
    >>> for _ in range(20):
    ...     arm = player.select()
    ...     _ = player.update(arm, reward=float(arm))
    >>> player.select()
    1
    """

    scale: float = real(2.0, least=0.0, most=HUGE)
    also_known_as = ("UCB", "UCB-N")

    def _plain(self, setting: Setting) -> WidthMeans:
        """Record of means; unseen arms stand at +inf."""
        n = setting.n_arms
        return WidthMeans(np.zeros(n), np.full(n, np.inf), np.zeros(n), np.zeros(n), self.scale)

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return UCB, self.scale

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest upper confidence bound."""
        width = math.sqrt(state.scale * math.log(t))
        for k in range(state.means.size):
            state.score[k] = ucb1_bound(state.means[k], state.narrow[k], width)
        return argmax(state.score, rng)

    update = staticmethod(learn_width)

    @classmethod
    def examples(cls) -> Any:
        """The published scale and the Hoeffding rate."""
        yield cls()
        yield cls(scale=0.5)


@dataclass(frozen=True)
class UCBV(IndexPolicy):
    r"""Upper confidence bounds that use the empirical variance.

    Play the largest :math:`\hat\mu_k + \sqrt{2 V_k \zeta\ln t/N_k} + 3c\,\zeta\ln t/N_k`, where
    :math:`V_k` is the empirical variance :math:`\frac1{N_k}\sum (x-\hat\mu_k)^2`; rewards are in [0, 1].

    Parameters
    ----------
    zeta, c : float
        1.2 and 1 are the theorem's: regret at most :math:`10\sum_k(\sigma_k^2/\Delta_k+2)\ln T`. Practice
        (and the boosting literature) takes 1 and 1/3.

    References
    ----------
    Audibert, Munos, Szepesvári 2009, eq. (2) and Theorem 4.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.tournament`), O(K) for a few arms.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(UCBV(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 99 + [(1, 1.0)] * 99), player.select()
    (198, 1)
    """

    zeta: float = real(1.2, above=0.0, most=HUGE)
    c: float = real(1.0, least=0.0, most=HUGE)
    also_known_as = ("UCB-V",)

    def _plain(self, setting: Setting) -> VarianceMeans:
        """Record of means and spreads; unseen arms stand at +inf."""
        n = setting.n_arms
        return VarianceMeans(np.zeros(n), np.full(n, np.inf), np.zeros(n), np.zeros(n), self.zeta, self.c)

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return VARIANCE, self.zeta, self.c

    def _many(self, setting: Setting) -> bool:
        return setting.n_arms > crossover.VARIANCE

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest variance-aware bound."""
        level = state.zeta * math.log(t)
        for k in range(state.means.size):
            state.score[k] = variance_bound(state.means[k], state.pulls[k], state.spread[k], level, state.c)
        return argmax(state.score, rng)

    update = staticmethod(learn_spread)
