r"""What every sampler offers: `draw` an arm, be told that one has `changed`, tell the `distribution` of its draws.

A policy says *what* it draws from or maximises; a sampler, a record inside the policy's state, finds it. Few arms are scanned,
many are found by a structure that does not look at each of them; the policy does not know which (`abex.samplers.sampler_for`),
and both have the same distribution.

===================  ===================================  ==============================  ==========================
what is wanted       few arms                             many arms                       ``subject``, ``at``
===================  ===================================  ==============================  ==========================
softmax of scores    `bounded_softmax.BoundedSoftmax`     `buckets.Buckets`               the scores, the rate
largest index        `scan.IndexScan`                     `tournament.Tournament`         the policy's state, the step
largest Gumbel draw  `scan.GumbelScan`                    `exceedance.GumbelExceedance`   the policy's state, the step
largest Beta draw    `scan.BetaScan`                      `exceedance.BetaExceedance`     the policy's state, the step
exponential weights  `sum_tree.SumTree`                   `sum_tree.SumTree`              the log-weights, the rate
evidence             `evidence.MeanTournament`            `evidence.MeanTournament`       the policy's state, caution
===================  ===================================  ==============================  ==========================

A scan looks at every arm at every draw and remembers nothing, so it also serves what changes from outside: `scan.SoftmaxScan`
weighs arms whose scores do, `scan.LossScan` exponential weights whose rate does. No file holds a sampler: `Policy.prepare` makes
it anew from what was learned.

A policy of the largest index :math:`f_k(\ell)`, where the level :math:`\ell` grows with time (UCB1, UCB-V, KL-UCB, MOSS), gives
its formulas by kernels for the class of its state: `level_at` and `index_of` are enough to scan, `reaching_level` (the inverse of
the index) lets the tournament serve a million arms.

What exceeds a level, of Gumbel or Beta draws, is itself drawn by trials among exponential weights. Where counts fade, Gumbel and
Beta draws are scanned.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, single_dispatch

NEVER = 1e300
SAFETY = 1e-12  # by so much rounding, and Newton's method, may err


@single_dispatch
def draw(sampler: Any, subject: Any, at: float, rng: Any) -> int:
    """The arm that the sampler finds for ``subject`` at this rate or step (kernel).

    Parameters
    ----------
    sampler : record
        Of one of the classes above.
    subject : array or record
        What is drawn from; the same at each call.
    at : float
        The rate, or the step.
    rng : Generator
        The policy's stream.
    """
    raise TypeError


@single_dispatch
def changed(sampler: Any, subject: Any, arm: int) -> None:
    """What is known of an arm has changed: to be called after every observation of it (kernel); a scan remembers nothing."""


@single_dispatch
def distribution(sampler: Any, subject: Any, at: float, out: Any) -> None:
    """The probability of each arm to be the next `draw`, into ``out`` (kernel; it may allocate)."""
    raise TypeError


def unseen_first(observations: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """The arms, those never observed first; where each stands in that order; how many were never observed.

    >>> unseen_first(np.array([2.0, 0.0, 1.0]))
    (array([1, 0, 2], dtype=int32), array([1, 0, 2], dtype=int32), 1)
    """
    seen = observations > 0.0
    order = np.concatenate([np.flatnonzero(~seen), np.flatnonzero(seen)]).astype(np.int32)
    place = np.zeros(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    return order, place, int(np.count_nonzero(~seen))


@kernel
def swap_remove(arms: Any, place: Any, count: int, arm: int) -> int:
    """Take ``arm`` out of a list of arms in constant time: the last one moves into its place; returns how many are left.

    Parameters
    ----------
    arms : array of int
        The list, in its first ``count`` places.
    place : array of int
        Where each arm stands in it, -1 where it does not.
    count : int
        How many arms it holds.
    arm : int
        One of them.

    >>> arms, place = np.array([4, 2, 0]), np.array([2, -1, 1, -1, 0])
    >>> swap_remove(arms, place, 3, 4), arms[:2].tolist(), place.tolist()
    (2, [0, 2], [0, -1, 1, -1, -1])
    """
    last = count - 1
    moved = arms[last]
    where = place[arm]
    arms[where] = moved
    place[moved] = where
    place[arm] = -1
    return last


# -- what samplers ask of policies of the largest index ------------------------------------------------------------


@single_dispatch
def level_at(state: Any, t: float) -> float:
    """What the indices of all arms have in common at step t; it does not fall with t (kernel)."""
    return t


@single_dispatch
def stretch_of(memory: Any) -> float:
    """How many times as large as they should be counts are, in a state with this memory (kernel)."""
    return 1.0


@single_dispatch
def stretched(state: Any, level: float, stretch: float) -> float:
    """The level at which counts that are ``stretch`` times as large have the same indices (kernel).

    This holds where the level stands over the observations; where it stands over their root, the state says so.
    """
    return level * stretch


@kernel
def level_of(state: Any, t: float) -> float:
    """The level of step t for the counts of a state."""
    return stretched(state, level_at(state, t), stretch_of(state.memory))


@single_dispatch
def times_differ(memory: Any) -> bool:
    """Whether arms have times of their own (kernel)."""
    return False


@single_dispatch
def time_of_arm(memory: Any, arm: int, t: float) -> float:
    """The time of an arm at step t, where they differ (kernel)."""
    return t


@single_dispatch
def index_of(state: Any, arm: int, level: float) -> float:
    """The index of an arm, +inf if it was never observed; it does not fall with the level (kernel)."""
    return math.inf


@single_dispatch
def contending_index(state: Any, arm: int, level: float, best: float) -> float:
    """The index of an arm, or anything below ``best`` if the index is: a bound may tell without computing it (kernel)."""
    return index_of(state, arm, level)


@single_dispatch
def first_contender(state: Any) -> int:
    """The arm with which a scan begins, for `contending_index` to know a large index soon; -1 where that is no gain (kernel)."""
    return -1


@single_dispatch
def reaching_level(state: Any, arm: int, value: float) -> float:
    """The level at which the index of an arm reaches a value that is above its mean (kernel)."""
    return 0.0


@single_dispatch
def flat_until(state: Any, arm: int) -> float:
    """The level up to which the index of an arm does not move (kernel)."""
    return 0.0


@single_dispatch
def winner_certain_until(state: Any, champion: int, index: float, loser: int) -> float:
    """A level up to which the loser's index stays below that of the champion, now ``index`` (kernel).

    It cannot win before it has reached what the champion's index was already.
    """
    level = 0.0
    if index - SAFETY > state.means[loser]:
        level = min(reaching_level(state, loser, index - SAFETY), NEVER)
    return max(level, flat_until(state, loser))


@single_dispatch
def same_forever(state: Any, one: int, two: int) -> bool:
    """Whether two arms of about the same mean have the same index at every level: they have seen the same (kernel)."""
    return bool(state.observations[one] == state.observations[two])
