"""Follow the regularised leader with the 1/2-Tsallis entropy: Tsallis-INF and its ancestor INF."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.kernels import Record, kernel
from abex.kinds import Chance, Score, agree
from abex.policies.learner import DrawnPolicy
from abex.policies.means import smallest
from abex.policies.policy import Setting
from abex.samplers.scan import normalise
from abex.support.parameters import HUGE, TINY, choice, real

ESTIMATORS = ("RV", "IW")


class TsallisState(Record):
    """Estimated losses, the distribution of the last decision, and the learning rate."""

    losses: Score  # float64 (K,)
    probabilities: Chance  # float64 (K,)
    rate: float  # over sqrt(t) if it decays
    decays: bool
    reduced: bool


@kernel
def tsallis_rate(state: TsallisState, t: int) -> float:
    """Learning rate of step t."""
    return float(state.rate / math.sqrt(t) if state.decays else state.rate)


class TsallisPolicy(DrawnPolicy[TsallisState]):
    """Draws from the solution of the regularised leader; a subclass says by which rate."""

    resizable = False

    @abstractmethod
    def rate(self, setting: Setting) -> tuple[float, bool, bool]:
        """The learning rate, whether it decays, and whether the estimates have reduced variance."""

    def start(self, setting: Setting) -> TsallisState:
        """No loss yet."""
        n, (rate, decays, reduced) = setting.n_arms, self.rate(setting)
        even = np.full(n, 1.0 / n)
        return TsallisState.of_arms(n, probabilities=even, rate=rate, decays=decays, reduced=reduced)

    def prepare(self, state: TsallisState) -> TsallisState:
        """The smallest loss must not drown what is subtracted from it before the first step of Newton's method."""
        most = 2.0**50 * 2.0 / state.rate
        agree(bool(abs(state.losses.min()) <= most), f"losses must begin below {most:g}")
        return state

    @staticmethod
    @kernel
    def probabilities(state: TsallisState, t: int, out: Any) -> None:
        """Weights 4 / (eta (L_k - x))^2 with x such that they sum to 1, by Newton's method.

        At x = min L - 2/eta one weight is 1, so the sum is at least 1: from there Newton's iterates fall
        monotonically to the root of this convex function and never cross the pole. What is sought is how far
        x lies below min L: beside large losses it may be too little to be seen in x itself.
        """
        eta = tsallis_rate(state, t)
        least = smallest(state.losses)
        depth = 2.0 / eta
        total = 0.0
        for _ in range(100):
            total = 0.0
            slope = 0.0
            for k in range(out.size):
                root = 2.0 / (eta * (state.losses[k] - least + depth))
                weight = root * root
                out[k] = weight
                total += weight
                slope += weight * root
            if total - 1.0 < 1e-12:
                break
            depth += (total - 1.0) / (eta * slope)
        normalise(out, total)

    @staticmethod
    @kernel
    def update(state: TsallisState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Importance-weighted loss; with reduced variance, every likely arm is charged a baseline of 1/2."""
        if seen != arm:
            return
        loss = 1.0 - reward
        if state.reduced:
            eta = tsallis_rate(state, t)
            for k in range(state.losses.size):
                if state.probabilities[k] >= eta * eta:
                    state.losses[k] += 0.5
            base = 0.5 if state.probabilities[arm] >= eta * eta else 0.0
            state.losses[arm] += (loss - base) / state.probabilities[arm]
        else:
            state.losses[arm] += loss / state.probabilities[arm]


@dataclass(frozen=True)
class TsallisINF(TsallisPolicy):
    r"""Best of both worlds by Tsallis entropy.

    Arm k has probability :math:`w_k=4/(\eta_t(\hat L_k-x))^2` with x such that :math:`\sum_k w_k=1`.

    Parameters
    ----------
    estimator : {"RV", "IW"}
        ``IW``: :math:`\hat L_k \mathrel{+}= l/w_k` for the pulled arm, :math:`\eta_t=2/\sqrt t`, adversarial regret
        at most :math:`4\sqrt{KT}+1`. ``RV`` (reduced variance, better in practice): every arm with
        :math:`w_k\ge\eta_t^2` is charged :math:`B_k=1/2`, the pulled one :math:`B_k+(l-B_k)/w_k`, and
        :math:`\eta_t=4/\sqrt t`.

    Notes
    -----
    Cost O(K) per Newton step, five to ten steps.

    References
    ----------
    Zimmert and Seldin 2021, Algorithm 1 and Theorem 1: :math:`O(\sum_k\ln T/\Delta_k)` for stochastic rewards
    (the RV form is not verified against the publication).

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(TsallisINF(), n_arms=2, seed=0)
    >>> player.update(0, reward=0.0)
    True
    >>> player.probabilities().round(2).tolist()
    [0.07, 0.93]
    """

    estimator: str = choice("RV", ESTIMATORS)
    also_known_as = ("Tsallis-INF",)

    def rate(self, setting: Setting) -> tuple[float, bool, bool]:
        """4 or 2 over the root of t."""
        reduced = self.estimator == "RV"
        return (4.0 if reduced else 2.0), True, reduced


@dataclass(frozen=True)
class INF(TsallisPolicy):
    r"""Implicitly normalised forecaster with a polynomial potential.

    With the potential :math:`\psi(x)=(\eta/(-x))^2`, arm k has probability :math:`p_k=(\eta/(\hat L_k-x))^2`, x such
    that :math:`\sum_k p_k=1`: `TsallisINF` with a rate that does not decay.

    Parameters
    ----------
    eta : float or None
        None takes :math:`\sqrt T`, which needs the horizon.

    Notes
    -----
    Cost O(K) per Newton step, five to ten steps.

    References
    ----------
    Audibert and Bubeck 2009, Section 2 and Theorem 2 (constants not verified against the publication).

    Examples
    --------
    >>> from abex import Player
    >>> Player(INF(eta=10.0), n_arms=2, seed=0).probabilities().round(12).tolist()
    [0.5, 0.5]
    """

    eta: float | None = real(None, least=TINY, most=HUGE, or_none=True)
    horizon_sets = ("eta",)

    def rate(self, setting: Setting) -> tuple[float, bool, bool]:
        """2 / eta."""
        eta = math.sqrt(self.horizon_of(setting)) if self.eta is None else self.eta
        return 2.0 / eta, False, False
