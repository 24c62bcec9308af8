"""Exponential weights: policies for rewards that an adversary may choose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from abex.kernels import Record, kernel
from abex.kinds import Chance, Score
from abex.policies.policy import Policy, Setting
from abex.samplers import changed, draw, sampler_for
from abex.samplers.scan import loss_probabilities, softmax_weights
from abex.samplers.sum_tree import share_of
from abex.support.parameters import HUGE, real
from abex.support.randomness import below


class Exp3State(Record):
    """Log-weights, the probability of the last decision, what draws by the weights, and the rates."""

    scores: Score  # float64 (K,), log-weights
    probabilities: Chance  # float64 (1,), of the chosen arm
    mixing: float
    step: float
    sampler: Any = None


@kernel
def mixed_probabilities(state: Any, t: int, out: Any) -> None:
    """Normalised weights, mixed with the uniform distribution."""
    total = softmax_weights(state.scores, 1.0, out)
    even = state.mixing / out.size
    for k in range(out.size):
        out[k] = (1.0 - state.mixing) * out[k] / total + even


@dataclass(frozen=True)
class Exp3(Policy[Exp3State]):
    r"""Exponential weights on importance-weighted rewards, mixed with uniform exploration.

    :math:`p_k=(1-\gamma)\,w_k/\sum_j w_j+\gamma/K`; the pulled arm's weight grows by
    :math:`\ln w_k \mathrel{+}= \gamma\,x/(K p_k)`.

    Parameters
    ----------
    gamma : float or None
        Share of uniform exploration. None takes :math:`\min\{1,\sqrt{K\ln K/((e-1)T)}\}`, which needs the
        horizon and gives regret at most :math:`2.63\sqrt{TK\ln K}`.

    Notes
    -----
    Cost O(log K) per step. Uses the pulled arm's reward alone, also on feedback graphs.

    References
    ----------
    Auer, Cesa-Bianchi, Freund, Schapire 2002, Figure 1 and Corollary 3.2.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Exp3(gamma=0.1), n_arms=2, seed=0)
    >>> player.probabilities().tolist()
    [0.5, 0.5]
    """

    cheap_probabilities: ClassVar[bool] = True

    gamma: float | None = real(None, above=0.0, most=1.0, or_none=True)
    resizable = False
    horizon_sets = ("gamma",)

    def start(self, setting: Setting) -> Exp3State:
        """Equal weights."""
        n = setting.n_arms
        gamma = self.gamma
        if gamma is None:
            horizon = self.horizon_of(setting)
            gamma = min(1.0, math.sqrt(n * math.log(n) / ((math.e - 1.0) * horizon)))
        state = Exp3State.of_arms(n, probabilities=np.ones(1), mixing=gamma, step=gamma / n)
        return self.prepare(state)

    def prepare(self, state: Exp3State) -> Exp3State:
        """Draw by the weights."""
        state.sampler = sampler_for("weights", state.scores, 1.0)
        return state

    @staticmethod
    @kernel
    def select(state: Exp3State, t: int, rng: Any) -> int:
        """A draw from the mixture of weights and uniform choice."""
        n_arms = state.scores.size
        even = rng.random() < state.mixing
        arm = below(n_arms, rng) if even else draw(state.sampler, state.scores, 1.0, rng)
        state.probabilities[0] = (1.0 - state.mixing) * share_of(state.sampler, arm) + state.mixing / n_arms
        return arm

    probabilities = staticmethod(mixed_probabilities)

    @staticmethod
    @kernel
    def update(state: Exp3State, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Importance-weighted reward of the pulled arm."""
        if seen == arm and reward != 0.0:  # else the weights stay
            state.scores[arm] += state.step * reward / state.probabilities[0]
            changed(state.sampler, state.scores, arm)


class LossState(Record):
    """Estimated cumulative losses, the probability of the last decision, and the rate."""

    losses: Score  # float64 (K,)
    probabilities: Chance  # float64 (1,), of the chosen arm
    eta: float  # nan: it follows the step
    sampler: Any = None  # of the softmax of the losses


@kernel
def implicit_rate(state: LossState, t: int) -> float:
    """Learning rate of EXP3-IX at step t; its gamma is half of it."""
    if math.isnan(state.eta):
        return math.sqrt(math.log(state.losses.size) / (state.losses.size * t))
    return float(state.eta)


@dataclass(frozen=True)
class Exp3IX(Policy[LossState]):
    r"""EXP3-IX: exponential weights whose loss estimates are tempered instead of mixed.

    :math:`p=\mathrm{softmax}(-\eta\hat L)`; the pulled arm's loss l counts as
    :math:`\hat L_k \mathrel{+}= l/(p_k+\gamma)`, :math:`\gamma=\eta/2`.

    Parameters
    ----------
    eta : float or None
        None is the anytime rate :math:`\eta_t=\sqrt{\ln K/(Kt)}`; for a known horizon the theorem has
        :math:`\sqrt{2\ln K/(KT)}`.

    Notes
    -----
    Cost O(log K) per step with a given ``eta``, O(K) with the anytime rate, which moves every weight at every step. Uses
    the pulled arm's reward alone; on graphs see `Exp3IXGraph`.

    References
    ----------
    Neu 2015, Algorithm 1 and Theorem 1: regret at most
    :math:`2\sqrt{2KT\ln K}+(\sqrt{2KT/\ln K}+1)\ln(2/\delta)` with probability 1 - delta.

    Examples
    --------
    >>> from abex import Player
    >>> Player(Exp3IX(), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    cheap_probabilities: ClassVar[bool] = True

    eta: float | None = real(None, above=0.0, most=HUGE, or_none=True)
    resizable = False
    also_known_as = ("EXP3-IX",)

    def start(self, setting: Setting) -> LossState:
        """No loss yet."""
        eta = math.nan if self.eta is None else self.eta
        state = LossState.of_arms(setting.n_arms, probabilities=np.ones(1), eta=eta)
        return self.prepare(state)

    def prepare(self, state: LossState) -> LossState:
        """Draw from the softmax of the losses."""
        state.sampler = sampler_for("weights", state.losses, -state.eta)
        return state

    @staticmethod
    @kernel
    def select(state: LossState, t: int, rng: Any) -> int:
        """A draw from the softmax of the losses."""
        arm = draw(state.sampler, state.losses, implicit_rate(state, t), rng)
        state.probabilities[0] = share_of(state.sampler, arm)
        return arm

    @staticmethod
    @kernel
    def update(state: LossState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Tempered loss of the pulled arm."""
        if seen == arm and reward != 1.0:  # else the weights stay
            state.losses[arm] += (1.0 - reward) / (state.probabilities[0] + 0.5 * implicit_rate(state, t))
            changed(state.sampler, state.losses, arm)

    @staticmethod
    @kernel
    def probabilities(state: LossState, t: int, out: Any) -> None:
        """The softmax of the losses."""
        loss_probabilities(state.losses, implicit_rate(state, t), out)
