"""Unordered lists of arms from which one can be taken in constant time."""

from __future__ import annotations

from typing import Any

from abex.kernels import kernel


@kernel
def swap_remove(arms: Any, place: Any, count: int, arm: int) -> int:
    """Take ``arm`` out of the first ``count`` places of ``arms``: the last one moves into its place.

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

    Returns
    -------
    int
        How many it holds now.

    >>> import numpy as np
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
