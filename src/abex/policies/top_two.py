"""Top-two sampling: half of the decisions for the arm that leads, half for the rivals that are hardest to tell from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from abex.kernels import kernel
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.policies.policy import Setting
from abex.samplers.scan import pick
from abex.support.divergence import bernoulli_kl
from abex.support.parameters import real, truth

LEAST_LOG = -700.0  # of a rival's weight: every rival keeps some probability
TIED = 1e-12  # costs that differ by less are equal but for rounding


class TopTwoState(Means):
    """Means, the share of the leader, and whether rivals are drawn by a softmax."""

    share: float
    soft: bool


@kernel
def likelihood_ratio(state: Means, one: int, other: int) -> float:
    r"""The generalised likelihood ratio of "these means are equal", :math:`N_i\,d(\mu_i,\mu)+N_j\,d(\mu_j,\mu)`."""
    n, m = state.observations[one], state.observations[other]
    mean = (n * state.means[one] + m * state.means[other]) / (n + m)
    return float(n * bernoulli_kl(state.means[one], mean) + m * bernoulli_kl(state.means[other], mean))


@kernel
def share_among_unseen(state: Means, out: Any) -> bool:
    """All probability for the arms never observed, in equal parts; False if there is none."""
    unseen = 0
    for k in range(out.size):
        unseen += state.observations[k] <= 0.0
    for k in range(out.size):
        out[k] = 1.0 / unseen if unseen > 0 and state.observations[k] <= 0.0 else 0.0
    return unseen > 0


@kernel
def first_leader(state: Means) -> int:
    """The first arm of the largest mean."""
    best = 0
    for k in range(1, state.means.size):
        if state.means[k] > state.means[best]:
            best = k
    return best


@kernel
def top_two_law(state: TopTwoState, out: Any) -> None:
    """The share of the leader, and the rest for its rivals by their transport costs."""
    if share_among_unseen(state, out):
        return
    lead, least = first_leader(state), math.inf
    if out.size == 1:
        out[lead] = 1.0
        return
    for k in range(out.size):
        if k != lead:
            state.score[k] = likelihood_ratio(state, lead, k) + math.log(state.observations[k])
            least = min(least, state.score[k])
    total = 0.0
    for k in range(out.size):
        if k != lead:
            weight = math.exp(max(least - state.score[k], LEAST_LOG))
            if not state.soft:
                weight = 1.0 if state.score[k] - least <= TIED * max(1.0, abs(least)) else 0.0
            out[k] = weight
            total += weight
    for k in range(out.size):
        out[k] = state.share if k == lead else (1.0 - state.share) * out[k] / total


@dataclass(frozen=True)
class TopTwo(Learner[TopTwoState]):
    r"""Top-two sampling with known probabilities, which finds the best arm soon and lets a test say so.

    The leader l, the arm of the largest mean, is played with probability :math:`\beta`, rival k with
    :math:`(1-\beta)\,e^{-C_k}/\sum_j e^{-C_j}`, where :math:`C_k=N_l\,d(\hat\mu_l,\bar\mu)+N_k\,d(\hat\mu_k,\bar\mu)+\ln N_k`: d
    is the divergence of Bernoulli distributions and :math:`\bar\mu` the mean of both arms' rewards. So every rival keeps a
    positive probability, on which `Player.winner` bets. Arms never observed come first.

    Parameters
    ----------
    share : float
        The probability :math:`\beta` of the leader.
    soft : bool
        False plays the rivals of least :math:`C_k` only: EB-TC, sooner where sums of rewards decide, later where bets do.

    Notes
    -----
    Cost O(K) per step. Its aim is to know the best arm, not to earn: `Certify` does both.

    References
    ----------
    Jourdan, Degenne, Baudry, de Heide and Kaufmann 2022, "Top two algorithms revisited", Section 2.2 (EB-TC, and the penalty
    :math:`\ln N_k` of the improved cost); Russo 2016, Section 3. The softmax of the costs is ours.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(TopTwo(), n_arms=3, seed=0)
    >>> player.update_many([(0, 1.0), (1, 0.0), (2, 0.0)] * 5 + [(1, 1.0)] * 2), player.probabilities().round(2).tolist()
    (17, [0.5, 0.47, 0.03])
    """

    cheap_probabilities: ClassVar[bool] = True

    share: float = real(0.5, least=0.01, most=0.99)
    soft: bool = truth(True)
    identifies = True
    also_known_as = ("SoftTopTwo",)
    variants: ClassVar = {name: {"soft": False} for name in ("EB-TC", "EBTC")}
    learn = staticmethod(learn_mean)

    def start(self, setting: Setting) -> TopTwoState:
        """Nothing observed."""
        return new_means(TopTwoState, setting.n_arms, share=self.share, soft=self.soft)

    @staticmethod
    @kernel
    def select(state: TopTwoState, t: int, rng: Any) -> int:
        """A draw from the probabilities."""
        top_two_law(state, state.score)
        return pick(state.score, 1.0, rng)

    @staticmethod
    @kernel
    def probabilities(state: TopTwoState, t: int, out: Any) -> None:
        """Of the leader and its rivals."""
        top_two_law(state, out)
