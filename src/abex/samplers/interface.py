"""What every sampler offers: `draw` an arm, be told that one has `changed`, tell the `distribution` of its draws.

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

What exceeds a level, of Gumbel or Beta draws, is itself drawn by trials among exponential weights. Where counts fade, Gumbel and
Beta draws are scanned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, single_dispatch


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
    """The probability of each arm to be the next `draw`, into ``out`` (kernel; it may allocate: for `abex.kernels.fast`)."""
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
