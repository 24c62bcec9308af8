r"""Exact draws from weights :math:`w_k=\exp(\beta v_k)` of a few arms, without an exponential for each of them.

Each arm has a mass, a whole number that its weight does not exceed for a window of rates :math:`\beta` and for scores
:math:`v_k` up to its *reach*. A trial takes arm k with probability :math:`m_k/\sum m` and accepts it with
probability :math:`w_k/m_k`; trials are repeated until one is accepted. So arm k is accepted with probability
:math:`w_k/\sum m`, and the factor :math:`1/\sum m` is the same for all arms: the draw is exact, as with `Buckets`, which file
many arms where this one looks at each mass.

**Cost.** A trial adds up masses, the leader's first. The tangent :math:`e^x\ge 1+x` at the bound mostly shows that it is accepted
without working out the weight. An observation makes a new bound only if the score leaves the interval below its reach, an eighth
of a nat wide. All bounds are made anew when the rate leaves the window, when the best score has risen by four nats, or when all
have sunk by six. Masses are set, never accumulated as fractions: nothing drifts.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel, rare_kernel
from abex.samplers import trials
from abex.samplers.interface import changed, draw
from abex.samplers.trials import FALLEN, REACH, UNITS, WINDOW, draw_by_trials
from abex.schema import Checked, Rebuilt
from abex.support.randomness import below

MARGIN = 1.0 / 16.0  # nats by which a score may move either way before its bound is made anew
STALE = -1.0  # an end of the window that no rate is below


class ScanGrid(Scalars):
    """The window of rates for which the masses hold, and their scale."""

    low: Annotated[float, Checked()]
    high: Annotated[float, Checked()]  # the window of rates
    zero: Annotated[float, Checked()]  # the score that weighs `one`
    one: Annotated[float, Checked()]
    total: Annotated[float, Checked()]  # all masses together
    width: Annotated[float, Checked()]  # of the scores that a bound serves well
    leader: Annotated[int, Checked()]  # the arm of the best score when the masses were made


class BoundedScan(NamedTuple):
    """A bound on the weight of each arm."""

    mass: Annotated[NDArray[np.float64], Rebuilt()]  # (K,), whole numbers
    reach: Annotated[NDArray[np.float64], Checked()]  # (K,), the largest score for which the mass holds
    grid: Annotated[ScanGrid, Checked()]

    def restored(self, state: Any, fresh: Any) -> BoundedScan:
        """Bounds from a file, or none if they do not hold for the means of the state."""
        return sound_scan(self, state.means)


def new_bounded_scan(n_arms: int) -> BoundedScan:
    """No bounds yet: the first draw makes them."""
    grid = ScanGrid(high=STALE, one=UNITS / n_arms)
    return BoundedScan(np.zeros(n_arms), np.zeros(n_arms), grid)


def sound_scan(scan: BoundedScan, scores: NDArray[np.float64]) -> BoundedScan:
    """``scan`` if it bounds the weights of these scores, else a new one."""
    grid, n = scan.grid, scores.size
    if grid.high == STALE and grid.one == UNITS / n:
        return scan  # the next draw makes all of it
    sound = (
        bool(
            np.isfinite(grid.floats[:6]).all()
            and np.isfinite(scan.reach).all()
            and (scores <= scan.reach).all()
        )
        and grid.low >= 0.0
        and grid.high == grid.low * WINDOW
        and grid.one == UNITS / n
        and grid.width == width_at(grid.high)
        and 0 <= grid.leader < n
        and max(bound_exponent(scan, float(reach)) for reach in scan.reach) <= REACH
    )
    if not sound:
        return new_bounded_scan(n)
    for arm in range(n):
        scan.mass[arm] = mass_of(scan, float(scan.reach[arm]))
    return scan if grid.total == scan.mass.sum() else new_bounded_scan(n)


@kernel
def width_at(rate: float) -> float:
    """How far scores may move under one bound."""
    return 2.0 * MARGIN / max(rate, MARGIN)


@kernel
def bound_exponent(scan: BoundedScan, reach: float) -> float:
    """The largest exponent of a score up to ``reach`` within the window of rates."""
    grid = scan.grid
    above = reach - grid.zero
    return float((grid.high if above > 0.0 else grid.low) * above)


@kernel
def mass_of(scan: BoundedScan, reach: float) -> float:
    """A whole number above all weights of scores up to ``reach``: products and exponentials are rounded monotonically."""
    return math.floor(scan.grid.one * math.exp(bound_exponent(scan, reach))) + 1.0


@trials.refile.register(BoundedScan)
@kernel
def refile_in_scan(scan: BoundedScan, arm: int, score: float) -> None:
    """The score of an arm has changed: a new bound if the old one serves it no more."""
    below_reach = scan.reach[arm] - score
    if not 0.0 <= below_reach <= scan.grid.width:
        bound_arm(scan, arm, score)


@rare_kernel
def bound_arm(scan: BoundedScan, arm: int, score: float) -> None:
    """A bound around the new score; none where it is above all of them."""
    grid = scan.grid
    reach = score + 0.5 * grid.width
    if grid.high < 0.0 or not bound_exponent(scan, reach) <= REACH:  # not a number: 0 times infinity
        grid.high = STALE
        return
    mass = mass_of(scan, reach)
    grid.total += mass - scan.mass[arm]
    scan.mass[arm] = mass
    scan.reach[arm] = reach


@rare_kernel
def bound_all_arms(scan: BoundedScan, scores: Any, rate: float) -> None:
    """Bounds for a window of rates from here on; an infinite score has none."""
    grid = scan.grid
    leader = 0
    for k in range(1, scores.size):
        if scores[k] > scores[leader]:
            leader = k
    grid.leader, grid.zero, grid.total = leader, scores[leader], 0.0
    if grid.zero == math.inf:
        grid.high = STALE
        return
    grid.low, grid.high = rate, rate * WINDOW
    grid.width = width_at(grid.high)
    for k in range(scores.size):
        scan.mass[k] = 0.0
        bound_arm(scan, k, scores[k])


@trials.make_fit.register(BoundedScan)
@kernel
def make_scan_fit(scan: BoundedScan, scores: Any, rate: float) -> None:
    """Bounds for a trial at this rate."""
    grid = scan.grid
    if not (grid.low <= rate <= grid.high and grid.total >= FALLEN * grid.one):
        bound_all_arms(scan, scores, rate)


@trials.unseen_arm.register(BoundedScan)
@kernel
def unseen_of_scan(scan: BoundedScan, scores: Any, rng: Any) -> int:
    """One of the arms of infinite score, or -1 if there is none."""
    if scan.grid.high >= 0.0:  # none when the bounds were made, and one that has come since drops them
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


@trials.try_arm.register(BoundedScan)
@kernel
def try_arm_of_scan(scan: BoundedScan, scores: Any, rate: float, rng: Any) -> int:
    """One trial: an arm with probability ``exp(rate * (scores[arm] - zero)) * one / total``, else -1."""
    grid, mass = scan.grid, scan.mass
    arm = grid.leader
    rest = rng.random() * grid.total - mass[arm]
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
    exponent = rate * (scores[arm] - grid.zero)
    tangent = 1.0 + exponent - bound_exponent(scan, scan.reach[arm])
    if mark < (mass[arm] - 1.0) * tangent or mark < grid.one * math.exp(exponent):
        return int(arm)
    return -1


@trials.drop_bounds.register(BoundedScan)
@kernel
def bound_anew(scan: BoundedScan) -> None:
    """The next trial bounds all arms."""
    scan.grid.high = STALE


@draw.register(BoundedScan)
@kernel
def draw_from_scan(scan: BoundedScan, scores: Any, rate: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(rate * scores[arm])``."""
    return draw_by_trials(scan, scores, rate, rng)


@changed.register(BoundedScan)
@kernel
def changed_in_scan(scan: BoundedScan, scores: Any, arm: int) -> None:
    """See whether the bound still serves."""
    refile_in_scan(scan, arm, scores[arm])
