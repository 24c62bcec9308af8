"""Where cells are computed: through any executor of `concurrent.futures`. Same code, same numbers.

Threads of this process are the usual one; Dask's processes of this machine or of many are another, and a person may hand
over one of his own. Workers compute; whoever consumes the outcomes is the only one who writes.

A worker of Dask that dies takes only its unfinished batches along, and the scheduler gives those to another. What would be
silence for ever is said: that there is no worker, or one without abex.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

from abex.lab.results import Cell, CellResult
from abex.lab.sweeps.cells import CellWorker, Failure, run_batch, this_worker
from abex.support.errors import UserError, one_of, shown
from abex.support.extras import needed
from abex.support.jobs import LOST, Threads, as_completed, lost

CellOutcome = tuple[Cell, "CellResult | Failure"]
MIXED = "ABEX_MIXED_VERSIONS"
EXECUTORS = ("threads", "processes", "tcp://HOST:8786")
AGAIN = "what was finished is stored, run again to go on"
CONNECT_SECONDS = 10
WORD_SECONDS = 5.0  # without a worker until a person is told
WORKER_SECONDS = 300.0  # without a worker until the sweep ends
LOOK_SECONDS = 2.0  # between two looks at who has joined
ADDRESS = r"(tcp|tls|ws|wss|ucx|ucxx)://(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\]]+):\d{1,5}/?"
#: runs on a worker as plain text: nothing of ours must be there to understand it
WHO = "__import__('importlib').import_module('abex.lab.sweeps.cells').this_worker()"


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


def check_worker(worker: CellWorker) -> None:
    """Refuse a worker whose numbers may differ from those computed here; `MIXED` allows other versions, not other sources."""
    here = this_worker()
    differ = [name for name, version in here.versions.items() if worker.versions.get(name) != version]
    there = ", ".join(f"{name} {worker.versions.get(name, 'missing')}" for name in differ)
    ours = ", ".join(f"{name} {here.versions[name]}" for name in differ)
    if worker.sources != here.sources:
        what = f"another version of abex ({there or 'other sources'}{f', here {ours}' if ours else ''})"
        raise UserError(
            f"the worker on {worker.host} runs {what}, its numbers may differ: install the same one there"
        )
    if differ and os.environ.get(MIXED) != "1":
        raise UserError(
            f"the worker on {worker.host} has {there}, here is {ours}, its numbers may differ: install the same versions "
            f"there, or set {MIXED}=1"
        )


# -- Dask ----------------------------------------------------------------------------------------------------------


class DaskWorkers(Executor):
    """The workers of a Dask scheduler; ``say`` gets what a person should know meanwhile."""

    def __init__(self, client: Any, name: str, say: Callable[[str], None]) -> None:
        self._executor = client.get_executor(pure=False)
        self._client, self._name, self._say = client, name, say
        self._able: set[str] = set()  # those that have answered that they can run abex
        self._threads, self._looked, self._alone_since, self._told = 0, 0.0, 0.0, False

    def __str__(self) -> str:
        return f"the scheduler at {self._name}"

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Have the workers carry out a call."""
        future: Future[Any] = self._executor.submit(function, *arguments, **named)
        return future

    def room(self) -> int:
        """How many batches may be under way: two for each thread of the workers, whom this looks at now and then."""
        if time.monotonic() - self._looked > LOOK_SECONDS or not self._threads:
            self.look()
        return max(1, 2 * self._threads)

    def look(self) -> None:
        """Ask who is there. New workers must have abex; where nobody is for long, the wait has an end."""
        self._looked = time.monotonic()
        threads = self._client.nthreads()
        self._threads = sum(threads.values())
        if new := set(threads) - self._able:
            self._ask(new)
        if threads:
            self._alone_since, self._told = 0.0, False
            return
        self._alone_since = self._alone_since or self._looked
        alone = self._looked - self._alone_since
        join = f"`dask worker {self._name}`"
        if alone > WORKER_SECONDS:
            raise UserError(
                f"{self} has had no worker for {WORKER_SECONDS:.0f} seconds: start one with {join} and run again; "
                "what was finished is stored"
            )
        if alone > WORD_SECONDS and not self._told:
            self._told = True
            self._say(
                f"{self} has no worker: waiting for one up to {WORKER_SECONDS:.0f} seconds (start it with {join})"
            )

    def _ask(self, workers: set[str]) -> None:
        answers = self._client.run(eval, WHO, workers=sorted(workers), on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, ImportError | AttributeError):
                raise UserError(
                    f"the worker {worker} cannot run abex ({answer}): install the same version there"
                )
            if isinstance(answer, CellWorker):
                check_worker(answer)
                self._able.add(worker)


@contextmanager
def at_address(address: str, say: Callable[[str], None] | None = None) -> Iterator[DaskWorkers]:
    """The workers of the scheduler at ``address`` (``tcp://host:port``)."""
    if not re.fullmatch(ADDRESS, address):
        raise UserError(f"{shown(address)} is no address of a Dask scheduler: write tcp://HOST:8786")
    with needed():
        import distributed
    _hush()
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # what an address can do wrong is without end
        raise UserError(
            f"no Dask scheduler answers at {address!r}: start one with `dask scheduler`, its address is tcp://HOST:8786"
        ) from error
    try:
        yield DaskWorkers(client, address, say or _to_stderr)
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot be taken leave of
            client.close(timeout=2)


@contextmanager
def on_this_machine(processes: int) -> Iterator[DaskWorkers]:
    """So many processes of this machine; one that dies is replaced, and what it computed is given to another."""
    with needed():
        import distributed
    _hush()
    with (
        distributed.LocalCluster(
            n_workers=processes, threads_per_worker=1, memory_limit=0, dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        try:
            yield DaskWorkers(client, cluster.scheduler_address, _to_stderr)
        except BaseException:  # a process in the depths of compiled code would not listen
            for nanny in cluster.workers.values():
                nanny.auto_restart = False
                with suppress(OSError, TypeError):  # it has gone by itself
                    os.kill(nanny.pid, signal.SIGKILL)
            raise


def _to_stderr(message: str) -> None:
    print(f"abex: {message}", file=sys.stderr, flush=True)


def _hush() -> None:
    """Dask reports lost connections at length, each of its modules by a logger of its own; we do in a line."""
    for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
