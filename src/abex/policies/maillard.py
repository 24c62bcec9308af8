"""Maillard sampling: draw an arm in proportion to how little the observations speak against it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from abex.kernels import kernel
from abex.policies.learner import Learner
from abex.policies.means import Means, largest, learn_mean, new_means
from abex.policies.policy import Setting
from abex.samplers.scan import normalise, pick
from abex.support.divergence import bernoulli_kl
from abex.support.parameters import HUGE, TINY, choice, real

DIVERGENCES = ("gaussian", "bernoulli")
MAX_EXPONENT = 745.0  # exp(-745) is the smallest positive number


class MaillardState(Means):
    """Means, and the factor of the Gaussian divergence."""

    scale: float  # one over twice the squared deviation, 0 for the Bernoulli divergence


@kernel
def write_weights(state: MaillardState) -> float:
    """The weight of every arm into ``state.score``; returns their sum. Arms never observed share all of it."""
    top = largest(state.means)
    total = 0.0
    for k in range(state.means.size):
        weight = 0.0
        if top == math.inf:
            weight = 1.0 if state.means[k] == top else 0.0
        else:
            gap = top - state.means[k]
            square = state.observations[k] * gap * gap
            if state.scale > 0.0:
                weight = math.exp(-min(state.scale * square, MAX_EXPONENT))
            elif 2.0 * square < MAX_EXPONENT:  # Pinsker's inequality: else the weight is 0
                weight = math.exp(
                    -min(state.observations[k] * bernoulli_kl(state.means[k], top), MAX_EXPONENT)
                )
        state.score[k] = weight
        total += weight
    return total


@dataclass(frozen=True)
class Maillard(Learner[MaillardState]):
    r"""Maillard sampling: a softmax of the evidence against each arm, with known probabilities.

    Play arm k with probability proportional to :math:`\exp\!\big(-N_k\,d(\hat\mu_k,\hat\mu^*)\big)`, where
    :math:`\hat\mu^*` is the largest mean; an arm never observed comes first.

    Parameters
    ----------
    deviation : float
        The sub-Gaussian parameter :math:`\sigma` of the Gaussian divergence, 1/2 for rewards in [0, 1].
    divergence : {"gaussian", "bernoulli"}
        ``gaussian``: :math:`d(p,q)=(q-p)^2/(2\sigma^2)`. ``bernoulli``: the Kullback-Leibler divergence of Bernoulli
        distributions, :math:`d=\mathrm{kl}`, which the name ``KL-MS`` stands for.

    Notes
    -----
    Cost O(K) per step.

    References
    ----------
    Maillard 2013, Section 1.6 (minimum empirical divergence for sub-Gaussian rewards); Bian and Jun 2021, Algorithm 1 and
    Theorem 1: asymptotically optimal for Gaussian rewards, minimax up to :math:`\sqrt{\ln K}`. Qin, Jun and Zhang 2023,
    Algorithm 1 (KL-MS) and Theorem 1: for rewards in [0, 1], regret of order :math:`\sqrt{\mu^*(1-\mu^*)KT\ln K}`,
    asymptotically optimal for Bernoulli arms.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Maillard(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.5), (1, 1.0)]), player.probabilities().round(3).tolist()
    (2, [0.378, 0.622])
    >>> by_kl = Player("KL-MS", n_arms=2, seed=0)
    >>> by_kl.update_many([(0, 0.5), (1, 0.75)]), by_kl.probabilities().round(3).tolist()
    (2, [0.464, 0.536])
    """

    deviation: float = real(0.5, least=TINY, most=HUGE)
    divergence: str = choice("gaussian", DIVERGENCES)
    also_known_as = ("MS",)
    variants: ClassVar = {
        name: {"divergence": "bernoulli"} for name in ("KL-MS", "KL-Maillard", "KLMaillard")
    }
    learn = staticmethod(learn_mean)

    def start(self, setting: Setting) -> MaillardState:
        """Nothing observed; unseen arms stand at +inf."""
        gaussian = self.divergence == "gaussian"
        scale = max(0.5 / (self.deviation * self.deviation), TINY) if gaussian else 0.0
        return new_means(MaillardState, setting.n_arms, scale=scale)

    @staticmethod
    @kernel
    def select(state: MaillardState, t: int, rng: Any) -> int:
        """An arm in proportion to its weight."""
        return pick(state.score, write_weights(state), rng)

    @staticmethod
    @kernel
    def probabilities(state: MaillardState, t: int, out: Any) -> None:
        """The weights over their sum."""
        total = write_weights(state)
        for k in range(out.size):
            out[k] = state.score[k]
        normalise(out, total)
