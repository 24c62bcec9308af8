"""The run of a fit to its end: validation and patience, callbacks, the limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.booster import Booster
from abex.boosting.calibration import cost, fit_power
from abex.boosting.examples import Examples
from abex.boosting.model import Model
from abex.boosting.parameters import BoostingParameters
from abex.errors import UserError, real_number, shown, whole_number
from abex.progress import Progress
from abex.randomness import stream

LOOKS = 100  # a fit looks up so often: callbacks, validation, time, progress


class StoppingRules(NamedTuple):
    """What may end a fit."""

    early: bool
    patience: int  # iterations without improvement
    seconds: float | None
    callbacks: list[Callable[[int, Booster], Any]]
    reserve: Callable[
        [int], float
    ]  # time to be left after so many weak learners, over that of the fit so far


class Ending(NamedTuple):
    """How a fit ended."""

    size: int  # weak learners to keep
    errors: list[float]  # on the validation rows
    called_off: bool  # by a callback or the limit of time


def stopping_rules(estimator: Any, parameters: BoostingParameters, rows: int) -> StoppingRules:
    """What the parameters ask for, checked; ``rows`` are those of the whole fit."""
    limit = estimator.max_seconds
    callbacks = estimator.callbacks or ()
    callbacks = [callbacks] if callable(callbacks) else list(callbacks)
    if not all(map(callable, callbacks)):
        raise UserError(f"callbacks must be functions of (done, fit), got {shown(callbacks)[:80]}")
    again = 1.0 / (1.0 - estimator.validation_fraction) if refits(estimator) else 0.0

    def reserve(done: int) -> float:
        return again + (cost(parameters, done, rows) if estimator.calibrate else 0.0)

    return StoppingRules(
        estimator.early_stopping,
        whole_number("n_iter_no_change", estimator.n_iter_no_change, least=1),
        None if limit is None else real_number("max_seconds", limit, above=0.0),
        callbacks,
        reserve,
    )


def refits(estimator: Any) -> bool:
    """Whether early stopping only finds how many weak learners to fit to all rows: not where a later fit may go on."""
    return bool(estimator.early_stopping and not estimator.warm_start)


def hold_out(estimator: Any, seed: int, n: int) -> NDArray[np.int64]:
    """Rows for early stopping, none without it."""
    if not estimator.early_stopping:
        return np.zeros(0, np.int64)
    if n < 2:
        raise UserError("early_stopping needs at least two rows, one of them to stop by")
    share = real_number("validation_fraction", estimator.validation_fraction, above=0.0, most=0.9)
    count = min(max(1, round(share * n)), n - 1)
    return np.sort(stream(seed, "validation").permutation(n)[:count])


def run(
    fit: Booster, rules: StoppingRules, held: Examples, old: Model | None, past: list[float], multilabel: bool, began: float,
    show: bool | None,
) -> Ending:  # fmt: skip
    """Advance the fit to its end.

    With early stopping those weak learners are kept after which the error on ``held`` is least, among equal errors the
    logarithmic loss; both are means over the last iterations, half as many as the patience: a few rows right by chance are no
    progress. Classifiers fewer than the patience may agree by chance, and their loss does not count.
    ``old`` is the model that the fit goes on from, ``past`` its validation errors.
    """
    size = fit.size
    step = max(1, size // LOOKS) if rules.seconds is None else 1
    best, least = size, (np.inf, np.inf)
    errors = list(past)
    recent: list[tuple[int, float, float]] = []  # weak learners, error, loss
    scores, total = np.zeros(held.signs.shape), 0.0
    before = 0 if old is None else old.size
    called_off = False
    if old is not None and held.signs.size:
        scores, total = old.scores(held.X), float(old.coefficient.sum())
        best, least = 0, judged(scores, total, held.signs, multilabel)
    started = time.monotonic()
    with Progress("boosting", size, show=show) as progress:
        while fit.done < size:
            count = min(step, size - fit.done)
            fit.advance(count)
            progress.advance(count)
            if rules.early:
                found = fit.model(fit.done - count)
                scores += found.scores(held.X)
                total += float(found.coefficient.sum())
                error, loss = judged(scores, total, held.signs, multilabel)
                errors.append(error)
                recent = [look for look in recent if look[0] > fit.done - rules.patience / 2]
                recent.append((fit.done, error, loss))
                now = (
                    float(np.mean([look[1] for look in recent])),
                    float(np.mean([look[2] for look in recent])),
                )
                if now < least:
                    best, least = fit.done, now
                if fit.done - best >= rules.patience:
                    break
            if any([bool(callback(fit.done, fit)) for callback in rules.callbacks]):
                called_off = True
                break
            if rules.seconds is not None:
                elapsed = time.monotonic()
                each = (elapsed - started) / fit.done
                reserve = rules.reserve(before + fit.done) * (before + fit.done) * each
                if elapsed - began + reserve > rules.seconds:
                    called_off = True
                    break
                fiftieth = round(0.02 * rules.seconds / max(each, 1e-9))
                step = max(1, min(size // LOOKS, fiftieth))
    return Ending(min(best, fit.done) if rules.early else fit.done, errors, called_off)


def judged(
    scores: NDArray[np.float64], total: float, signs: NDArray[np.int8], multilabel: bool
) -> tuple[float, float]:
    """Share of the examples (or of the labels) that are wrong, and their logarithmic loss as if calibrated to them.

    Few rows have few possible errors: the loss decides between equal ones.
    """
    if multilabel:
        error = float(np.mean((scores > 0) != (signs > 0)))
    else:
        error = float(np.mean(scores.argmax(axis=1) != signs.argmax(axis=1)))
    return error, fit_power(scores / (total or 1.0), signs, multilabel)[1]
