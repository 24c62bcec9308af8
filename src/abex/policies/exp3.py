"""Exponential weights: policies for rewards that an adversary may choose."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.kernels import kernel
from abex.parameters import HUGE, real
from abex.policies import crossover
from abex.policies.base import Kernels, PerArm, Policy, Setting
from abex.policies.schema import Chances, Within
from abex.policies.softmax import boltzmann_weights, normalised, pick
from abex.policies.sum_tree import (
    Exp3Tree,
    ImplicitTree,
    even_tree,
    exp3_tree_select,
    exp3_tree_update,
    implicit_tree_select,
    implicit_tree_update,
)


class WeightState(NamedTuple):
    """Log-weights, the law of the last decision, and three rates whose meaning is the policy's."""

    scores: Annotated[PerArm, Within()]  # float64 (K,), log-weights up to the policy's scale
    chances: Annotated[PerArm, Chances(floor="mixing")]  # float64 (K,), probabilities of the last select
    mixing: float
    bonus: float
    step: float


def weight_state(n_arms: int, mixing: float, bonus: float, step: float) -> WeightState:
    """Equal weights."""
    return WeightState(np.zeros(n_arms), np.full(n_arms, 1.0 / n_arms), mixing, bonus, step)


@kernel
def mixed_chances(state: Any, t: int, out: Any) -> None:
    """Normalised weights, mixed with the uniform distribution."""
    total = boltzmann_weights(state.scores, 1.0, out)
    even = state.mixing / out.size
    for k in range(out.size):
        out[k] = (1.0 - state.mixing) * out[k] / total + even


@kernel
def mixed_select(state: Any, t: int, rng: Any) -> int:
    """A draw from the mixture."""
    mixed_chances(state, t, state.chances)
    return pick(state.chances, 1.0, rng)


@dataclass(frozen=True)
class Exp3(Policy[Any]):
    r"""Exponential weights on importance-weighted rewards, mixed with uniform exploration.

    :math:`p_k=(1-\gamma)\,w_k/\sum_j w_j+\gamma/K`; the pulled arm's weight grows by
    :math:`\ln w_k \mathrel{+}= \gamma\,x/(K p_k)`.

    Parameters
    ----------
    gamma : float or None
        Share of uniform exploration. None takes :math:`\min\{1,\sqrt{K\ln K/((e-1)T)}\}`, which needs the
        horizon and gives regret at most :math:`2.63\sqrt{TK\ln K}`.

    References
    ----------
    Auer, Cesa-Bianchi, Freund, Schapire 2002, Figure 1 and Corollary 3.2.

    Notes
    -----
    Cost O(log K) per step. Uses the pulled arm's reward alone, also on feedback graphs.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Exp3(gamma=0.1), n_arms=2, seed=0)
    >>> player.probabilities().tolist()
    [0.5, 0.5]
    """

    gamma: float | None = real(None, above=0.0, most=1.0, or_none=True)
    resizable = False
    remembers = ("chances",)

    @property
    def needs_horizon(self) -> bool:
        """Only where ``gamma`` is left open."""
        return self.gamma is None

    def start(self, setting: Setting) -> WeightState | Exp3Tree:
        """Equal weights."""
        n = setting.n_arms
        gamma = self.gamma
        if gamma is None:
            horizon = self.horizon_of(setting)
            gamma = min(1.0, math.sqrt(n * math.log(n) / ((math.e - 1.0) * horizon)))
        if n > crossover.WEIGHTS:
            return Exp3Tree(np.zeros(n), np.ones(1), even_tree(n), np.zeros(1), gamma, gamma / n)
        return weight_state(n, gamma, 0.0, gamma / n)

    select = staticmethod(mixed_select)
    probabilities = staticmethod(mixed_chances)

    def kernels(self, setting: Setting) -> Kernels:
        """With many arms, weights in a tree of sums."""
        if setting.n_arms > crossover.WEIGHTS:
            return Kernels(exp3_tree_select, exp3_tree_update)
        return super().kernels(setting)

    @staticmethod
    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Importance-weighted reward of the pulled arm."""
        if seen == arm:
            state.scores[arm] += state.step * reward / state.chances[arm]

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned for the horizon, and with a given share."""
        yield cls()
        yield cls(gamma=0.2)


class LossState(NamedTuple):
    """Estimated cumulative losses and the law of the last decision; nan rates follow the step."""

    losses: Annotated[PerArm, Within()]  # float64 (K,)
    chances: Annotated[PerArm, Chances()]  # float64 (K,)
    eta: float


@kernel
def implicit_rate(state: Any, t: int) -> float:
    """Learning rate of EXP3-IX at step t; its gamma is half of it."""
    if math.isnan(state.eta):
        return math.sqrt(math.log(state.losses.size) / (state.losses.size * t))
    return float(state.eta)


@kernel
def loss_chances(losses: Any, rate: float, out: Any) -> None:
    """softmax(-rate * losses) into ``out``."""
    least = losses[0]
    for k in range(1, losses.size):
        least = min(least, losses[k])
    total = 0.0
    for k in range(losses.size):
        out[k] = math.exp(-rate * (losses[k] - least))
        total += out[k]
    normalised(out, total)


@dataclass(frozen=True)
class Exp3IX(Policy[Any]):
    r"""EXP3-IX: exponential weights whose loss estimates are tempered instead of mixed.

    :math:`p=\mathrm{softmax}(-\eta\hat L)`; the pulled arm's loss l counts as
    :math:`\hat L_k \mathrel{+}= l/(p_k+\gamma)`, :math:`\gamma=\eta/2`.

    Parameters
    ----------
    eta : float or None
        None is the anytime rate :math:`\eta_t=\sqrt{\ln K/(Kt)}`; for a known horizon the theorem has
        :math:`\sqrt{2\ln K/(KT)}`.

    References
    ----------
    Neu 2015, Algorithm 1 and Theorem 1: regret at most
    :math:`2\sqrt{2KT\ln K}+(\sqrt{2KT/\ln K}+1)\ln(2/\delta)` with probability 1 - delta.

    Notes
    -----
    Cost O(log K) per step with a given ``eta``, O(K) with the anytime rate, which moves every weight at every step. Uses
    the pulled arm's reward alone; on graphs see `Exp3IXGraph`.

    Examples
    --------
    >>> from abex import Player
    >>> Player(Exp3IX(), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    eta: float | None = real(None, above=0.0, most=HUGE, or_none=True)
    resizable = False
    remembers = ("chances",)
    also_known_as = ("EXP3-IX",)

    def start(self, setting: Setting) -> LossState | ImplicitTree:
        """No loss yet."""
        n = setting.n_arms
        if self.eta is not None and n > crossover.WEIGHTS:
            return ImplicitTree(np.zeros(n), np.ones(1), even_tree(n), np.zeros(1), self.eta)
        return LossState(np.zeros(n), np.full(n, 1.0 / n), math.nan if self.eta is None else self.eta)

    def kernels(self, setting: Setting) -> Kernels:
        """With many arms and a rate that stays, weights in a tree of sums."""
        if self.eta is not None and setting.n_arms > crossover.WEIGHTS:
            return Kernels(implicit_tree_select, implicit_tree_update)
        return super().kernels(setting)

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw from the softmax of the losses."""
        loss_chances(state.losses, implicit_rate(state, t), state.chances)
        return pick(state.chances, 1.0, rng)

    @staticmethod
    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Tempered loss of the pulled arm."""
        if seen == arm:
            state.losses[arm] += (1.0 - reward) / (state.chances[arm] + 0.5 * implicit_rate(state, t))

    @staticmethod
    @kernel
    def probabilities(state: Any, t: int, out: Any) -> None:
        """The softmax of the losses."""
        loss_chances(state.losses, implicit_rate(state, t), out)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Anytime, and with a given rate."""
        yield cls()
        yield cls(eta=0.05)
