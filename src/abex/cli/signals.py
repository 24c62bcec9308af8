"""How a command ends when a person or the system stops it: with a word, a code, and without a long wait.

Python hands a signal to the main thread between two steps of its own. While the compiler or a kernel is at work there,
or threads that are at work are waited for, that may take half a minute. What a sweep has finished is stored at any
moment, so after a short grace, or at a second Ctrl-C, the process ends at once.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

GRACE = 2.0  # seconds for an orderly end
WORDS = {
    signal.SIGINT: "stopped",
    signal.SIGTERM: "abex: stopped by SIGTERM; what was finished is kept",
}


class Terminated(BaseException):
    """The system asks the process to end (SIGTERM); as with Ctrl-C, whatever is open is closed in good order."""


def code_of(number: int) -> int:
    """The exit code of a process that a signal ended, as shells count.

    >>> code_of(signal.SIGINT)
    130
    """
    return 128 + int(number)


@contextmanager
def exit_on_signal(watched: bool) -> Iterator[None]:
    """Within it SIGTERM raises `Terminated`, as Ctrl-C raises `KeyboardInterrupt`, in the main thread.

    Where it is ``watched`` the process ends `GRACE` seconds after a signal, or at the second one, whatever it is doing.
    """
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGTERM, _terminate)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watch = threading.Thread(target=_watch, args=(reader,), name="abex signals", daemon=True)
    watch.start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False) if watched else -1
    try:
        yield
    finally:
        if watched:
            signal.set_wakeup_fd(before)
        os.close(writer)  # the watch sees the end of the pipe and goes home
        watch.join()
        os.close(reader)
        signal.signal(signal.SIGTERM, handler)


def _terminate(number: int, frame: Any) -> None:
    raise Terminated


def _watch(reader: int) -> None:
    """Read the numbers of signals as the system writes them; this thread runs whatever the main one is stuck in."""
    while number := os.read(reader, 1):
        if number[0] not in WORDS:
            continue
        # the end of the work, a second signal, or the end of our patience
        heard = select.select([reader], [], [], GRACE)[0]
        if not heard or os.read(reader, 1):  # else the pipe is closed: the work has come to an end by itself
            _end(number[0])
        return


def _end(number: int) -> None:
    show_cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar may have hidden it
    os.write(2, show_cursor + WORDS[signal.Signals(number)].encode() + b"\n")
    os._exit(code_of(number))


def end_after(number: int) -> NoReturn:
    """End the process in good order after a signal, with a word, without waiting for a thread that does not listen.

    Python waits at its end for every thread, also for one in the depths of compiled code that nobody joins any more: a
    signal that arrives while a pool starts a thread leaves such a one behind.
    """
    print(WORDS[signal.Signals(number)], file=sys.stderr, flush=True)
    if any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread()):
        sys.stdout.flush()
        os._exit(code_of(number))
    sys.exit(code_of(number))
