r"""Decisions that were made at once: which rows of a log belong together, and what a target would do in their place.

A batch of k decisions is on k different arms, drawn one by one from the policy restricted to the arms not yet in it; the
probability of a row is that its arm is in the batch. A target is asked for a batch of the same size: its value by decision is

.. math:: V(\pi)=\frac{\sum_b\sum_a\pi_{k_b}(a)\,\mathbb E[x_a]}{\sum_bk_b},

:math:`\pi_k(a)` the probability that arm a is in a batch of k. So a row weighs :math:`\pi_k(a)/p`, weights average 1, and the
batch is the independent unit of everything that is said about uncertainty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, shown

Floats = NDArray[np.float64]


class Units(NamedTuple):
    """What was decided at once: a batch, or a row by itself."""

    start: NDArray[np.int64]  # the first row of each
    sizes: NDArray[np.int64]  # the sizes that there are, ascending
    kind: NDArray[np.int64]  # (rows,): place among ``sizes`` of how many were decided with this row

    def sums(self, values: Any) -> Any:
        """Of the rows of each unit."""
        return np.add.reduceat(values, self.start, axis=0)

    def first_from(self, row: int) -> int:
        """The first row at or after ``row`` with which a unit begins, or the number of rows."""
        place = int(np.searchsorted(self.start, row))
        return int(self.start[place]) if place < self.start.size else self.kind.size


def units_of(arm: NDArray[np.int64], batch: NDArray[Any] | None, size: NDArray[np.int64] | None) -> Units:
    """The units of a log's rows; rows of a batch stand next to each other."""
    rows = arm.size
    if batch is None or size is None:
        return Units(np.arange(rows), np.ones(1, np.int64), np.zeros(rows, np.int64))
    names, place = named_batches(batch)
    alone = place < 0
    begins = np.ones(rows, bool)
    begins[1:] = alone[1:] | (place[1:] != place[:-1])
    start = np.flatnonzero(begins)
    heads = place[start][~alone[start]]
    if np.unique(heads).size < heads.size:
        twice = names[int(np.flatnonzero(np.bincount(heads) > 1)[0])]
        raise UserError(f"the rows of batch {shown(twice)} must stand next to each other")
    unit = np.cumsum(begins) - 1
    pairs = unit * (int(arm.max()) + 1) + arm
    if np.unique(pairs).size < rows:
        order = np.argsort(pairs, kind="stable")
        row = int(order[1:][np.diff(pairs[order]) == 0][0])
        raise UserError(
            f"batch {shown(batch[row])} has an arm twice: decisions made at once are on different arms"
        )
    size = np.where(alone, 1, size)
    wrong = (size != size[start][unit]) | (np.diff(np.append(start, rows))[unit] > size)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"batch_size of batch {shown(batch[row])} must be one number, at least that of its rows"
        )
    sizes, kind = np.unique(size, return_inverse=True)
    return Units(start, sizes, kind.astype(np.int64))


def named_batches(batch: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """The names of batches, and the place of each row's among them; -1 for a row decided by itself, which names none."""
    places: dict[str, int] = {}
    of_rows = [
        -1 if name is None or name == "" or name != name else places.setdefault(str(name), len(places))
        for name in batch.tolist()
    ]
    return list(places), np.array(of_rows, np.int64)


def counted(batch: NDArray[Any]) -> NDArray[np.int64]:
    """How many rows have each row's batch; 1 for a row by itself."""
    names, place = named_batches(batch)
    return np.where(place < 0, 1, np.bincount(place + 1, minlength=len(names) + 1)[place + 1])


def chances_of(distribution: Floats, size: int) -> Floats:
    """The probability that each arm is in a batch of ``size`` drawn from a distribution, one arm after the other.

    >>> chances_of(np.array([0.5, 0.3, 0.2]), 2).round(4).tolist()
    [0.8393, 0.675, 0.4857]
    """
    from abex.players.batch_probability import by_quadrature

    if size == 1:
        return distribution
    possible = np.flatnonzero(distribution > 0.0)
    if possible.size < size:
        raise UserError(
            f"the distribution has {possible.size} arms, but the log has batches of {size} different ones: "
            "give more arms a probability above 0"
        )
    found = np.zeros(distribution.size)
    p = distribution[possible]
    if np.ptp(p) <= 1e-12:
        found[possible] = size / possible.size
    else:
        found[possible] = [
            1.0 if size == p.size else by_quadrature(p, size, place) for place in range(p.size)
        ]
    return found
