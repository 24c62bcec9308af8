"""Whether `Buckets` that a file holds are what the kernels take them for; where they are not, the arms are filed anew.

Buckets cannot be worked out from the means alone: which bounds they have and where an arm stands in a list is history, and a
player that goes on exactly where it was saved needs it. All of it can be checked, however. What does not hold is dropped:
the distribution of the draws does not depend on it, so nothing is lost but the order of the lists.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.samplers.buckets import (
    ABOVE,
    BUCKETS,
    FRESH,
    MOST_ABOVE,
    PATIENT,
    PER_NAT,
    TAIL,
    Buckets,
    new_buckets,
)
from abex.samplers.trials import UNITS, WINDOW

MOST_SCALE = 1e16  # buckets per unit of score: the largest rate, with room


def sound_buckets(
    buckets: Buckets, scores: NDArray[np.float64], seen: NDArray[np.bool_], initial: float
) -> Buckets:
    """``buckets`` if they file these scores, else new ones; ``seen`` are the arms ever observed."""
    with np.errstate(all="ignore"):
        sound = (
            _counts_agree(buckets, seen)
            and _lists_hold(buckets)
            and _filed(buckets, scores)
            and _bounded(buckets, scores)
        )
    return buckets if sound else new_buckets(seen.astype(np.float64), initial)


def _counts_agree(buckets: Buckets, seen: NDArray[np.bool_]) -> bool:
    """Every arm is in one bucket, those never observed stand first in the order, clocks and grid are in range."""
    clock, grid, n = buckets.clock, buckets.grid, seen.size
    if not (np.isin(buckets.bucket, np.arange(FRESH + 1)).all() and np.isfinite(grid.floats).all()):
        return False
    fresh = n - int(np.count_nonzero(seen))
    order = buckets.order
    return bool(
        np.array_equal(np.bincount(buckets.bucket, minlength=BUCKETS + 2), buckets.arms)
        and np.array_equal(buckets.bucket == FRESH, ~seen)
        and np.array_equal(np.sort(order), np.arange(n))
        and not seen[order[:fresh]].any()
        and np.array_equal(buckets.place[order[:fresh]], np.arange(fresh))
        and 0 <= clock.first <= BUCKETS
        and not buckets.arms[: clock.first].any()
        and 0 <= clock.highest <= BUCKETS
        and clock.stale in (0, 1)
        and clock.waiting in (0, 1)
        and 0 <= clock.drawn < 2**62
        and 1e-9 <= grid.filed <= MOST_SCALE
        and grid.scale == PER_NAT * grid.filed
        and grid.one == UNITS / n
    )


def _lists_hold(buckets: Buckets) -> bool:
    """The lists lie apart in the pool, and each holds the arms of its bucket."""
    start, room, size = buckets.start, buckets.room, buckets.arms[:BUCKETS]
    end = buckets.clock.end
    if not (0 <= end <= buckets.pool.size and (start >= 0).all() and (room >= size).all()):
        return False
    if (start > end).any() or (room > end - start).any():
        return False
    used = np.flatnonzero(room > 0)
    used = used[np.argsort(start[used], kind="stable")]
    if (start[used][1:] < (start + room)[used][:-1]).any():
        return False
    listed = np.flatnonzero(buckets.bucket < TAIL)
    bucket, place = buckets.bucket[listed], buckets.place[listed]
    if (place < 0).any() or (place >= size[bucket]).any():
        return False
    return np.array_equal(buckets.pool[start[bucket] + place], listed)


def _filed(buckets: Buckets, scores: NDArray[np.float64]) -> bool:
    """Every observed arm is where its score belongs, waits above the buckets, or waits in the tail to be filed."""
    seen = buckets.bucket != FRESH
    bucket, score = buckets.bucket[seen], scores[seen]
    if not np.isfinite(score).all():
        return False
    depth = (buckets.grid.anchor - score) * buckets.grid.scale + ABOVE
    belongs = np.where(depth < BUCKETS, np.floor(np.minimum(depth, BUCKETS)), TAIL)
    may_wait = buckets.bucket.size >= PATIENT and buckets.arms[0] <= MOST_ABOVE
    waits = (depth < 0.0) & (bucket == 0) & may_wait
    stale = (bucket == TAIL) & (buckets.clock.stale == 1)
    return bool(np.all((bucket == belongs) & (depth >= 0.0) | waits | stale))


def _bounded(buckets: Buckets, scores: NDArray[np.float64]) -> bool:
    """Where the bounds are in force: they are those of the grid, and the masses follow from them."""
    grid, clock = buckets.grid, buckets.clock
    low, high, zero = grid.low, grid.high, grid.zero
    if clock.stale == 1 or low > high:
        return True  # the next draw makes new ones
    if not (low >= 0.0 and high == low * WINDOW):
        return False
    step = 1.0 / grid.scale
    if clock.waiting == 1:
        above = scores[buckets.bucket == 0]
        if above.size == 0 or abs(above.max() - zero) > 1e-12 * (1.0 + abs(zero)):
            return False
    else:
        first = round(ABOVE - (zero - grid.anchor) / step)
        if not 0 <= first <= BUCKETS or zero != grid.anchor + (ABOVE - first) * step:
            return False
    slack = 1e-9 + 1e-15 * high * (abs(grid.anchor) + abs(zero) + BUCKETS * step)
    loose = 1e-6 + 20.0 * slack
    at = np.arange(clock.highest, BUCKETS + 1)
    upper = _exponential(grid.anchor + (ABOVE - at) * step - zero, high, low) * grid.one * math.exp(slack)
    lower = (
        _exponential(grid.anchor + (ABOVE - at - 1) * step - zero, low, high) * grid.one * math.exp(-slack)
    )
    lower[-1] = 0.0
    if clock.waiting == 1 and at[0] == 0:
        upper[0] = grid.one * math.exp(slack)
    sound = np.allclose(buckets.upper[at], upper, rtol=loose, atol=1e-300)
    sound = sound and np.allclose(buckets.lower[at], lower, rtol=loose, atol=1e-300)
    if buckets.arms[FRESH] > 0:
        above_zero = scores[buckets.order[0]] - zero
        bounds = np.exp(np.array([low, high]) * above_zero) * grid.one
        stored = [buckets.upper[FRESH], buckets.lower[FRESH]]
        sound = sound and np.allclose(stored, bounds, rtol=loose, atol=1e-300)
    sizes = buckets.arms.astype(np.float64)
    sizes[TAIL] = buckets.bucket.size
    mass = np.where(buckets.arms > 0, np.floor(sizes * buckets.upper) + 1.0, 0.0)
    return bool(sound and np.array_equal(buckets.mass, mass) and grid.total == mass.sum())


def _exponential(edge: Any, rising: float, falling: float) -> Any:
    """Exp of the rate times the edge, with one rate above and one below it."""
    return np.exp(np.where(edge > 0.0, rising, falling) * edge)
