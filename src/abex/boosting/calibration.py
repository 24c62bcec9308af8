r"""From scores to probabilities: one temperature, fitted to rows the scores have not seen.

A label's share of the votes is :math:`q_l = (1 + f_l / A) / 2`, :math:`A` the sum of the coefficients. Probabilities are

.. math:: p_l \propto q_l^{\tau A}

for classes, :math:`q_l^{\tau A} / (q_l^{\tau A} + (1 - q_l)^{\tau A})` for each label of a multi-label problem. As long as
scores are small beside :math:`A` that is :math:`e^{\tau f_l}`, temperature scaling (Guo et al. 2017, Section 4.2); near
unanimity shares tell more than scores do. The temperature :math:`\tau` is that with the smallest logarithmic
loss on rows set aside, within reason.

However right a model is on :math:`n` rows, they prove no more than :math:`n` rows can: shares and probabilities are those of
:math:`n` rows and one more, spread evenly over what is possible. No probability of :math:`L` classes is below
:math:`1 / (L (n + 1))`. What the fit makes small is the loss of these very probabilities. Where all rows are right that is small
for every large exponent, so the exponent :math:`\tau A` has a gamma prior, of shape 2, whose mean is the one that makes the
surest answer as sure as :math:`n` rows can; for unanimous votes that is 1, and shares are probabilities. Smoothed targets
(Platt 1999) in its place hold sure answers back.

Rows set aside are, for committees of trees, those *out of the bag*: every row is scored by the fifth of the committees that has
not seen it (Breiman 1996). Without committees they come from fits to four fifths of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.examples import Examples
from abex.boosting.fit import Fit
from abex.boosting.learners import Model, committee_begins
from abex.boosting.selection import (
    ENOUGH_ROWS,
    FIFTHS,
    GROWTH,
    MAX_CALIBRATION_ROWS,
    MIN_CALIBRATION_FIT,
    MIN_CALIBRATION_ROWS,
    MIN_COMMITTEES,
    PRIOR,
    SEEN,
    TREND_ROWS,
    UNCALIBRATED_ROWS,
)
from abex.support.extras import needed
from abex.support.randomness import stream

FARTHEST = 7  # e-folds from the middle of the prior to the farthest exponent looked at


class Calibration(NamedTuple):
    """How scores become probabilities."""

    temperature: float = 1.0  # tau, per unit of score
    rows: int = 0  # what the probabilities rest on


UNCALIBRATED = Calibration(1.0, UNCALIBRATED_ROWS)


def add_one_smoothed(share: NDArray[np.float64], rows: int, choices: int) -> NDArray[np.float64]:
    """Shares among ``rows``, and one row more that is spread evenly over ``choices``.

    >>> add_one_smoothed(np.array([1.0, 0.0]), 9, 2).tolist()
    [0.95, 0.05]
    """
    return (rows * share + 1.0 / choices) / (rows + 1.0)


def log_vote_share(scores: NDArray[np.float64], total: float, rows: int) -> NDArray[np.float64]:
    """Logarithm of the share of the votes for each label; ``-scores`` give that against it."""
    margin = np.clip(scores / (total or 1.0), -1.0, 1.0)
    return np.log(add_one_smoothed(0.5 * (1.0 + margin), rows, 2))


def probabilities(
    scores: NDArray[np.float64], total: float, how: Calibration, multilabel: bool
) -> NDArray[np.float64]:
    """Probabilities of the labels, (n, L), from scores whose coefficients sum to ``total``."""
    with needed("boosting"):
        from scipy.special import expit, softmax

    exponent = how.temperature * total
    votes = exponent * log_vote_share(scores, total, how.rows)
    if multilabel:
        return add_one_smoothed(
            expit(votes - exponent * log_vote_share(-scores, total, how.rows)), how.rows, 2
        )
    return add_one_smoothed(softmax(votes, axis=1), how.rows, scores.shape[1])


def fit_exponent(
    margins: NDArray[np.float64], signs: NDArray[np.int8], multilabel: bool
) -> tuple[float, float]:
    """The exponent of the votes with the smallest logarithmic loss on rows with these scores over their largest; that loss.

    The loss of a row counts the prior of the exponent as one of the rows.
    """
    with needed("boosting"):
        from scipy.optimize import minimize_scalar

    rows, labels = signs.shape
    there = signs > 0
    votes = log_vote_share(margins, 1.0, rows)
    odds = votes - log_vote_share(-margins, 1.0, rows)
    surest = float(np.abs(odds).max()) or 1.0
    middle = np.log(np.log(2.0 * rows + 1.0) / surest)
    if multilabel:  # what speaks against what is true, a sum over the last axis
        against, choices = np.where(there, -odds, odds)[:, :, None], 2
    else:
        against, choices = (votes - votes[there][:, None])[~there].reshape(rows, labels - 1), labels

    def loss(log_exponent: float) -> float:
        with np.errstate(over="ignore"):
            chance = 1.0 / (1.0 + np.exp(np.exp(log_exponent) * against).sum(axis=-1))
        surprise = -np.log(add_one_smoothed(chance, rows, choices)).sum()
        away = log_exponent - middle
        return float((surprise + PRIOR * (np.exp(away) - away)) / rows)

    near = middle + min(range(-FARTHEST, FARTHEST + 1), key=lambda step: loss(middle + step))
    found = minimize_scalar(loss, bounds=(near - 1.0, near + 1.0), method="bounded")
    return float(np.exp(found.x)), float(found.fun)


def carried_exponent(at_full: float, at_half: float, doublings: float, rows: int) -> float:
    """The exponent for a larger model from those of a smaller one, whole and half as long, by so many rows.

    Powers grow slowly with the size; the growth over the last doubling is carried on for the missing ones, the less far the
    fewer rows tell of it.

    >>> carried_exponent(8.0, 4.0, 0.0, 200), round(carried_exponent(8.0, 4.0, 1.0, 200), 3)
    (8.0, 10.556)
    """
    growth = float(np.clip(at_full / at_half, 0.5, 2.0))
    return float(at_full * growth ** (GROWTH * doublings * rows / (rows + TREND_ROWS)))


def fifths_of(rows: int) -> int:
    """How many fifths of the rows are set aside in turn: all of few, one of many.

    >>> fifths_of(150), fifths_of(2_000), fifths_of(5_000)
    (5, 3, 1)
    """
    return int(min(FIFTHS, -(-ENOUGH_ROWS // max(1, rows // FIFTHS))))


def enough_out_of_bag(committees: int, rows: int) -> bool:
    """Whether rows out of the bag of two committees or more calibrate a model of so many, of which the first has seen all rows.

    >>> enough_out_of_bag(32, 300), enough_out_of_bag(7, 1_000), enough_out_of_bag(7, 7_000), enough_out_of_bag(1, 10**6)
    (True, False, True, False)
    """
    others = max(committees - 1, 0)
    twice = 1.0 - SEEN**others - others * (1.0 - SEEN) * SEEN ** max(others - 1, 0)
    return others >= MIN_COMMITTEES or twice * rows >= ENOUGH_ROWS


class HeldOut(NamedTuple):
    """What parts of a model have not seen."""

    held: NDArray[np.int64]  # rows held out
    stopped: Model  # the model that has not seen them: the one to calibrate, unless it was fitted again to all rows
    before: int  # weak learners of earlier fits: nobody knows what these have seen


class Judged(NamedTuple):
    """Parts of models, and rows that some of them have not seen."""

    parts: list[Model]
    rows: NDArray[np.int64]
    absent: NDArray[np.bool_]  # (parts, rows) whether a part has not seen a row
    doublings: float | None = (
        None  # by which the model is longer than the parts; None: as their largest scores say
    )


def calibrate(model: Model, unseen: HeldOut, data: Examples, fit: Fit, multilabel: bool) -> Calibration:
    """The temperature of a model of ``data`` by rows that it has not seen.

    Many rows held out serve as they are. So do the rows out of the bag of committees, if there are enough of these. Else fits
    half as long are made to four fifths of the rows. A row is scored by the parts that have not seen it, and by the first half
    of these; the growth of the exponent from half of them to all is carried on to the whole model.
    """
    n, total = data.weight.size, model.total
    if n < MIN_CALIBRATION_ROWS or total <= 0.0 or data.signs.shape[1] < 2:
        return Calibration(1.0, n)
    if unseen.held.size >= ENOUGH_ROWS:
        judged = Judged([unseen.stopped], unseen.held, np.ones((1, unseen.held.size), bool), 0.0)
    else:
        judged = out_of_bag(model, unseen, n, fit) or by_fifths(model, data, fit)
    examples, absent = data.rows(judged.rows), judged.absent
    earlier = absent & (absent.cumsum(axis=0) <= absent.sum(axis=0) // 2)
    scores, totals = np.zeros((2, *examples.signs.shape)), np.zeros((2, judged.rows.size))
    for part, out, first in zip(judged.parts, absent, earlier, strict=True):
        found = part.scores(examples.X[out], fit.shared.mapper)
        for k, rows in enumerate((out, first)):
            scores[k, rows] += found[rows[out]]
            totals[k, rows] += part.total
    at_full, at_half = (
        fit_exponent(score / np.maximum(most, 1e-300)[:, None], examples.signs, multilabel)[0]
        for score, most in zip(scores, totals, strict=True)
    )
    doublings = judged.doublings
    if doublings is None:
        doublings = float(np.log2(total / totals[0].mean()))
    exponent = carried_exponent(at_full, at_half, doublings, judged.rows.size)
    return Calibration(exponent / total, judged.rows.size)


def out_of_bag(model: Model, unseen: HeldOut, n: int, fit: Fit) -> Judged | None:
    """The committees of a model of ``n`` rows whose samples are known; None where too few rows are out of their bags."""
    committees = fit.committees
    if committees is None or not committees.parts:
        return None
    begins = committee_begins(model.edge, committees.size)
    begins = begins[begins < model.n_learners]
    ends = [*begins[1:].tolist(), model.n_learners]
    rows = np.arange(n)
    if unseen.stopped is model:
        rows = np.setdiff1d(rows, unseen.held)
    first = 1 if committees.sees_all(0, rows.size) else 0
    known = np.flatnonzero(begins >= max(first, unseen.before)).tolist()
    if not enough_out_of_bag(len(known) + 1, rows.size):
        return None
    absent = np.ones((len(known), n), bool)
    for out, number in zip(absent, known, strict=True):
        out[rows] = committees.sample(number, rows.size) == 0
    often = np.flatnonzero(absent.sum(axis=0) >= 2)  # so that there is a half of them
    chosen = np.sort(stream(fit.shared.seed, "calibration").permutation(often)[:MAX_CALIBRATION_ROWS])
    return Judged([model.part(begins[k], ends[k]) for k in known], chosen, absent[:, chosen])


def by_fifths(model: Model, data: Examples, fit: Fit) -> Judged:
    """Fits half as long to four fifths of the rows, in halves, and the rows set aside."""
    n = data.weight.size
    order = stream(fit.shared.seed, "calibration").permutation(n)
    fold = np.full(n, FIFTHS)
    whole = min(model.n_learners, max(MIN_CALIBRATION_FIT, model.n_learners // 2))
    parts = []
    for k in range(fifths_of(n)):
        fold[order[k * n // FIFTHS : (k + 1) * n // FIFTHS]] = k
        smaller = fit.again(data.rows(np.flatnonzero(fold != k)), whole, "calibration", k).model()
        parts += [smaller.part(0, max(1, whole // 2)), smaller.part(max(1, whole // 2), whole)]
    rows = np.flatnonzero(fold < FIFTHS)
    absent = fold[rows] == np.arange(len(parts))[:, None] // 2
    return Judged(parts, rows, absent, float(np.log2(model.n_learners / whole)))
