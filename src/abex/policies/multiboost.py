"""EXP3.P as the package MultiBoost implements it: what the paper's boosting figures really compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.kernels import Record, kernel
from abex.kinds import Chance, Count, Score, agree
from abex.policies.policy import Policy, Setting
from abex.samplers.scan import normalise, pick, softmax_weights
from abex.support.parameters import HUGE, MOST_STEPS, real, whole


class MultiBoostState(Record):
    """Log-weights, unnormalised probabilities, which arms the first sweep has tried, and the constants."""

    scores: Score  # float64 (K,)
    probabilities: Chance  # float64 (K,), not normalised
    untried: Count  # float64 (K,), 1 before the arm's first pull
    left: int  # arms before their first pull
    gamma: float
    alpha: float
    horizon: float


@kernel
def multiboost_probabilities(state: MultiBoostState, t: int, out: Any) -> float:
    """(1 - gamma) w / sum w + gamma / s, s the pulls since the first sweep plus 2; returns the sum."""
    total = softmax_weights(state.scores, 1.0, out)
    even = state.gamma / max(t - out.size + 1.0, 2.0)
    mass = 0.0
    for k in range(out.size):
        out[k] = (1.0 - state.gamma) * out[k] / total + even
        mass += out[k]
    return mass


@dataclass(frozen=True)
class Exp3PMultiBoost(Policy[MultiBoostState]):
    r"""The EXP3.P of MultiBoost 1.2, which differs from the published one in five points.

    (1) The horizon is fixed (100), whatever the length of the run. (2) The uniform part is
    :math:`\gamma/s` with s = 2, 3, ... counting the steps, not :math:`\gamma/K`: :math:`p_k=(1-\gamma)w_k/\sum_j
    w_j+\gamma/s`, normalised only to draw. (3) Rewards are divided by that unnormalised p. (4) The bonus goes to the
    pulled arm alone: :math:`\ln w_k \mathrel{+}= \frac{\gamma}{3K}\big(x/p_k+\alpha/(p_k\sqrt{KT})\big)`. (5) A first
    sweep over all arms sets :math:`\ln w_k=\frac{\alpha\gamma}3\sqrt{T/K}+\frac{\gamma}{3}r_k+\alpha K/\sqrt{KT}`. MultiBoost
    does not count that sweep; here it takes the first K steps, in random order.

    Parameters
    ----------
    gamma, alpha : float
        Defaults of MultiBoost 1.2 (an older release has 0.05 and 0.6).
    horizon : int
        The constant T of the formulas.

    Notes
    -----
    Cost O(K) per step.

    References
    ----------
    MultiBoost 1.2, class Exp3P; Busa-Fekete and Kégl 2010, Figure 2, is what it set out to implement.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Exp3PMultiBoost(), n_arms=3, seed=0)
    >>> first = [player.select() for _ in range(3) if player.update(player.select(), 0.5)]
    >>> player.probabilities().round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    gamma: float = real(0.1, least=0.0, most=1.0)
    alpha: float = real(0.4, least=0.0, most=HUGE)
    horizon: int = whole(100, least=1, most=MOST_STEPS)
    resizable = False

    def start(self, setting: Setting) -> MultiBoostState:
        """Nothing tried yet."""
        n = setting.n_arms
        return MultiBoostState.of_arms(
            n,
            probabilities=np.ones(n),
            untried=np.ones(n),
            left=n,
            gamma=self.gamma,
            alpha=self.alpha,
            horizon=float(self.horizon),
        )

    def prepare(self, state: MultiBoostState) -> MultiBoostState:
        """Count the arms not yet tried."""
        agree(bool(np.isin(state.untried, (0.0, 1.0)).all()), "untried must be 0 or 1")
        state.left = int(np.count_nonzero(state.untried))
        return state

    @staticmethod
    @kernel
    def select(state: MultiBoostState, t: int, rng: Any) -> int:
        """An arm of the first sweep, then a draw."""
        if state.left > 0:
            return pick(state.untried, state.left, rng)
        return pick(state.probabilities, multiboost_probabilities(state, t, state.probabilities), rng)

    @staticmethod
    @kernel
    def update(state: MultiBoostState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """First sweep: the starting weight; later: reward and bonus of the pulled arm."""
        if seen != arm:
            return
        n = state.scores.size
        root = math.sqrt(n * state.horizon)
        if state.untried[arm] == 1.0:
            state.untried[arm] = 0.0
            state.left -= 1
            start = state.alpha * state.gamma / 3.0 * math.sqrt(state.horizon / n)
            state.scores[arm] = start + state.gamma / 3.0 * reward + state.alpha * n / root
        else:
            gain = (reward + state.alpha / root) / state.probabilities[arm]
            state.scores[arm] += state.gamma / (3.0 * n) * gain

    @staticmethod
    @kernel
    def probabilities(state: MultiBoostState, t: int, out: Any) -> None:
        """Uniform over the untried arms, then the normalised probabilities."""
        if state.left > 0:
            for k in range(out.size):
                out[k] = state.untried[k] / state.left
        else:
            normalise(out, multiboost_probabilities(state, t, out))
