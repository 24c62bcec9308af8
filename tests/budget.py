"""CPU seconds of tests: a test that is not marked slow may take `MOST` of them where nothing is compiled.

What counts are the seconds of the process that runs the test, in all its threads, whatever else the machine does; not those of
programs that it starts, and not those of fixtures. A test during which something is compiled is not judged: the next run finds
that in the cache. Nor is anything judged where kernels are interpreted, or with ``ABEX_BUDGET=0``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

MOST = 5.0  # CPU seconds
TOLD = 2.0  # from here on a test is named
MOST_TOLD = 20
JUDGED = os.environ.get("ABEX_BUDGET", "1") != "0" and os.environ.get("NUMBA_DISABLE_JIT", "0") != "1"


class Cost(NamedTuple):
    """What a test took."""

    test: str
    seconds: float
    compiled: bool  # whether something was compiled meanwhile
    slow: bool  # whether it is marked so

    @property
    def is_too_much(self) -> bool:
        """Whether it fails the run."""
        return self.seconds > MOST and not (self.compiled or self.slow)

    def __str__(self) -> str:
        remark = (
            "compiled" if self.compiled else "slow" if self.slow else "TOO MUCH" if self.is_too_much else ""
        )
        return f"{self.seconds:7.1f} s  {self.test}" + (f" ({remark})" if remark else "")


@cache
def compilations() -> list[str]:
    """The functions that have been compiled from now on."""
    found: list[str] = []
    with suppress(ImportError):
        from numba.core import event

        class Compilations(event.Listener):
            def on_start(self, event: Any) -> None:
                found.append(str(event.data["dispatcher"]))

            def on_end(self, event: Any) -> None:
                pass

        event.register("numba:compile", Compilations())
    return found


class Meter:
    """Of a test that runs: ``with Meter() as meter: ...``, then ``meter.seconds`` and ``meter.compiled``."""

    def __enter__(self) -> Meter:
        self._compiled, self._began = len(compilations()), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.process_time() - self._began
        self.compiled = len(compilations()) > self._compiled


def told(costs: Iterable[Cost]) -> list[str]:
    """What to say at the end: the tests that took most, and all that took too much.

    >>> for line in told([Cost("a", 2.5, False, False), Cost("b", 9.0, False, False), Cost("c", 0.1, False, False)]):
    ...     print(line)
    CPU seconds:
        9.0 s  b (TOO MUCH)
        2.5 s  a
    1 test took more than 5 CPU seconds: make it smaller, or mark it slow
    """
    costs = sorted(costs, key=lambda cost: -cost.seconds)
    some = [
        cost for n, cost in enumerate(costs) if cost.is_too_much or (n < MOST_TOLD and cost.seconds > TOLD)
    ]
    many = sum(cost.is_too_much for cost in some)
    lines = ["CPU seconds:", *map(str, some)] if some else []
    if many:
        each, it = ("s", "them") if many > 1 else ("", "it")
        lines.append(
            f"{many} test{each} took more than {MOST:g} CPU seconds: make {it} smaller, or mark {it} slow"
        )
    return lines
