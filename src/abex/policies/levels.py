r"""Exact draws from weights :math:`w_k=\exp(\beta v_k)` at a cost that does not grow with the number of arms.

Arms are filed in *levels* of values, a quarter of a nat wide (:math:`\beta` times the width). For a window of
rates :math:`\beta` each level has a number :math:`u_\ell` that no weight in it exceeds, and a mass, the whole number
:math:`m_\ell=\lfloor n_\ell u_\ell\rfloor+1` for its :math:`n_\ell` arms. A trial takes level
:math:`\ell` with probability :math:`m_\ell/\sum m`, one of its arms uniformly, and accepts it with probability
:math:`w_k n_\ell/m_\ell\le 1`; trials are repeated until one is accepted. One uniform number serves for all
three: lay the masses side by side, cut each into :math:`n_\ell` slots, and accept within the first :math:`w_k` of a slot.

**Proof that this is exact.** A trial proposes and accepts arm k with probability
:math:`\frac{m_\ell}{\sum m}\cdot\frac1{n_\ell}\cdot\frac{w_k n_\ell}{m_\ell}=\frac{w_k}{\sum m}`. The factor
:math:`1/\sum m` is the same for all arms, so the accepted arm has probability :math:`w_k/\sum_j w_j`.
How tight the bounds are decides the number of trials, never the law. (As in the plain loop, the uniform
number has 53 bits.)

Arms more than about 48 nats below the best share one *tail* without a list: it proposes any arm and accepts only
those that are in the tail. Arms never observed have one common value and are a group of their own.

**Cost.** A draw tests about 1.2 arms; an observation moves its arm between lists at most. All arms are filed anew when the rate
has doubled, when an arm has risen above the levels or all have sunk below them, and when moved lists have used
up the pool: in each case after many steps. Among many arms one that rises soon after a filing, as a first reward of 1 does at a
high rate, joins the first level instead, whose bound follows its best arm: most of them sink again. Masses are whole
numbers that are set, never accumulated as fractions: nothing drifts, however long the run. 36 bytes an arm.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel
from abex.policies.schema import Checked
from abex.randomness import below

LEVELS = 256
TAIL = LEVELS  # arms below the last level: counted, not listed
FRESH = LEVELS + 1  # arms never observed
ABOVE = 64  # levels above the best value at the time of filing
PER_NAT = 4.0  # levels for each nat when filed; half of that when the rate has doubled
REACH = 4.0  # nats above the reference for which there is a bound
FALLEN = math.exp(-6.0)  # share of a unit at which a total mass is too coarse
WINDOW = 1.0 + 1.0 / 32.0  # rates for which a table of bounds holds
PATIENT = 1 << 14  # arms from which filing is dear, and an arm above the levels may have to wait for it
DRAWS_PER_FILING = 64  # K over this many draws pay for filing K arms
MOST_ABOVE = 64  # arms that wait
MOST_TRIALS = (
    1000  # a draw needs about 1.2; where bounds are useless, as beside values of 1000, all arms are looked at
)
UNITS = 2.0**46  # of mass, for all arms; times e^REACH it stays below 2^53, so that sums are exact

# The places of `Levels.clock`: first level in use (or one before it), end of the used pool, whether all arms
# must be filed anew, first level that has a bound, draws since the last filing, whether arms above the levels wait.
FIRST, END, STALE, HIGHEST, DRAWN, WAITING = 0, 1, 2, 3, 4, 5
# Of `Levels.grid`: best value and rate when filed, levels per unit of value, the window of rates, the value that
# weighs `ONE`, all masses together.
ANCHOR, SCALE, FILED, LOW, HIGH, ZERO, ONE, TOTAL = 0, 1, 2, 3, 4, 5, 6, 7


class Levels(NamedTuple):
    """Arms filed by value, and bounds on their weights; `sound_levels` checks what a file holds of them."""

    level: Annotated[NDArray[np.int32], Checked()]  # (K,), the level of an arm, TAIL or FRESH
    place: Annotated[NDArray[np.int32], Checked()]  # (K,), where it stands in the list of its level
    order: Annotated[NDArray[np.int32], Checked()]  # (K,), first the arms never observed, then the others
    pool: Annotated[NDArray[np.int32], Checked()]  # the lists of the levels
    start: Annotated[NDArray[np.int64], Checked()]  # (LEVELS,), where a level's list begins in the pool
    room: Annotated[NDArray[np.int64], Checked()]  # (LEVELS,), how long it may get there
    arms: Annotated[
        NDArray[np.int64], Checked()
    ]  # (LEVELS + 2,), arms of each level, of the tail, and never observed
    upper: Annotated[
        NDArray[np.float64], Checked()
    ]  # (LEVELS + 2,), no weight of the level is larger (in units of mass)
    lower: Annotated[NDArray[np.float64], Checked()]  # (LEVELS + 2,), no weight of the level is smaller
    mass: Annotated[
        NDArray[np.float64], Checked()
    ]  # (LEVELS + 2,), what a level weighs in a trial, whole numbers
    clock: Annotated[NDArray[np.int64], Checked()]  # (6,)
    grid: Annotated[
        NDArray[np.float64], Checked()
    ]  # (7,): value at the top, levels per unit, rates, value of weight 1, unit


def new_levels(observations: NDArray[np.float64], initial: float) -> Levels:
    """Levels for arms observed so often; arms never observed have the value ``initial``."""
    n = observations.size
    seen = observations > 0.0
    order = np.concatenate([np.flatnonzero(~seen), np.flatnonzero(seen)]).astype(np.int32)
    fresh = n - int(np.count_nonzero(seen))
    place = np.zeros(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    arms = np.zeros(LEVELS + 2, np.int64)
    arms[TAIL], arms[FRESH] = n - fresh, fresh
    return Levels(
        level=np.where(seen, TAIL, FRESH).astype(np.int32),
        place=place,
        order=order,
        pool=np.zeros(4 * n + 8 * LEVELS, np.int32),
        start=np.zeros(LEVELS, np.int64),
        room=np.zeros(LEVELS, np.int64),
        arms=arms,
        upper=np.zeros(LEVELS + 2),
        lower=np.zeros(LEVELS + 2),
        mass=np.zeros(LEVELS + 2),
        clock=np.array([LEVELS, 0, int(seen.any()), 0, n, 0]),
        # a window of rates from 1 to 0 holds for none: the first draw makes the bounds
        grid=np.array(
            [initial if math.isfinite(initial) else 0.0, PER_NAT, 1.0, 1.0, 0.0, 0.0, UNITS / n, 0.0]
        ),
    )


@kernel
def level_of(levels: Any, value: float) -> int:
    """The level of a value, TAIL below the last one, -1 above the first."""
    depth = (levels.grid[ANCHOR] - value) * levels.grid[SCALE] + ABOVE
    if depth < 0.0:
        return -1
    return int(depth) if depth < LEVELS else TAIL


@kernel
def weigh(levels: Any, level: int) -> None:
    """Set the mass of a level whose count or bound has changed."""
    mass = 0.0
    if levels.arms[level] > 0:  # the tail proposes all arms, whoever is in it
        arms = levels.level.size if level == TAIL else levels.arms[level]
        mass = math.floor(arms * levels.upper[level]) + 1.0
    levels.grid[TOTAL] += mass - levels.mass[level]
    levels.mass[level] = mass


@kernel
def list_arm(levels: Any, level: int, arm: int) -> bool:
    """Append an arm to the list of its level; False if the pool is used up."""
    size = levels.arms[level]
    if size == levels.room[level]:
        room = max(4, 2 * size)
        end = levels.clock[END]
        if end + room > levels.pool.size:
            return False
        begin = levels.start[level]
        for j in range(size):
            levels.pool[end + j] = levels.pool[begin + j]
        levels.start[level] = end
        levels.room[level] = room
        levels.clock[END] = end + room
    levels.pool[levels.start[level] + size] = arm
    levels.place[arm] = size
    return True


@kernel
def refile_arm(levels: Any, arm: int, value: float) -> None:
    """The value of an arm has changed: move it to its level."""
    level = level_of(levels, value)
    if level != levels.level[arm]:
        move_arm(levels, arm, level)
    elif level == 0 and levels.clock[WAITING] == 1:
        forget_bounds(levels)


@kernel
def forget_bounds(levels: Any) -> None:
    """Let the next draw make new ones."""
    levels.grid[HIGH] = -1.0


@kernel
def may_wait(levels: Any) -> bool:
    """Whether an arm above the levels joins the first one: filing is dear, the last one recent, and few are there."""
    n_arms = levels.level.size
    recent = DRAWS_PER_FILING * levels.clock[DRAWN] < n_arms
    return bool(n_arms >= PATIENT and recent and levels.arms[0] < MOST_ABOVE)


@rare_kernel
def move_arm(levels: Any, arm: int, level: int) -> None:
    """Take an arm from where it is to its new level."""
    old = int(np.int64(levels.level[arm]))
    last = levels.arms[old] - 1
    levels.arms[old] = last
    if old == 0 and levels.clock[WAITING] == 1:
        forget_bounds(levels)  # if it was the best one, the others are never accepted under its bound
    if old != TAIL:
        where = levels.place[arm]
        if old == FRESH:
            moved = levels.order[last]
            levels.order[last] = arm
            levels.order[where] = moved
        else:
            begin = levels.start[old]
            moved = levels.pool[begin + last]
            levels.pool[begin + where] = moved
        levels.place[moved] = where
    weigh(levels, old)
    if level < 0 and may_wait(levels):
        level = 0
        forget_bounds(levels)  # that of the first level may be too low
    if level < 0 or (level < TAIL and not list_arm(levels, level, arm)):
        levels.clock[STALE] = 1  # no list for it: wait in the tail until the next draw files all arms
        level = TAIL
    levels.level[arm] = level
    levels.arms[level] += 1
    weigh(levels, level)
    levels.clock[FIRST] = min(levels.clock[FIRST], level)


@rare_kernel
def file_all(levels: Any, values: Any, rate: float) -> None:
    """File all observed arms around the best value, in levels of a quarter of a nat at this rate."""
    n_arms = values.size
    fresh = levels.arms[FRESH]
    top = values[levels.order[0]] if fresh > 0 else values[0]
    for j in range(fresh, n_arms):
        top = max(top, values[levels.order[j]])
    levels.grid[ANCHOR] = top
    levels.grid[FILED] = max(rate, 1e-9)
    levels.grid[SCALE] = PER_NAT * levels.grid[FILED]
    for level in range(LEVELS + 1):
        levels.arms[level] = 0
    for j in range(fresh, n_arms):
        arm = levels.order[j]
        level = level_of(levels, values[arm])
        levels.level[arm] = level
        levels.arms[level] += 1
    end = 0
    for level in range(LEVELS):
        levels.start[level] = end
        levels.room[level] = 2 * levels.arms[level]
        end += levels.room[level]
        levels.arms[level] = 0
    for j in range(fresh, n_arms):
        arm = int(
            np.int64(levels.order[j])
        )  # the integers of `move_arm`: one `list_arm` is compiled for both
        level = int(np.int64(levels.level[arm]))
        if level < TAIL:
            list_arm(levels, level, arm)
            levels.arms[level] += 1
    levels.clock[END] = end
    levels.clock[FIRST] = 0
    levels.clock[STALE] = 0
    levels.clock[DRAWN] = 0


@rare_kernel
def bound_all(levels: Any, values: Any, rate: float) -> None:
    """Bounds on the weights for a window of rates from here on, relative to the first level in use."""
    grid, upper, lower = levels.grid, levels.upper, levels.lower
    find_first(levels)
    first = levels.clock[FIRST]
    fresh = levels.arms[FRESH] > 0
    initial = values[levels.order[0]] if fresh else -math.inf
    if fresh:
        first = min(first, level_of(levels, initial))
    high = rate * WINDOW
    anchor, step = grid[ANCHOR], 1.0 / grid[SCALE]
    zero = anchor + (ABOVE - first) * step  # the largest value of that level has weight 1
    excess = 0.0  # of the arms above the levels, who wait in the first one
    for j in range(levels.arms[0]):
        excess = max(excess, values[levels.pool[levels.start[0] + j]] - zero)
    levels.clock[WAITING] = 1 if excess > 0.0 else 0
    zero += excess
    # values and edges are rounded: so much a bound has to give
    slack = 1e-9 + 1e-15 * high * (abs(anchor) + abs(zero) + LEVELS * step)
    most, least = grid[ONE] * math.exp(slack), grid[ONE] * math.exp(-slack)
    highest = 0
    if first * high * step > REACH:
        highest = first - int(REACH / (high * step))
    for level in range(highest, LEVELS + 1):
        edge = (first - level) * step - excess
        if level == 0 and excess > 0.0:
            upper[level] = most
        else:
            upper[level] = most * math.exp((high if edge > 0.0 else rate) * edge)
        edge -= step
        lower[level] = least * math.exp((high if edge < 0.0 else rate) * edge)
    lower[TAIL] = 0.0
    if fresh:
        upper[FRESH] = most * math.exp(rate * (initial - zero))
        lower[FRESH] = least * math.exp(high * (initial - zero))
    levels.grid[TOTAL] = 0.0
    for level in range(LEVELS + 2):
        levels.mass[level] = 0.0
        if level >= highest:
            weigh(levels, level)
    levels.clock[HIGHEST] = highest
    grid[LOW], grid[HIGH], grid[ZERO] = rate, high, zero


@kernel
def find_first(levels: Any) -> None:
    """Go down to the first level in use."""
    first = levels.clock[FIRST]
    while first < LEVELS and levels.arms[first] == 0:
        first += 1
    levels.clock[FIRST] = first


@kernel
def fits(levels: Any, rate: float) -> bool:
    """Whether levels and bounds still serve this rate and the best arms."""
    grid, clock = levels.grid, levels.clock
    return bool(
        clock[STALE] == 0
        and grid[LOW] <= rate <= grid[HIGH]
        and clock[HIGHEST] <= clock[FIRST]
        and grid[TOTAL] >= FALLEN * grid[ONE]
        and 8.0 * levels.mass[TAIL] <= grid[TOTAL]
    )


@rare_kernel
def refit(levels: Any, values: Any, rate: float) -> None:
    """New bounds; file all arms anew where the rate has outgrown the levels or the best arms have left them."""
    anew = levels.clock[STALE] == 1 or rate > 2.0 * levels.grid[FILED]
    while True:
        if anew:
            file_all(levels, values, rate)
        bound_all(levels, values, rate)
        if anew or 8.0 * levels.mass[TAIL] <= levels.grid[TOTAL]:
            return
        anew = True  # the best arms have sunk


@kernel
def make_fit(levels: Any, values: Any, rate: float) -> None:
    """Levels, bounds and the first level in use for a trial at this rate."""
    levels.clock[DRAWN] += 1
    if not fits(levels, rate):
        refit(levels, values, rate)
    find_first(levels)


@kernel
def try_arm(levels: Any, values: Any, rate: float, rng: Any) -> int:
    """One trial: an arm with probability ``exp(rate * (values[arm] - ZERO)) * ONE / TOTAL``, else -1."""
    mass, size = levels.mass, values.size
    rest = rng.random() * levels.grid[TOTAL]
    level = FRESH
    if rest >= mass[FRESH]:
        rest -= mass[FRESH]
        level = levels.clock[FIRST]
        while level < TAIL and rest >= mass[level]:
            rest -= mass[level]
            level += 1
    if level != TAIL:
        size = levels.arms[level]
    where, mark = 0, rest
    if size > 1:
        slot = rest * size / mass[level]
        where = min(int(slot), size - 1)
        mark = (slot - where) * mass[level]  # of a slot as wide as the mass
    if level < TAIL:
        arm = int(levels.pool[levels.start[level] + where])
    elif level == FRESH:
        arm = int(levels.order[where])
    else:
        arm = where
        if levels.level[arm] != TAIL:
            return -1
    if mark < size * levels.lower[level] or mark < size * levels.grid[ONE] * math.exp(
        rate * (values[arm] - levels.grid[ZERO])
    ):
        return arm
    return -1


@rare_kernel
def scan_arms(values: Any, rate: float, rng: Any) -> int:
    """A draw of the same law that looks at every arm."""
    top = values[0]
    for k in range(1, values.size):
        top = max(top, values[k])
    total = 0.0
    for k in range(values.size):
        total += math.exp(rate * (values[k] - top))
    rest = rng.random() * total
    last = 0
    for k in range(values.size):
        weight = math.exp(rate * (values[k] - top))
        if weight > 0.0:
            last = k
        rest -= weight
        if rest < 0.0:
            break
    return last


@kernel
def draw_arm(levels: Any, values: Any, rate: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(rate * values[arm])``."""
    fresh = levels.arms[FRESH]
    if fresh > 0 and values[levels.order[0]] == math.inf:  # before all others
        return int(levels.order[below(fresh, rng)])
    make_fit(levels, values, rate)
    for _ in range(MOST_TRIALS):
        arm = try_arm(levels, values, rate, rng)
        if arm >= 0:
            return arm
    return scan_arms(values, rate, rng)
