r"""Draws from exponential weights by trials: what `Buckets` (many arms) and `BoundedScan` (few) have in common.

Both hold bounds on the weights :math:`e^{\beta v_k}` for a window of rates :math:`\beta`. A trial names an arm with
probability proportional to its weight, or none. Their field ``grid`` says in which units: a score of ``grid.zero`` weighs
``grid.one``, and a trial names arm k with probability ``exp(rate * (scores[k] - grid.zero)) * grid.one / grid.total``.
"""

from __future__ import annotations

import math
from typing import Any

from abex.kernels import kernel, rare_kernel, single_dispatch

REACH = 4.0  # nats above the reference for which there is a bound
FALLEN = math.exp(-6.0)  # share of a unit at which a total mass is too coarse
WINDOW = 1.0 + 1.0 / 32.0  # rates for which bounds hold
UNITS = 2.0**46  # of mass, for all arms; times e^REACH it stays below 2^53, so that sums are exact
MOST_TRIALS = (
    1000  # a draw needs about 1.2; where bounds are useless, as beside scores of 1000, all arms are looked at
)


@single_dispatch
def unseen_arm(bounds: Any, scores: Any, rng: Any) -> int:
    """One of the arms never observed if they come before all others (a score of +inf), else -1 (kernel)."""
    return -1


@single_dispatch
def make_fit(bounds: Any, scores: Any, rate: float) -> None:
    """Bounds for trials at this rate (kernel); a record whose bounds hold at all rates needs none."""


@single_dispatch
def try_arm(bounds: Any, scores: Any, rate: float, rng: Any) -> int:
    """One trial: an arm, or -1 (kernel)."""
    raise TypeError


@single_dispatch
def refile(bounds: Any, arm: int, score: float) -> None:
    """The score of an arm has changed (kernel)."""
    raise TypeError


@single_dispatch
def drop_bounds(bounds: Any) -> None:
    """All scores have changed: let the next `make_fit` begin anew (kernel)."""
    raise TypeError


@kernel
def draw_by_trials(bounds: Any, scores: Any, rate: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(rate * scores[arm])``."""
    unseen = unseen_arm(bounds, scores, rng)
    if unseen >= 0:
        return unseen
    make_fit(bounds, scores, rate)
    for _ in range(MOST_TRIALS):
        arm = try_arm(bounds, scores, rate, rng)
        if arm >= 0:
            return arm
    return scan_arms(scores, rate, rng)


@rare_kernel
def scan_arms(scores: Any, rate: float, rng: Any) -> int:
    """A draw from the same distribution that looks at every arm."""
    top = scores[0]
    for k in range(1, scores.size):
        top = max(top, scores[k])
    total = 0.0
    for k in range(scores.size):
        total += math.exp(rate * (scores[k] - top))
    rest = rng.random() * total
    last = 0
    for k in range(scores.size):
        weight = math.exp(rate * (scores[k] - top))
        if weight > 0.0:
            last = k
        rest -= weight
        if rest < 0.0:
            break
    return last
