"""Jobs on threads of this process; compiled kernels release the interpreter's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def as_completed(
    function: Callable[[Job], Result], jobs: Iterable[Job], threads: int, stop: threading.Event
) -> Generator[list[tuple[Job, Result]]]:
    """``(job, function(job))`` of all jobs over threads, in groups of those that are ready.

    Jobs are taken as there is room for them, two for each thread. Where a job fails, or whoever consumes the results gives
    up (Ctrl-C), ``stop`` is set, which a long job should look at, and no further job begins.

    >>> stop = threading.Event()
    >>> sorted(pair for group in as_completed(abs, [-1, 2, -3], 2, stop) for pair in group)
    [(-3, 3), (-1, 1), (2, 2)]
    """
    waiting = iter(jobs)
    running: dict[Future[Result], Job] = {}
    with ThreadPoolExecutor(threads, thread_name_prefix="abex") as pool:
        try:
            while True:
                for job in waiting:
                    running[pool.submit(function, job)] = job
                    if len(running) >= 2 * threads:
                        break
                if not running:
                    return
                done = wait(running, return_when=FIRST_COMPLETED).done
                yield [(running.pop(future), future.result()) for future in done]
        finally:
            stop.set()
            for future in running:
                future.cancel()
