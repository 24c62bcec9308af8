"""A sweep: compute the cells that the store does not hold yet, and store each as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from abex.errors import UserError, one_of
from abex.results import Cell, Payload, Store, key_of
from abex.sweeps.cells import Failure, name_of
from abex.sweeps.executors import Executor, in_processes, in_threads, on_cluster
from abex.sweeps.forecast import Forecast

BATCH_SECONDS = 0.3  # shorter cells travel together: a task costs some milliseconds
LONGEST_BATCH = 32
EXECUTORS = ("threads", "processes")


@dataclass
class Progressed:
    """What a sweep tells while it runs; the same record each time, brought up to date."""

    total: int
    stored: int = 0  # were there before
    computed: int = 0
    seconds: float = 0.0  # of CPU, measured
    seconds_left: float = 0.0  # of CPU, estimated
    damaged: list[str] = field(default_factory=list)  # names of entries computed again
    failed: list[tuple[str, Failure]] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Cells not yet there."""
        return self.total - self.stored - self.computed - len(self.failed)


def executor_of(kind: str = "threads", workers: int | None = None, cluster: str | None = None) -> Executor:
    """The executor a person asked for."""
    from abex.simulation import workers_or_all

    if cluster is not None:
        return on_cluster(cluster)
    count = workers_or_all(workers)
    return in_processes(count) if one_of("executor", kind, EXECUTORS) == "processes" else in_threads(count)


def sweep(
    cells: Iterable[Cell],
    store: Store,
    executor: Executor | None = None,
    tell: Callable[[Progressed], None] = lambda progressed: None,
) -> Progressed:
    """Compute what is missing of ``cells``; returns what was done.

    Cells that fail do not stop the others. A mistake of the person (`UserError` inside a cell) does: it
    would hit the rest as well.

    Examples
    --------
    >>> import tempfile
    >>> from abex import UCB1
    >>> from abex.sweeps.cells import bandit_cell
    >>> problem = {"environment": {"name": "Bernoulli", "means": [0.9, 0.1]}}
    >>> cells = [bandit_cell(UCB1(), problem, horizon=100, checkpoints=5, seed=1, replication=r) for r in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder + "/cells.sqlite") as store:
    ...     first, second = sweep(cells, store), sweep(cells, store)
    >>> (first.computed, second.computed, second.stored)
    (3, 0, 3)
    """
    wanted = {key_of(cell): cell for cell in cells}
    there = store.read(wanted)
    kept = store.keys()
    missing = [cell for key, cell in wanted.items() if key not in there]
    state = Progressed(total=len(wanted), stored=len(there))
    state.damaged = [name_of(wanted[key]) for key in wanted if key in kept and key not in there]
    forecast = Forecast(missing, store if missing else None)
    state.seconds_left = forecast.left
    tell(state)
    if not missing:
        return state
    run = executor_of() if executor is None else executor
    for outcomes in run(batched(missing, forecast.seconds)):
        finished = [(cell, outcome) for cell, outcome in outcomes if isinstance(outcome, Payload)]
        store.put(finished)
        for cell, outcome in outcomes:
            if isinstance(outcome, Failure):
                if outcome.mistake:
                    raise UserError(f"{name_of(cell)}: {outcome.why}")
                state.failed.append((name_of(cell), outcome))
                forecast.learn(cell, 0.0)
            else:
                state.computed += 1
                forecast.learn(cell, float(outcome.measured.get("seconds", 0.0)))
        state.seconds, state.seconds_left = forecast.done, forecast.left
        tell(state)
    return state


def complain(state: Progressed) -> None:
    """Raise one sentence about the cells that failed, if any did."""
    if state.failed:
        name, failure = state.failed[0]
        raise UserError(
            f"{len(state.failed)} of {state.total} cells failed, the others are stored; the first was {name}: {failure.why}"
        )


def batched(cells: Sequence[Cell], seconds_of: Callable[[Cell], float]) -> Iterator[list[Cell]]:
    """Batches of neighbouring cells that last about `BATCH_SECONDS`."""
    batch: list[Cell] = []
    seconds = 0.0
    for cell in cells:
        batch.append(cell)
        seconds += seconds_of(cell)
        if seconds >= BATCH_SECONDS or len(batch) == LONGEST_BATCH:
            yield batch
            batch, seconds = [], 0.0
    if batch:
        yield batch
