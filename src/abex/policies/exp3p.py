"""EXP3.P: exponential weights with a bonus that keeps the regret small with high probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.kernels import Record, kernel
from abex.kinds import Chance, Score
from abex.policies.exp3 import mixed_probabilities
from abex.policies.learner import DrawnPolicy
from abex.policies.policy import Setting
from abex.support.parameters import HUGE, TINY, real


class WeightState(Record):
    """Log-weights, the distribution of the last decision, and the rates."""

    scores: Score  # float64 (K,), log-weights
    probabilities: Chance  # float64 (K,), of the last decision
    mixing: float
    bonus: float
    step: float


@dataclass(frozen=True)
class Exp3P(DrawnPolicy[WeightState]):
    r"""EXP3.P: exponential weights with a bonus for arms that are rarely pulled, in the form of Auer et al.

    :math:`p_k=(1-\gamma)\,w_k/\sum_j w_j+\gamma/K`, and for **every** arm
    :math:`\ln w_k \mathrel{+}= \frac{\gamma}{3K}\big(\hat x_k+\frac{\alpha}{p_k\sqrt{KT}}\big)`, where
    :math:`\hat x_k=x/p_k` for the pulled arm and 0 for the others.

    Parameters
    ----------
    gamma, alpha : float or None
        None takes the theorem's :math:`\gamma=\min\{3/5,2\sqrt{(3/5)K\ln K/T}\}` and
        :math:`\alpha=2\sqrt{\ln(KT/\delta)}`. In boosting, Busa-Fekete and Kégl 2010 found 0.15 and 0.3.
    delta : float
        The bound holds with probability 1 - delta.

    Notes
    -----
    Cost O(K) per step. Needs the horizon.

    References
    ----------
    Auer, Cesa-Bianchi, Freund, Schapire 2002, Figure 2 and Theorem 6.3: regret at most
    :math:`4\sqrt{KT\ln(KT/\delta)}+4\sqrt{(5/3)KT\ln K}+8\ln(KT/\delta)`.

    Examples
    --------
    >>> from abex import Player
    >>> Player(Exp3P(), n_arms=4, horizon=1000, seed=0).probabilities().tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    gamma: float | None = real(None, above=0.0, most=1.0, or_none=True)
    alpha: float | None = real(None, least=0.0, most=HUGE, or_none=True)
    delta: float = real(0.05, least=TINY, most=1.0)
    resizable = False
    also_known_as = ("EXP3.P",)

    @property
    def needs_horizon(self) -> bool:
        """Always: it scales the bonus."""
        return True

    def start(self, setting: Setting) -> WeightState:
        """Equal weights (the published start, the same for all arms, cancels)."""
        n, horizon = setting.n_arms, self.horizon_of(setting)
        gamma, alpha = self.gamma, self.alpha
        if gamma is None:  # one arm: ln K = 0, and no exploration is due
            gamma = min(0.6, 2.0 * math.sqrt(0.6 * n * math.log(n) / horizon))
        if alpha is None:
            alpha = 2.0 * math.sqrt(math.log(n * horizon / self.delta))
        return WeightState.of_arms(
            n,
            probabilities=np.full(n, 1.0 / n),
            mixing=gamma,
            bonus=alpha / math.sqrt(n * horizon),
            step=gamma / (3.0 * n),
        )

    probabilities = staticmethod(mixed_probabilities)

    @staticmethod
    @kernel
    def update(state: WeightState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Every arm's score grows by step (x 1{pulled} + bonus) / p: an upper confidence bound on its gain."""
        if seen == arm:
            state.scores[arm] += state.step * reward / state.probabilities[arm]
            for k in range(state.scores.size):
                state.scores[k] += state.step * state.bonus / max(state.probabilities[k], TINY)
