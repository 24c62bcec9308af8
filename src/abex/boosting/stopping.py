"""The run of a fit to its end: validation and patience, callbacks, the limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.booster import Booster
from abex.boosting.calibration import ENOUGH_ROWS, FIFTHS, cost, fit_power
from abex.boosting.committees import committee_begins
from abex.boosting.examples import Examples
from abex.boosting.model import Model
from abex.boosting.parameters import BoostingParameters
from abex.boosting.weak_learners import TREE
from abex.support.errors import UserError, real_number, shown, whole_number
from abex.support.progress import Progress
from abex.support.randomness import stream

LOOKS = 100  # a fit looks up so often: callbacks, validation, time, progress
ALL = slice(None)
TINY = 1e-300  # in the place of no score at all
FEWEST_HELD = 50  # rows held out: fewer are joined by those out of the bag


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


@dataclass
class Judges:
    """Rows that judge a fit, each by the weak learners that have not seen it."""

    rows: Examples  # those held out, then those of the fit if they are out of the bag of some committees
    held: int  # how many are held out
    scores: NDArray[np.float64]  # (n, L)
    totals: NDArray[np.float64]  # (n,) largest scores there could be

    @property
    def few(self) -> bool:
        """Whether so few rows are held out that their error is mostly chance."""
        return self.held < ENOUGH_ROWS

    def hear(self, part: Model, unseen: NDArray[np.bool_] | slice = ALL) -> None:
        """Add the scores of some weak learners to the rows that these have not seen."""
        self.scores[unseen] += part.scores(self.rows.X if unseen is ALL else self.rows.X[unseen])
        self.totals[unseen] += part.coefficient.sum()

    def hear_since(self, fit: Booster, first: int) -> None:
        """Add what the fit has found from weak learner ``first`` on."""
        found = fit.model(first)
        if self.held == self.totals.size or fit.committees is None:
            self.hear(found)
            return
        begins = committee_begins(fit.learners.edge[: fit.done], fit.committees.size)
        begins = begins[begins < fit.done]
        ends = [*begins[1:].tolist(), fit.done]
        unseen = np.ones(self.totals.size, bool)
        for number in np.flatnonzero(np.array(ends) > first).tolist():
            unseen[self.held :] = fit.committees.sample(number, unseen.size - self.held) == 0.0
            self.hear(found.part(max(0, begins[number] - first), ends[number] - first), unseen)

    def judged(self, multilabel: bool) -> tuple[float, float]:
        """Share of the rows held out (or of their labels) that are wrong, and the logarithmic loss of all as if calibrated."""
        scores, signs = self.scores[: self.held], self.rows.signs[: self.held]
        if multilabel:
            error = float(np.mean((scores > 0) != (signs > 0)))
        else:
            error = float(np.mean(scores.argmax(axis=1) != signs.argmax(axis=1)))
        known = self.totals > 0.0
        known[: self.held] = True
        margins = self.scores[known] / np.maximum(self.totals[known], TINY)[:, None]
        return error, fit_power(margins, self.rows.signs[known], multilabel)[1]


def judges_of(
    data: Examples, held: NDArray[np.int64], rules: StoppingRules, parameters: BoostingParameters, old: Model | None
) -> Judges:  # fmt: skip
    """The rows by which a fit is stopped.

    Where very few are held out, those of the fit judge too if each of them is soon out of the bag: of one of five committees,
    and these are within the patience. Nobody knows what earlier fits have seen.
    """
    chosen = held
    bags = parameters.committee if parameters.kind == TREE and old is None else None
    if 0 < held.size < FEWEST_HELD and bags is not None and FIFTHS * bags <= rules.patience:
        chosen = np.append(held, np.setdiff1d(np.arange(data.weight.size), held))
    rows = data.rows(chosen)
    judges = Judges(rows, held.size, np.zeros(rows.signs.shape), np.zeros(chosen.size))
    if old is not None and held.size:
        judges.hear(old)
    return judges


def run(
    fit: Booster, rules: StoppingRules, judges: Judges, old: Model | None, past: list[float], multilabel: bool, began: float,
    show: bool | None,
) -> Ending:  # fmt: skip
    """Advance the fit to its end.

    With early stopping those weak learners are kept after which the logarithmic loss of the ``judges`` is least; with a thousand
    rows held out it is their error, and between equal errors the loss. Both are means over the last iterations, half as many as
    the patience: a few rows right by chance are no progress. Weak learners fewer than the patience may agree by chance, and few
    rows do not judge them.
    ``old`` is the model that the fit goes on from, ``past`` its validation errors.
    """
    size = fit.size
    step = max(1, size // LOOKS) if rules.seconds is None else 1
    best, least = size, (np.inf, np.inf)
    errors = list(past)
    recent: list[tuple[int, float, float]] = []  # weak learners, error unless it is mostly chance, loss
    before = 0 if old is None else old.size
    soonest = rules.patience - before if judges.few else 0
    called_off = False

    def look() -> tuple[float, float]:
        error, loss = judges.judged(multilabel)
        errors.append(error)
        return 0.0 if judges.few else error, loss

    if old is not None and judges.held:
        best, least = 0, look()
        errors.pop()
    started = time.monotonic()
    with Progress("boosting", size, show=show) as progress:
        while fit.done < size:
            count = min(step, size - fit.done)
            fit.advance(count)
            progress.advance(count)
            if rules.early:
                judges.hear_since(fit, fit.done - count)
                recent = [one for one in recent if one[0] > fit.done - rules.patience / 2]
                recent.append((fit.done, *look()))
                now = (
                    float(np.mean([one[1] for one in recent])),
                    float(np.mean([one[2] for one in recent])),
                )
                if fit.done >= soonest and now < least:
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
