"""A pause of Python's garbage collector while Numba compiles, or loads what it has compiled.

The compiler makes millions of small objects and keeps most; looking for garbage among them takes a tenth of its time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_pauses = 0  # of all threads
_was_enabled = False


def pause() -> None:
    """Until as many calls of `resume`, no garbage is collected, in any thread."""
    global _pauses, _was_enabled
    with _lock:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1


def resume() -> None:
    """The end of a pause."""
    global _pauses
    with _lock:
        _pauses -= 1
        if _pauses == 0 and _was_enabled:
            gc.enable()


@contextmanager
def collection_paused() -> Iterator[None]:
    """Within, no garbage is collected, in any thread.

    >>> with collection_paused():
    ...     gc.isenabled()
    False
    """
    pause()
    try:
        yield
    finally:
        resume()
