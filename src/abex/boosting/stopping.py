"""What may end a fit before its last learner: rows held out, and callbacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from abex.boosting.calibration import fit_exponent
from abex.boosting.examples import Examples
from abex.boosting.learners import Model, committee_begins
from abex.boosting.selection import ENOUGH_ROWS, FIFTHS, MIN_HELD, RECENT, Candidate
from abex.boosting.settings import TREE, Settings
from abex.support.errors import UserError
from abex.support.randomness import stream

if TYPE_CHECKING:
    from abex.boosting.fit import Fit

ALL = slice(None)
TINY = 1e-300  # in the place of no score at all


def hold_out(share: float, seed: int, n: int) -> NDArray[np.int64]:
    """Rows for early stopping: this share of ``n``, one at least."""
    if n < 2:
        raise UserError("early_stopping needs at least two rows, one of them to stop by")
    count = min(max(1, round(share * n)), n - 1)
    return np.sort(stream(seed, "validation").permutation(n)[:count])


class ValidationRows:
    """Rows that judge a fit, each by the learners that have not seen it.

    Where very few are held out, those of the fit judge too if each of them is soon out of the bag: of one of five committees, and
    these are within the patience. Nobody knows what earlier fits have seen.
    """

    def __init__(
        self,
        data: Examples,
        held: NDArray[np.int64],
        settings: Settings,
        candidate: Candidate,
        old: Model | None,
    ) -> None:
        chosen = held
        bags = candidate.committee if settings.kind == TREE and old is None else None
        if 0 < held.size < MIN_HELD and bags is not None and FIFTHS * bags <= settings.patience:
            chosen = np.append(held, np.setdiff1d(np.arange(data.weight.size), held))
        self.rows = data.rows(chosen)  # those held out, then those out of the bag of some committees
        self.held = held.size
        self.scores = np.zeros(self.rows.signs.shape)
        self.totals = np.zeros(chosen.size)  # largest scores there could be
        if old is not None and self.held:
            self.add_scores(old)

    @property
    def few(self) -> bool:
        """Whether so few rows are held out that their error is mostly chance."""
        return self.held < ENOUGH_ROWS

    def add_scores(self, part: Model, unseen: NDArray[np.bool_] | slice = ALL) -> None:
        """Add the scores of some learners to the rows that these have not seen."""
        self.scores[unseen] += part.scores(self.rows.X if unseen is ALL else self.rows.X[unseen])
        self.totals[unseen] += part.total

    def add_scores_since(self, fit: Fit, first: int) -> None:
        """Add what the fit has found from learner ``first`` on."""
        found = fit.model(first)
        if self.held == self.totals.size or fit.committees is None:
            self.add_scores(found)
            return
        begins = committee_begins(fit.learners.edge[: fit.done], fit.committees.size)
        begins = begins[begins < fit.done]
        ends = [*begins[1:].tolist(), fit.done]
        unseen = np.ones(self.totals.size, bool)
        for number in np.flatnonzero(np.array(ends) > first).tolist():
            unseen[self.held :] = fit.committees.sample(number, unseen.size - self.held) == 0.0
            self.add_scores(found.part(max(0, begins[number] - first), ends[number] - first), unseen)

    def losses(self, multilabel: bool) -> tuple[float, float]:
        """Share of the rows held out (or of their labels) that are wrong, and the logarithmic loss of all as if calibrated."""
        scores, signs = self.scores[: self.held], self.rows.signs[: self.held]
        if multilabel:
            error = float(np.mean((scores > 0) != (signs > 0)))
        else:
            error = float(np.mean(scores.argmax(axis=1) != signs.argmax(axis=1)))
        known = self.totals > 0.0
        known[: self.held] = True
        margins = self.scores[known] / np.maximum(self.totals[known], TINY)[:, None]
        return error, fit_exponent(margins, self.rows.signs[known], multilabel)[1]


class Stop:
    """What looks at a fit about a hundred times, and may end it.

    With early stopping those learners are kept after which the logarithmic loss of the validation rows is least; with a thousand
    rows held out it is their error, and between equal errors the loss. Both are means over the last iterations, half as many as
    the patience: a few rows right by chance are no progress. Learners fewer than the patience may agree by chance, and few rows
    do not judge them.

    ``earlier`` are the learners of the fit that this one goes on from, ``errors`` its validation errors.
    """

    def __init__(
        self, settings: Settings, rows: ValidationRows, n_learners: int, earlier: int = 0, errors: Iterable[float] = (),
        multilabel: bool = False,
    ) -> None:  # fmt: skip
        self.settings, self.rows, self.multilabel = settings, rows, multilabel
        self.earlier, self.errors = earlier, [float(error) for error in errors]
        self.best, self.least = n_learners, (np.inf, np.inf)
        self.recent: list[tuple[int, float, float]] = []  # learners, error unless it is mostly chance, loss
        self.called_off = False  # by a callback
        if earlier and rows.held:
            self.best, self.least = 0, self._losses()
            self.errors.pop()

    def look(self, fit: Fit, count: int) -> bool:
        """Whether the fit, ``count`` learners further than at the last look, is to end."""
        if self.settings.early_stopping and self._no_better(fit, count):
            return True
        self.called_off = any([bool(callback(fit.done, fit)) for callback in self.settings.callbacks])
        return self.called_off

    def kept(self, fit: Fit) -> int:
        """How many learners to keep of a fit that has ended."""
        return min(self.best, fit.done) if self.settings.early_stopping else fit.done

    def _losses(self) -> tuple[float, float]:
        error, loss = self.rows.losses(self.multilabel)
        self.errors.append(error)
        return 0.0 if self.rows.few else error, loss

    def _no_better(self, fit: Fit, count: int) -> bool:
        patience = self.settings.patience
        self.rows.add_scores_since(fit, fit.done - count)
        self.recent = [one for one in self.recent if one[0] > fit.done - patience * RECENT]
        self.recent.append((fit.done, *self._losses()))
        _, errors, losses = zip(*self.recent, strict=True)
        now = float(np.mean(errors)), float(np.mean(losses))
        soonest = patience - self.earlier if self.rows.few else 0
        if fit.done >= soonest and now < self.least:
            self.best, self.least = fit.done, now
        return fit.done - self.best >= patience
