"""Where cells are computed: threads or processes of this machine (or a Dask cluster, `cluster`). Same code, same numbers.

An executor takes batches of cells and yields, as they come, the outcomes of all that are ready; whoever consumes them is
the only one who writes. Abandoning the generator stops the work.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any

from abex.lab.results import Cell, Payload
from abex.lab.sweeps.cells import Failure, run_batch
from abex.lab.sweeps.workers import CellWorker, check_worker
from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.threads import as_completed

CellOutcome = tuple[Cell, "Payload | Failure"]
Executor = Callable[[Iterable[list[Cell]]], Iterator[list[CellOutcome]]]
#: a cell whose worker dies so often with nothing else running, after two deaths in company, is given up
LONE_DEATHS = 8
STARTS = 50  # tries to get a worker process to begin
ORPHAN_SECONDS = 0.5  # between two looks of a worker whether its parent is still there


def in_threads(workers: int) -> Executor:
    """Threads of this process: the kernels release the interpreter's lock."""

    def run(batches: Iterable[list[Cell]]) -> Iterator[list[CellOutcome]]:
        stop = threading.Event()
        with closing(
            as_completed(lambda batch: run_batch(batch, stop.is_set), batches, workers, stop)
        ) as groups:
            for group in groups:
                yield [one for batch, result in group for one in outcomes_of(batch, result)]

    return run


def in_processes(workers: int) -> Executor:
    """Processes of this machine, each a pool of its own: one that is killed takes nothing but its own batch along.

    The cells of that batch are suspect. They are tried again, each by itself; one whose worker dies again is tried
    at the end, with nothing else running: the machine is its own then. Only a cell whose worker dies `LONE_DEATHS` times
    even so is given up.
    """

    def run(batches: Iterable[list[Cell]]) -> Iterator[list[CellOutcome]]:
        with needed():
            from joblib.externals.loky import ProcessPoolExecutor

        waiting = iter(batches)
        suspects: deque[Cell] = deque()  # their worker died once
        lonely: deque[tuple[Cell, int]] = deque()  # again, and so often with nothing else running
        running: dict[Future[Any], tuple[Any, list[Cell], int | None]] = {}
        idle: list[Any] = []

        def new_pool() -> Any:
            return idle.pop() if idle else ProcessPoolExecutor(1, initializer=begin, initargs=(os.getpid(),))

        def start(batch: list[Cell], deaths: int | None) -> None:
            pool = new_pool()
            for _ in range(STARTS):
                try:
                    if deaths:  # what kills a worker before it has begun is not the cell
                        pool.submit(run_batch, []).result()
                    running[pool.submit(run_batch, batch)] = (pool, batch, deaths)
                    return
                except BrokenProcessPool:
                    pool.shutdown(wait=True, kill_workers=True)
                    pool = new_pool()
            raise UserError(
                "worker processes die before they begin to work: what was finished is stored, use --executor threads"
            )

        def start_all() -> None:
            while len(running) < workers:
                if suspects:
                    start([suspects.popleft()], 0)
                elif (batch := next(waiting, None)) is not None:
                    start(batch, None)
                else:
                    break
            if lonely and not running:
                cell, deaths = lonely.popleft()
                start([cell], deaths)

        def settled(future: Future[Any]) -> list[CellOutcome]:
            pool, batch, deaths = running.pop(future)
            try:
                result = future.result()
            except BrokenProcessPool:
                pool.shutdown(wait=True, kill_workers=True)
                if deaths is None:
                    suspects.extend(batch)
                elif deaths < LONE_DEATHS:
                    lonely.append((batch[0], deaths + 1))
                else:
                    return [(batch[0], Failure("its worker process died each time it was tried, also alone"))]
                return []
            idle.append(pool)
            return outcomes_of(batch, result)

        try:
            ready: list[CellOutcome] = []
            while True:
                start_all()  # before the consumer writes: workers do not wait for the disk
                if ready:
                    yield ready
                if not running:
                    return
                done = wait(running, return_when=FIRST_COMPLETED).done
                ready = [one for future in done for one in settled(future)]
        finally:
            for pool in (*idle, *(pool for pool, _, _ in running.values())):
                pool.shutdown(wait=False, kill_workers=True)

    return run


def begin(parent: int) -> None:
    """The first thing a worker process does: leave Ctrl-C to its parent, and promise to go when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_go_with, args=(parent,), daemon=True).start()


def _go_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_SECONDS)
    os._exit(1)


def outcomes_of(batch: list[Cell], result: tuple[CellWorker, list[Payload | Failure]]) -> list[CellOutcome]:
    """What became of each cell of a batch; a worker with other sources or versions is refused."""
    worker, outcomes = result
    check_worker(worker)
    return list(zip(batch, outcomes, strict=True))
