"""Pairs of arms to compressed rows, linear in memory: two sorts of 64-bit numbers and no hash table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CompressedRows = tuple[NDArray[np.int64], NDArray[np.int32]]


def compress(sources: NDArray[np.int64], targets: NDArray[np.int64], n_arms: int) -> CompressedRows:
    """CompressedRows of distinct targets in increasing order, each row closed by its own arm.

    >>> start, arms = compress(np.array([0, 2, 0, 0]), np.array([2, 1, 1, 0]), 3)
    >>> start.tolist(), arms.tolist()
    ([0, 3, 4, 6], [1, 2, 0, 1, 1, 2])
    """
    cells = (sources * n_arms + targets)[sources != targets]
    cells.sort()
    if cells.size:
        cells = cells[np.concatenate([[True], cells[1:] != cells[:-1]])]
    row = cells // n_arms
    start = np.zeros(n_arms + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=n_arms) + 1, out=start[1:])
    arms = np.empty(cells.size + n_arms, dtype=np.int32)
    arms[start[1:] - 1] = np.arange(n_arms, dtype=np.int32)
    arms[np.arange(cells.size) + row] = cells - row * n_arms  # the rows above are longer by one each
    return start, arms


def same_rows(first: Any, second: Any) -> bool:
    """Whether two pairs (start, arms) are equal."""
    return bool(np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1]))
