"""Whether `Levels` that a file holds are what the kernels take them for; where they are not, the arms are filed anew.

Levels cannot be worked out from the means alone: which bounds they have and where an arm stands in a list is history, and a
player that goes on exactly where it was saved needs it. All of it can be checked, however. What does not hold is dropped:
the law of the draws does not depend on it, so nothing is lost but the order of the lists.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.policies.levels import (
    ABOVE,
    ANCHOR,
    DRAWN,
    END,
    FILED,
    FIRST,
    FRESH,
    HIGH,
    HIGHEST,
    LEVELS,
    LOW,
    MOST_ABOVE,
    ONE,
    PATIENT,
    PER_NAT,
    SCALE,
    STALE,
    TAIL,
    TOTAL,
    UNITS,
    WAITING,
    WINDOW,
    ZERO,
    Levels,
    new_levels,
)

MOST_SCALE = 1e16  # levels per unit of value: the largest rate, with room


def sound_levels(
    levels: Levels, values: NDArray[np.float64], seen: NDArray[np.bool_], initial: float
) -> Levels:
    """``levels`` if they file these values, else new ones; ``seen`` are the arms ever observed."""
    with np.errstate(all="ignore"):
        sound = (
            _counts_agree(levels, seen)
            and _lists_hold(levels)
            and _filed(levels, values)
            and _bounded(levels, values)
        )
    return levels if sound else new_levels(seen.astype(np.float64), initial)


def _counts_agree(levels: Levels, seen: NDArray[np.bool_]) -> bool:
    """Every arm is in one level, those never observed stand first in the order, clocks and grid are in range."""
    clock, grid, n = levels.clock, levels.grid, seen.size
    if not (np.isin(levels.level, np.arange(FRESH + 1)).all() and np.isfinite(grid).all()):
        return False
    fresh = n - int(np.count_nonzero(seen))
    order = levels.order
    return bool(
        np.array_equal(np.bincount(levels.level, minlength=LEVELS + 2), levels.arms)
        and np.array_equal(levels.level == FRESH, ~seen)
        and np.array_equal(np.sort(order), np.arange(n))
        and not seen[order[:fresh]].any()
        and np.array_equal(levels.place[order[:fresh]], np.arange(fresh))
        and 0 <= clock[FIRST] <= LEVELS
        and not levels.arms[: clock[FIRST]].any()
        and 0 <= clock[HIGHEST] <= LEVELS
        and clock[STALE] in (0, 1)
        and clock[WAITING] in (0, 1)
        and 0 <= clock[DRAWN] < 2**62
        and 1e-9 <= grid[FILED] <= MOST_SCALE
        and grid[SCALE] == PER_NAT * grid[FILED]
        and grid[ONE] == UNITS / n
    )


def _lists_hold(levels: Levels) -> bool:
    """The lists lie apart in the pool, and each holds the arms of its level."""
    start, room, size = levels.start, levels.room, levels.arms[:LEVELS]
    end = levels.clock[END]
    if not (0 <= end <= levels.pool.size and (start >= 0).all() and (room >= size).all()):
        return False
    if (start > end).any() or (room > end - start).any():
        return False
    used = np.flatnonzero(room > 0)
    used = used[np.argsort(start[used], kind="stable")]
    if (start[used][1:] < (start + room)[used][:-1]).any():
        return False
    listed = np.flatnonzero(levels.level < TAIL)
    level, place = levels.level[listed], levels.place[listed]
    if (place < 0).any() or (place >= size[level]).any():
        return False
    return np.array_equal(levels.pool[start[level] + place], listed)


def _filed(levels: Levels, values: NDArray[np.float64]) -> bool:
    """Every observed arm is where its value belongs, waits above the levels, or waits in the tail to be filed."""
    seen = levels.level != FRESH
    level, value = levels.level[seen], values[seen]
    if not np.isfinite(value).all():
        return False
    depth = (levels.grid[ANCHOR] - value) * levels.grid[SCALE] + ABOVE
    belongs = np.where(depth < LEVELS, np.floor(np.minimum(depth, LEVELS)), TAIL)
    may_wait = levels.level.size >= PATIENT and levels.arms[0] <= MOST_ABOVE
    waits = (depth < 0.0) & (level == 0) & may_wait
    stale = (level == TAIL) & (levels.clock[STALE] == 1)
    return bool(np.all((level == belongs) & (depth >= 0.0) | waits | stale))


def _bounded(levels: Levels, values: NDArray[np.float64]) -> bool:
    """Where the bounds are in force: they are those of the grid, and the masses follow from them."""
    grid, clock = levels.grid, levels.clock
    low, high, zero = grid[LOW], grid[HIGH], grid[ZERO]
    if clock[STALE] == 1 or low > high:
        return True  # the next draw makes new ones
    if not (low >= 0.0 and high == low * WINDOW):
        return False
    step = 1.0 / grid[SCALE]
    if clock[WAITING] == 1:
        above = values[levels.level == 0]
        if above.size == 0 or abs(above.max() - zero) > 1e-12 * (1.0 + abs(zero)):
            return False
    else:
        first = round(ABOVE - (zero - grid[ANCHOR]) / step)
        if not 0 <= first <= LEVELS or zero != grid[ANCHOR] + (ABOVE - first) * step:
            return False
    slack = 1e-9 + 1e-15 * high * (abs(grid[ANCHOR]) + abs(zero) + LEVELS * step)
    loose = 1e-6 + 20.0 * slack
    at = np.arange(clock[HIGHEST], LEVELS + 1)
    upper = _exponential(grid[ANCHOR] + (ABOVE - at) * step - zero, high, low) * grid[ONE] * math.exp(slack)
    lower = (
        _exponential(grid[ANCHOR] + (ABOVE - at - 1) * step - zero, low, high) * grid[ONE] * math.exp(-slack)
    )
    lower[-1] = 0.0
    if clock[WAITING] == 1 and at[0] == 0:
        upper[0] = grid[ONE] * math.exp(slack)
    sound = np.allclose(levels.upper[at], upper, rtol=loose, atol=1e-300)
    sound = sound and np.allclose(levels.lower[at], lower, rtol=loose, atol=1e-300)
    if levels.arms[FRESH] > 0:
        above_zero = values[levels.order[0]] - zero
        bounds = np.exp(np.array([low, high]) * above_zero) * grid[ONE]
        stored = [levels.upper[FRESH], levels.lower[FRESH]]
        sound = sound and np.allclose(stored, bounds, rtol=loose, atol=1e-300)
    sizes = levels.arms.astype(np.float64)
    sizes[TAIL] = levels.level.size
    mass = np.where(levels.arms > 0, np.floor(sizes * levels.upper) + 1.0, 0.0)
    return bool(sound and np.array_equal(levels.mass, mass) and grid[TOTAL] == mass.sum())


def _exponential(edge: Any, rising: float, falling: float) -> Any:
    """Exp of the rate times the edge, with one rate above and one below it."""
    return np.exp(np.where(edge > 0.0, rising, falling) * edge)
