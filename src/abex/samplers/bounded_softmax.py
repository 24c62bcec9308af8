r"""Exact draws from weights :math:`w_k=\exp(\beta v_k)` of a few arms, without an exponential for each of them.

Each arm has a mass, a whole number that its weight does not exceed for a window of rates :math:`\beta` and for scores
:math:`v_k` up to its *reach*. A trial takes arm k with probability :math:`m_k/\sum m` and accepts it with
probability :math:`w_k/m_k`; trials are repeated until one is accepted. So arm k is accepted with probability
:math:`w_k/\sum m`, and the factor :math:`1/\sum m` is the same for all arms: the draw is exact, as with `Buckets`, which file
many arms where this looks at each mass.

**Cost.** A trial adds up masses, the leader's first. The tangent :math:`e^x\ge 1+x` at the bound mostly shows that it is accepted
without working out the weight. An observation makes a new bound only if the score leaves the interval below its reach, an eighth
of a nat wide. All bounds are made anew when the rate leaves the window, when the best score has risen by four nats, or when all
have sunk by six. Masses are set, never accumulated as fractions: nothing drifts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel
from abex.samplers.buckets import (
    FALLEN,
    REACH,
    UNITS,
    WINDOW,
    draw_by_trials,
    ensure_bounds,
    invalidate,
    try_arm,
    unseen_arm,
)
from abex.samplers.interface import changed, draw
from abex.support.randomness import below

MARGIN = 1.0 / 16.0  # nats by which a score may move either way before its bound is made anew
INVALID = -1.0  # an end of the window that no rate is below


class BoundedSoftmax(Record):
    """A bound on the weight of each arm, and the window of rates for which they hold."""

    mass: NDArray[np.float64]  # (K,), whole numbers
    reach: NDArray[np.float64]  # (K,), the largest score for which the mass holds
    low: float  # the window of rates
    high: float
    zero: float  # the score that weighs `one`
    one: float
    total: float  # all masses together
    width: float  # of the scores that a bound serves well
    leader: int  # the arm of the best score when the masses were made


def new_bounded_softmax(n_arms: int) -> BoundedSoftmax:
    """No bounds yet: the first draw makes them."""
    return BoundedSoftmax(mass=np.zeros(n_arms), reach=np.zeros(n_arms), high=INVALID, one=UNITS / n_arms)


@kernel
def width_at(rate: float) -> float:
    """How far scores may move under one bound."""
    return 2.0 * MARGIN / max(rate, MARGIN)


@kernel
def bound_exponent(bounds: BoundedSoftmax, reach: float) -> float:
    """The largest exponent of a score up to ``reach`` within the window of rates."""
    above = reach - bounds.zero
    return float((bounds.high if above > 0.0 else bounds.low) * above)


@kernel
def mass_of(bounds: BoundedSoftmax, reach: float) -> float:
    """A whole number above all weights of scores up to ``reach``: products and exponentials are rounded monotonically."""
    return math.floor(bounds.one * math.exp(bound_exponent(bounds, reach))) + 1.0


@changed.register(BoundedSoftmax)
@kernel
def rebound(bounds: BoundedSoftmax, scores: Any, arm: int) -> None:
    """The score of an arm has changed: a new bound if the old one serves it no more."""
    below_reach = bounds.reach[arm] - scores[arm]
    if not 0.0 <= below_reach <= bounds.width:
        bound_arm(bounds, arm, scores[arm])


@rare_kernel
def bound_arm(bounds: BoundedSoftmax, arm: int, score: float) -> None:
    """A bound around the new score; none where it is above all of them."""
    reach = score + 0.5 * bounds.width
    if bounds.high < 0.0 or not bound_exponent(bounds, reach) <= REACH:  # not a number: 0 times infinity
        bounds.high = INVALID
        return
    mass = mass_of(bounds, reach)
    bounds.total += mass - bounds.mass[arm]
    bounds.mass[arm] = mass
    bounds.reach[arm] = reach


@rare_kernel
def bound_all_arms(bounds: BoundedSoftmax, scores: Any, rate: float) -> None:
    """Bounds for a window of rates from here on; an infinite score has none."""
    leader = 0
    for k in range(1, scores.size):
        if scores[k] > scores[leader]:
            leader = k
    bounds.leader, bounds.zero, bounds.total = leader, scores[leader], 0.0
    if bounds.zero == math.inf:
        bounds.high = INVALID
        return
    bounds.low, bounds.high = rate, rate * WINDOW
    bounds.width = width_at(bounds.high)
    for k in range(scores.size):
        bounds.mass[k] = 0.0
        bound_arm(bounds, k, scores[k])


@ensure_bounds.register(BoundedSoftmax)
@kernel
def ensure_bounds_of_arms(bounds: BoundedSoftmax, scores: Any, rate: float) -> None:
    """Bounds for a trial at this rate."""
    if not (bounds.low <= rate <= bounds.high and bounds.total >= FALLEN * bounds.one):
        bound_all_arms(bounds, scores, rate)


@unseen_arm.register(BoundedSoftmax)
@kernel
def unseen_at_infinity(bounds: BoundedSoftmax, scores: Any, rng: Any) -> int:
    """One of the arms of infinite score, or -1 if there is none."""
    if bounds.high >= 0.0:  # none when the bounds were made, and one that has come since drops them
        return -1
    count = 0
    for k in range(scores.size):
        count += 1 if scores[k] == math.inf else 0
    if count == 0:
        return -1
    rest = below(count, rng)
    arm = -1
    while rest >= 0:
        arm += 1
        rest -= 1 if scores[arm] == math.inf else 0
    return arm


@try_arm.register(BoundedSoftmax)
@kernel
def try_bounded_arm(bounds: BoundedSoftmax, scores: Any, rate: float, rng: Any) -> int:
    """An arm within its mass, or -1."""
    mass = bounds.mass
    arm = bounds.leader
    rest = rng.random() * bounds.total - mass[arm]
    if rest >= 0.0:
        k = -1
        while rest >= 0.0 and k + 1 < mass.size:
            k += 1
            if k != arm:
                rest -= mass[k]
        if rest >= 0.0:
            return -1  # rounded up to the total
        arm = k
    mark = rest + mass[arm]
    exponent = rate * (scores[arm] - bounds.zero)
    tangent = 1.0 + exponent - bound_exponent(bounds, bounds.reach[arm])
    if mark < (mass[arm] - 1.0) * tangent or mark < bounds.one * math.exp(exponent):
        return int(arm)
    return -1


@invalidate.register(BoundedSoftmax)
@kernel
def invalidate_bounds(bounds: BoundedSoftmax) -> None:
    """The next trial bounds all arms."""
    bounds.high = INVALID


draw.register(BoundedSoftmax)(draw_by_trials)
