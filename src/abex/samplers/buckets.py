r"""Exact draws from weights :math:`w_k=\exp(\beta v_k)` at a cost that does not grow with the number of arms.

Arms are filed in *buckets* of scores, a quarter of a nat wide (:math:`\beta` times the width). For a window of
rates :math:`\beta` each bucket has a number :math:`u_\ell` that no weight in it exceeds, and a mass, the whole number
:math:`m_\ell=\lfloor n_\ell u_\ell\rfloor+1` for its :math:`n_\ell` arms. A trial takes bucket
:math:`\ell` with probability :math:`m_\ell/\sum m`, one of its arms uniformly, and accepts it with probability
:math:`w_k n_\ell/m_\ell\le 1`; trials are repeated until one is accepted. One uniform number serves for all
three: lay the masses side by side, cut each into :math:`n_\ell` slots, and accept within the first :math:`w_k` of a slot.

**Proof that this is exact.** A trial proposes and accepts arm k with probability
:math:`\frac{m_\ell}{\sum m}\cdot\frac1{n_\ell}\cdot\frac{w_k n_\ell}{m_\ell}=\frac{w_k}{\sum m}`. The factor
:math:`1/\sum m` is the same for all arms, so the accepted arm has probability :math:`w_k/\sum_j w_j`.
How tight the bounds are decides the number of trials, never the distribution. (As in the plain loop, the uniform
number has 53 bits.)

Arms more than about 48 nats below the best share one *tail* without a list: it proposes any arm and accepts only
those that are in the tail. Arms never observed have one common score and are a group of their own.

**Cost.** A draw tests about 1.2 arms; an observation moves its arm between lists at most. All arms are filed anew when the rate
has doubled, when an arm has risen above the buckets or all have sunk below them, and when moved lists have used
up the pool: in each case after many steps. Among many arms one that rises soon after a filing, as a first reward of 1 does at a
high rate, joins the first bucket instead, whose bound follows its best arm: most of them sink again. Masses are whole
numbers that are set, never accumulated as fractions: nothing drifts, however long the run. 36 bytes an arm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel, single_dispatch
from abex.samplers.interface import changed, draw, unseen_first
from abex.samplers.scan import pick, softmax_weights
from abex.support.randomness import below

REACH = 4.0  # nats above the reference for which there is a bound
FALLEN = math.exp(-6.0)  # share of a unit at which a total mass is too coarse
WINDOW = 1.0 + 1.0 / 32.0  # rates for which bounds hold
UNITS = 2.0**46  # of mass, for all arms; times e^REACH it stays below 2^53, so that sums are exact
MAX_TRIALS = (
    1000  # a draw needs about 1.2; where bounds are useless, as beside scores of 1000, all arms are looked at
)

BUCKETS = 256
TAIL = BUCKETS  # arms below the last bucket: counted, not listed
FRESH = BUCKETS + 1  # arms never observed
ABOVE = 64  # buckets above the best score at the time of filing
PER_NAT = 4.0  # buckets for each nat when filed; half of that when the rate has doubled
PATIENT = 1 << 14  # arms from which filing is dear, and an arm above the buckets may have to wait for it
DRAWS_PER_FILING = 64  # K over this many draws pay for filing K arms
MAX_WAITING = 64  # arms above the buckets


# -- trials, by bounds on the weights of few arms (`abex.samplers.bounded_softmax`) or of buckets ----------------


@single_dispatch
def unseen_arm(bounds: Any, scores: Any, rng: Any) -> int:
    """One of the arms never observed if they come before all others (a score of +inf), else -1 (kernel)."""
    return -1


@single_dispatch
def ensure_bounds(bounds: Any, scores: Any, rate: float) -> None:
    """Bounds for trials at this rate (kernel)."""


@single_dispatch
def try_arm(bounds: Any, scores: Any, rate: float, rng: Any) -> int:
    """One trial: arm k with probability ``exp(rate * (scores[k] - zero)) * one / total``, or -1 (kernel)."""
    raise TypeError


@single_dispatch
def invalidate(bounds: Any) -> None:
    """All scores have changed: the next `ensure_bounds` begins anew (kernel)."""


@kernel
def draw_by_trials(bounds: Any, scores: Any, rate: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(rate * scores[arm])``."""
    unseen = unseen_arm(bounds, scores, rng)
    if unseen >= 0:
        return unseen
    ensure_bounds(bounds, scores, rate)
    for _ in range(MAX_TRIALS):
        arm = try_arm(bounds, scores, rate, rng)
        if arm >= 0:
            return arm
    return scan_arms(scores, rate, rng)


@rare_kernel
def scan_arms(scores: Any, rate: float, rng: Any) -> int:
    """A draw from the same distribution that looks at every arm."""
    weights = np.empty(scores.size)
    return pick(weights, softmax_weights(scores, rate, weights), rng)


# -- buckets ------------------------------------------------------------------------------------------------


class Buckets(Record):
    """Arms filed by score, and bounds on their weights."""

    bucket: NDArray[np.int32]  # (K,), the bucket of an arm, TAIL or FRESH
    place: NDArray[np.int32]  # (K,), where it stands in the list of its bucket
    order: NDArray[np.int32]  # (K,), first the arms never observed, then the others
    pool: NDArray[np.int32]  # the lists of the buckets
    start: NDArray[np.int64]  # (BUCKETS,), where a bucket's list begins in the pool
    room: NDArray[np.int64]  # (BUCKETS,), how long it may get there
    arms: NDArray[np.int64]  # (BUCKETS + 2,), arms of each bucket, of the tail, and never observed
    upper: NDArray[np.float64]  # (BUCKETS + 2,), no weight of the bucket is larger (in units of mass)
    lower: NDArray[np.float64]  # (BUCKETS + 2,), no weight of the bucket is smaller
    mass: NDArray[np.float64]  # (BUCKETS + 2,), what a bucket weighs in a trial, whole numbers
    first: int  # first bucket in use, or one before it
    end: int  # of the used pool
    filed: bool  # whether all arms are in their buckets
    highest: int  # first bucket that has a bound
    drawn: int  # draws since the last filing
    waiting: bool  # whether arms above the buckets wait in the first one
    anchor: float  # best score when filed
    scale: float  # buckets per unit of score
    filed_rate: float  # rate when filed
    low: float  # the window of rates
    high: float
    zero: float  # the score that weighs `one`
    one: float
    total: float  # all masses together


def new_buckets(observations: NDArray[np.float64], scores: NDArray[np.float64]) -> Buckets:
    """Buckets for arms observed so often; those never observed have one score in common."""
    n = observations.size
    seen = observations > 0.0
    order, place, fresh = unseen_first(observations)
    arms = np.zeros(BUCKETS + 2, np.int64)
    arms[TAIL], arms[FRESH] = n - fresh, fresh
    return Buckets(
        bucket=np.where(seen, TAIL, FRESH).astype(np.int32),
        place=place,
        order=order,
        pool=np.zeros(4 * n + 8 * BUCKETS, np.int32),
        start=np.zeros(BUCKETS, np.int64),
        room=np.zeros(BUCKETS, np.int64),
        arms=arms,
        upper=np.zeros(BUCKETS + 2),
        lower=np.zeros(BUCKETS + 2),
        mass=np.zeros(BUCKETS + 2),
        first=BUCKETS,
        filed=fresh == n,
        drawn=n,
        anchor=float(scores[0]) if math.isfinite(scores[0]) else 0.0,
        scale=PER_NAT,
        filed_rate=1.0,
        low=1.0,  # a window of rates from 1 to 0 holds for none: the first draw makes the bounds
        one=UNITS / n,
    )


@kernel
def bucket_of(buckets: Buckets, score: float) -> int:
    """The bucket of a score, TAIL below the last one, -1 above the first."""
    depth = (buckets.anchor - score) * buckets.scale + ABOVE
    if depth < 0.0:
        return -1
    return int(depth) if depth < BUCKETS else TAIL


@kernel
def weigh(buckets: Buckets, bucket: int) -> None:
    """Set the mass of a bucket whose count or bound has changed."""
    mass = 0.0
    if buckets.arms[bucket] > 0:  # the tail proposes all arms, whoever is in it
        arms = buckets.bucket.size if bucket == TAIL else buckets.arms[bucket]
        mass = math.floor(arms * buckets.upper[bucket]) + 1.0
    buckets.total += mass - buckets.mass[bucket]
    buckets.mass[bucket] = mass


@kernel
def list_arm(buckets: Buckets, bucket: int, arm: int) -> bool:
    """Append an arm to the list of its bucket; False if the pool is used up."""
    size = buckets.arms[bucket]
    if size == buckets.room[bucket]:
        room = max(4, 2 * size)
        end = buckets.end
        if end + room > buckets.pool.size:
            return False
        begin = buckets.start[bucket]
        for j in range(size):
            buckets.pool[end + j] = buckets.pool[begin + j]
        buckets.start[bucket] = end
        buckets.room[bucket] = room
        buckets.end = end + room
    buckets.pool[buckets.start[bucket] + size] = arm
    buckets.place[arm] = size
    return True


@changed.register(Buckets)
@kernel
def rebucket(buckets: Buckets, scores: Any, arm: int) -> None:
    """The score of an arm has changed: move it to its bucket."""
    bucket = bucket_of(buckets, scores[arm])
    if bucket != buckets.bucket[arm]:
        move_arm(buckets, arm, bucket)
    elif bucket == 0 and buckets.waiting:
        drop_bounds(buckets)


@kernel
def drop_bounds(buckets: Buckets) -> None:
    """Let the next draw make new ones."""
    buckets.high = -1.0


@kernel
def may_wait(buckets: Buckets) -> bool:
    """Whether an arm above the buckets joins the first one: filing is dear, the last one recent, and few are there."""
    n_arms = buckets.bucket.size
    recent = DRAWS_PER_FILING * buckets.drawn < n_arms
    return bool(n_arms >= PATIENT and recent and buckets.arms[0] < MAX_WAITING)


@rare_kernel
def move_arm(buckets: Buckets, arm: int, bucket: int) -> None:
    """Take an arm from where it is to its new bucket."""
    old = int(np.int64(buckets.bucket[arm]))
    last = buckets.arms[old] - 1
    buckets.arms[old] = last
    if old == 0 and buckets.waiting:
        drop_bounds(buckets)  # if it was the best one, the others are never accepted under its bound
    if old != TAIL:
        where = buckets.place[arm]
        if old == FRESH:
            moved = buckets.order[last]
            buckets.order[last] = arm
            buckets.order[where] = moved
        else:
            begin = buckets.start[old]
            moved = buckets.pool[begin + last]
            buckets.pool[begin + where] = moved
        buckets.place[moved] = where
    weigh(buckets, old)
    if bucket < 0 and may_wait(buckets):
        bucket = 0
        drop_bounds(buckets)  # that of the first bucket may be too low
    if bucket < 0 or (bucket < TAIL and not list_arm(buckets, bucket, arm)):
        buckets.filed = False  # no list for it: wait in the tail until the next draw files all arms
        bucket = TAIL
    buckets.bucket[arm] = bucket
    buckets.arms[bucket] += 1
    weigh(buckets, bucket)
    buckets.first = min(buckets.first, bucket)


@rare_kernel
def file_all(buckets: Buckets, scores: Any, rate: float) -> None:
    """File all observed arms around the best score, in buckets of a quarter of a nat at this rate."""
    n_arms = scores.size
    fresh = buckets.arms[FRESH]
    top = scores[buckets.order[0]] if fresh > 0 else scores[0]
    for j in range(fresh, n_arms):
        top = max(top, scores[buckets.order[j]])
    buckets.anchor = top
    buckets.filed_rate = max(rate, 1e-9)
    buckets.scale = PER_NAT * buckets.filed_rate
    for bucket in range(BUCKETS + 1):
        buckets.arms[bucket] = 0
    for j in range(fresh, n_arms):
        arm = buckets.order[j]
        bucket = bucket_of(buckets, scores[arm])
        buckets.bucket[arm] = bucket
        buckets.arms[bucket] += 1
    end = 0
    for bucket in range(BUCKETS):
        buckets.start[bucket] = end
        buckets.room[bucket] = 2 * buckets.arms[bucket]
        end += buckets.room[bucket]
        buckets.arms[bucket] = 0
    for j in range(fresh, n_arms):
        arm = int(
            np.int64(buckets.order[j])
        )  # the integers of `move_arm`: one `list_arm` is compiled for both
        bucket = int(np.int64(buckets.bucket[arm]))
        if bucket < TAIL:
            list_arm(buckets, bucket, arm)
            buckets.arms[bucket] += 1
    buckets.end = end
    buckets.first = 0
    buckets.filed = True
    buckets.drawn = 0


@rare_kernel
def bound_all(buckets: Buckets, scores: Any, rate: float) -> None:
    """Bounds on the weights for a window of rates from here on, relative to the first bucket in use."""
    upper, lower = buckets.upper, buckets.lower
    find_first(buckets)
    first = buckets.first
    fresh = buckets.arms[FRESH] > 0
    initial = scores[buckets.order[0]] if fresh else -math.inf
    if fresh:
        first = min(first, bucket_of(buckets, initial))
    high = rate * WINDOW
    anchor, step = buckets.anchor, 1.0 / buckets.scale
    zero = anchor + (ABOVE - first) * step  # the largest score of that bucket has weight 1
    excess = 0.0  # of the arms above the buckets, who wait in the first one
    for j in range(buckets.arms[0]):
        excess = max(excess, scores[buckets.pool[buckets.start[0] + j]] - zero)
    buckets.waiting = excess > 0.0
    zero += excess
    # scores and edges are rounded: so much a bound has to give
    slack = 1e-9 + 1e-15 * high * (abs(anchor) + abs(zero) + BUCKETS * step)
    most, least = buckets.one * math.exp(slack), buckets.one * math.exp(-slack)
    highest = 0
    if first * high * step > REACH:
        highest = first - int(REACH / (high * step))
    for bucket in range(highest, BUCKETS + 1):
        edge = (first - bucket) * step - excess
        if bucket == 0 and excess > 0.0:
            upper[bucket] = most
        else:
            upper[bucket] = most * math.exp((high if edge > 0.0 else rate) * edge)
        edge -= step
        lower[bucket] = least * math.exp((high if edge < 0.0 else rate) * edge)
    lower[TAIL] = 0.0
    if fresh:
        upper[FRESH] = most * math.exp(rate * (initial - zero))
        lower[FRESH] = least * math.exp(high * (initial - zero))
    buckets.total = 0.0
    for bucket in range(BUCKETS + 2):
        buckets.mass[bucket] = 0.0
        if bucket >= highest:
            weigh(buckets, bucket)
    buckets.highest = highest
    buckets.low, buckets.high, buckets.zero = rate, high, zero


@kernel
def find_first(buckets: Buckets) -> None:
    """Go down to the first bucket in use."""
    first = buckets.first
    while first < BUCKETS and buckets.arms[first] == 0:
        first += 1
    buckets.first = first


@kernel
def bounds_hold(buckets: Buckets, rate: float) -> bool:
    """Whether buckets and bounds still serve this rate and the best arms."""
    return bool(
        buckets.filed
        and buckets.low <= rate <= buckets.high
        and buckets.highest <= buckets.first
        and buckets.total >= FALLEN * buckets.one
        and 8.0 * buckets.mass[TAIL] <= buckets.total
    )


@rare_kernel
def rebuild(buckets: Buckets, scores: Any, rate: float) -> None:
    """New bounds; file all arms anew where the rate has outgrown the buckets or the best arms have left them."""
    anew = not buckets.filed or rate > 2.0 * buckets.filed_rate
    while True:
        if anew:
            file_all(buckets, scores, rate)
        bound_all(buckets, scores, rate)
        if anew or 8.0 * buckets.mass[TAIL] <= buckets.total:
            return
        anew = True  # the best arms have sunk


@ensure_bounds.register(Buckets)
@kernel
def ensure_bounds_of_buckets(buckets: Buckets, scores: Any, rate: float) -> None:
    """Buckets, bounds and the first bucket in use for a trial at this rate."""
    buckets.drawn += 1
    if not bounds_hold(buckets, rate):
        rebuild(buckets, scores, rate)
    find_first(buckets)


@try_arm.register(Buckets)
@kernel
def try_arm_of_buckets(buckets: Buckets, scores: Any, rate: float, rng: Any) -> int:
    """An arm within the mass of its bucket, or -1."""
    mass, size = buckets.mass, scores.size
    rest = rng.random() * buckets.total
    bucket = FRESH
    if rest >= mass[FRESH]:
        rest -= mass[FRESH]
        bucket = buckets.first
        while bucket < TAIL and rest >= mass[bucket]:
            rest -= mass[bucket]
            bucket += 1
    if bucket != TAIL:
        size = buckets.arms[bucket]
    where, mark = 0, rest
    if size > 1:
        slot = rest * size / mass[bucket]
        where = min(int(slot), size - 1)
        mark = (slot - where) * mass[bucket]  # of a slot as wide as the mass
    if bucket < TAIL:
        arm = int(buckets.pool[buckets.start[bucket] + where])
    elif bucket == FRESH:
        arm = int(buckets.order[where])
    else:
        arm = where
        if buckets.bucket[arm] != TAIL:
            return -1
    if mark < size * buckets.lower[bucket] or mark < size * buckets.one * math.exp(
        rate * (scores[arm] - buckets.zero)
    ):
        return arm
    return -1


@unseen_arm.register(Buckets)
@kernel
def unseen_of_buckets(buckets: Buckets, scores: Any, rng: Any) -> int:
    """One of the arms never observed, if their score is infinite."""
    fresh = buckets.arms[FRESH]
    if fresh > 0 and scores[buckets.order[0]] == math.inf:
        return int(buckets.order[below(fresh, rng)])
    return -1


@invalidate.register(Buckets)
@kernel
def file_anew(buckets: Buckets) -> None:
    """The next trial files all arms."""
    buckets.filed = False


draw.register(Buckets)(draw_by_trials)
