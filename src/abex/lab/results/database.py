"""The SQLite file under the store: opening, its format, transactions, and its errors as sentences.

A rollback journal: WAL can corrupt a database in SQLite before 3.51.3 and does not work on network file systems.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from abex.support.errors import UserError

FORMAT = 1  # in the file's user_version
PATIENCE = 120.0  # seconds to wait for another process that is writing
DAMAGED = (
    "the file is damaged or not a store: move it away, or take what `sqlite3 cells.sqlite .recover | sqlite3 new.sqlite` "
    "brings back"
)
COLUMNS = {
    "cells": ("key", "cell", "payload", "checksum", "measured"),
    "experiments": ("name", "definition", "checksum"),
}
SELECT = {table: f"SELECT {', '.join(names)} FROM {table}" for table, names in COLUMNS.items()}
SCHEMA = """
CREATE TABLE cells (
    key TEXT PRIMARY KEY, cell TEXT NOT NULL, payload BLOB NOT NULL, checksum TEXT NOT NULL, measured TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE experiments (
    name TEXT PRIMARY KEY, definition TEXT NOT NULL, checksum TEXT NOT NULL
) WITHOUT ROWID
"""


def connect(path: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    """The file as a database; the first statement rolls back what a killed writer left half done."""
    where = os.path.abspath(path)  # a name that begins with "file:" is a name here
    base = sqlite3.connect(where, timeout=patience, isolation_level=None, check_same_thread=False)
    base.text_factory = _text
    return base


def _text(content: bytes) -> str:
    """Text of the file; where bytes are damaged it is other text, and the checksum tells."""
    return content.decode("utf-8", "replace")


@contextmanager
def transaction(base: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """All of it or nothing; of the kind DEFERRED, what is read is of one moment."""
    base.execute(f"BEGIN {kind}")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:  # a full disk has rolled back already
            base.execute("ROLLBACK")
        raise


def prepare(base: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; one of another format is refused."""
    with transaction(base, "DEFERRED"):
        if format_of(base, path) == FORMAT:
            return
    with transaction(base):
        if format_of(base, path) != FORMAT:  # else another process has been quicker
            for statement in SCHEMA.split(";"):
                base.execute(statement)
            base.execute(f"PRAGMA user_version={FORMAT}")


def format_of(base: sqlite3.Connection, path: Path) -> int:
    """The format of a store, 0 if the file is new; a newer one is refused, as is what is no store."""
    version = base.execute("PRAGMA user_version").fetchone()[0]
    if not 0 <= version <= FORMAT:
        raise UserError(
            f"the store {str(path)!r} was written by a newer abex (format {version}); upgrade abex"
        )
    if version == 0 and not base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return 0
    if version == 0 or any(columns_of(base, table) != names for table, names in COLUMNS.items()):
        raise sqlite3.DatabaseError("the tables are malformed")
    return int(version)


def columns_of(base: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """The names of a table's columns; none if there is no such table."""
    return tuple(str(row[1]) for row in base.execute(f"PRAGMA table_info({table})"))


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn SQLite's errors into a sentence that names the file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        why = _reason(error, path, new=doing == "open" and not path.exists())
        raise UserError(f"cannot {doing} the store {str(path)!r}: {why}") from error
    except UnicodeDecodeError as error:  # SQLite's sentence about damage quotes the damaged bytes
        raise UserError(f"cannot {doing} the store {str(path)!r}: {DAMAGED}") from error


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _reason(error: sqlite3.DatabaseError, path: Path, new: bool) -> str:
    text, code = str(error), _code(error)
    name = str(getattr(error, "sqlite_errorname", ""))
    if code == sqlite3.SQLITE_FULL:
        return "the disk is full: free some space and run again, what was finished is kept"
    if path.is_dir():
        return "it is a folder"
    if name == "SQLITE_READONLY_DBMOVED" or not (new or path.exists()):
        return "the file was deleted or replaced while it was in use; run again, what is no longer there is computed anew"
    if code == sqlite3.SQLITE_IOERR:
        return "a quota or limit is reached, or the disk fails; what was finished is kept, run again when there is room"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "another process is writing to it and does not come to an end"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        left = " (a run was killed while it wrote: SQLite must clean up first)" if _journal(path) else ""
        return f"the file or its folder may not be written{left}"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "malformed" in text or "no such" in text:
        return DAMAGED
    return text


def _journal(path: Path) -> bool:
    return path.with_name(f"{path.name}-journal").exists()
