"""Players and stores in forked processes: no child gets half of a step, and each goes on as a player of its own."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_players: weakref.WeakSet[Any] = weakref.WeakSet()
_stores: weakref.WeakSet[Any] = weakref.WeakSet()
_forking = threading.local()  # the locks that the forking thread holds


def watch(one: Any, last: bool = False) -> None:
    """From now on ``one`` is told of forks: its ``_locks()`` are held while one happens, then ``_after_fork`` is called.

    The locks of those that come ``last`` are taken last, as everywhere.
    """
    (_stores if last else _players).add(one)


def _all_players() -> list[Any]:
    """Every player and then every store of this process, always in the same order: two threads may fork at once."""
    while True:
        try:
            return [*sorted(_players, key=id), *sorted(_stores, key=id)]
        except RuntimeError:  # another thread has just made one
            continue


def _before_fork() -> None:
    """Let every player finish its step, so that no child gets half of one."""
    _forking.held = []
    for player in _all_players():
        for lock in player._locks():
            lock.acquire()
            _forking.held.append(lock)


def _after_fork_in_parent() -> None:
    while _forking.held:
        _forking.held.pop().release()


def _after_fork_in_child() -> None:
    for player in _all_players():
        player._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
