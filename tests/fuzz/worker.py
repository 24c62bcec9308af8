"""Runs the cases of a plan one after the other and tells after each what came of it; it may crash or hang, its parent looks on.

The plan is a list of [format, first, count]; cases are numbered by format, in blocks of `BLOCK` with a stream of their own, so
that any case can be made again by its number.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from abex.support.reading import max_bytes
from tests.fuzz.formats import ALL

BLOCK = 500
OVER = 3  # times ABEX_MAX_BYTES: what a case may take at its most
CLEAR = Path("/proc/self/clear_refs")
BROKEN = 70  # exit code where a generator fails


class Hang(BaseException):
    """A case takes longer than its limit."""


def numbered(name: str, seed: int, first: int, count: int) -> Iterator[tuple[int, Any]]:
    """Cases first .. first + count - 1 of a format."""
    cases, _ = ALL[name].functions()
    number = first
    while number < first + count:
        block, place = divmod(number, BLOCK)
        rng = np.random.default_rng([seed, list(ALL).index(name), block])
        stop = min(BLOCK, place + first + count - number)
        for case in islice(cases(rng), place, stop):
            yield number, case
            number += 1


def sound(cases: Iterator[Any]) -> Iterator[Any]:
    """The cases; a generator that fails is a mistake of ours, not a finding."""
    try:
        yield from cases
    except Exception:
        traceback.print_exc()
        sys.exit(BROKEN)


def outcome_of(run: Any, case: Any, limit: float) -> str:
    """What came of a case: "worked", "refused", or what went wrong."""
    signal.setitimer(signal.ITIMER_PROF, limit)  # of CPU time: other people's work is no hang
    try:
        return str(run(case))
    except Hang:
        return f"failed: it took more than {limit:g} s at {_place(sys.exc_info()[2])}"
    except Exception as error:
        return f"failed: {type(error).__name__} at {_place(error.__traceback__)}: {str(error)[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Memory:
    """What calls take at their most, above what the process had before."""

    def __init__(self, most: int) -> None:
        self._most = most  # bytes

    def judged(self, function: Callable[[], str]) -> str:
        """The outcome of a call, or that it took too much; what is imported or compiled at first is not its own."""
        outcome, taken = self._peak(function)
        if taken > self._most / OVER:
            self._give_back()
        if taken > self._most and not outcome.startswith("failed"):
            outcome, taken = self._peak(function)
            self._give_back()
            if taken > self._most:
                return f"failed: it took {taken / 1e6:.0f} MB, {OVER} times {self._most / OVER / 1e6:.0f} are allowed"
        return outcome

    def _peak(self, function: Callable[[], str]) -> tuple[str, int]:
        if not CLEAR.exists():  # not a Linux
            return function(), 0
        CLEAR.write_text("5")
        before = self._told("VmRSS")
        outcome = function()
        return outcome, self._told("VmHWM") - before

    def _told(self, name: str) -> int:
        found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found
        return 1024 * int(found[1])

    def _give_back(self) -> None:
        """To the system what is free: else the next case would find it and seem to take less."""
        gc.collect()
        if "pyarrow" in sys.modules:
            sys.modules["pyarrow"].default_memory_pool().release_unused()
        if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)


def _place(trace: Any) -> str:
    frames = traceback.extract_tb(trace)
    ours = [frame for frame in frames if f"{os.sep}abex{os.sep}" in frame.filename] or frames
    return f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"


def main() -> None:
    """``python -m tests.fuzz.worker SEED LIMIT MEMORY PLAN``: a JSON line for each case."""
    seed, limit, room, plan = (
        int(sys.argv[1]),
        float(sys.argv[2]),
        int(sys.argv[3]),
        json.loads(sys.argv[4]),
    )
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    memory = Memory(OVER * max_bytes())

    def alarm(*arguments: Any) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, alarm)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    for name, first, count in plan:
        answers.write(json.dumps([name, -1, "begins"]) + "\n")
        _, run = ALL[name].functions()
        for number, case in sound(numbered(name, seed, first, count)):
            patience = limit if number > first else 10 * limit  # the first one imports, and may compile
            outcome = memory.judged(partial(outcome_of, run, case, patience))
            answers.write(json.dumps([name, number, outcome]) + "\n")


if __name__ == "__main__":
    main()
