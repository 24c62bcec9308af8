"""KL-LUCB: play the leader, and the arm that could still be better than it, in turns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from abex.kernels import kernel
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.policies.policy import Setting
from abex.policies.top_two import first_leader, share_among_unseen
from abex.samplers.scan import pick
from abex.support.divergence import kl_upper_bound
from abex.support.parameters import real

TIED = 1e-10  # bounds that differ by less are equal but for rounding


class BoundsState(Means):
    """Means, and the logarithm of one over the risk."""

    level: float


@kernel
def critical_law(state: BoundsState, t: int, out: Any) -> None:
    """The leader at odd steps, at even ones 1 over its challengers, those of the largest upper bound."""
    if share_among_unseen(state, out):
        return
    lead = first_leader(state)
    if t % 2 == 1 or out.size == 1:
        out[lead] = 1.0
        return
    top, ties, level = -1.0, 0, state.level + math.log(1.0 + math.log(t))
    for k in range(out.size):
        out[k] = -1.0 if k == lead else kl_upper_bound(state.means[k], level / state.observations[k])
        top = max(top, out[k])
    for k in range(out.size):
        out[k] = 1.0 if out[k] >= top - TIED else 0.0
        ties += out[k] > 0.0
    for k in range(out.size):
        out[k] /= ties


@dataclass(frozen=True)
class KLLUCB(Learner[BoundsState]):
    r"""KL-LUCB: the two arms on which the question hangs, by upper bounds of divergence.

    With the leader l and its challenger :math:`u=\arg\max_{k\ne l}\max\{q:N_k\,d(\hat\mu_k,q)\le\ln\frac{1+\ln t}\delta\}`, d the
    divergence of Bernoulli distributions, play l at odd steps and u at even ones.

    Parameters
    ----------
    risk : float
        The :math:`\delta` of the bounds.

    Notes
    -----
    Cost O(K) per step. The paper plays both at a step. Its choice is a function of what was observed: a
    winner follows from sums (`abex.inference.sums`), for arms whose levels do not move.

    References
    ----------
    Kaufmann and Kalyanakrishnan 2013, Section 3.1 (KL-LUCB) and Section 5 (the level in practice).

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(KLLUCB(), n_arms=3, seed=0)
    >>> player.update_many([(0, 1.0), (1, 0.5), (2, 0.0)] * 9), player.select()
    (27, 1)
    """

    risk: float = real(0.05, least=1e-100, most=0.5)
    identifies = True
    also_known_as = ("KL-LUCB",)
    learn = staticmethod(learn_mean)

    def start(self, setting: Setting) -> BoundsState:
        """Nothing observed."""
        return new_means(BoundsState, setting.n_arms, level=-math.log(self.risk))

    @staticmethod
    @kernel
    def select(state: BoundsState, t: int, rng: Any) -> int:
        """The leader or its challenger."""
        critical_law(state, t, state.score)
        return pick(state.score, 1.0, rng)

    @staticmethod
    @kernel
    def probabilities(state: BoundsState, t: int, out: Any) -> None:
        """1 over the ties."""
        critical_law(state, t, out)
