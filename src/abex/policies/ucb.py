"""Upper confidence bounds: play the arm whose mean could be the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.kinds import Total
from abex.policies.index import IndexPolicy, IndexState
from abex.policies.learner import learn_mean
from abex.policies.policy import Setting
from abex.samplers import changed
from abex.samplers.interface import (
    NEVER,
    SAFETY,
    index_of,
    level_at,
    reaching_level,
    same_forever,
    stretched,
    winner_certain_until,
)
from abex.support.parameters import HUGE, real


class UcbState(IndexState):
    r"""Index :math:`\hat\mu_k+\ell/\sqrt{N_k}` at the level :math:`\ell=\sqrt{a\ln t}`."""

    inv_sqrt_count: NDArray[
        np.float64
    ]  # (K,), 0 without observations: eight times cheaper than dividing by a root
    scale: float


def inv_sqrt_counts(observations: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/sqrt(observations), and 0 where there were none."""
    seen = observations > 0.0
    return np.where(seen, 1.0 / np.sqrt(np.where(seen, observations, 1.0)), 0.0)


@kernel
def learn_width(state: Any, arm: int, reward: float, weight: float) -> None:
    """Mean and width of an observed arm."""
    learn_mean(state, arm, reward, weight)
    count = state.observations[arm]
    state.inv_sqrt_count[arm] = 1.0 / math.sqrt(count) if count > 0.0 else 0.0
    changed(state.sampler, state, arm)


@stretched.register(UcbState)
@kernel
def ucb_stretched(state: UcbState, level: float, stretch: float) -> float:
    """The level stands over the root of the observations."""
    return level * math.sqrt(stretch)


@level_at.register(UcbState)
@kernel
def ucb_level(state: UcbState, t: float) -> float:
    """Sqrt(a ln t)."""
    return math.sqrt(state.scale * math.log(t))


@index_of.register(UcbState)
@kernel
def ucb_index(state: UcbState, arm: int, level: float) -> float:
    """The mean plus the level over the root of the observations."""
    return state.means[arm] + level * state.inv_sqrt_count[arm]  # type: ignore[no-any-return]


@winner_certain_until.register(UcbState)
@kernel
def ucb_crossing(state: UcbState, champion: int, index: float, loser: int) -> float:
    """The indices are lines in the level: where the loser's crosses the champion's, if it is the steeper one."""
    steeper = state.inv_sqrt_count[loser] - state.inv_sqrt_count[champion]
    gap = state.means[champion] - state.means[loser] - SAFETY
    # which of two is the steeper is chance: a choice before the division is no branch
    gap = gap if steeper > 0.0 else 1.0
    return float(min(gap / max(steeper, 1.0 / NEVER), NEVER))


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

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.tournament`), O(K) for a few arms.

    References
    ----------
    Auer, Cesa-Bianchi, Fischer 2002, Theorem 1; on feedback graphs UCB-N, Caron et al. 2012, Algorithm 1.

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
    law = "UCB"
    relative = True
    also_known_as = ("UCB", "UCB-N")

    def numbers(self, setting: Setting) -> dict[str, float]:
        """The scale."""
        return {"scale": float(self.scale)}

    record = UcbState
    learn = staticmethod(learn_width)

    def prepare(self, state: UcbState) -> UcbState:
        """The widths follow from the observations."""
        state.inv_sqrt_count[:] = inv_sqrt_counts(state.observations)
        super().prepare(state)
        return state


class VarianceState(IndexState):
    r"""Index :math:`\hat\mu_k+\sqrt{2\ell V_k/N_k}+3c\,\ell/N_k` at the level :math:`\ell=\zeta\ln t`."""

    squares: Total  # float64 (K,), sum of (x - mean)^2 (Welford)
    zeta: float
    c: float


@level_at.register(VarianceState)
@kernel
def variance_level(state: VarianceState, t: float) -> float:
    """Zeta ln t."""
    return state.zeta * math.log(t)


@index_of.register(VarianceState)
@kernel
def variance_index(state: VarianceState, arm: int, level: float) -> float:
    """The mean, a width by the empirical variance, and one by the range of rewards."""
    n = state.observations[arm] if state.observations[arm] > 0.0 else 1.0
    return state.means[arm] + math.sqrt(2.0 * level * state.squares[arm]) / n + 3.0 * state.c * level / n  # type: ignore[no-any-return]


@reaching_level.register(VarianceState)
@kernel
def variance_reaching(state: VarianceState, arm: int, value: float) -> float:
    """A quadratic equation in the root of the level."""
    count, above = state.observations[arm], value - state.means[arm]
    line = math.sqrt(2.0 * state.squares[arm]) / count
    root = line + math.sqrt(line * line + 12.0 * state.c * above / count)
    return 4.0 * above * above / (root * root) if root > 0.0 else NEVER


@same_forever.register(VarianceState)
@kernel
def same_spread(state: VarianceState, one: int, two: int) -> bool:
    """As many observations of the same spread."""
    apart = math.sqrt(state.squares[one]) - math.sqrt(state.squares[two])
    if abs(apart) > SAFETY * state.observations[one]:
        return False
    return bool(state.observations[one] == state.observations[two])


@kernel
def learn_squares(state: VarianceState, arm: int, reward: float, weight: float) -> None:
    """Learn mean and squared deviations (Welford)."""
    before = state.means[arm]
    learn_mean(state, arm, reward, weight)
    if state.observations[arm] > max(weight, 0.0):
        squares = state.squares[arm] + weight * (reward - before) * (reward - state.means[arm])
        state.squares[arm] = max(squares, 0.0)
    else:  # the first one, or none
        state.squares[arm] = 0.0
    changed(state.sampler, state, arm)


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

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.tournament`), O(K) for a few arms.

    References
    ----------
    Audibert, Munos, Szepesvári 2009, eq. (2) and Theorem 4.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(UCBV(), n_arms=2, seed=0)
    >>> player.update_many([(arm, float(arm)) for arm in (0, 1)] * 99)
    198
    >>> player.probabilities().tolist()
    [0.0, 1.0]
    """

    zeta: float = real(1.2, above=0.0, most=HUGE)
    c: float = real(1.0, least=0.0, most=HUGE)
    law = "UCB-V"
    relative = True
    also_known_as = ("UCB-V",)

    def numbers(self, setting: Setting) -> dict[str, float]:
        """Both factors."""
        return {"zeta": float(self.zeta), "c": float(self.c)}

    record = VarianceState
    learn = staticmethod(learn_squares)
