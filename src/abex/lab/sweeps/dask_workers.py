"""Dask's workers as an executor: processes of this machine, or those that have joined a scheduler.

They compute, the client stores. A worker that dies takes only its unfinished batches along, and the scheduler gives those to
another. What would be silence for ever is said: that there is no worker, or one without abex.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from typing import Any

from abex.lab.sweeps.workers import CellWorker, check_worker
from abex.support.errors import UserError, shown
from abex.support.extras import needed

CONNECT_SECONDS = 10
WORD_SECONDS = 5.0  # without a worker until a person is told
WORKER_SECONDS = 300.0  # without a worker until the sweep ends
LOOK_SECONDS = 2.0  # between two looks at who has joined
ADDRESS = r"(tcp|tls|ws|wss|ucx|ucxx)://(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\]]+):\d{1,5}/?"
#: runs on a worker as plain text: nothing of ours must be there to understand it
WHO = "__import__('importlib').import_module('abex.lab.sweeps.workers').this_worker()"


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
