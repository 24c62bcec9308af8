"""Indexed minimum empirical divergence: the arm against which there is least evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from abex.kernels import kernel
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.policies.policy import Setting
from abex.support.divergence import bernoulli_kl
from abex.support.randomness import argmax, share_among_largest


@kernel
def divergence_scores(state: Means) -> None:
    """Minus the index of every arm into ``state.score``; an arm never observed has the largest."""
    top = -1.0
    for k in range(state.means.size):
        if state.observations[k] > 0.0:
            top = max(top, state.means[k])
    best = math.inf
    for k in range(state.means.size):
        n = state.observations[k]
        if n == 0.0:
            state.score[k] = math.inf
            continue
        index = math.log(n)
        gap = top - state.means[k]
        if index + 2.0 * n * gap * gap <= best:  # else Pinsker's inequality tells that it is not the least
            index += n * bernoulli_kl(state.means[k], top)
            best = min(best, index)
            state.score[k] = -index
        else:
            state.score[k] = -math.inf


@dataclass(frozen=True)
class IMED(Learner[Means]):
    r"""Indexed minimum empirical divergence.

    Play the smallest :math:`N_k\,\mathrm{kl}(\hat\mu_k,\hat\mu^*)+\ln N_k`, where :math:`\hat\mu^*` is the largest mean and kl
    the divergence of Bernoulli distributions; an arm never observed comes first.

    Notes
    -----
    Cost O(K) per step, a divergence only for the arms that Pinsker's inequality does not rule out. Deterministic but for ties.

    References
    ----------
    Honda and Takemura 2015, Algorithm 1 and Theorem 5 (asymptotically optimal). For rewards in [0, 1] that are not 0 or 1
    the Bernoulli divergence is a lower bound on theirs, which needs all past rewards.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(IMED(), n_arms=2, seed=0)
    >>> for _ in range(9):
    ...     told = player.update(0, 0.0), player.update(1, 1.0)
    >>> player.select()
    1
    """

    also_known_as = ("IMED-N",)
    learn = staticmethod(learn_mean)

    def start(self, setting: Setting) -> Means:
        """Nothing observed; unseen arms stand at +inf."""
        return new_means(Means, setting.n_arms)

    @staticmethod
    @kernel
    def select(state: Means, t: int, rng: Any) -> int:
        """The least index."""
        divergence_scores(state)
        return argmax(state.score, rng)

    @staticmethod
    @kernel
    def probabilities(state: Means, t: int, out: Any) -> None:
        """Shared by the arms of the least index."""
        divergence_scores(state)
        for k in range(out.size):
            out[k] = 0.0
        share_among_largest(state.score, 1.0, out)
