"""Successive halving: a budget in rounds, after each of which the worse half of the arms is out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.kinds import Count, Mean, Score, agree
from abex.policies.learner import Learned
from abex.policies.means import learn_mean
from abex.policies.policy import Policy, Setting
from abex.support.parameters import MOST_STEPS, whole
from abex.support.randomness import argmax, share_among_largest

OUT = -1e9  # score of an arm that is out


class HalvingState(Learned):
    """Means, which arms are in, and their observations in this round."""

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    taken: Count  # float64 (K,), observations in this round
    inside: Score  # float64 (K,), 1 for an arm that is in, 0 for one that is out
    score: NDArray[np.float64]  # (K,), written anew at every decision
    initial: float  # the mean of an arm without observations
    budget: float  # of a round


@kernel
def score_halving(state: HalvingState) -> None:
    """The largest scores are those of the arms in the race that were observed least in this round."""
    for k in range(state.score.size):
        state.score[k] = -state.taken[k] if state.inside[k] > 0.0 else OUT * (1.0 + state.taken[k])


@kernel
def halve(state: HalvingState) -> None:
    """When all arms that are in have had their share of the round, the worse half is out."""
    left, fewest = 0, math.inf
    for k in range(state.inside.size):
        if state.inside[k] > 0.0:
            left += 1
            fewest = min(fewest, state.taken[k])
    if left == 1 or fewest < max(math.floor(state.budget / left), 1.0):
        return
    for _ in range(left // 2):
        worst = -1
        for k in range(state.inside.size):
            if state.inside[k] > 0.0 and (worst < 0 or state.means[k] <= state.means[worst]):
                worst = k
        state.inside[worst] = 0.0
    for k in range(state.taken.size):
        state.taken[k] = 0.0


@dataclass(frozen=True)
class SuccessiveHalving(Policy[HalvingState]):
    r"""Sequential halving: the best arm for a budget that is fixed beforehand.

    :math:`\lceil\log_2K\rceil` rounds of :math:`B/\lceil\log_2K\rceil` steps. In each, all arms in the race are observed equally
    often, :math:`\lfloor B/(|S|\lceil\log_2K\rceil)\rfloor` times; then the better half stays. The last one is played for ever.

    Parameters
    ----------
    budget : int or None
        The number of steps B; None takes the horizon.

    Notes
    -----
    Cost O(K) per step. Means are those of all rounds. Nothing says how sure the last arm is: look at the intervals.

    References
    ----------
    Karnin, Koren and Somekh 2013, Algorithm 1 and Theorem 4.1.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(SuccessiveHalving(budget=4), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0), (1, 1.0)] * 2), player.select()
    (4, 1)
    """

    budget: int | None = whole(None, least=1, most=MOST_STEPS, or_none=True)
    resizable = False
    identifies = True
    also_known_as = ("SequentialHalving",)
    horizon_sets = ("budget",)

    def start(self, setting: Setting) -> HalvingState:
        """All arms are in."""
        n, budget = setting.n_arms, self.budget or self.horizon_of(setting)
        return HalvingState.of_arms(n, inside=np.ones(n), budget=budget / max(math.ceil(math.log2(n)), 1))

    def prepare(self, state: HalvingState) -> HalvingState:
        """Some arm is in."""
        agree(
            bool(np.isin(state.inside, (0.0, 1.0)).all() and state.inside.any()),
            "some arm must be in the race",
        )
        return state

    @staticmethod
    @kernel
    def select(state: HalvingState, t: int, rng: Any) -> int:
        """The arm in the race that was observed least in this round."""
        score_halving(state)
        return argmax(state.score, rng)

    @staticmethod
    @kernel
    def probabilities(state: HalvingState, t: int, out: Any) -> None:
        """Even among them."""
        score_halving(state)
        for k in range(out.size):
            out[k] = 0.0
        share_among_largest(state.score, 1.0, out)

    @staticmethod
    @kernel
    def update(state: HalvingState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean; at the end of a round, drop the worse half."""
        learn_mean(state, seen, reward, 1.0)
        state.taken[seen] += 1.0
        if seen == arm:
            halve(state)
