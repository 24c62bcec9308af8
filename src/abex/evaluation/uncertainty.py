r"""How sure an estimate is: empirical Bernstein and BCa bootstrap intervals.

**Empirical Bernstein** (Maurer and Pontil 2009, Theorem 4, on both sides): with the variance V of n contributions in an
interval of length R,

.. math:: \bar z\pm\Big(\sqrt{\tfrac{2V\ln(4/\delta)}{n}}+\tfrac{7R\ln(4/\delta)}{3(n-1)}\Big).

It holds for every n, given R, and is therefore wide: where weights are large it covers nearly always. R is taken from the
largest weight of the log.

**BCa** (Efron 1987; SciPy's) resamples rows, in up to 1,000 blocks of consecutive ones, which keeps what neighbours
share and makes long logs cheap. It is about right from some dozens of effective rows on.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from abex.evaluation.estimators import Contributions, combine
from abex.extras import needed
from abex.randomness import stream

MOST_BLOCKS = 1_000
RESAMPLES = 2_000
BATCH = 100


def bernstein(given: Contributions, span: tuple[float, float], level: float) -> tuple[float, float]:
    """The empirical Bernstein interval; of a ratio, by its linearisation at the estimate."""
    z, n = influence(given), given.above.shape[0]
    if n < 2:
        return span
    log = math.log(4.0 / (1.0 - level))
    reach = max(given.largest * (span[1] - span[0]), float(np.ptp(z)))
    margin = math.sqrt(2.0 * float(z.var(ddof=1)) * log / n) + 7.0 * reach * log / (3.0 * (n - 1))
    return within(given.value() - margin, given.value() + margin, span)


def within(low: float, high: float, span: tuple[float, float]) -> tuple[float, float]:
    """An interval for what lies between the least and the largest reward."""
    return min(max(low, span[0]), span[1]), max(min(high, span[1]), span[0])


def influence(given: Contributions) -> np.ndarray:
    """The contribution of each row to the estimate, to first order."""
    n = given.above.shape[0]
    below = given.below.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(below > 0.0, given.above.sum(axis=0) / below, 0.0)
        scale = np.where(below > 0.0, given.coefficient * n / below, 0.0)
    return given.value() + ((given.above - ratio * given.below) * scale).sum(axis=1)  # type: ignore[no-any-return]


def bca(given: Contributions, span: tuple[float, float], level: float, seed: int = 0) -> tuple[float, float]:
    """The bias-corrected and accelerated bootstrap interval; Bernstein's where all contributions are alike."""
    with needed():
        from scipy.stats import bootstrap

    n = given.above.shape[0]
    blocks = min(n, MOST_BLOCKS)
    if blocks < 2:
        return span
    edge = np.linspace(0, n, blocks + 1).astype(np.int64)[:-1]
    above, below = np.add.reduceat(given.above, edge, axis=0), np.add.reduceat(given.below, edge, axis=0)
    if np.ptp(influence(given)) <= 1e-12 * (span[1] - span[0]):
        return bernstein(given, span, level)

    def statistic(which: np.ndarray, axis: int = -1) -> np.ndarray:
        chosen = np.moveaxis(which, axis, -1).astype(np.int64)
        return combine(above[chosen].sum(axis=-2), below[chosen].sum(axis=-2), given.coefficient)  # type: ignore[no-any-return]

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = bootstrap(
            (np.arange(blocks),), statistic, vectorized=True, n_resamples=RESAMPLES, confidence_level=level,
            method="BCa", batch=max(1, BATCH // given.coefficient.size), random_state=stream(seed, "bootstrap"),
        ).confidence_interval  # fmt: skip
    low, high = float(found.low), float(found.high)
    if not (math.isfinite(low) and math.isfinite(high)):
        return bernstein(given, span, level)
    return within(low, high, span)
