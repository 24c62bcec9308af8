"""A journal in an SQLite file: Python's own `sqlite3`, nothing to install, all processes on one machine.

**Write-ahead log, under a lock of our own.** Readers do not wait for writers, and a commit is one `fsync`. Versions of SQLite
before 3.51.3 may lose a transaction when a checkpoint meets a commit that starts the log anew; so whoever writes,
checkpoints or leaves the file holds the lock file beside it (``flock``, gone with its process), which makes that
impossible. It also hands the file to the next process soon, where SQLite's own waiting sleeps up to a tenth of a second.

``?synchronous=normal`` in the address commits without `fsync`: what is acknowledged survives the death of every process,
but the last moments before a loss of power may be missing.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from abex.players.journal import FORMAT, PATIENCE, TABLES, Journal, PlayerRow, UnavailableError
from abex.players.journal_rows import COLUMNS, Row
from abex.support.errors import UserError, one_of, shown

try:
    import fcntl
except ImportError:  # not on Windows: SQLite's own locks have to do
    fcntl = None  # type: ignore[assignment]

MOST_AT_ONCE = 64  # events that one statement appends
READ = f"SELECT seq, {', '.join(COLUMNS)} FROM abex_events WHERE player = ? AND seq > ? ORDER BY seq LIMIT ?"
SYNCHRONOUS = ("full", "normal")


class SqliteJournal(Journal):
    """The journals in one file."""

    cheap_look = True

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
        self.shown = repr(place)
        self._base: sqlite3.Connection | None = None
        self._lock_file = -1
        self._which: tuple[int, int] | None = None  # device and inode of the open file
        self._version = -1

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._base is not None

    # -- opening --------------------------------------------------------------------------------------

    def _connect(self, create: bool) -> None:
        """Open the file; a new one is made only if ``create``."""
        if not create and not self.path.is_file():
            raise FileNotFoundError(2, "there is no such file", str(self.path))
        self._lock_file = os.open(f"{self.path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._base = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        with self._alone():
            self._base.execute("PRAGMA journal_mode=WAL").fetchone()
            self._base.execute(f"PRAGMA synchronous={self.synchronous}")
            self._prepare()
        about = os.stat(self.path)
        self._which = about.st_dev, about.st_ino

    def _prepare(self) -> None:
        """Tables of this format."""
        base = self._open()
        ours = {
            name
            for (name,) in base.execute("SELECT name FROM sqlite_master WHERE name LIKE 'abex!_%' ESCAPE '!'")
        }
        if not ours:
            words = {"identity": "INTEGER PRIMARY KEY", "clustered": " WITHOUT ROWID", "bytes": "BLOB"}
            with self._transaction():
                for table in TABLES:
                    base.execute(table.format(**words))
                base.execute("INSERT INTO abex_format VALUES (?)", (FORMAT,))
        version = base.execute("SELECT version FROM abex_format").fetchone()
        self.check_format(version and version[0])
        base.execute(READ, (0, 0, 0))  # fails where the tables are not ours
        base.execute("SELECT id, name, definition, head, pruned FROM abex_players LIMIT 0")
        base.execute("SELECT player, seq, body FROM abex_snapshots LIMIT 0")

    def close(self) -> None:
        """Close the file, under the lock: the last one to close it writes the log back."""
        base, self._base = self._base, None
        if base is not None:
            try:
                with self._alone():
                    base.close()
            except (sqlite3.Error, OSError, UserError):
                base.close()
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1

    def abandon(self) -> None:
        """Leave the connection to the parent: closing it here would drop the parent's locks."""
        _left_to_parents.append(self._base)
        self._base = None
        if self._lock_file >= 0:
            os.close(self._lock_file)  # shared with the parent: it must not stay locked when the parent dies
            self._lock_file = -1

    def _open(self) -> sqlite3.Connection:
        if self._base is None:
            raise UnavailableError(f"the journal {self.shown} is not open")
        return self._base

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
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        base = self._open()
        base.execute("BEGIN IMMEDIATE")
        try:
            yield base
            base.execute("COMMIT")
        except BaseException:
            if base.in_transaction:  # a full disk has rolled back already
                base.execute("ROLLBACK")
            raise

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction on the file that is still there: a deleted one would take the events along."""
        with self.explained("write to"):
            base = self._open()
            about = os.stat(self.path)
            if (about.st_dev, about.st_ino) != self._which:
                raise FileNotFoundError(2, "the file was replaced while it was in use", str(self.path))
            with self._alone(), self._transaction():
                yield base

    # -- players --------------------------------------------------------------------------------------

    def looks_new(self) -> bool:
        """SQLite counts what other connections have written."""
        with self.explained("read"):
            (version,) = self._open().execute("PRAGMA data_version").fetchone()
            new, self._version = version != self._version, version
            return bool(new)

    def names(self) -> list[str]:
        """All players."""
        with self.explained("read"):
            return [name for (name,) in self._open().execute("SELECT name FROM abex_players ORDER BY name")]

    def add_player(self, name: str, definition: str) -> None:
        """Insert its row."""
        with self._writing() as base:
            sql = "INSERT INTO abex_players (name, definition) VALUES (?, ?) ON CONFLICT DO NOTHING"
            base.execute(sql, (name, definition))

    def player(self, name: str) -> PlayerRow | None:
        """Its row."""
        with self.explained("read"):
            sql = "SELECT id, definition, head, pruned FROM abex_players WHERE name = ?"
            row = self._open().execute(sql, (name,)).fetchone()
            return None if row is None else PlayerRow(*row)

    # -- events ---------------------------------------------------------------------------------------

    def append(self, player: int, collect: Callable[[], Sequence[Row]]) -> int:
        """Count up in the player's row, write under the numbers taken."""
        with self._writing() as base:
            rows = collect()
            sql = "UPDATE abex_players SET head = head + ? WHERE id = ? RETURNING head"
            found = base.execute(sql, (len(rows), player)).fetchall()
            if not found:
                raise UnavailableError(f"the player is gone from the journal {self.shown}: it was deleted")
            last = int(found[0][0])
            seq = last - len(rows)
            for start in range(0, len(rows), MOST_AT_ONCE):
                values: list[Any] = []
                for row in rows[start : start + MOST_AT_ONCE]:
                    seq += 1
                    values += (player, seq, *row)
                base.execute(_append(len(values) // 10), values)
            return last

    def read(self, player: int, after: int, limit: int) -> list[tuple[int, Row]]:
        """By the primary key."""
        with self.explained("read"):
            found = self._open().execute(READ, (player, after, limit)).fetchall()
            return [(row[0], Row(*row[1:])) for row in found]

    def snapshot(self, player: int, most: int | None = None) -> tuple[int, bytes] | None:
        """By the primary key."""
        with self.explained("read"):
            sql = (
                "SELECT seq, body FROM abex_snapshots WHERE player = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
            )
            found = self._open().execute(sql, (player, 2**62 if most is None else most)).fetchone()
            return None if found is None else (int(found[0]), bytes(found[1]))

    def add_snapshot(self, player: int, seq: int, body: bytes, keep: int) -> None:
        """Insert it and delete those before the last few."""
        with self._writing() as base:
            base.execute(
                "INSERT INTO abex_snapshots VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (player, seq, body)
            )
            base.execute(
                "DELETE FROM abex_snapshots WHERE player = ? AND seq NOT IN"
                " (SELECT seq FROM abex_snapshots WHERE player = ? ORDER BY seq DESC LIMIT ?)",
                (player, player, keep),
            )

    def prune(self, player: int, seq: int) -> int:
        """Delete them and remember up to where."""
        with self._writing() as base:
            base.execute("UPDATE abex_players SET pruned = max(pruned, ?) WHERE id = ?", (seq, player))
            return base.execute(
                "DELETE FROM abex_events WHERE player = ? AND seq <= ?", (player, seq)
            ).rowcount

    # -- errors ---------------------------------------------------------------------------------------

    def reason(self, error: Exception) -> str | None:
        """SQLite's and the system's errors in words."""
        if isinstance(error, OSError):
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
            return "it is a folder" if self.path.is_dir() else "the file or its folder may not be written"
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
    places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * count)
    return f"INSERT INTO abex_events (player, seq, {', '.join(COLUMNS)}) VALUES {places}"


_left_to_parents: list[Any] = []  # connections that must not be closed in this process
