"""The thread that looks after a shared player: writes its decisions soon, lets decisions expire, takes snapshots."""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import Any

from abex.support.errors import UserError

SOON = 0.05  # seconds until a decision is written, unless a reward takes it along
NOW_AND_THEN = 1.0  # seconds between looks at what may have expired
LONGEST = 2.0  # seconds between attempts to reach a store that is away

_open: weakref.WeakSet[Any] = weakref.WeakSet()


class Tender:
    """A daemon thread that holds its player weakly and ends with it."""

    def __init__(self, player: Any) -> None:
        self._player = weakref.ref(player)
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"abex {player.name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to do soon."""
        if not self._wake.is_set():
            self._wake.set()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        pause = SOON
        while not self._stop.is_set():
            if self._wake.wait(NOW_AND_THEN):
                self._stop.wait(pause)  # what happens meanwhile goes along
                self._wake.clear()
            player = self._player()
            if player is None or self._stop.is_set():
                return
            try:
                fine = player._tend()
            except UserError:
                fine = False
            pause = SOON if fine else min(LONGEST, 2.0 * pause)
            if not fine:
                self._wake.set()
            del player


def start(player: Any) -> Tender:
    """A tender for ``player``."""
    _open.add(player)
    return Tender(player)


@atexit.register
def _close_all() -> None:
    """Write what waits to be written before the process ends."""
    for player in list(_open):
        try:
            player.close()
        except Exception:  # the store is away: nothing can be done any more
            continue
