"""Running an experiment: choose parameters on validation, then compute the lines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

import numpy as np

from abex.lab.experiments.experiment import Experiment, Line, brief
from abex.lab.results import Cell, Store, key_of
from abex.lab.sweeps.bandit_cells import rows_of
from abex.lab.sweeps.sweep import SweepStatus, sweep
from abex.lab.sweeps.task import Task

STILL_FALLING = 0.01  # of the loss: what the rest of a run must bring, or the line has stopped falling
Tell = Callable[[str, SweepStatus], None]  # what is being done, and how far it is


def tuning_cells(experiment: Experiment) -> list[Cell]:
    """The cells of every line that has a choice, of parameters or of where it ends."""
    lines = [line for line in experiment.lines if has_choice(line)]
    return [
        cell for line in lines for text in line.candidates for cell in experiment.tuning_cells(line, text)
    ]


def has_choice(line: Line) -> bool:
    """Whether validation runs decide about a line."""
    return len(line.candidates) > 1 or line.plateau


def chosen(experiment: Experiment, line: Line, store: Store) -> str | None:
    """The candidate with the least mean loss on validation; None while some of it is missing.

    Ties go to the candidate named first: equal algorithms under two names are not told apart by luck.
    """
    if len(line.candidates) == 1:
        return line.candidates[0]
    means = []
    for text in line.candidates:
        cells = experiment.tuning_cells(line, text)
        found = store.read(key_of(cell) for cell in cells)
        if len(found) < len(cells):
            return None
        runs = [run for cell in cells for _, run in rows_of(cell, found[key_of(cell)])]
        means.append(float(np.mean([loss_of(experiment.task, run.arrays, line.tuned_at) for run in runs])))
    return line.candidates[int(np.argmin(means))]


def plateau(experiment: Experiment, line: Line, store: Store) -> tuple[int, bool] | None:
    """Where the mean loss of a line on validation has stopped falling, and whether it has; None while it is not known.

    That is the first checkpoint whose loss no later one undercuts by more than `STILL_FALLING` of it, or by more than
    `FEW_ROWS` of the validation rows, which are too few to tell a fall from chance, if the run went on for at least as
    long again: more work brings next to nothing. Where there is none, the last checkpoint.
    """
    cells = experiment.tuning_cells(line, line.candidates[0])
    found = store.read(key_of(cell) for cell in cells)
    if len(found) < len(cells):
        return None
    runs = [run.arrays for cell in cells for _, run in rows_of(cell, found[key_of(cell)])]
    steps = runs[0]["step"]
    losses = np.mean([experiment.task.losses(run) for run in runs], axis=0)
    return plateau_of(steps, losses, experiment.task.slack(cells))


def plateau_of(steps: np.ndarray, losses: np.ndarray, slack: float = 0.0) -> tuple[int, bool]:
    """The first step whose loss is not undercut later, with at least as many steps to come, and whether there is one.

    Falls by less than ``slack`` do not count.

    >>> plateau_of(np.array([1, 2, 4, 8, 16]), np.array([9.0, 5.0, 4.0, 4.0, 4.0]))
    (4, True)
    >>> plateau_of(np.array([1, 2, 4]), np.array([9.0, 5.0, 4.0]))
    (4, False)
    >>> plateau_of(np.array([1, 2, 4]), np.array([9.0, 5.0, 4.0]), slack=1.0)
    (2, True)
    """
    for step, loss in zip(steps, losses, strict=True):
        fall = max(STILL_FALLING * loss, slack)
        if 2 * step <= steps[-1] and (losses[steps > step] >= loss - fall).all():
            return int(step), True
    return int(steps[-1]), False


def loss_of(task: Task, arrays: dict[str, np.ndarray], at: int | None = None) -> float:
    """What a run is judged by: its loss at a step; at the end unless given."""
    losses = task.losses(arrays)
    return float(losses[-1] if at is None else np.interp(at, arrays["step"], losses))


def line_cells(experiment: Experiment, store: Store) -> list[Cell]:
    """The cells of all lines whose parameters are known."""
    picked = [(line, chosen(experiment, line, store)) for line in experiment.lines]
    return [cell for line, text in picked if text is not None for cell in experiment.cells(line, text)]


def run_experiment(
    experiment: Experiment,
    store: Store,
    executor: Executor | None = None,
    tell: Tell = lambda what, status: None,
) -> list[SweepStatus]:
    """Compute what the store does not hold of an experiment; returns what the sweeps did.

    ``executor`` is any executor of `concurrent.futures`; threads of this process unless given.
    """
    store.save_experiment(experiment.id, experiment.to_json())
    statuses = []
    tuning = tuning_cells(experiment)
    if tuning:
        statuses.append(sweep(tuning, store, executor, lambda status: tell("tuning", status)))
    cells = line_cells(experiment, store)
    statuses.append(sweep(cells, store, executor, lambda status: tell("running", status)))
    return statuses


def plan(experiment: Experiment, store: Store) -> list[tuple[str, str, int, int]]:
    """For a dry run: (line, policy, cells, missing) of each policy that will be played."""
    rows = []
    for line in experiment.lines:
        if has_choice(line):
            for text in line.candidates:
                rows.append((f"{line.label} (tuning)", brief(text), experiment.tuning_cells(line, text)))
        picked = chosen(experiment, line, store)
        name = brief(picked) if picked else f"the best of {len(line.candidates)}"
        rows.append((line.label, name, experiment.cells(line, picked or line.candidates[0])))
    return [
        (label, text, len(cells), len(cells) - len(store.read(map(key_of, cells))))
        for label, text, cells in rows
    ]
