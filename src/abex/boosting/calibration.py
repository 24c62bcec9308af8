r"""From scores to probabilities: one temperature, fitted to rows the scores have not seen.

A label's share of the votes is :math:`q_l = (1 + f_l / A) / 2`, :math:`A` the sum of the coefficients. Probabilities are

.. math:: p_l \propto q_l^{\tau A}

for classes, :math:`q_l^{\tau A} / (q_l^{\tau A} + (1 - q_l)^{\tau A})` for each label of a multi-label problem. As long as
scores are small beside :math:`A` that is :math:`e^{\tau f_l}`, temperature scaling (Guo et al. 2017, Section 4.2); near
unanimity shares tell more than scores do. The temperature :math:`\tau` is that with the smallest logarithmic
loss on rows set aside.

However right a model is on :math:`n` rows, they prove no more than :math:`n` rows can: the shares, the targets of the fit
(Platt 1999) and the probabilities are those of :math:`n` rows and one more, spread evenly over what is possible. No probability
of :math:`L` classes is below
:math:`1 / (L (n + 1))`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.examples import Examples
from abex.boosting.fitting import Recipe, first_weights, start_fit
from abex.boosting.model import Model
from abex.randomness import stream

GROWTH = 0.8  # measured on pendigits, USPS, letter: how far the trend of the last doubling goes on
LEAST_ROWS = 10  # fewer are not set aside for a temperature
ENOUGH_ROWS = (
    1000  # with fewer in a fifth of the rows, further fifths are set aside, each from a fit of its own
)
FIFTHS = 5
SHORTEST = 50  # classifiers: a model up to this size is calibrated by fits as long as itself
COST = 0.45  # time of a fit half as long on four fifths of the rows, over that of the whole


class Calibration(NamedTuple):
    """How scores become probabilities."""

    temperature: float = 1.0  # tau, per unit of score
    rows: int = 0  # what the probabilities rest on


UNCALIBRATED = Calibration(1.0, 1000)  # a model whose probabilities nobody has compared with anything


def blended(share: NDArray[np.float64], rows: int, choices: int) -> NDArray[np.float64]:
    """Shares among ``rows``, and one row more that is spread evenly over ``choices``.

    >>> blended(np.array([1.0, 0.0]), 9, 2).tolist()
    [0.95, 0.05]
    """
    return (rows * share + 1.0 / choices) / (rows + 1.0)


def log_votes(scores: NDArray[np.float64], total: float, rows: int) -> NDArray[np.float64]:
    """Logarithm of the share of the votes for each label; ``-scores`` give that against it."""
    margin = np.clip(scores / (total or 1.0), -1.0, 1.0)
    return np.log(blended(0.5 * (1.0 + margin), rows, 2))


def probabilities(
    scores: NDArray[np.float64], total: float, how: Calibration, multilabel: bool
) -> NDArray[np.float64]:
    """Probabilities of the labels, (n, L), from scores whose coefficients sum to ``total``."""
    from scipy.special import expit, softmax

    power = how.temperature * total
    votes = power * log_votes(scores, total, how.rows)
    if multilabel:
        return blended(expit(votes - power * log_votes(-scores, total, how.rows)), how.rows, 2)
    return blended(softmax(votes, axis=1), how.rows, scores.shape[1])


def fit_power(margins: NDArray[np.float64], signs: NDArray[np.int8], multilabel: bool) -> tuple[float, float]:
    """The power of the votes with the smallest logarithmic loss on rows with these scores over their largest; that loss."""
    from scipy.optimize import minimize_scalar
    from scipy.special import log_expit, log_softmax

    rows, labels = signs.shape
    votes = log_votes(margins, 1.0, rows)
    target = blended((signs > 0).astype(np.float64), rows, 2 if multilabel else labels)
    odds = votes - log_votes(-margins, 1.0, rows)

    def loss(log_power: float) -> float:
        power = np.exp(log_power)
        if multilabel:
            there, absent = log_expit(power * odds), log_expit(-power * odds)
            return -float((target * there + (1.0 - target) * absent).mean())
        return -float((target * log_softmax(power * votes, axis=1)).sum(axis=1).mean())

    spread = float(np.abs(odds).max()) or 1.0
    bounds = (np.log(1e-3 / spread), np.log(1e4 / spread))
    found = minimize_scalar(loss, bounds=bounds, method="bounded")
    return float(np.exp(found.x)), float(found.fun)


def carried_power(at_full: float, at_half: float, doublings: float) -> float:
    """The power for a larger model from those of a smaller one, whole and half as long.

    Powers grow slowly with the size; the growth over the last doubling is carried on for the missing ones.

    >>> carried_power(8.0, 4.0, 0.0), round(carried_power(8.0, 4.0, 1.0), 3)
    (8.0, 13.929)
    """
    growth = float(np.clip(at_full / at_half, 0.5, 2.0))
    return float(at_full * growth ** (GROWTH * doublings))


def fifths_of(rows: int) -> int:
    """How many fifths of the rows are set aside in turn: all of few, one of many.

    >>> fifths_of(150), fifths_of(2_000), fifths_of(5_000)
    (5, 3, 1)
    """
    return int(min(FIFTHS, -(-ENOUGH_ROWS // max(1, rows // FIFTHS))))


def calibrate(
    model: Model, data: Examples, held: NDArray[np.int64], recipe: Recipe, groups: Any, seed: int, mapper: Any,
    multilabel: bool,
) -> Calibration:  # fmt: skip
    """The temperature of a model of ``data`` without the rows ``held``, from rows that a model has not seen.

    Many rows held out serve as they are. Else fits half as long are made to four fifths of the rows.
    """
    n, total = data.weight.size, float(model.coefficient.sum())
    if n < LEAST_ROWS or total <= 0.0 or data.signs.shape[1] < 2:
        return Calibration(1.0, n)
    if held.size >= ENOUGH_ROWS:
        unseen = data.rows(held)
        power, _ = fit_power(model.scores(unseen.X, mapper) / total, unseen.signs, multilabel)
        return Calibration(power / total, held.size)
    order = stream(seed, "calibration").permutation(n)
    size = min(model.size, max(SHORTEST, model.size // 2))
    half = max(1, size // 2)
    margins: dict[int, list[NDArray[np.float64]]] = {size: [], half: []}
    signs = []
    for k in range(fifths_of(n)):
        aside = np.sort(order[k * n // FIFTHS : (k + 1) * n // FIFTHS])
        unseen, rest = data.rows(aside), data.rows(np.setdiff1d(np.arange(n), aside))
        side = start_fit(
            rest.X, rest.signs, first_weights(rest.signs, rest.weight), recipe, size,
            groups=groups, rng=stream(seed, "calibration", "policy", k), mapper=mapper,
        )  # fmt: skip
        side.advance(size)
        smaller = side.model()
        signs.append(unseen.signs)
        for length, found in margins.items():
            part = smaller.first(length)
            found.append(part.scores(unseen.X, mapper) / (part.coefficient.sum() or 1.0))
    known = np.concatenate(signs)
    at_full, at_half = (fit_power(np.concatenate(margins[k]), known, multilabel)[0] for k in (size, half))
    power = carried_power(at_full, at_half, np.log2(model.size / size))
    return Calibration(power / total, known.shape[0])
