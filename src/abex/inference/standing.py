"""The arms that are compared as a table: means with intervals that hold at every moment, lifts, and the chance to be best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.inference.betting import Comparison
from abex.inference.moments import difference_by_moments, interval_by_moments
from abex.inference.sums import interval, ratio
from abex.kernels import compile_alone
from abex.samplers.largest_beta import largest_beta
from abex.support.errors import UserError, among_arms, shown
from abex.support.extras import needed

PRIOR = "chance to be best: with a flat prior, as a picture; it is no reason to stop"

Ends = tuple[float, float]


class Arm(NamedTuple):
    """A row of the table: rewards as they were given."""

    label: str | int
    n: int
    rate: float  # not a number before the first reward
    interval: Ends
    lift: float | None  # against the control: relative for coins, else a difference
    lift_interval: Ends | None
    chance_to_be_best: float


def checked_control(control: Any, labels: Sequence[str | int]) -> Any:
    """The arm that lifts are against."""
    if control not in labels:
        found = among_arms(control, [str(label) for label in labels], len(labels))
        raise UserError(f"there is no arm {shown(control)} for a control{found}")
    return control


def is_coin(known: Comparison) -> bool:
    """Whether all rewards were 0 or 1: the sums of their squares say so."""
    return bool((known.squares == known.sums).all())


def mean_interval(coin: bool, risk: float, counts: Any, sums: Any, squares: Any) -> tuple[Any, Any]:
    """Ends of the intervals of means: by sums for coins, by moments for others."""
    return interval(counts, sums, risk) if coin else interval_by_moments(counts, sums, squares, risk)


def arms_of(
    known: Comparison,
    labels: Sequence[str | int],
    *,
    coin: bool,
    low: float,
    scale: float,
    control: str | int | None,
    risk: float,
) -> list[Arm]:
    """The rows of the table, rewards as ``low`` plus ``scale`` times those that are known."""
    chances = chances_to_be_best(known, coin)
    sums = np.column_stack([known.observations, known.sums, known.squares])
    base = None if control is None else sums[list(labels).index(control)]
    firsts, lasts = mean_interval(coin, risk, *sums.T)
    found = []
    for k, label in enumerate(labels):
        mine = tuple(sums[k].tolist())
        lift, span = (None, None) if base is None or label == control else lift_of(mine, base, coin, risk)
        if lift is not None and span is not None and not coin:
            lift, span = scale * lift, (scale * span[0], scale * span[1])
        rate = low + scale * mine[1] / mine[0] if mine[0] else math.nan
        ends = low + scale * float(firsts[k]), low + scale * float(lasts[k])
        found.append(Arm(label, int(mine[0]), rate, ends, lift, span, float(chances[k])))
    return found


def lift_of(mine: Any, base: Any, coin: bool, risk: float) -> tuple[float | None, Ends | None]:
    """The lift of an arm against another, each (number, sum, sum of squares): relative for coins, else a difference."""
    (n, s, _), (m, t, _) = mine, base
    if not (n and m):
        return None, None
    if not coin:
        return s / n - t / m, difference_by_moments(mine, tuple(base), risk)
    lift = s * m / (n * t) - 1.0 if t > 0.0 else math.inf
    first, last = ratio(n, s, m, t, risk)
    return lift, (first - 1.0, last - 1.0)


def headings(control: str | int | None, coin: bool) -> list[str]:
    """Of the table."""
    lift = f"lift against {control}" if coin else f"difference to {control}"
    return [
        "arm",
        "n",
        "rate",
        "interval",
        *([] if control is None else [lift, "its interval"]),
        "chance to be best",
    ]


def rows(arms: Iterable[Arm], control: str | int | None, coin: bool) -> list[list[str]]:
    """The table as text."""
    found = []
    for one in arms:
        rate = "-" if math.isnan(one.rate) else f"{one.rate:.4g}"
        cells = [str(one.label), f"{one.n:,}", rate, f"{one.interval[0]:.4g} to {one.interval[1]:.4g}"]
        if control is not None:
            cells += lift_cells(one, coin)
        found.append([*cells, f"{one.chance_to_be_best:.1%}"])
    return found


def lift_cells(one: Arm, coin: bool) -> list[str]:
    """A lift and its interval: relative for coins, else a difference."""
    if one.lift is None or one.lift_interval is None:
        return ["", ""]
    form = "{:+.1%}" if coin else "{:+.4g}"
    return [form.format(one.lift), " to ".join(form.format(end) for end in one.lift_interval)]


def chances_to_be_best(known: Comparison, coin: bool) -> NDArray[np.float64]:
    """With a flat prior: of Beta posteriors for coins, of normal ones for others."""
    n, s = known.observations, known.sums
    out = np.zeros(n.size)
    if coin:
        compile_alone(largest_beta)(1.0 + s, 1.0 + n - s, out)
        return out
    with needed():
        from scipy.special import ndtr

    seen = np.maximum(n, 1.0)
    means = np.where(n > 0.0, s / seen, 0.5)
    error = np.where(n > 0.0, np.sqrt(np.maximum(known.squares / seen - means**2, 1e-12) / seen), 0.5)
    grid = np.linspace((means - 8.0 * error).min(), (means + 8.0 * error).max(), 20_001)
    below = np.array([ndtr((grid - mean) / width) for mean, width in zip(means, error, strict=True)])
    for k in range(n.size):
        out[k] = np.sum(np.diff(below[k]) * np.prod(np.delete(below, k, 0), axis=0)[1:])
    return np.asarray(out / out.sum())
