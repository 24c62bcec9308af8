"""What every sampler offers: `draw` an arm, be told that one has `changed`, tell the `distribution` of its draws.

A policy says *what* it draws from or maximises; a sampler, a record inside the policy's state, finds it. Few arms are scanned,
many are found by a structure that does not look at each of them; the policy does not know which, and both have the same
distribution.

==========================  ==============================  =========================  ==============================
what is wanted              few arms                        many arms                  ``subject``, ``at``
==========================  ==============================  =========================  ==============================
softmax of scores           `bounded_scan.BoundedScan`      `buckets.Buckets`          the scores, the rate
argmax of growing indices   `indices.IndexScan`,            `tournament.Tournament`    the policy's state, the step
                            `contenders.Contenders`
argmax of Gumbel draws      `gumbel.GumbelScan`             `gumbel.GumbelExceedance`  the policy's state, the step
argmax of Beta draws        `beta.BetaScan`                 `beta.BetaExceedance`      the policy's state, the step
exponential weights         `sum_tree.SumTree`              `sum_tree.SumTree`         the log-weights, the rate
evidence                    `evidence.MeanTournament`       `evidence.MeanTournament`  the policy's state, caution
==========================  ==============================  =========================  ==============================

`softmax.SoftmaxScan` weighs every arm at every draw and remembers nothing: for scores that change from outside. What exceeds a
level, of Gumbel or Beta draws, is itself drawn by trials among exponential weights (`trials`), of few or of many arms.

Where counts fade, Beta and Gumbel draws are scanned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import single_dispatch


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
    """What is known of an arm has changed: to be called after every observation of it (kernel). A scan remembers nothing."""


@single_dispatch
def distribution(sampler: Any, subject: Any, at: float, out: Any) -> None:
    """The probability of each arm to be the next `draw`, into ``out`` (kernel; it may allocate: for `abex.kernels.fast`)."""
    raise TypeError
