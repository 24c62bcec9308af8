"""From scores to probabilities: one temperature, fitted to rows the scores have not seen.

Scores of boosting grow with the number of classifiers long after the labels are right, so exp(f_l) is far
too sure of itself. One factor repairs most of it: p_l proportional to exp(beta f_l) for classes,
1 / (1 + exp(-2 beta f_l)) for each label of a multi-label problem (Guo et al. 2017, Section 4.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

GROWTH = 0.8  # measured on pendigits, USPS, letter: how far the trend of the last doubling goes on


def probabilities(scores: NDArray[np.float64], temperature: float, multilabel: bool) -> NDArray[np.float64]:
    """Probabilities of the labels, (n, L)."""
    from scipy.special import expit, softmax

    result: NDArray[np.float64]
    result = expit(2 * temperature * scores) if multilabel else softmax(temperature * scores, axis=1)
    return result


def fit_temperature(scores: NDArray[np.float64], signs: NDArray[np.int8], multilabel: bool) -> float:
    """The factor beta with the smallest logarithmic loss on these rows."""
    from scipy.optimize import minimize_scalar
    from scipy.special import log_expit, log_softmax

    there = signs > 0

    def loss(log_beta: float) -> float:
        scaled = np.exp(log_beta) * scores
        if multilabel:
            return -float(log_expit(2 * signs * scaled).mean())
        return -float(log_softmax(scaled, axis=1)[there].mean())

    spread = float(np.abs(scores).max()) or 1.0
    bounds = (np.log(1e-3 / spread), np.log(1e4 / spread))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def carried_temperature(
    model: Any, scores_at: Any, signs: NDArray[np.int8], multilabel: bool, total: float
) -> float:
    """The temperature for a model whose coefficients sum to ``total`` from a smaller one and rows it has not seen.

    ``scores_at(k)`` are the smaller model's scores after k classifiers. Per unit of coefficient the best temperature
    grows slowly with the size; the growth over the last doubling is carried on for the missing one.
    """
    sums = np.cumsum(model.coefficient)
    full, half = model.size, max(1, model.size // 2)
    at_full = fit_temperature(scores_at(full), signs, multilabel) * sums[full - 1]
    at_half = fit_temperature(scores_at(half), signs, multilabel) * sums[half - 1]
    growth = np.clip(at_full / at_half, 0.5, 2.0) if at_half > 0 else 1.0
    return float(at_full * growth**GROWTH / total) if total > 0 else 1.0
