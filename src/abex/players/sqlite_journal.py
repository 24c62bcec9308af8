"""A journal in an SQLite file: Python's own `sqlite3`, nothing to install, all processes on one machine.

**Write-ahead log, under a lock of our own.** Readers do not wait for writers, and a commit is one `fsync`. Versions of SQLite
before 3.51.3 may lose a transaction when a checkpoint meets a commit that starts the log anew; so whoever writes,
checkpoints or leaves the file holds the lock file beside it (``flock``, gone with its process), which makes that
impossible. It also hands the file to the next process soon, where SQLite's own waiting sleeps up to a tenth of a second.

``?synchronous=normal`` in the address commits without `fsync`: what is acknowledged survives the death of every process,
but the last moments before a loss of power may be missing.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote

from abex.players.journal import NO_DESCRIPTORS, PATIENCE, Journal, Row, no_descriptors
from abex.support.errors import UserError, one_of, shown

try:
    import fcntl
except ImportError:  # not on Windows: SQLite's own locks have to do
    fcntl = None  # type: ignore[assignment]

MOST_AT_ONCE = 100  # events that one statement appends
SYNCHRONOUS = ("full", "normal")


class SqliteJournal(Journal):
    """The journals in one file."""

    words: ClassVar = {
        "identity": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "clustered": " WITHOUT ROWID",
        "alone": "SELECT 1",  # every transaction that writes is
        "bytes": "BLOB",
        "value": "?",
        "among": "IN (SELECT value FROM json_each(?))",
        "tables": "SELECT count(*) FROM sqlite_master WHERE name LIKE 'abex!_%' ESCAPE '!'",
    }

    def __init__(self, url: str) -> None:
        place, _, options = url.partition("?")
        path = unquote(place.removeprefix("sqlite://"))
        if not path.startswith("/") or path in ("/", "/:memory:"):
            raise UserError(
                f"a store in an SQLite file is sqlite:///shop.db (or sqlite:////folder/shop.db), got {shown(url)}"
            )
        self.path = Path(os.path.abspath(path[1:]))  # also after a change of folder
        given = dict(parse_qsl(options, keep_blank_values=True))
        self.synchronous = one_of("synchronous", given.pop("synchronous", "full").lower(), SYNCHRONOUS)
        if given:
            raise UserError(f"an SQLite store has the option synchronous, not {shown(next(iter(given)))}")
        self.display_url = repr(place)
        self._lock_file = -1
        self._which: tuple[int, int] | None = None  # device and inode of the open file
        self._version = -1

    # -- the file -------------------------------------------------------------------------------------

    def _connect(self, create: bool) -> None:
        """Open the file; a new one is made only if ``create``."""
        if not create and not self.path.is_file():
            raise FileNotFoundError(errno.ENOENT, "there is no such file", str(self.path))
        self._lock_file = os.open(f"{self.path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        with self._alone():
            self._connection.execute("PRAGMA journal_mode=WAL").fetchone()
            self._connection.execute(f"PRAGMA synchronous={self.synchronous}")
        self._which = self._there()
        self._prepare(create)

    def _there(self) -> tuple[int, int]:
        about = os.stat(self.path)
        return about.st_dev, about.st_ino

    def close(self) -> None:
        """Close the file, under the lock: the last one to close it writes the log back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                with self._alone():
                    connection.close()
            except (sqlite3.Error, OSError, UserError):
                connection.close()
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1

    def forget_after_fork(self) -> None:
        """Leave the lock file to the parent, too."""
        super().forget_after_fork()
        if self._lock_file >= 0:
            os.close(self._lock_file)  # shared with the parent: it must not stay locked when the parent dies
            self._lock_file = -1

    def interrupt(self) -> None:
        """A statement on a file ends by itself; waiting for other processes has a limit."""

    def has_changed(self) -> bool:
        """SQLite counts what other connections have written."""
        before, self._version = self._version, self._rows("PRAGMA data_version")[0][0]
        return bool(self._version != before)

    def now(self) -> int:
        """All processes of a file are on one machine, and have one clock."""
        return time.time_ns() // 1_000_000

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock beside the file."""
        if fcntl is None:
            yield
            return
        until, pause = time.monotonic() + PATIENCE, 0.0002
        while True:
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise sqlite3.OperationalError("locked by another process") from None
                time.sleep(pause)
                pause = min(0.002, 1.5 * pause)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """On the file that is still there: a deleted one would take the events along."""
        connection = self._opened
        if self._there() != self._which:
            raise FileNotFoundError(errno.ENOENT, "the file was replaced while it was in use", str(self.path))
        with self._alone():
            self._run("BEGIN IMMEDIATE")
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has rolled back already
                    self._run("ROLLBACK")
                raise

    # -- events ---------------------------------------------------------------------------------------

    def _append(self, batch: Mapping[int, Sequence[Row]]) -> dict[int, int]:
        """Count up in the players' rows, write under the numbers taken."""
        heads: dict[int, int] = {}
        values: list[Any] = []
        with self._transaction():
            for player, rows in batch.items():
                sql = "UPDATE abex_players SET head = head + ? WHERE id = ? AND archived = 0 RETURNING head"
                found = self._run(sql, (len(rows), player)).fetchall()
                if not found:
                    continue
                heads[player] = last = int(found[0][0])
                for seq, row in enumerate(rows, last - len(rows) + 1):
                    values += (player, seq, *row)
            for start in range(0, len(values), 5 * MOST_AT_ONCE):
                part = values[start : start + 5 * MOST_AT_ONCE]
                self._run(_append(len(part) // 5), part)
        return heads

    # -- errors ---------------------------------------------------------------------------------------

    def _reason(self, error: Exception) -> str | None:
        """SQLite's and the system's errors in words."""
        if isinstance(error, OSError):
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return NO_DESCRIPTORS
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return "the disk is full"
            if self.path.is_dir():
                return "it is a folder"
            return f"{(error.strerror or str(error))[:1].lower()}{(error.strerror or str(error))[1:]}"
        if not isinstance(error, sqlite3.Error):
            return None
        text, code = str(error), int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
        if "locked" in text or code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return f"another process has been writing to it for more than {PATIENCE:g} seconds"
        if code == sqlite3.SQLITE_FULL:
            return "the disk is full"
        if code == sqlite3.SQLITE_IOERR:
            return "a quota or limit is reached, or the disk fails"
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            if self.path.is_dir():
                return "it is a folder"
            return NO_DESCRIPTORS if no_descriptors() else "the file or its folder may not be written"
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return "the file is damaged or no SQLite database"
        if "no such" in text or "has no column" in text or "already exists" in text:
            return f"its tables are not those of abex ({text})"
        return text


@cache
def _append(count: int) -> str:
    """The statement that appends so many events.

    Python's sqlite3 lets other threads run at every step of a statement and then waits for its turn, so an append of many steps
    takes long in a process that has something else to do.
    """
    places = ", ".join(["(?, ?, ?, ?, ?)"] * count)
    return f"INSERT INTO abex_events (player, seq, kind, moment, body) VALUES {places}"
