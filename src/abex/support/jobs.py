"""Jobs through an executor of `concurrent.futures`: threads of this process, or the executor that a person hands over."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

from abex.support.errors import UserError

Job = TypeVar("Job")
Result = TypeVar("Result")
MANY = 256  # jobs under way on an executor that does not say how many it computes at a time
LOOK_SECONDS = 2.0  # without a result until ``idle`` is called


class Threads(ThreadPoolExecutor):
    """Threads of this process, which compiled kernels keep busy; long jobs look at ``stop``, which is set at the end."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads, thread_name_prefix="abex")
        self.threads, self.stop = threads, threading.Event()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self.shutdown(wait=True, cancel_futures=True)


def as_completed(
    executor: Executor,
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    room: Callable[[], int] = lambda: MANY,
    idle: Callable[[], None] = lambda: None,
) -> Generator[list[tuple[Job, Future[Result]]]]:
    """``(job, future of function(job))`` of all jobs through an executor, in groups of those that are ready.

    Jobs are taken as there is ``room`` for them. Where whoever consumes the results gives up (an error, Ctrl-C), no further
    job begins. ``idle`` is called every two seconds in which nothing is ready.

    >>> with Threads(2) as threads:
    ...     groups = list(as_completed(threads, abs, [-1, 2, -3], lambda: 2 * threads.threads))
    >>> sorted((job, future.result()) for group in groups for job, future in group)
    [(-3, 3), (-1, 1), (2, 2)]
    """
    waiting = iter(jobs)
    running: dict[Future[Result], Job] = {}
    finished: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
    try:
        while True:
            for _ in range(room() - len(running)):
                for job in waiting:
                    future = executor.submit(function, job)
                    running[future] = job
                    future.add_done_callback(finished.put)
                    break
            if not running:
                return
            if ready := _taken(finished):
                yield [(running.pop(future), future) for future in ready]
            else:
                idle()
    finally:
        for future in running:
            future.cancel()


def _taken(finished: queue.SimpleQueue[Future[Result]]) -> list[Future[Result]]:
    """All that are finished; none if that takes long."""
    taken = []
    with suppress(queue.Empty):
        taken.append(finished.get(timeout=LOOK_SECONDS))
        while True:
            taken.append(finished.get_nowait())
    return taken


def lost(executor: Executor, then: str) -> UserError:
    """The sentence for an executor that computes no more: its pool is broken, or it has cancelled what it was given."""
    name = str(executor) if type(executor).__str__ is not object.__str__ else type(executor).__name__
    return UserError(f"lost {name}: {then}")


LOST = (BrokenExecutor, CancelledError, OSError, TimeoutError)
