"""Where cells are computed: threads, processes, or the workers of a Dask cluster. Same code, same numbers.

An executor takes batches of cells and yields, as they come, the outcomes of all that are ready; whoever consumes them is
the only one who writes. Abandoning the generator stops the work.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from abex.errors import UserError
from abex.kernels import source_stamp
from abex.results import Cell, Payload
from abex.sweeps.cells import Failure, run_batch

Outcome = tuple[Cell, "Payload | Failure"]
Executor = Callable[[Iterable[list[Cell]]], Iterator[list[Outcome]]]
LONE_DEATHS = 2  # a cell that kills its worker so often, alone in the pool, is given up
LOST_WORKERS = 5  # a batch whose workers died so often is given up
CONNECT_SECONDS = 10


def in_threads(workers: int) -> Executor:
    """Threads of this process: the kernels release the interpreter's lock."""

    def run(batches: Iterable[list[Cell]]) -> Iterator[list[Outcome]]:
        stop = threading.Event()
        waiting = iter(batches)
        running: dict[Future[Any], list[Cell]] = {}
        with ThreadPoolExecutor(workers, thread_name_prefix="abex") as pool:
            try:
                while True:
                    while len(running) < 2 * workers and (batch := next(waiting, None)) is not None:
                        running[pool.submit(run_batch, batch, stop.is_set)] = batch
                    if not running:
                        return
                    done = wait(running, return_when=FIRST_COMPLETED).done
                    yield [one for future in done for one in _outcomes(running.pop(future), future.result())]
            finally:
                stop.set()
                for future in running:
                    future.cancel()

    return run


def in_processes(workers: int) -> Executor:
    """Processes of this machine; a pool that a killed worker has broken is restarted.

    What was in flight when a pool broke is suspect and is tried again one batch at a time, then cell by
    cell: a cell that kills its worker again and again is given up, and nothing else with it.
    """

    def run(batches: Iterable[list[Cell]]) -> Iterator[list[Outcome]]:
        from joblib.externals.loky import get_reusable_executor

        waiting = iter(batches)
        suspects: deque[tuple[list[Cell], int]] = deque()
        running: dict[Future[Any], tuple[list[Cell], int]] = {}
        pool = get_reusable_executor(max_workers=workers, reuse=False)
        try:
            while True:
                if suspects:
                    if not running:
                        batch, deaths = suspects.popleft()
                        running[pool.submit(run_batch, batch)] = (batch, deaths)
                else:
                    while len(running) < 2 * workers and (new := next(waiting, None)) is not None:
                        running[pool.submit(run_batch, new)] = (new, 0)
                if not running:
                    return
                ready: list[Outcome] = []
                broken = False
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    batch, deaths = running.pop(future)
                    try:
                        ready += _outcomes(batch, future.result())
                    except BrokenProcessPool:
                        broken = True
                        alone = not running and len(batch) == 1
                        if alone and deaths + 1 > LONE_DEATHS:
                            ready.append(
                                (batch[0], Failure("its worker process died each time it was tried"))
                            )
                        else:
                            suspects.extend(([cell], deaths + 1) for cell in batch)
                if broken:
                    for future, (batch, deaths) in list(running.items()):
                        if future.done() and future.exception() is None:
                            ready += _outcomes(batch, future.result())
                        else:
                            suspects.extend(([cell], deaths + 1) for cell in batch)
                    running.clear()
                    pool = get_reusable_executor(max_workers=workers, reuse=False, kill_workers=True)
                yield ready
        finally:
            pool.shutdown(wait=True, kill_workers=bool(running))

    return run


def on_cluster(address: str) -> Executor:
    """The workers of the Dask scheduler at ``address`` (``tcp://host:port``); they compute, the client stores.

    Results are released as they arrive, so a worker that dies takes only its unfinished batches along, and the
    scheduler gives those to another.
    """

    def run(batches: Iterable[list[Cell]]) -> Iterator[list[Outcome]]:
        client, distributed = _connect(address)
        waiting = iter(batches)
        running: dict[Any, tuple[list[Cell], int]] = {}
        numbers = iter(range(10**12))

        def submit(batch: list[Cell], losses: int) -> Any:
            future = client.submit(run_batch, batch, pure=False, key=f"abex-{id(running):x}-{next(numbers)}")
            running[future] = (batch, losses)
            return future

        finished = distributed.as_completed(loop=client.loop)
        try:
            while True:
                room = 2 * max(1, sum(client.nthreads().values()))
                while len(running) < room and (batch := next(waiting, None)) is not None:
                    finished.add(submit(batch, 0))
                if not running:
                    return
                ready: list[Outcome] = []
                for future in finished.next_batch():
                    batch, losses = running.pop(future)
                    try:
                        ready += _outcomes(batch, future.result())
                    except distributed.KilledWorker as error:
                        if losses + 1 >= LOST_WORKERS:
                            ready += [(cell, Failure(f"its workers died: {error}")) for cell in batch]
                        else:
                            finished.add(submit(batch, losses + 1))
                    except (ImportError, AttributeError) as error:
                        raise UserError(
                            f"the workers of {address} cannot run abex ({error}): install the same version there"
                        ) from error
                    future.release()
                yield ready
        except (distributed.CancelledError, OSError, TimeoutError) as error:
            raise UserError(
                f"lost the scheduler at {address}: what was finished is stored, run again to go on"
            ) from error
        finally:
            for future in running:
                future.release()
            client.close(timeout=2)

    return run


def _connect(address: str) -> tuple[Any, Any]:
    try:
        import distributed
    except ImportError as error:
        raise UserError("--cluster needs Dask: pip install 'abex[cluster]'") from error
    import logging

    logging.getLogger("distributed").setLevel(
        logging.CRITICAL
    )  # it reports lost connections at length; we do in a line
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(
            f"no Dask scheduler answers at {address!r}: start one with `dask scheduler`, its address is tcp://HOST:8786"
        ) from error
    return client, distributed


def _outcomes(batch: list[Cell], result: tuple[str, list[Payload | Failure]]) -> list[Outcome]:
    stamp, outcomes = result
    if stamp != source_stamp():
        raise UserError(
            "a worker runs another version of abex, its numbers may differ: install the same one there"
        )
    return list(zip(batch, outcomes, strict=True))
