"""Who wants to know that something is being compiled, or wants it to stop.

Numba compiles in the thread that calls, without a word and without an end to wait for. It does announce each pass
of the compiler, which is enough for both: after `PATIENCE` seconds those who asked are told, and a thread whose work is to
stop leaves the compiler before its next pass. A pass of LLVM itself cannot be left; the longest takes about a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakSet

PATIENCE = 0.3  # seconds of compiling about which nobody is told

Teller = Callable[[str, bool], None]  # of a name, and whether the code is kept on disk

_told: list[Teller] = []
kept_on_disk: WeakSet[Any] = WeakSet()  # compiled functions


class _Thread(threading.local):
    """What a thread is compiling."""

    what: str | None = None
    stopped: Callable[[], bool] | None = None
    depth = 0
    timer: threading.Timer | None = None  # until it is told


_here = _Thread()


class CompilationStopped(BaseException):
    """What was being compiled is not wanted any more."""


@contextmanager
def on_compiling(tell: Teller) -> Iterator[None]:
    """Within, ``tell(name, kept)`` of all that takes more than a moment to compile, in any thread, once for each name."""
    names: set[str] = set()

    def once(what: str, kept: bool) -> None:
        if what not in names:
            names.add(what)
            tell(what, kept)

    _told.append(once)
    try:
        yield
    finally:
        _told.remove(once)


@contextmanager
def compile_as(what: str, stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Within, what this thread compiles is called ``what``, and is left with `CompilationStopped` once ``stopped()``."""
    before = _here.what, _here.stopped
    _here.what, _here.stopped = what, stopped
    try:
        yield
    finally:
        _here.what, _here.stopped = before


@cache
def watch() -> None:
    """Listen to Numba."""
    from numba.core import event

    class Compilations(event.Listener):  # type: ignore[misc]
        """Tells that a function takes long to compile."""

        def on_start(self, started: Any) -> None:
            """A function, or one inside it."""
            _here.depth += 1
            if _here.depth == 1 and _told:
                function = started.data.get("dispatcher")
                kept = function in kept_on_disk
                _here.timer = threading.Timer(PATIENCE, _tell, [_here.what or _part(function), kept])
                _here.timer.daemon = True
                _here.timer.start()

        def on_end(self, ended: Any) -> None:
            """It is compiled, or will not be."""
            _here.depth -= 1
            if _here.depth == 0 and _here.timer is not None:
                _here.timer.cancel()
                _here.timer = None

    class Passes(event.Listener):  # type: ignore[misc]
        """Leaves the compiler when it is asked to."""

        def on_start(self, started: Any) -> None:
            """A pass."""
            if _here.stopped is not None and _here.stopped():
                raise CompilationStopped

        def on_end(self, ended: Any) -> None:
            """A pass."""

    event.register("numba:compile", Compilations())
    event.register("numba:run_pass", Passes())


def _part(function: Any) -> str:
    """The part of the package that a function belongs to, such as "boosting"."""
    return str(getattr(function, "__module__", "")).removeprefix("abex.").split(".")[0] or "a function"


def _tell(what: str, kept: bool) -> None:
    for tell in list(_told):
        tell(what, kept)
