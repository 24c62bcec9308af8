"""A sweep: compute the cells that the store does not hold yet, and store each as soon as it is finished.

Several sweeps on one store share the work (`abex.lab.results.claims`): what another one has claimed is left to it, and
waited for at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain

from abex.lab.results import Cell, CellResult, Claims, Store, canonical, key_of
from abex.lab.sweeps.cells import Failure, name_of, work_of
from abex.lab.sweeps.executors import CellOutcome, executor_of, outcomes_of
from abex.support.errors import UserError

BATCH_SECONDS = 0.3  # shorter cells travel together: a task costs some milliseconds
MIN_SECONDS = 5e-4  # of a cell that computes nothing
MAX_DEATHS = 3  # of the workers of a cell that travels alone, until it is given up
LOOK = 0.3  # seconds between two looks at what another run is computing


@dataclass
class SweepStatus:
    """How far a sweep is: cells by what became of them, CPU seconds spent; one record, updated as it runs."""

    total: int
    stored: int = 0  # were there before
    computed: int = 0
    shared: int = 0  # another run has computed them meanwhile
    waiting: int = 0  # another run is computing them, and nothing else is left
    seconds: float = 0.0  # of CPU
    work: int = 0  # steps of the cells computed
    work_left: int = 0
    damaged: list[str] = field(default_factory=list)  # names of entries computed again
    failed: list[tuple[str, Failure]] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Cells not yet there."""
        return self.total - self.stored - self.computed - self.shared - len(self.failed)


def sweep(
    cells: Iterable[Cell],
    store: Store,
    executor: Executor | None = None,
    tell: Callable[[SweepStatus], None] = lambda status: None,
) -> SweepStatus:
    """Compute what is missing of ``cells``; returns what was done.

    Cells that fail do not stop the others. A mistake of the person (`UserError` inside a cell) does: it
    would hit the rest as well. Several sweeps on one store, of this process or others, share the work.

    ``executor`` is any executor of `concurrent.futures` and stays open; threads unless given. Cells whose worker died are tried
    again at the end, each by itself.

    Examples
    --------
    >>> import tempfile
    >>> from abex import UCB1
    >>> from abex.lab.sweeps.cells import bandit_cell
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
    status = SweepStatus(total=len(wanted), stored=len(there))
    status.damaged = [name_of(wanted[key]) for key in wanted if key in kept and key not in there]
    status.work_left = sum(map(work_of, missing))
    tell(status)
    if missing:
        running = executor_of() if executor is None else nullcontext(executor)
        with running as run, Claims(store.path) as claims:
            _Work(store, claims, run, status, tell).finish(missing)
    return status


@dataclass
class _Work:
    """What `sweep` does with the cells that are missing."""

    store: Store
    claims: Claims
    run: Executor
    status: SweepStatus
    tell: Callable[[SweepStatus], None]
    lost: list[Cell] = field(default_factory=list)  # by the last round
    fastest: dict[str, float] = field(default_factory=dict)  # seconds of a cell, by what replicates share
    deaths: Counter[str] = field(default_factory=Counter)  # of workers, by the key of a cell

    def finish(self, missing: list[Cell]) -> None:
        """Compute them, but for those that another run computes; wait for these, or take them over."""
        while missing:
            elsewhere: list[Cell] = []
            offers = self._offered(missing, elsewhere)
            first = next(offers, None)
            if first is not None:
                for outcomes in outcomes_of(self.run, chain([first], offers)):
                    self._keep(outcomes)
            missing = [*self._without_stored(elsewhere), *self.lost]
            self.lost.clear()
            if missing and first is None:
                self.status.waiting = len(missing)
                self.tell(self.status)
                time.sleep(LOOK)
        self.status.waiting = 0

    def _offered(self, missing: list[Cell], elsewhere: list[Cell]) -> Iterator[list[Cell]]:
        """Batches that are ours to compute; the rest is another run's."""
        for batch in batched(missing, self._seconds):
            ours = self.claims.take(key_of(cell) for cell in batch)
            elsewhere += [cell for cell in batch if key_of(cell) not in ours]
            todo = self._without_stored([cell for cell in batch if key_of(cell) in ours])
            self.claims.release(ours - {key_of(cell) for cell in todo})
            if todo:
                yield todo

    def _seconds(self, cell: Cell) -> float:
        """As long as the fastest of its replicates; the first of them, and one that has lost its worker, travel alone."""
        if key_of(cell) in self.deaths:
            return BATCH_SECONDS
        return self.fastest.get(replicates_of(cell), BATCH_SECONDS)

    def _without_stored(self, cells: list[Cell]) -> list[Cell]:
        """Those of the cells that are still missing; the others another run has stored since the last look."""
        there = self.store.read(key_of(cell) for cell in cells)
        for cell in cells:
            if key_of(cell) in there:
                self.status.shared += 1
                self.status.work_left -= work_of(cell)
        if there:
            self.tell(self.status)
        return [cell for cell in cells if key_of(cell) not in there]

    def _keep(self, outcomes: list[CellOutcome]) -> None:
        self.store.put((cell, outcome) for cell, outcome in outcomes if isinstance(outcome, CellResult))
        self.claims.release(key_of(cell) for cell, _ in outcomes)
        for cell, outcome in outcomes:
            if isinstance(outcome, Failure):
                if outcome.mistake:
                    raise UserError(f"{name_of(cell)}: {outcome.why}")
                if outcome.lost and self.deaths[key_of(cell)] < MAX_DEATHS:
                    self.deaths[key_of(cell)] += 1
                    self.lost.append(cell)
                    continue
                self.status.failed.append((name_of(cell), outcome))
            else:
                seconds, kin = float(outcome.measured.get("seconds", 0.0)), replicates_of(cell)
                self.fastest[kin] = min(seconds, self.fastest.get(kin, seconds))  # the first one has compiled
                self.status.computed += 1
                self.status.seconds += seconds
                self.status.work += work_of(cell)
            self.status.work_left -= work_of(cell)
        self.tell(self.status)


def raise_on_failure(status: SweepStatus) -> None:
    """Raise one sentence about the cells that failed, if any did."""
    if status.failed:
        name, failure = status.failed[0]
        raise UserError(
            f"{len(status.failed)} of {status.total} cells failed, the others are stored; the first was {name}: {failure.why}"
        )


def replicates_of(cell: Cell) -> str:
    """What a cell has in common with its other replications."""
    return canonical({name: value for name, value in cell.items() if name not in ("seed", "replication")})


def batched(cells: Sequence[Cell], seconds_of: Callable[[Cell], float]) -> Iterator[list[Cell]]:
    """Batches of neighbouring cells that last about `BATCH_SECONDS`."""
    batch: list[Cell] = []
    seconds = 0.0
    for cell in cells:
        more = max(MIN_SECONDS, seconds_of(cell))
        if batch and seconds + more > BATCH_SECONDS:
            yield batch
            batch, seconds = [], 0.0
        batch.append(cell)
        seconds += more
    if batch:
        yield batch
