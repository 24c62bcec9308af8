"""EXP3.S: exponential weights for rewards whose best arm changes, a part of which is shared among the arms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.kernels import Record, kernel
from abex.kinds import Chance, Score, agree
from abex.policies.learner import DrawnPolicy
from abex.policies.policy import Setting
from abex.support.parameters import MOST_STEPS, real, whole


class SharedState(Record):
    """Weights, the distribution of the last decision, and the rates."""

    weights: Score  # float64 (K,), which sum to 1
    probabilities: Chance  # float64 (K,), of the last decision
    mixing: float  # gamma
    share: float  # of all weight that is handed out evenly at every step


@dataclass(frozen=True)
class Exp3S(DrawnPolicy[SharedState]):
    r"""EXP3.S: exponential weights, a part of which is shared among all arms at every step.

    :math:`p_k=(1-\gamma)w_k/W+\gamma/K`; the pulled arm's weight is multiplied by :math:`\exp(\gamma x/(Kp_k))`, then
    :math:`w_k \mathrel{+}= \frac{e\alpha}{K}W`, with the sum W of the weights before: no arm is ever lost.

    Parameters
    ----------
    gamma : float or None
        Share of uniform exploration. None takes :math:`\min\{1,\sqrt{K(S\ln(KT)+e)/((e-1)T)}\}`, which needs the horizon.
    alpha : float or None
        The sharing; None takes 1/T, which needs the horizon.
    changes : int
        How often the best arm changes: the hardness S less 1, for ``gamma=None``.

    References
    ----------
    Auer, Cesa-Bianchi, Freund, Schapire 2002, Figure 3 and Corollary 8.2: regret against any sequence of arms with S - 1
    changes at most :math:`2\sqrt{e-1}\sqrt{KT(S\ln(KT)+e)}`.

    Notes
    -----
    Cost O(K) per step. Uses the pulled arm's reward alone, also on feedback graphs.

    Examples
    --------
    >>> from abex import Player
    >>> Player(Exp3S(gamma=0.1, alpha=0.001), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    gamma: float | None = real(None, above=0.0, most=1.0, or_none=True)
    alpha: float | None = real(None, least=0.0, most=1.0, or_none=True)
    changes: int = whole(0, least=0, most=MOST_STEPS)
    resizable = False
    also_known_as = ("EXP3.S",)

    @property
    def needs_horizon(self) -> bool:
        """Only where a rate is left open."""
        return self.gamma is None or self.alpha is None

    def start(self, setting: Setting) -> SharedState:
        """Equal weights."""
        n, gamma, alpha = setting.n_arms, self.gamma, self.alpha
        if gamma is None:
            horizon = self.horizon_of(setting)
            hardness = (self.changes + 1) * math.log(n * horizon) + math.e
            gamma = min(1.0, math.sqrt(n * hardness / ((math.e - 1.0) * horizon)))
        if alpha is None:
            alpha = 1.0 / self.horizon_of(setting)
        even = np.full(n, 1.0 / n)
        return SharedState(
            weights=even, probabilities=even.copy(), mixing=float(gamma), share=float(math.e * alpha)
        )

    def prepare(self, state: SharedState) -> SharedState:
        """The weights must be a distribution."""
        fine = bool((state.weights >= 0.0).all()) and abs(state.weights.sum() - 1.0) < 1e-6
        agree(fine, "weights must be probabilities that sum to 1")
        return state

    @staticmethod
    @kernel
    def probabilities(state: SharedState, t: int, out: Any) -> None:
        """The weights, mixed with the uniform distribution."""
        n_arms = out.size
        for k in range(n_arms):
            out[k] = (1.0 - state.mixing) * state.weights[k] + state.mixing / n_arms

    @staticmethod
    @kernel
    def update(state: SharedState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """The pulled arm's weight grows by its importance-weighted reward, then every arm has its share of all."""
        if seen != arm:
            return
        n_arms = state.weights.size
        growth = math.exp(min(state.mixing / n_arms * reward / state.probabilities[arm], 700.0))
        total = 1.0 + state.weights[arm] * (growth - 1.0)
        state.weights[arm] *= growth
        even = state.share / n_arms  # of the weight before it grew, which was 1
        for k in range(n_arms):
            state.weights[k] = (state.weights[k] + even) / (total + state.share)
