"""Upper confidence bounds: play the arm whose mean could be the largest."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.errors import real_number, whole_number
from abex.kernels import kernel
from abex.policies import crossover
from abex.policies.base import Kernels, PerArm, Policy, Setting
from abex.policies.indices import kl_upper_bound, moss_bound, ucb1_bound, variance_bound
from abex.policies.means import Means, learn_mean, new_means
from abex.policies.tournament import (
    DIVERGENCE,
    MINIMAX,
    UCB,
    VARIANCE,
    IndexState,
    learn_index,
    new_index_state,
    resume_index_state,
    select_index,
)
from abex.randomness import argmax

_NONE = np.zeros(0)


@kernel
def update_tree(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """What an index policy learns where its bounds stand in a tree."""
    if state.rule == VARIANCE:
        learn_spread(state, t, arm, seen, reward, rng)
    else:
        learn_width(state, t, arm, seen, reward, rng)
    learn_index(state, seen)


class _IndexPolicy(Policy[Any]):
    """What policies that play the largest index share: the plain loop for few arms, a tree of bounds for many.

    Both have the same law: the arm of the largest index, ties broken uniformly.
    """

    def start(self, setting: Setting) -> Any:
        """Nothing observed; unseen arms stand at +inf."""
        if self._many(setting):
            return new_index_state(setting.n_arms, *self._rule(setting))
        return self._plain(setting)

    @abstractmethod
    def _plain(self, setting: Setting) -> Any:
        """The record of the plain loop."""

    @abstractmethod
    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        """The rule of the tree and its parameters."""

    def kernels(self, setting: Setting) -> Kernels:
        """With many arms, a search that does not look at each of them."""
        return Kernels(select_index, update_tree) if self._many(setting) else super().kernels(setting)

    def _many(self, setting: Setting) -> bool:
        return setting.n_arms > crossover.INDEX

    def with_arms(self, state: Any, setting: Setting, keep: NDArray[np.int64]) -> Any:
        """Observations go along."""
        fresh = self.start(setting)
        for name in ("pulls", "means", "narrow", "spread"):
            if getattr(fresh, name, _NONE).size > 1 and hasattr(state, name):
                getattr(fresh, name)[: keep.size] = getattr(state, name)[keep]
        if isinstance(fresh, IndexState):
            fresh.narrow[:] = 1.0 / np.sqrt(np.maximum(fresh.pulls, 1.0))
            return resume_index_state(fresh)
        return fresh


class WidthMeans(NamedTuple):
    r"""Means with :math:`1/\sqrt{N_k}` at hand: multiplying is eight times cheaper than dividing by a root."""

    pulls: PerArm  # float64 (K,)
    means: PerArm  # float64 (K,), +inf before the first observation
    narrow: PerArm  # float64 (K,), 1/sqrt(pulls)
    score: PerArm  # float64 (K,), scratch
    scale: float


@kernel
def learn_width(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Mean and width of an observed arm."""
    learn_mean(state, t, arm, seen, reward, rng)
    state.narrow[seen] = 1.0 / math.sqrt(state.pulls[seen])


@dataclass(frozen=True)
class UCB1(_IndexPolicy):
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

    scale: float = 2.0
    also_known_as = ("UCB", "UCB-N")

    def __post_init__(self) -> None:
        real_number("scale", self.scale, least=0.0)

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


class VarianceMeans(NamedTuple):
    """Means and sums of squared deviations (Welford)."""

    pulls: PerArm  # float64 (K,)
    means: PerArm  # float64 (K,), +inf before the first observation
    spread: PerArm  # float64 (K,), sum of (x - mean)^2
    score: PerArm  # float64 (K,), scratch
    zeta: float
    c: float


@kernel
def learn_spread(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Mean and squared deviations (Welford)."""
    before = state.means[seen] if state.pulls[seen] > 0.0 else reward
    learn_mean(state, t, arm, seen, reward, rng)
    state.spread[seen] += (reward - before) * (reward - state.means[seen])


@dataclass(frozen=True)
class UCBV(_IndexPolicy):
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

    zeta: float = 1.2
    c: float = 1.0
    also_known_as = ("UCB-V",)

    def __post_init__(self) -> None:
        real_number("zeta", self.zeta, above=0.0)
        real_number("c", self.c, least=0.0)

    def _plain(self, setting: Setting) -> VarianceMeans:
        """Record of means and spreads; unseen arms stand at +inf."""
        n = setting.n_arms
        return VarianceMeans(np.zeros(n), np.full(n, np.inf), np.zeros(n), np.zeros(n), self.zeta, self.c)

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return VARIANCE, self.zeta, self.c

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest variance-aware bound."""
        level = state.zeta * math.log(t)
        for k in range(state.means.size):
            state.score[k] = variance_bound(state.means[k], state.pulls[k], state.spread[k], level, state.c)
        return argmax(state.score, rng)

    update = staticmethod(learn_spread)


@dataclass(frozen=True)
class KLUCB(_IndexPolicy):
    r"""Upper confidence bounds by the Kullback-Leibler divergence.

    Play the largest :math:`\max\{q: N_k\,\mathrm{kl}(\hat\mu_k,q)\le \ln t + c\ln\ln t\}`.

    Parameters
    ----------
    c : float
        0 is the practice and the authors' own advice, 3 the theorem's. The right side is at least 0.

    References
    ----------
    Garivier and Cappé 2011, Algorithm 1 and Theorem 1; on feedback graphs KL-UCB-N.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.tournament`). For a few arms O(K) plus some Newton steps (to 1e-13)
    for each arm whose Pinsker bound
    :math:`\hat\mu_k+\sqrt{\ln t/(2N_k)}` beats the best bound found so far: the others cannot win.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(KLUCB(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 9 + [(1, 1.0)] * 9), player.select()
    (18, 1)
    """

    c: float = 0.0
    also_known_as = ("KL-UCB", "KL-UCB-N")

    def __post_init__(self) -> None:
        real_number("c", self.c, least=0.0)

    def _plain(self, setting: Setting) -> Means:
        """Record of means; unseen arms stand at +inf."""
        return new_means(setting.n_arms, self.c)

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return DIVERGENCE, self.c

    def _many(self, setting: Setting) -> bool:
        return setting.n_arms > crossover.DIVERGENCE

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest divergence bound."""
        level = math.log(t)
        if t >= 3:
            level += state.scale * math.log(level)
        level = max(level, 0.0)
        top = -1.0
        for k in range(state.means.size):
            if state.pulls[k] == 0.0:
                state.score[k] = math.inf
            else:
                each = level / state.pulls[k]
                state.score[k] = state.means[k] + math.sqrt(0.5 * each)
                if state.score[k] >= top:
                    state.score[k] = kl_upper_bound(state.means[k], each)
                    top = max(top, state.score[k])
                else:
                    state.score[k] = -1.0  # even Pinsker's bound is below a bound already found
        return argmax(state.score, rng)

    update = staticmethod(learn_mean)


class MossState(NamedTuple):
    """Means, and what the logarithm of MOSS compares the observations with."""

    pulls: PerArm  # float64 (K,)
    means: PerArm  # float64 (K,), +inf before the first observation
    score: PerArm  # float64 (K,), scratch
    horizon: float  # nan: the current step
    factor: float


@kernel
def moss_select(state: Any, t: int, rng: Any) -> int:
    """The largest MOSS index."""
    rounds = t if math.isnan(state.horizon) else state.horizon
    share = rounds / state.means.size
    for k in range(state.means.size):
        state.score[k] = moss_bound(state.means[k], state.pulls[k], share, state.factor)
    return argmax(state.score, rng)


@dataclass(frozen=True)
class MOSS(_IndexPolicy):
    r"""Upper confidence bounds that shrink to zero at the fair share of the horizon.

    Play the largest :math:`\hat\mu_k+\sqrt{\ln_+\!\big(H/(K N_k)\big)/N_k}`.

    Parameters
    ----------
    horizon : int or None
        The number of steps H to tune for; None takes the horizon of the run.

    References
    ----------
    Audibert and Bubeck 2009, Figure 1 and Theorem 5: regret at most :math:`49\sqrt{KT}`.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.tournament`), O(K) for a few arms.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(MOSS(horizon=100), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 9 + [(1, 1.0)] * 9), player.select()
    (18, 1)
    """

    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.horizon is not None:
            whole_number("horizon", self.horizon, least=1)

    @property
    def needs_horizon(self) -> bool:
        """Only where ``horizon`` is left open."""
        return self.horizon is None

    def _plain(self, setting: Setting) -> MossState:
        """Record of means; unseen arms stand at +inf."""
        n = setting.n_arms
        horizon = float(self.horizon or self.horizon_of(setting))
        return MossState(np.zeros(n), np.full(n, np.inf), np.zeros(n), horizon, 1.0)

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return MINIMAX, self.horizon or self.horizon_of(setting), 1.0

    select = staticmethod(moss_select)
    update = staticmethod(learn_mean)


@dataclass(frozen=True)
class AnytimeMOSS(_IndexPolicy):
    r"""MOSS without a horizon.

    Play the largest :math:`\hat\mu_k+\sqrt{\frac{1+a}{2}\ln_+\!\big(t/(K N_k)\big)/N_k}`.

    Parameters
    ----------
    a : float
        1.35 is the authors' choice.

    References
    ----------
    Degenne and Perchet 2016, Section 2 (MOSS-anytime), Theorem 3.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.tournament`), O(K) for a few arms. Needs no horizon.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(AnytimeMOSS(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 9 + [(1, 1.0)] * 9), player.select()
    (18, 1)
    """

    a: float = 1.35
    also_known_as = ("MOSS-anytime",)

    def __post_init__(self) -> None:
        real_number("a", self.a, above=-1.0)

    def _plain(self, setting: Setting) -> MossState:
        """Record of means; unseen arms stand at +inf."""
        n = setting.n_arms
        return MossState(np.zeros(n), np.full(n, np.inf), np.zeros(n), math.nan, 0.5 * (1.0 + self.a))

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return MINIMAX, math.nan, 0.5 * (1.0 + self.a)

    select = staticmethod(moss_select)
    update = staticmethod(learn_mean)
