"""The run of a fit to its end: validation and patience, callbacks, the limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.calibration import COST, fifths_of, fit_power
from abex.boosting.examples import Examples
from abex.boosting.fitting import Fit
from abex.boosting.model import Model
from abex.errors import UserError, real_number, shown, whole_number
from abex.progress import Progress

STEPS = 100  # a fit looks up so often: callbacks, validation, time, progress


class Stops(NamedTuple):
    """What may end a fit."""

    early: bool
    patience: int  # iterations without improvement
    seconds: float | None
    callbacks: list[Callable[[int, Fit], Any]]
    reserve: float  # time to be left for calibration, over that of the fit so far


def stops_of(estimator: Any, rows: int) -> Stops:
    """What the parameters ask for, checked; ``rows`` are those of the whole fit."""
    limit = estimator.max_seconds
    callbacks = estimator.callbacks or ()
    callbacks = [callbacks] if callable(callbacks) else list(callbacks)
    if not all(map(callable, callbacks)):
        raise UserError(f"callbacks must be functions of (done, fit), got {shown(callbacks)[:80]}")
    return Stops(
        estimator.early_stopping,
        whole_number("n_iter_no_change", estimator.n_iter_no_change, least=1),
        None if limit is None else real_number("max_seconds", limit, above=0.0),
        callbacks,
        COST * fifths_of(rows) if estimator.calibrate else 0.0,
    )


def run(
    fit: Fit, stops: Stops, held: Examples, old: Model | None, past: list[float], multilabel: bool, began: float,
    show: bool | None,
) -> tuple[int, list[float]]:  # fmt: skip
    """Advance the fit to its end; returns how many of its classifiers to keep, and the validation errors.

    With early stopping these are the first with the least error on ``held``, among equal errors with the least logarithmic
    loss; classifiers fewer than the patience may agree by chance, and their loss does not count. ``old`` is the
    model that the fit goes on from, ``past`` its validation errors.
    """
    size = fit.size
    step = max(1, size // STEPS) if stops.seconds is None else 1
    best, least = size, (np.inf, np.inf)
    errors = list(past)
    scores, total = np.zeros(held.signs.shape), 0.0
    before = 0 if old is None else old.size
    if old is not None and held.signs.size:
        scores, total = old.scores(held.X), float(old.coefficient.sum())
        best, least = 0, judged(scores, total, held.signs, multilabel, least)
    started = time.monotonic()
    with Progress("boosting", size, show=show) as progress:
        while fit.done < size:
            count = min(step, size - fit.done)
            fit.advance(count)
            progress.advance(count)
            if stops.early:
                found = fit.model(fit.done - count)
                scores += found.scores(held.X)
                total += float(found.coefficient.sum())
                now = judged(scores, total, held.signs, multilabel, least)
                if before + fit.done < stops.patience:
                    now = now[0], np.inf
                errors.append(now[0])
                if now < least:
                    best, least = fit.done, now
                if fit.done - best >= stops.patience:
                    break
            if any([bool(callback(fit.done, fit)) for callback in stops.callbacks]):
                break
            if stops.seconds is not None:
                elapsed = time.monotonic()
                each = (elapsed - started) / fit.done
                reserve = stops.reserve * (before + fit.done) * each
                if elapsed - began + reserve > stops.seconds:
                    break
                fiftieth = round(0.02 * stops.seconds / max(each, 1e-9))
                step = max(1, min(size // STEPS, fiftieth))
    return (min(best, fit.done) if stops.early else fit.done), errors


def judged(
    scores: NDArray[np.float64], total: float, signs: NDArray[np.int8], multilabel: bool, least: tuple[float, float]
) -> tuple[float, float]:  # fmt: skip
    """Share of the examples (or of the labels) that are wrong, and their logarithmic loss as if calibrated to them.

    Few rows have few possible errors: the loss decides between equal ones. Where the error is above ``least`` it is not needed.
    """
    if multilabel:
        error = float(np.mean((scores > 0) != (signs > 0)))
    else:
        error = float(np.mean(scores.argmax(axis=1) != signs.argmax(axis=1)))
    if error > least[0]:
        return error, np.inf
    return error, fit_power(scores / (total or 1.0), signs, multilabel)[1]
