"""Who computes what, where several runs work on one store: a cell that a living run has claimed is left to it.

Claims are advice, not truth. They stand in a file of their own beside the store, ``NAME.claims``, which may be lost or
deleted at any time: at worst a cell is computed twice, and both times it is the same. A run shows that it lives by
counting up a number; whoever sees the number stand still for `LEASE` seconds of his own clock, or no such process on
his machine, takes its cells over. Clocks of different machines are never compared.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from abex.lab.results.store import connect, transaction

BEAT = 3.0  # seconds between two signs of life
LEASE = 30.0  # seconds without one until a run counts as dead
PATIENCE = 10.0  # seconds to wait for another process that is claiming
SCHEMA = """
CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, machine TEXT, process INTEGER, beats INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT) WITHOUT ROWID
"""


class Claims(AbstractContextManager["Claims"]):
    """The claims of one run; a context that gives them back at its end.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cells.sqlite"
    ...     with Claims(path) as ours, Claims(path) as theirs:
    ...         first, second = ours.take(["a", "b"]), theirs.take(["b", "c"])
    ...         ours.release(["b"])
    ...         third = theirs.take(["b"])
    >>> sorted(first), sorted(second), sorted(third)
    (['a', 'b'], ['c'], ['b'])
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}.claims")
        self.owner = uuid.uuid4().hex
        self._seen: dict[str, tuple[int, float]] = {}  # owner -> number, and when it was first seen here
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._base: sqlite3.Connection | None = None
        for _ in range(2):
            try:
                self._base = self._opened()
                break
            except sqlite3.OperationalError:  # not to be written, or locked: everybody works for himself
                break
            except sqlite3.DatabaseError:  # damaged: nothing of value is in it
                with suppress(OSError):
                    self.path.unlink(missing_ok=True)
        if self._base is not None:
            threading.Thread(target=self._heartbeat, name="abex claims", daemon=True).start()

    def _opened(self) -> sqlite3.Connection:
        base = connect(self.path, PATIENCE)
        try:
            base.execute("PRAGMA synchronous=OFF")  # what is lost here costs time, nothing else
            with transaction(base):
                for statement in SCHEMA.split(";"):
                    base.execute(statement)
                self._sign_of_life(base)
        except BaseException:
            base.close()
            raise
        return base

    def _sign_of_life(self, base: sqlite3.Connection) -> None:
        """A sign of life; somebody may have buried us."""
        row = (self.owner, machine(), os.getpid(), 0)
        base.execute("INSERT OR IGNORE INTO owners VALUES (?, ?, ?, ?)", row)
        base.execute("UPDATE owners SET beats = beats + 1 WHERE owner = ?", (self.owner,))

    def _heartbeat(self) -> None:
        while not self._ended.wait(BEAT):
            with self._lock, suppress(sqlite3.Error):
                if self._base is not None:
                    with transaction(self._base):
                        self._sign_of_life(self._base)

    def take(self, keys: Iterable[str]) -> set[str]:
        """Claim what no living run has claimed; returns the keys that are ours now."""
        wanted = list(keys)
        with self._lock:
            if self._base is None:
                return set(wanted)
            try:
                with transaction(self._base):
                    self._expire_dead_owners(self._base)
                    rows = [(key, self.owner) for key in wanted]
                    self._base.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?)", rows)
                    query = "SELECT 1 FROM claims WHERE key = ? AND owner = ?"
                    return {row[0] for row in rows if self._base.execute(query, row).fetchone()}
            except sqlite3.Error:
                return set(wanted)

    def release(self, keys: Iterable[str]) -> None:
        """Give claims back: the cells are stored, or will not be computed here."""
        rows = [(key, self.owner) for key in keys]
        with self._lock, suppress(sqlite3.Error):
            if self._base is not None and rows:
                with transaction(self._base):
                    self._base.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", rows)

    def _expire_dead_owners(self, base: sqlite3.Connection) -> None:
        """Free the claims of runs that are gone."""
        here, now = machine(), time.monotonic()
        for owner, place, process, beats in base.execute("SELECT * FROM owners").fetchall():
            if owner == self.owner:
                continue
            number, since = self._seen.get(owner, (None, now))
            if number != beats:
                self._seen[owner] = (beats, now)
                since = now
            if now - since > LEASE or (place == here and is_gone(process)):
                base.execute("DELETE FROM owners WHERE owner = ?", (owner,))
        base.execute("DELETE FROM claims WHERE owner NOT IN (SELECT owner FROM owners)")

    def close(self) -> None:
        """Give everything back."""
        self._ended.set()
        with self._lock, suppress(sqlite3.Error):
            if self._base is None:
                return
            base, self._base = self._base, None
            try:
                with transaction(base):
                    base.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
                    base.execute("DELETE FROM owners WHERE owner = ?", (self.owner,))
            finally:
                base.close()

    def __exit__(self, *error: object) -> None:
        self.close()


def machine() -> str:
    """A name for where process numbers mean the same: the host, and on Linux its space of process numbers."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}"


def is_gone(process: int) -> bool:
    """Whether there certainly is no such process on this machine; its number may have been given to another.

    >>> is_gone(os.getpid())
    False
    """
    if os.name != "posix":
        return False  # asking would end it
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError, TypeError, ValueError):
        return False
    return False
