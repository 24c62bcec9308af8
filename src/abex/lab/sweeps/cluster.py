"""Cells on the workers of a Dask cluster. They compute, the client stores.

Results are released as they arrive, so a worker that dies takes only its unfinished batches along, and the
scheduler gives those to another. What would be silence for ever is said: that there is no worker, or one without abex.
"""

from __future__ import annotations

import logging
import queue
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from abex.lab.results import Cell
from abex.lab.sweeps.cells import Failure, run_batch
from abex.lab.sweeps.executors import CellOutcome, Executor, outcomes_of
from abex.lab.sweeps.workers import CellWorker, check_worker
from abex.support.errors import UserError, shown
from abex.support.extras import needed

CONNECT_SECONDS = 10
PATIENCE = 5.0  # seconds without a worker until a person is told
LOOK = 2.0  # seconds between two looks at who has joined
LOST_WORKERS = 3  # the scheduler gives up a cell after some deaths of its workers; so often we ask it again
ADDRESS = r"(tcp|tls|ws|wss|ucx|ucxx)://(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\]]+):\d{1,5}/?"
#: runs on a worker as plain text: nothing of ours must be there to understand it
WHO = "__import__('importlib').import_module('abex.lab.sweeps.workers').this_worker()"


def on_cluster(address: str, say: Callable[[str], None] | None = None) -> Executor:
    """The workers of the Dask scheduler at ``address`` (``tcp://host:port``); ``say`` gets what a person should know."""
    if not re.fullmatch(ADDRESS, address):
        raise UserError(
            f"--cluster {shown(address)} is no address of a Dask scheduler: write tcp://HOST:8786"
        )

    def run(batches: Iterable[list[Cell]]) -> Iterator[list[CellOutcome]]:
        client, distributed = _connect(address)
        crew = _Crew(client, address, say or _to_stderr)
        waiting = iter(batches)
        running: dict[Any, tuple[list[Cell], int]] = {}
        numbers = iter(range(10**12))
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def submit(batch: list[Cell], losses: int) -> None:
            future = client.submit(run_batch, batch, pure=False, key=f"abex-{id(running):x}-{next(numbers)}")
            running[future] = (batch, losses)
            future.add_done_callback(finished.put)

        try:
            while True:
                room = 2 * crew.wait_for_workers()
                while len(running) < room and (batch := next(waiting, None)) is not None:
                    submit(batch, 0)
                if not running:
                    return
                ready: list[CellOutcome] = []
                for future in _taken(finished):
                    batch, losses = running.pop(future)
                    try:
                        ready += outcomes_of(batch, future.result())
                    except distributed.KilledWorker as error:
                        if len(batch) > 1:  # which of them it was will show
                            for cell in batch:
                                submit([cell], losses)
                        elif losses + 1 < LOST_WORKERS:
                            submit(batch, losses + 1)
                        else:
                            ready.append((batch[0], Failure(f"its workers died: {error}")))
                    except (ImportError, AttributeError) as error:
                        raise UserError(
                            f"the workers of {address} cannot run abex ({error}): install the same version there"
                        ) from error
                    future.release()
                if ready:
                    yield ready
        except (distributed.CancelledError, OSError, TimeoutError) as error:
            raise UserError(
                f"lost the scheduler at {address}: what was finished is stored, run again to go on"
            ) from error
        finally:
            for future in running:
                future.release()
            with suppress(Exception):  # a scheduler that is gone cannot be taken leave of
                client.close(timeout=2)

    return run


def _taken(finished: queue.SimpleQueue[Any]) -> list[Any]:
    """All that are finished; none if that takes long, so that the workers are looked at now and then."""
    taken = []
    with suppress(queue.Empty):
        taken.append(finished.get(timeout=LOOK))
        while True:
            taken.append(finished.get_nowait())
    return taken


class _Crew:
    """The workers, as far as they can be seen from here."""

    def __init__(self, client: Any, address: str, say: Callable[[str], None]) -> None:
        self.client, self.address, self.say = client, address, say
        self.able: set[str] = set()  # those that have answered that they can run abex

    def wait_for_workers(self) -> int:
        """The number of their threads, as soon as there is one; each new worker is asked whether it has abex."""
        began, told = time.monotonic(), False
        while not (threads := self.client.nthreads()):
            if not told and time.monotonic() - began > PATIENCE:
                told = True
                self.say(
                    f"the scheduler at {self.address} has no worker: waiting for one (start it with `dask worker {self.address}`)"
                )
            time.sleep(0.2)
        new = set(threads) - self.able
        if new:
            self._ask(new)
        return sum(threads.values())

    def _ask(self, workers: set[str]) -> None:
        answers = self.client.run(eval, WHO, workers=sorted(workers), on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, ImportError | AttributeError):
                raise UserError(
                    f"the worker {worker} cannot run abex ({answer}): install the same version there"
                )
            if isinstance(answer, CellWorker):
                check_worker(answer)
                self.able.add(worker)


def _to_stderr(message: str) -> None:
    print(f"abex: {message}", file=sys.stderr, flush=True)


def _hush() -> None:
    """Dask reports lost connections at length, each of its modules by a logger of its own; we do in a line."""
    for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _connect(address: str) -> tuple[Any, Any]:
    with needed():
        import distributed
    _hush()
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # what an address can do wrong is without end
        raise UserError(
            f"no Dask scheduler answers at {address!r}: start one with `dask scheduler`, its address is tcp://HOST:8786"
        ) from error
    return client, distributed
