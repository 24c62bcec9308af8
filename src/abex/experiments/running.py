"""Running an experiment: choose parameters on validation, then compute the lines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abex.experiments.base import Experiment, Line
from abex.results import Cell, Store, key_of
from abex.sweeps.executors import Executor
from abex.sweeps.forecast import Forecast
from abex.sweeps.sweep import Progressed, sweep

Tell = Callable[[str, Progressed], None]  # what is being done, and how far it is


def tuning_cells(experiment: Experiment) -> list[Cell]:
    """The cells of every line that has a choice."""
    lines = [line for line in experiment.lines if len(line.candidates) > 1]
    return [
        cell for line in lines for text in line.candidates for cell in experiment.tuning_cells(line, text)
    ]


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
        means.append(float(np.mean([loss_of(payload.arrays, line.tuned_at) for payload in found.values()])))
    return line.candidates[int(np.argmin(means))]


def loss_of(arrays: dict[str, np.ndarray], at: int | None = None) -> float:
    """What a cell is judged by: its regret, or its smoothed error, at a step; at the end unless given."""
    losses = arrays["regret" if "regret" in arrays else "error"]
    return float(losses[-1] if at is None else np.interp(at, arrays["step"], losses))


def line_cells(experiment: Experiment, store: Store) -> list[Cell]:
    """The cells of all lines whose parameters are known."""
    picked = [(line, chosen(experiment, line, store)) for line in experiment.lines]
    return [cell for line, text in picked if text is not None for cell in experiment.cells(line, text)]


def run_experiment(
    experiment: Experiment,
    store: Store,
    executor: Executor | None = None,
    tell: Tell = lambda what, progressed: None,
) -> list[Progressed]:
    """Compute what the store does not hold of an experiment; returns what the sweeps did."""
    store.remember(experiment.id, experiment.to_json())
    states = []
    tuning = tuning_cells(experiment)
    if tuning:
        states.append(sweep(tuning, store, executor, lambda state: tell("tuning", state)))
    cells = line_cells(experiment, store)
    states.append(sweep(cells, store, executor, lambda state: tell("running", state)))
    return states


def plan(experiment: Experiment, store: Store) -> list[tuple[str, str, int, int, float]]:
    """For a dry run: (line, policy, cells, missing, estimated seconds) of each policy that will be played."""
    forecast = Forecast([], store)
    rows = []
    for line in experiment.lines:
        if len(line.candidates) > 1:
            for text in line.candidates:
                rows.append((f"{line.label} (tuning)", text, experiment.tuning_cells(line, text)))
        text = chosen(experiment, line, store) or line.candidates[0]
        undecided = chosen(experiment, line, store) is None
        name = f"the best of {len(line.candidates)}" if undecided else text
        rows.append((line.label, name, experiment.cells(line, text)))
    result = []
    for label, text, cells in rows:
        there = store.read(key_of(cell) for cell in cells)
        missing = [cell for cell in cells if key_of(cell) not in there]
        result.append(
            (label, text, len(cells), len(missing), sum(forecast.seconds(cell) for cell in missing))
        )
    return result
