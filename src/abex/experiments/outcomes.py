"""What an experiment found, read from the store: curves with bands, pairs, and what policies say about themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.experiments.base import Experiment, Line
from abex.experiments.running import chosen
from abex.results import Store, key_of

Floats = NDArray[np.float64]
LEVEL = 0.95
NEAR = (1.5, 1.1)  # times the reference's final loss: how near counts as nearly and as quite there


@dataclass(frozen=True, eq=False)
class Drawn:
    """A line with its results: arrays are (replications, checkpoints)."""

    line: Line
    policy: str  # the one drawn
    replications: tuple[int, ...]
    step: Floats  # (checkpoints,)
    loss: Floats  # regret, or smoothed test error in per cent
    seconds: Floats  # of CPU up to each checkpoint
    evaluations: Floats  # pulls, or weak learners tried
    numbers: dict[str, list[float]] = field(default_factory=dict)  # by replication

    @property
    def label(self) -> str:
        """The line's name."""
        return self.line.label

    @property
    def final(self) -> Floats:
        """Loss at the end, by replication."""
        return np.asarray(self.loss[:, -1])

    def loss_at(self, step: float) -> Floats:
        """Loss at a step, between checkpoints by interpolation, by replication; NaN where the line has ended."""
        if step > self.step[-1]:
            return np.full(len(self.loss), np.nan)
        return np.array([np.interp(step, self.step, losses) for losses in self.loss])

    def first_at_most(self, level: float) -> NDArray[np.int64]:
        """The first checkpoint with a loss of ``level`` or less, by replication; -1 if there is none."""
        there = self.loss <= level
        return np.where(there.any(axis=1), there.argmax(axis=1), -1)

    def seconds_to(self, level: float) -> Floats:
        """CPU seconds until the loss is ``level`` or less for the first time, by replication; infinite if it never is."""
        at = self.first_at_most(level)
        return np.where(at < 0, np.inf, self.seconds[np.arange(at.size), at])


@dataclass(frozen=True, eq=False)
class Outcome:
    """The lines of an experiment that the store holds, and how many cells are still missing."""

    experiment: Experiment
    lines: tuple[Drawn, ...]
    missing: int

    def get(self, label: str) -> Drawn | None:
        """The line called ``label``, None if nothing of it is there."""
        return {drawn.label: drawn for drawn in self.lines}.get(label)

    @property
    def loss_name(self) -> str:
        """What the loss is, with its unit."""
        if self.experiment.kind == "boosting":
            return "test error, mean of the last 20 % of iterations (%)"
        return "regret (sum of lost mean rewards)"


def collect(experiment: Experiment, store: Store) -> Outcome:
    """Read an experiment's results; lines of which nothing is there are left out."""
    drawn, missing = [], 0
    for line in experiment.lines:
        text = chosen(experiment, line, store)
        cells = experiment.cells(line, text or line.candidates[0])
        if text is None:
            missing += len(cells)
            continue
        found = store.read(key_of(cell) for cell in cells)
        missing += len(cells) - len(found)
        kept = [(cell["replication"], found[key_of(cell)]) for cell in cells if key_of(cell) in found]
        if kept:
            drawn.append(_drawn(experiment, line, text, kept))
    return Outcome(experiment, tuple(drawn), missing)


def _drawn(experiment: Experiment, line: Line, text: str, kept: list[tuple[int, Any]]) -> Drawn:
    payloads = [payload for _, payload in kept]
    step = payloads[0].arrays["step"].astype(float)
    names = sorted(set.intersection(*(set(payload.numbers) for payload in payloads)))
    numbers = {name: [payload.numbers[name] for payload in payloads] for name in names}
    if experiment.kind == "boosting":
        loss = np.array([payload.arrays["error"] for payload in payloads]) * 100.0
        seconds = np.array([payload.measured["curve"] for payload in payloads], dtype=float)
        evaluations = np.array([payload.arrays["evaluations"] for payload in payloads], dtype=float)
    else:
        loss = np.array([payload.arrays["regret"] for payload in payloads])
        seconds = np.array([step * payload.measured["nanoseconds"] * 1e-9 for payload in payloads])
        evaluations = np.array([step for _ in payloads])
    return Drawn(line, text, tuple(r for r, _ in kept), step, loss, seconds, evaluations, numbers)


def interval(values: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Student's confidence interval of the mean over the first axis; the mean itself where there is one value.

    >>> low, high = interval(np.array([1.0, 2.0, 3.0]))
    >>> round(float(low), 2), round(float(high), 2)
    (-0.48, 4.48)
    """
    from scipy.special import stdtrit

    mean = values.mean(axis=0)
    if len(values) < 2:
        return mean, mean
    margin = stdtrit(len(values) - 1, 0.5 + level / 2.0) * values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return mean - margin, mean + margin


def paired_curve(drawn: Drawn, first: Drawn) -> tuple[Floats, Floats, Floats] | None:
    """Mean, low and high of loss minus that of ``first`` at each checkpoint of ``drawn``, over the replications both have.

    Between the checkpoints of ``first`` its loss is interpolated; None if no replication is common or ``first`` ends earlier.
    """
    both = [r for r in drawn.replications if r in set(first.replications)]
    if not both or drawn.step[-1] > first.step[-1]:
        return None
    gaps = np.array(
        [
            drawn.loss[drawn.replications.index(r)]
            - np.interp(drawn.step, first.step, first.loss[first.replications.index(r)])
            for r in both
        ]
    )
    low, high = interval(gaps)
    return gaps.mean(axis=0), low, high


def goals(outcome: Outcome) -> tuple[str, tuple[float, ...]]:
    """Losses worth getting down to: 1.5 and 1.1 times the final mean loss of the line that learns nothing, and its name.

    Where there is no uniform choice the first line takes its place.
    """
    reference = outcome.get("uniform") or (outcome.lines[0] if outcome.lines else None)
    if reference is None:
        return "", ()
    return reference.label, tuple(factor * float(reference.final.mean()) for factor in NEAR)


def paired(first: Drawn, second: Drawn, at: int | None = None) -> Floats:
    """Loss of first minus that of second, in the replications both have: they met the same randomness.

    At the end, or at the step ``at``.
    """
    both = [r for r in first.replications if r in set(second.replications)]
    losses = [one.final if at is None else one.loss_at(at) for one in (first, second)]
    a = dict(zip(first.replications, losses[0], strict=True))
    b = dict(zip(second.replications, losses[1], strict=True))
    return np.array([a[r] - b[r] for r in both])
