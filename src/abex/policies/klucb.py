"""Upper confidence bounds by divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from abex.kernels import kernel
from abex.parameters import HUGE, real
from abex.policies import crossover
from abex.policies.base import Setting
from abex.policies.index_policy import IndexPolicy
from abex.policies.indices import kl_upper_bound
from abex.policies.means import Means, learn_mean, new_means
from abex.policies.tournament import DIVERGENCE
from abex.randomness import argmax


@dataclass(frozen=True)
class KLUCB(IndexPolicy):
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

    c: float = real(0.0, least=0.0, most=HUGE)
    also_known_as = ("KL-UCB", "KL-UCB-N")

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
