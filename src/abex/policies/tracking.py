"""D-tracking: play every arm as often as the fastest proof of the best one needs it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.policies.policy import Setting
from abex.policies.top_two import first_leader
from abex.support.divergence import bernoulli_kl
from abex.support.parameters import HUGE
from abex.support.randomness import argmax, share_among_largest

MARGIN = 1e-6  # from 0 and 1, for means of which a proof is planned
TIED = 1e-9  # means that differ by less are equal but for rounding
MOST_STEPS = 60  # of a search for a root
PRECISION = 1e-9


class TrackingState(Means):
    """Means, and the shares of the arms in the fastest proof."""

    plan: NDArray[np.float64]  # (K,), means within the margin
    weights: NDArray[np.float64]  # (K,)
    current: bool  # whether the weights are those of what is known


@kernel
def learn_and_plan_anew(state: TrackingState, arm: int, reward: float, weight: float) -> None:
    """The mean; the weights are those of another one."""
    learn_mean(state, arm, reward, weight)
    state.current = False


@kernel
def weight_for(lead: float, other: float, cost: float) -> float:
    r"""The weight x of an arm, relative to the leader's, at which :math:`g(x)=d(\mu_l,m)+x\,d(\mu_k,m)` is ``cost``.

    g rises, is concave, and has the slope :math:`d(\mu_k,m)`: Newton's iterates from 0 rise to the root.
    """
    x = cost / bernoulli_kl(other, lead)
    for _ in range(MOST_STEPS):
        mean = (lead + x * other) / (1.0 + x)
        slope = bernoulli_kl(other, mean)
        step = (cost - bernoulli_kl(lead, mean) - x * slope) / slope if slope > 0.0 else 0.0
        x += max(step, 0.0)
        if step <= PRECISION * x:
            break
    return x


@kernel
def imbalance(state: TrackingState, lead: int, cost: float) -> float:
    """F / (1 + F) - 1/2 for the sum F over rivals of d(leader, m) / d(rival, m), which rises; the weights are written."""
    total = 0.0
    for k in range(state.plan.size):
        if k != lead:
            x = weight_for(state.plan[lead], state.plan[k], cost)
            mean = (state.plan[lead] + x * state.plan[k]) / (1.0 + x)
            below = bernoulli_kl(state.plan[k], mean)
            total += bernoulli_kl(state.plan[lead], mean) / below if below > 0.0 else HUGE
            state.weights[k] = x
    return total / (1.0 + total) - 0.5


@kernel
def write_proof_weights(state: TrackingState) -> None:
    """The shares of the arms in the fastest proof that the leader is the best; equal among arms that tie with it."""
    lead, ties, most = first_leader(state), 0, math.inf
    for k in range(state.plan.size):
        state.plan[k] = min(max(state.means[k], MARGIN), 1.0 - MARGIN)
    for k in range(state.plan.size):
        alike = state.plan[k] >= state.plan[lead] - TIED
        state.weights[k] = 1.0 if alike else 0.0
        ties += alike
        if k != lead:
            most = min(most, bernoulli_kl(state.plan[lead], state.plan[k]))
    if ties == 1 and state.plan.size > 1:
        low, high, at_low, at_high = 0.0, most * (1.0 - TIED), -0.5, 0.5
        for _ in range(MOST_STEPS):  # regula falsi, the end that stays weighing half as much (Illinois)
            cost = (low * at_high - high * at_low) / (at_high - at_low)
            at = imbalance(state, lead, cost)
            if at < 0.0:
                low, at_low, at_high = cost, at, 0.5 * at_high
            else:
                high, at_high, at_low = cost, at, 0.5 * at_low
            if abs(at) <= PRECISION or high - low <= PRECISION * high:
                break
        state.weights[lead] = 1.0
    total = 0.0
    for k in range(state.plan.size):
        total += state.weights[k]
    for k in range(state.plan.size):
        state.weights[k] /= total


@kernel
def score_tracking(state: TrackingState, t: int) -> None:
    """Scores whose largest is played: the arm least observed while it has too few, else the one furthest behind its share."""
    least = math.inf
    for k in range(state.means.size):
        least = min(least, state.observations[k])
    if least <= max(math.sqrt(t) - 0.5 * state.means.size, 0.0):
        for k in range(state.means.size):
            state.score[k] = -state.observations[k]
        return
    if not state.current:
        write_proof_weights(state)
        state.current = True
    for k in range(state.means.size):
        state.score[k] = t * state.weights[k] - state.observations[k]


@dataclass(frozen=True)
class DTracking(Learner[TrackingState]):
    r"""D-tracking for coins: the shares of the arms follow those of the fastest proof, asymptotically optimal.

    Play :math:`\arg\max_k\{t\,w_k(\hat\mu)-N_k\}`, where w maximises the least rate
    :math:`\min_{k\ne l}\{w_l\,d(\hat\mu_l,m_k)+w_k\,d(\hat\mu_k,m_k)\}`, :math:`m_k` being the weighted mean of both and d the
    divergence of Bernoulli distributions; while an arm has at most :math:`\sqrt t-K/2` observations, the one that has fewest.

    Notes
    -----
    Cost O(K) per step, about 5 us an arm: a root within a root. Proofs are planned for means at least 1e-6 from 0 and 1.
    It is a function of what was observed, so nothing can be bet on its probabilities: a winner follows from sums
    (`abex.inference.sums`), for arms whose levels do not move.

    References
    ----------
    Garivier and Kaufmann 2016, Lemma 3, Theorem 5 and Section 3.1 (D-Tracking).

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(DTracking(), n_arms=2, seed=0)
    >>> player.update_many([(0, 1.0), (1, 0.0)] * 9 + [(0, 0.0)]), player.select()
    (19, 1)
    """

    identifies = True
    also_known_as = ("D-tracking", "Track-and-Stop")
    learn = staticmethod(learn_and_plan_anew)

    def start(self, setting: Setting) -> TrackingState:
        """Nothing observed."""
        return new_means(TrackingState, setting.n_arms)

    @staticmethod
    @kernel
    def select(state: TrackingState, t: int, rng: Any) -> int:
        """The arm furthest behind."""
        score_tracking(state, t)
        return argmax(state.score, rng)

    @staticmethod
    @kernel
    def probabilities(state: TrackingState, t: int, out: Any) -> None:
        """1 over the ties."""
        score_tracking(state, t)
        for k in range(out.size):
            out[k] = 0.0
        share_among_largest(state.score, 1.0, out)
