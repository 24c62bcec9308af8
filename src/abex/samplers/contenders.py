"""The exact argmax of a few indices, of which only those are computed that can be the largest.

KL-UCB's indices are dear, by Newton's method, and a bound on one is cheap. So a scan begins with the arm of the largest mean,
which is the best one nearly always, and asks of each other whether its index can be larger still
(`indices.contending_index`). Up to some thirty arms that is twice as fast as the `Tournament`, and a third of it to compile.

It draws as the tournament does, by the same random numbers: an arm never observed by its place in a list of them, one of
those that share the largest index by its place among them. So which of the two plays cannot be told from a run, and a
saved one is that of a tournament.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.samplers.indices import contending_index, level_of
from abex.samplers.interface import changed, distribution, draw, unseen_first
from abex.samplers.tournament import TournamentClock, list_as_observed, share_among_fresh, tied
from abex.schema import Permutation, Rebuilt, Scratch, agree, positions
from abex.support.randomness import below


class Contenders(NamedTuple):
    """Room for the indices, and the arms never observed."""

    score: Annotated[NDArray[np.float64], Scratch()]  # (K,)
    order: Annotated[NDArray[np.int32], Permutation()]  # (K,), first the arms never observed
    place: Annotated[NDArray[np.int32], Rebuilt()]  # (K,), where an arm stands in it
    clock: Annotated[TournamentClock, Rebuilt()]

    def restored(self, state: Any, fresh: Any) -> Contenders:
        """The places follow from the order."""
        unseen = state.observations == 0.0
        count = int(np.count_nonzero(unseen))
        agree(bool(unseen[self.order[:count]].all()), "order must begin with the arms never observed")
        place = positions(self.order, self.order.size, self.place, "order")
        return self._replace(place=place, clock=TournamentClock(fresh=count))


def new_contenders(observations: NDArray[np.float64]) -> Contenders:
    """A scan of arms observed so often."""
    order, place, fresh = unseen_first(observations)
    return Contenders(np.zeros(order.size), order, place, TournamentClock(fresh=fresh))


@kernel
def place_of_largest(values: Any) -> int:
    """The first arm of the largest mean, or index."""
    best = 0
    for k in range(values.size):
        if values[k] > values[best]:
            best = k
    return best


@kernel
def mark_largest(sampler: Contenders, state: Any, t: int) -> int:
    """An arm of the largest index; those that share it get its very number as their score."""
    score, n_arms = sampler.score, state.means.size
    level = level_of(state, float(t))
    first = place_of_largest(state.means)
    top = -math.inf
    for j in range(n_arms):
        k = first + j if first + j < n_arms else first + j - n_arms
        score[k] = contending_index(state.rule, state, k, level, top)
        top = max(top, score[k])
    best = place_of_largest(score)
    for k in range(score.size):
        if tied(state, best, top, k, score[k]):
            score[k] = top
    return best


@kernel
def count_largest(score: Any, best: int) -> int:
    """How many arms have the score of one."""
    ties = 0
    for k in range(score.size):
        ties += 1 if score[k] == score[best] else 0
    return ties


@draw.register(Contenders)
@kernel
def largest_of_contenders(sampler: Contenders, state: Any, t: int, rng: Any) -> int:
    """The arm with the largest index; ties are broken uniformly."""
    if sampler.clock.fresh > 0:
        return int(sampler.order[below(sampler.clock.fresh, rng)])
    best = mark_largest(sampler, state, t)
    score = sampler.score
    ties = count_largest(score, best)
    if ties == 1:
        return best
    rest = below(ties, rng)
    for k in range(score.size):
        if score[k] == score[best]:
            if rest == 0:
                return k
            rest -= 1
    return best


@distribution.register(Contenders)
@kernel
def distribution_of_contenders(sampler: Contenders, state: Any, t: int, out: Any) -> None:
    """1 over the ties; arms never observed come first."""
    if share_among_fresh(sampler, out):
        return
    best = mark_largest(sampler, state, t)
    ties = count_largest(sampler.score, best)
    for k in range(out.size):
        if sampler.score[k] == sampler.score[best]:
            out[k] = 1.0 / ties


@changed.register(Contenders)
@kernel
def changed_contender(sampler: Contenders, state: Any, arm: int) -> None:
    """An arm was observed, or all that was known of it is forgotten."""
    list_as_observed(sampler, state, arm)
