r"""Means of runs, their standard errors, confidence intervals and p-values.

An `Estimate` is a mean, its standard error and the degrees of freedom of Student's distribution that goes with it. It
comes from one of three designs: plain runs, runs in strata of known weights (:math:`\sum_s w_s\bar x_s`), or a table of
runs and rows that both vary (`two_way`). Intervals and p-values are Student's in all of them, and made nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, real_number
from abex.support.extras import needed

Floats = NDArray[np.float64]
LEVEL = 0.95


class Estimate(NamedTuple):
    """A mean with its standard error (NaN where the runs cannot tell) and degrees of freedom; numbers or arrays."""

    mean: Any
    error: Any
    freedom: Any

    def interval(self, level: float = LEVEL) -> tuple[Any, Any]:
        """Student's confidence interval, NaN where there is no standard error.

        >>> low, high = Estimate(2.0, 0.5, 9.0).interval()
        >>> round(float(low), 2), round(float(high), 2)
        (0.87, 3.13)
        """
        with needed():
            from scipy.special import stdtrit

        real_number("level", level, above=0.0, most=1.0 - 1e-12)
        margin = stdtrit(self.freedom, 0.5 + level / 2.0) * self.error
        return self.mean - margin, self.mean + margin

    def p_below(self, bound: float = 0.0) -> float:
        """Least p such that the interval of level 1 - p lies below ``bound``; 1 if none does.

        >>> round(Estimate(-1.0, 0.5, 9.0).p_below(), 4)
        0.0766
        """
        with needed():
            from scipy.special import stdtr

        if not np.isfinite(self.error):
            return 1.0
        if self.error == 0.0:
            return 0.0 if self.mean < bound else 1.0
        return float(min(1.0, 2.0 * stdtr(self.freedom, (self.mean - bound) / self.error)))

    def p_above(self, bound: float = 0.0) -> float:
        """Least p such that the interval of level 1 - p lies above ``bound``; 1 if none does."""
        return Estimate(-self.mean, self.error, self.freedom).p_below(-bound)


class Strata(NamedTuple):
    """The stratum of each run, and the weight of each stratum; the weights add up to 1."""

    of: NDArray[np.int64]  # (runs,)
    weight: Floats  # (strata,)

    @classmethod
    def one(cls, runs: int) -> Strata:
        """All runs in one stratum: plain sampling."""
        return cls(np.zeros(runs, np.int64), np.ones(1))

    def of_runs(self) -> Floats:
        """The weight of each run, the strata's divided among their runs; NaN if a stratum has none."""
        counts = np.bincount(self.of, minlength=self.weight.size)
        if (counts == 0).any():
            return np.full(self.of.size, np.nan)
        return np.asarray(self.weight[self.of] / counts[self.of])


def mean_of(values: Any, strata: Strata | None = None, least: int = 2) -> Estimate:
    r"""The mean over the first axis; no standard error where a stratum has fewer than ``least`` runs.

    In strata :math:`\sum_s w_s\bar x_s` with variance :math:`\sum_s w_s^2 s_s^2/n_s` and the degrees of freedom of Welch and
    Satterthwaite; in one stratum Student's n - 1.

    >>> mean_of([1.0, 2.0, 3.0, 6.0])._asdict()
    {'mean': 3.0, 'error': 1.0801..., 'freedom': 3.0}
    >>> mean_of([1.0, 2.0, 30.0, 40.0], Strata(np.array([0, 0, 1, 1]), np.array([0.9, 0.1]))).mean
    4.85
    """
    values = np.asarray(values, dtype=float)
    return difference_of(values, range(len(values)), None, (), strata, None, least)


def difference_of(
    first: Any,
    first_runs: Sequence[int],
    second: Any,
    second_runs: Sequence[int],
    first_strata: Strata | None = None,
    second_strata: Strata | None = None,
    least: int = 2,
) -> Estimate:
    r"""Mean of ``first`` minus mean of ``second`` from all runs of both, those that both have being paired.

    In a stratum with n and m runs of which k are common, the variance is
    :math:`s_1^2/n + s_2^2/m - 2k\,c_{12}/(nm)`, :math:`c_{12}` the covariance over the common runs. With the same runs on both
    sides that is the variance of paired differences; with none in common that of two independent samples. A line that
    is cheap, or has heavy tails, may thus have more runs than the other.

    >>> paired = difference_of([1.0, 5.0, 9.0], (0, 1, 2), [0.0, 3.0, 8.0], (0, 1, 2))
    >>> round(paired.mean, 4), round(paired.error, 4), paired.freedom
    (1.3333, 0.3333, 2.0)
    """
    x = np.asarray(first, dtype=float)
    y = np.zeros((0, *x.shape[1:])) if second is None else np.asarray(second, dtype=float)
    strata_x = Strata.one(len(x)) if first_strata is None else first_strata
    strata_y = Strata.one(len(y)) if second_strata is None else second_strata
    if second is not None and not np.array_equal(strata_x.weight, strata_y.weight):
        raise UserError("two lines can be compared only if their strata have the same weights")
    mean = np.zeros(x.shape[1:])
    variance, squares = np.zeros(x.shape[1:]), np.zeros(x.shape[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        for stratum, weight in enumerate(strata_x.weight):
            here_x, here_y = strata_x.of == stratum, strata_y.of == stratum
            one = _runs(first_runs, x, here_x)
            other = _runs(second_runs, y, here_y) if second is not None else None
            difference, error, freedom = _one_stratum(one, other, least)
            mean = mean + weight * difference
            variance = variance + weight**2 * error
            squares = squares + (weight**2 * error) ** 2 / freedom
        freedom = np.where(squares > 0.0, variance**2 / squares, max(len(x) - 1.0, 1.0))
    error = np.sqrt(np.maximum(variance, 0.0))
    if mean.ndim == 0:
        return Estimate(float(mean), float(error), float(freedom))
    return Estimate(mean, error, freedom)


def _runs(names: Sequence[int], values: Floats, here: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Floats]:
    """The runs of a stratum in the order of their names, with their values."""
    chosen = np.asarray(names, dtype=np.int64)[here]
    order = np.argsort(chosen, kind="stable")
    return chosen[order], values[here][order]


def _one_stratum(
    first: tuple[NDArray[np.int64], Floats], second: tuple[NDArray[np.int64], Floats] | None, least: int
) -> tuple[Any, Any, Any]:
    """Difference of the means of a stratum, its variance, and degrees of freedom."""
    (names, x), n = first, len(first[0])
    if second is None:
        if n < least:
            return x.mean(axis=0) if n else np.nan, np.nan, 1.0
        return x.mean(axis=0), x.var(axis=0, ddof=1) / n, float(n - 1)
    (others, y), m = second, len(second[0])
    if min(n, m) == 0:
        return np.nan, np.nan, 1.0
    difference = x.mean(axis=0) - y.mean(axis=0)
    if n == m and np.array_equal(names, others):
        paired = x - y
        if n < least:
            return paired.mean(axis=0), np.nan, 1.0
        return paired.mean(axis=0), paired.var(axis=0, ddof=1) / n, float(n - 1)
    if min(n, m) < least:
        return difference, np.nan, 1.0
    of_x, of_y = x.var(axis=0, ddof=1) / n, y.var(axis=0, ddof=1) / m
    _, at_x, at_y = np.intersect1d(names, others, return_indices=True)
    common = at_x.size
    shared = 0.0
    if common >= 2:
        a, b = x[at_x], y[at_y]
        shared = ((a - a.mean(axis=0)) * (b - b.mean(axis=0))).sum(axis=0) / (common - 1)
    variance = np.maximum(of_x + of_y - 2.0 * common * shared / (n * m), 0.0)
    spread = of_x**2 / (n - 1) + of_y**2 / (m - 1)
    freedom = np.where(spread > 0.0, (of_x + of_y) ** 2 / spread, min(n, m) - 1.0)
    return difference, variance, freedom


def two_way(values: Any, least: int = 2) -> Estimate:
    r"""The mean of a table (runs, rows) both of whose margins are samples: runs of seeds, rows of the test set.

    With :math:`x_{sr}=\mu+a_s+b_r+e_{sr}` the variance of the mean is
    :math:`\sigma_a^2/S+\sigma_b^2/R+\sigma_e^2/(SR)`, estimated without bias by
    :math:`V_S+V_R-V_E`: the variances of the mean as the spread over runs, over rows and of the residuals has them. It is the
    limit of resampling both runs and rows (Owen 2007, "The pigeonhole bootstrap"; the bootstrap counts the residuals up to
    three times). Degrees of freedom by Satterthwaite. An interval over seeds alone would take the test set for the population.

    >>> estimate = two_way([[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
    >>> round(estimate.mean, 3), round(estimate.error, 3)
    (0.375, 0.239)
    """
    table = np.asarray(values, dtype=float)
    runs, rows = table.shape
    mean = float(table.mean())
    if runs < least or rows < 2:
        return Estimate(mean, np.nan, 1.0)
    by_run, by_row = table.mean(axis=1), table.mean(axis=0)
    of_runs = by_run.var(ddof=1) / runs
    of_rows = by_row.var(ddof=1) / rows
    total = ((table - mean) ** 2).sum()
    between = rows * ((by_run - mean) ** 2).sum() + runs * ((by_row - mean) ** 2).sum()
    freedom = (runs - 1) * (rows - 1)
    residual = max(total - between, 0.0) / freedom / (runs * rows)
    variance = max(of_runs + of_rows - residual, of_runs, of_rows)
    parts = of_runs**2 / (runs - 1) + of_rows**2 / (rows - 1) + residual**2 / freedom
    return Estimate(mean, float(np.sqrt(variance)), float(variance**2 / parts) if parts > 0.0 else runs - 1.0)


def quantile_of(values: Any, q: float, strata: Strata | None = None) -> float:
    """The q-quantile of runs, each with the weight of its stratum: the least value with weight q or more at or below it.

    >>> quantile_of([1.0, 2.0, 3.0], 0.5), quantile_of([1.0, 9.0], 0.95, Strata(np.array([0, 1]), np.array([0.99, 0.01])))
    (2.0, 1.0)
    """
    values = np.asarray(values, dtype=float)
    weights = (Strata.one(values.size) if strata is None else strata).of_runs()
    if not np.isfinite(weights).all():
        return float("nan")
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(reached, q - 1e-12)), values.size - 1)])


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979): below 0.05 all of them together err with at most 5 % probability.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    corrected, largest = [0.0] * len(p_values), 0.0
    for position, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - position) * p_values[index]))
        corrected[index] = largest
    return corrected


__all__ = ["LEVEL", "Estimate", "Strata", "difference_of", "holm", "mean_of", "quantile_of", "two_way"]
