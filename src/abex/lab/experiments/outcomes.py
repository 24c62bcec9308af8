"""What an experiment found, read from the store: curves with bands, pairs, and what policies say about themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.lab.experiments.execution import chosen, plateau
from abex.lab.experiments.experiment import STRATUM, Experiment, Line
from abex.lab.results import Store, key_of
from abex.lab.sweeps.bandit_cells import rows_of
from abex.support.intervals import LEVEL, Estimate, Strata, difference_of, mean_of, quantile_of, two_way

Floats = NDArray[np.float64]
MIN_RUNS = 5  # fewer get no interval: they cannot tell how far they spread
LINEAR = 0.9  # of the regret of its first half: a run that loses so much in its second half is locked, or learns nothing
NEAR = (1.5, 1.1)  # times the reference's final loss: how near counts as nearly and as quite there
GAIN = 1.03  # between the target errors at which times are compared
TARGETS = 24  # at most so many


@dataclass(frozen=True, eq=False)
class LineResult:
    """A line with its results: arrays are (replications, checkpoints)."""

    line: Line
    policy: str  # the one drawn
    replications: tuple[int, ...]
    step: Floats  # (checkpoints,)
    loss: Floats  # regret, or smoothed test error in per cent
    seconds: Floats  # of CPU up to each checkpoint
    evaluations: Floats  # pulls, or weak learners tried
    numbers: dict[str, list[float]] = field(default_factory=dict)  # by replication
    strata: Strata | None = None  # of the replications
    played: str = (
        ""  # the simplest policy that is the same at this length; lines that share it are one algorithm
    )
    rows: dict[int, Floats] = field(default_factory=dict)  # step -> (replications, test rows), per cent wrong
    ended: bool = True  # False: a line to be drawn up to its plateau has not reached one

    @property
    def label(self) -> str:
        """The line's name."""
        return self.line.label

    @property
    def final(self) -> Floats:
        """Loss at the end, by replication."""
        return np.asarray(self.loss[:, -1])

    @property
    def mean(self) -> Floats:
        """Mean loss at each checkpoint, strata with their weights."""
        return np.asarray(mean_of(self.loss, self.strata).mean)

    def band(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Confidence band of the mean; NaN where fewer than five runs are there."""
        return mean_of(self.loss, self.strata, MIN_RUNS).interval(level)

    def estimate(self) -> Estimate:
        """The mean loss at the end: over runs, in boosting over test rows as well."""
        end = int(self.step[-1])
        if end in self.rows:
            return two_way(self.rows[end], MIN_RUNS)
        return mean_of(self.final, self.strata, MIN_RUNS)

    def quantile(self, q: float) -> float:
        """The q-quantile of the loss at the end."""
        return quantile_of(self.final, q, self.strata)

    @property
    def linear_regret_share(self) -> float:
        """Share of the runs whose regret grows linearly: the second half loses at least 0.9 of what the first half lost."""
        half = self.loss_at(self.step[-1] / 2.0)
        return float(mean_of(self.final - half >= LINEAR * half, self.strata).mean)

    def loss_at(self, step: float) -> Floats:
        """Loss at a step, between checkpoints by interpolation, by replication; NaN where the line has ended."""
        if step > self.step[-1]:
            return np.full(len(self.loss), np.nan)
        right = min(int(np.searchsorted(self.step, step)), self.step.size - 1)
        left = max(right - 1, 0)
        if self.step[right] <= step or left == right:
            return np.asarray(self.loss[:, right])
        share = max(0.0, (step - self.step[left]) / (self.step[right] - self.step[left]))
        return np.asarray((1.0 - share) * self.loss[:, left] + share * self.loss[:, right])

    def first_at_most(self, level: float) -> NDArray[np.int64]:
        """The first checkpoint with a loss of ``level`` or less, by replication; -1 if there is none."""
        there = self.loss <= level
        return np.where(there.any(axis=1), there.argmax(axis=1), -1)

    def seconds_to(self, level: float) -> Floats:
        """CPU seconds until the loss is ``level`` or less for the first time, by replication; infinite if it never is."""
        at = self.first_at_most(level)
        return np.where(at < 0, np.inf, self.seconds[np.arange(at.size), at])


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """The lines of an experiment that the store holds, and how many cells are still missing."""

    experiment: Experiment
    lines: tuple[LineResult, ...]
    missing: int

    def get(self, label: str) -> LineResult | None:
        """The line called ``label``, None if nothing of it is there."""
        return {drawn.label: drawn for drawn in self.lines}.get(label)

    def title_of(self, drawn: LineResult) -> str:
        """A line's name, and what one could not see in a figure: that it lies on another line, or ends before the others."""
        before = self.lines[: self.lines.index(drawn)]
        remarks = [f"the same as {one.label}" for one in before if same_algorithm(one, drawn)][:1]
        if drawn.step[-1] < max(one.step[-1] for one in self.lines if not one.line.plateau or one is drawn):
            remarks.append(f"to {drawn.step[-1]:,.0f}")
        return f"{drawn.label} ({', '.join(remarks)})" if remarks else drawn.label

    @property
    def loss_name(self) -> str:
        """What the loss is, with its unit."""
        return self.experiment.task.loss_name


def collect(experiment: Experiment, store: Store) -> ExperimentResult:
    """Read an experiment's results; lines of which nothing is there are left out."""
    drawn, missing = [], 0
    read: dict[tuple[str, int | None, int], Any] = {}  # lines that are one algorithm are read once
    for line in experiment.lines:
        text = chosen(experiment, line, store)
        cells = experiment.cells(line, text or line.candidates[0])
        end = plateau(experiment, line, store) if line.plateau else None
        if text is None or (line.plateau and end is None):
            missing += len(cells)
            continue
        name = (experiment.equivalent.get(text, text), line.length, len(cells))
        if name not in read:
            found = store.read(key_of(cell) for cell in cells)
            kept = [
                row for cell in cells if key_of(cell) in found for row in rows_of(cell, found[key_of(cell)])
            ]
            read[name] = len(found), kept and _results(experiment, kept)
        there, results = read[name]
        missing += len(cells) - there
        if results:
            drawn.append(
                _up_to(LineResult(line, text, played=experiment.equivalent.get(text, text), **results), end)
            )
    return ExperimentResult(experiment, tuple(drawn), missing)


def _results(experiment: Experiment, kept: list[tuple[int, Any]]) -> dict[str, Any]:
    """The arrays of a line from (replication, payload) of each of its runs."""
    payloads = [payload for _, payload in kept]
    names = sorted(set.intersection(*(set(payload.numbers) for payload in payloads)))
    replications = tuple(r for r, _ in kept)
    strata = None
    if experiment.strata:
        of = np.array(replications) // STRATUM
        strata = Strata(of, np.array([stratum.weight for stratum in experiment.strata]))
    return {
        "replications": replications,
        "step": payloads[0].arrays["step"].astype(float),
        **experiment.task.curves(payloads),
        "numbers": {name: [payload.numbers[name] for payload in payloads] for name in names},
        "strata": strata,
    }


def _up_to(drawn: LineResult, end: tuple[int, bool] | None) -> LineResult:
    """The line up to its plateau."""
    if end is None:
        return drawn
    from dataclasses import replace

    kept = slice(0, int(np.searchsorted(drawn.step, end[0], side="right")))
    arrays = {name: getattr(drawn, name)[:, kept] for name in ("loss", "seconds", "evaluations")}
    return replace(drawn, step=drawn.step[kept], ended=end[1], **arrays)


def same_algorithm(first: LineResult, second: LineResult) -> bool:
    """Whether two lines are one algorithm at this length: they share the simplest policy they are."""
    return bool(first.played) and first.played == second.played and first.step[-1] == second.step[-1]


def paired_curve(drawn: LineResult, first: LineResult) -> tuple[Floats, Floats, Floats] | None:
    """Mean, low and high of loss minus that of ``first`` at each checkpoint of ``drawn``, runs that both have being paired.

    Between the checkpoints of ``first`` its loss is interpolated; None if it ends earlier or no run is common.
    """
    if drawn.step[-1] > first.step[-1] or not set(drawn.replications) & set(first.replications):
        return None
    other = first.loss
    if not np.array_equal(drawn.step, first.step):
        other = np.array([first.loss_at(step) for step in drawn.step]).T
    found = _difference(drawn, drawn.loss, first, other)
    return found.mean, *found.interval()


def compared(first: LineResult, second: LineResult, at: int | None = None) -> Estimate | None:
    """Loss of first minus that of second at the end, or at the step ``at``: they met the same randomness.

    In boosting over runs and test rows (`two_way`) where rows are stored, else over runs, those that both have being
    paired. None where a line has ended before that step or they share no run.
    """
    both = sorted(set(first.replications) & set(second.replications))
    if not both:
        return None
    ends = int(first.step[-1] if at is None else at), int(second.step[-1] if at is None else at)
    if ends[0] in first.rows and ends[1] in second.rows:
        a = first.rows[ends[0]][[first.replications.index(r) for r in both]]
        b = second.rows[ends[1]][[second.replications.index(r) for r in both]]
        return two_way(a - b, MIN_RUNS)
    losses = [one.final if at is None else one.loss_at(at) for one in (first, second)]
    if not all(np.isfinite(loss).all() for loss in losses):
        return None
    return _difference(first, losses[0], second, losses[1])


def _difference(first: LineResult, loss: Floats, second: LineResult, other: Floats) -> Estimate:
    return difference_of(
        loss, first.replications, other, second.replications, first.strata, second.strata, MIN_RUNS
    )


def target_losses(outcome: ExperimentResult) -> tuple[str, tuple[float, ...]]:
    """Losses worth getting down to: 1.5 and 1.1 times the final mean loss of the line that learns nothing, and its name.

    Where there is no uniform choice the first line takes its place.
    """
    reference = outcome.get("uniform") or (outcome.lines[0] if outcome.lines else None)
    if reference is None:
        return "", ()
    return reference.label, tuple(factor * float(reference.mean[-1]) for factor in NEAR)


def targets_of(reference: LineResult) -> Floats:
    """Losses on the way of a line, down to the least it reaches: each 3 % below the one before, at most 24.

    They begin where it has done a hundredth of its steps.
    """
    mean = reference.mean
    least = float(mean.min())
    start = float(np.interp(reference.step[-1] / 100.0, reference.step, mean))
    count = int(np.clip(np.log(start / least) / np.log(GAIN) if least > 0.0 else 0, 1, TARGETS - 1)) + 1
    return np.asarray(least * (max(start, least) / least) ** np.linspace(1.0, 0.0, count))


def ratio_curve(first: LineResult, reference: LineResult) -> list[tuple[float, Estimate, float, float]]:
    """How much sooner a line gets down to each loss than the reference does.

    Rows of (target, estimate of ln(seconds of first / seconds of reference) over the runs of first that get there, share of
    its runs that do, the reference's seconds).
    """
    rows = []
    for target in targets_of(reference):
        there = reference.seconds_to(float(target) * (1.0 + 1e-12))
        seconds = float(there[np.isfinite(there)].mean())
        taken = first.seconds_to(float(target))
        got = np.isfinite(taken)
        logs = np.log(np.maximum(taken[got], 1e-9) / seconds)
        found = mean_of(logs, None, MIN_RUNS) if got.any() else Estimate(np.nan, np.nan, 1.0)
        rows.append((float(target), found, float(got.mean()), seconds))
    return rows
