"""A sweep: compute the cells that the store does not hold yet, and store each as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from abex.errors import UserError, one_of
from abex.results import Cell, Payload, Store, canonical, key_of
from abex.sweeps.cells import Failure, name_of
from abex.sweeps.executors import Executor, in_processes, in_threads, on_cluster

BATCH_SECONDS = 0.3  # shorter cells travel together: a task costs some milliseconds
LONGEST_BATCH = 32
EXECUTORS = ("threads", "processes")


@dataclass
class Progressed:
    """What a sweep tells while it runs; the same record each time, brought up to date."""

    total: int
    stored: int = 0  # were there before
    computed: int = 0
    work: float = 0.0  # estimated seconds of all missing cells
    done: float = 0.0  # estimated seconds of those computed
    seconds: float = 0.0  # of CPU, measured
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
    known = known_seconds(store) if missing else {}
    estimates = {key_of(cell): estimate(cell, known) for cell in missing}
    state.work = sum(estimates.values())
    tell(state)
    if not missing:
        return state
    run = executor_of() if executor is None else executor
    for outcomes in run(batched(missing, estimates)):
        finished = [(cell, outcome) for cell, outcome in outcomes if isinstance(outcome, Payload)]
        store.put(finished)
        for cell, outcome in outcomes:
            if isinstance(outcome, Failure):
                if outcome.mistake:
                    raise UserError(f"{name_of(cell)}: {outcome.why}")
                state.failed.append((name_of(cell), outcome))
            else:
                state.computed += 1
                state.seconds += float(outcome.measured.get("seconds", 0.0))
            state.done += estimates[key_of(cell)]
        tell(state)
    return state


def complain(state: Progressed) -> None:
    """Raise one sentence about the cells that failed, if any did."""
    if state.failed:
        name, failure = state.failed[0]
        raise UserError(
            f"{len(state.failed)} of {state.total} cells failed, the others are stored; the first was {name}: {failure.why}"
        )


def batched(cells: Sequence[Cell], estimates: dict[str, float]) -> Iterator[list[Cell]]:
    """Batches of neighbouring cells that last about `BATCH_SECONDS`."""
    batch: list[Cell] = []
    seconds = 0.0
    for cell in cells:
        batch.append(cell)
        seconds += estimates[key_of(cell)]
        if seconds >= BATCH_SECONDS or len(batch) == LONGEST_BATCH:
            yield batch
            batch, seconds = [], 0.0
    if batch:
        yield batch


# -- how long ----------------------------------------------------------------------------------------------


def estimate(cell: Cell, known: dict[str, float]) -> float:
    """Seconds of CPU a cell will take: as its kin did (`known_seconds`), else a rough guess."""
    kin = kin_of(cell)
    if kin in known:
        return known[kin]
    length = float(cell.get("horizon") or cell.get("iterations") or 0)
    per_step = {"bandit": 2e-6, "boosting": 1e-4}.get(str(cell.get("kind")), 0.0)
    return length * per_step if length else 0.1


def kin_of(cell: Cell) -> str:
    """What a cell has in common with its other replications."""
    return canonical({name: value for name, value in cell.items() if name not in ("seed", "replication")})


def known_seconds(store: Store) -> dict[str, float]:
    """Mean measured seconds of the cells in the store, by kin."""
    sums: dict[str, list[float]] = {}
    for cell, measured in store.measured():
        sums.setdefault(kin_of(cell), []).append(float(measured.get("seconds", 0.0)))
    return {kin: sum(values) / len(values) for kin, values in sums.items()}
