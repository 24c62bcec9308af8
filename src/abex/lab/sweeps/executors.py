"""Where cells are computed: through any executor of `concurrent.futures`. Same code, same numbers.

Threads of this process are the usual one; Dask's processes of this machine or of many are another
(`abex.lab.sweeps.dask_workers`), and a person may hand over one of his own. Workers compute; whoever consumes the outcomes is
the only one who writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import partial

from abex.lab.results import Cell, CellResult
from abex.lab.sweeps.cells import Failure, run_batch
from abex.lab.sweeps.dask_workers import DaskWorkers, at_address, on_this_machine
from abex.lab.sweeps.workers import check_worker
from abex.support.errors import UserError, one_of
from abex.support.jobs import LOST, Threads, as_completed, lost

CellOutcome = tuple[Cell, "CellResult | Failure"]
EXECUTORS = ("threads", "processes", "tcp://HOST:8786")
AGAIN = "what was finished is stored, run again to go on"


def executor_of(where: str = "threads", workers: int | None = None) -> AbstractContextManager[Executor]:
    """The executor that a person asks for, as a context that ends it: threads, processes, or a Dask scheduler's address."""
    from abex.simulation import workers_or_all

    if "://" in where:
        return at_address(where)
    count = workers_or_all(workers)
    return on_this_machine(count) if one_of("executor", where, EXECUTORS) == "processes" else Threads(count)


def outcomes_of(executor: Executor, batches: Iterable[list[Cell]]) -> Iterator[list[CellOutcome]]:
    """What becomes of each cell, as it comes. A cell whose worker died is a `Failure` that is ``lost``."""
    if not isinstance(executor, Executor):
        raise UserError(f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}")
    if isinstance(executor, Threads):
        run, room = partial(run_batch, stopped=executor.stop.is_set), 2 * executor.threads
        groups = as_completed(executor, run, batches, lambda: room)
    elif isinstance(executor, DaskWorkers):
        groups = as_completed(executor, run_batch, batches, executor.room, executor.look)
    else:
        groups = as_completed(executor, run_batch, batches)
    try:
        for group in groups:
            ready: list[CellOutcome] = []
            for batch, future in group:
                try:
                    worker, outcomes = future.result()
                except LOST:
                    raise
                except (ImportError, AttributeError) as error:
                    raise UserError(
                        f"a worker cannot run abex ({error}): install the same version there"
                    ) from error
                except (
                    Exception
                ) as error:  # what happens within a cell is an outcome: this happened to its worker
                    outcomes = [Failure(f"its worker died: {error}", lost=True)] * len(batch)
                else:
                    check_worker(worker)
                ready += zip(batch, outcomes, strict=True)
            yield ready
    except LOST as error:
        raise lost(executor, AGAIN) from error
    finally:
        groups.close()
