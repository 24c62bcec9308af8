"""Upper confidence bounds: play the arm whose mean could be the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.policies.index import IndexPolicy, IndexState
from abex.policies.means import learn_mean
from abex.samplers import changed
from abex.samplers.interface import (
    NEVER,
    SAFETY,
    index_of,
    level_at,
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

    record = UcbState
    learn = staticmethod(learn_width)

    def prepare(self, state: UcbState) -> UcbState:
        """The widths follow from the observations."""
        state.inv_sqrt_count[:] = inv_sqrt_counts(state.observations)
        super().prepare(state)
        return state
