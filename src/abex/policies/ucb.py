"""Upper confidence bounds: play the arm whose mean could be the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from abex.errors import real_number
from abex.kernels import kernel
from abex.policies.base import Policy, Setting
from abex.policies.means import Means, learn_mean, new_means
from abex.randomness import argmax


@dataclass(frozen=True)
class UCB1(Policy[Means]):
    r"""Play the arm with the largest :math:`\hat\mu_k + \sqrt{a \ln t / N_k}` (an unseen arm first).

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
    Cost O(K) per step.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(UCB1(), n_arms=2, seed=0)
    >>> for _ in range(20):
    ...     arm = player.select()
    ...     player.update(arm, reward=float(arm))
    >>> player.select()
    1
    """

    scale: float = 2.0
    also_known_as = ("UCB", "UCB-N")

    def __post_init__(self) -> None:
        real_number("scale", self.scale, least=0.0)

    def start(self, setting: Setting) -> Means:
        """Record of means; unseen arms stand at +inf."""
        return new_means(setting.n_arms, self.scale)

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest upper confidence bound."""
        width = math.sqrt(state.scale * math.log(t))
        for k in range(state.means.size):
            if state.pulls[k] > 0.0:
                state.index[k] = state.means[k] + width / math.sqrt(state.pulls[k])
            else:
                state.index[k] = math.inf
        return argmax(state.index, rng)

    update = staticmethod(learn_mean)
