"""The results of sweeps in one SQLite file.

A finished cell is there whole or not at all; a kill loses at most the cells in flight. What a cell computes is a function of the
cell, so the *logical content* (`Store.dump`) does not depend on the order of work, on machines or on interruptions. What depends
on them, the CPU time, is kept beside it. Results and definitions of experiments have a checksum.

The file has a rollback journal: WAL can corrupt a database in SQLite before 3.51.3 and does not work on network file systems.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError
from abex.support.files import decode_array, encode_array

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

Cell = dict[str, Any]  # plain JSON: what is computed; see `abex.lab.sweeps.cells`


@dataclass(frozen=True, eq=False)
class CellResult:
    """What a cell computed.

    ``arrays`` and ``numbers`` depend on the cell alone; ``measured`` (CPU seconds) depends on the machine too.
    """

    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, float] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)


class Store(AbstractContextManager["Store"]):
    """The results in one file.

    Parameters
    ----------
    path : path
        The SQLite file; made with its folder where it is missing. One that may not be written can be read.

    Examples
    --------
    >>> import tempfile, numpy
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(folder.name + "/cells.sqlite")
    >>> store.put([({"policy": "UCB1", "seed": 1}, CellResult({"regret": numpy.array([1.0, 2.0])}))])
    >>> store.get({"seed": 1, "policy": "UCB1"}).arrays["regret"].tolist()
    [1.0, 2.0]
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {str(self.path.parent)!r}: {error.strerror}") from error
        with self._explained("open"):
            self._base = connect(self.path)
            try:
                self._base.execute("PRAGMA journal_mode=DELETE")
                self._base.execute("PRAGMA synchronous=FULL")
                prepare(self._base, self.path)
            except BaseException:
                self._base.close()
                raise

    def _explained(self, doing: str) -> Any:
        return explained(self.path, doing)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._explained("write to"), transaction(self._base):
            yield self._base

    # -- cells -------------------------------------------------------------------------------------------

    def put(self, results: Iterable[tuple[Cell, CellResult]]) -> None:
        """Store finished cells, all of them or none; they are safe on disk when this returns."""
        rows = [row_of(cell, payload) for cell, payload in results]
        if not rows:
            return
        with self._writing() as base:
            base.executemany("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", rows)

    def get(self, cell: Cell) -> CellResult | None:
        """What a cell computed; None if it is missing or damaged."""
        return self.read([key_of(cell)]).get(key_of(cell))

    def read(self, keys: Iterable[str]) -> dict[str, CellResult]:
        """The payloads of those keys that are there and undamaged."""
        found: dict[str, CellResult] = {}
        with self._explained("read"):
            for key in keys:
                row = self._base.execute(f"{SELECT['cells']} WHERE key = ?", (key,)).fetchone()
                payload = None if row is None else payload_of(*row)
                if payload is not None:
                    found[key] = payload
        return found

    def __contains__(self, cell: Cell) -> bool:
        return self.get(cell) is not None

    def __len__(self) -> int:
        with self._explained("read"):
            return int(self._base.execute("SELECT count(*) FROM cells").fetchone()[0])

    def keys(self) -> set[str]:
        """The keys of all cells, damaged ones included."""
        with self._explained("read"):
            return {key for (key,) in self._base.execute("SELECT key FROM cells")}

    def __iter__(self) -> Iterator[tuple[str, Cell, CellResult | None]]:
        """All cells in the order of their keys; a damaged one has no payload."""
        with self._explained("read"):
            for row in self._base.execute(f"{SELECT['cells']} ORDER BY key"):
                yield row[0], plain_object(row[1]) or {}, payload_of(*row)

    def measured(self) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Cells and what was measured about them (CPU seconds), without their results and without damaged ones."""
        with self._explained("read"):
            for key, text, measured in self._base.execute("SELECT key, cell, measured FROM cells"):
                times = plain_object(measured)
                cell = plain_object(text) if isinstance(text, str) and checksum_of(text) == key else None
                if cell is not None and times is not None:
                    yield cell, times

    def damaged(self) -> list[tuple[str, Cell]]:
        """Keys and cells whose stored bytes do not fit their checksum."""
        return [(key, cell) for key, cell, payload in self if payload is None]

    def remove(self, keys: Iterable[str]) -> int:
        """Forget cells and give their room back; returns how many there were."""
        with self._explained("write to"):
            before = len(self)
            with self._writing():
                self._base.executemany("DELETE FROM cells WHERE key = ?", [(key,) for key in keys])
            self._base.execute("VACUUM")
            return before - len(self)

    # -- experiments ---------------------------------------------------------------------------------------

    def save_experiment(self, name: str, definition: dict[str, Any]) -> None:
        """Keep the definition of an experiment, so that a report can be made from the store alone."""
        text = canonical(definition)
        with self._explained("read"):
            row = self._base.execute(f"{SELECT['experiments']} WHERE name = ?", (name,)).fetchone()
        if row is not None and row[1] == text and definition_of(*row) is not None:
            return
        with self._writing() as base:
            base.execute(
                "INSERT OR REPLACE INTO experiments VALUES (?, ?, ?)", (name, text, checksum_of(name, text))
            )

    def experiments(self) -> dict[str, dict[str, Any]]:
        """Definitions by name, without damaged ones."""
        with self._explained("read"):
            rows = self._base.execute(f"{SELECT['experiments']} ORDER BY name").fetchall()
        found = {row[0]: definition_of(*row) for row in rows}
        return {name: definition for name, definition in found.items() if definition is not None}

    def damaged_experiments(self) -> list[str]:
        """Names under which something stands that does not fit its checksum."""
        with self._explained("read"):
            rows = self._base.execute(f"{SELECT['experiments']} ORDER BY name").fetchall()
        return [str(row[0]) for row in rows if definition_of(*row) is None]

    def delete_experiment(self, name: str) -> None:
        """Drop the definition of an experiment; its cells stay."""
        with self._writing() as base:
            base.execute("DELETE FROM experiments WHERE name = ?", (name,))

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def __exit__(self, *error: object) -> None:
        self.close()


# -- the rows: how one tells that the bytes are still those written ------------------------------------------------


def canonical(value: Any) -> str:
    """The one JSON text of a plain value: keys sorted, no spaces, no NaN.

    >>> canonical({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(f"a cell must hold plain JSON values: {error}") from error


def key_of(cell: Cell) -> str:
    """The content key of a cell: SHA-256 of its canonical text.

    >>> key_of({"seed": 1, "policy": "UCB1"}) == key_of({"policy": "UCB1", "seed": 1})
    True
    """
    return checksum_of(canonical(cell))


def checksum_of(*texts: str) -> str:
    """SHA-256 of texts that belong together."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def row_of(cell: Cell, payload: CellResult) -> tuple[str, str, bytes, str, str]:
    """Key, cell, payload, checksum of both, and what was measured: a row of the table of cells."""
    text, packed = canonical(cell), _pack(payload)
    compressed = zlib.compress(packed.encode(), 6)
    return checksum_of(text), text, compressed, checksum_of(text, packed), canonical(payload.measured)


def payload_of(key: Any, cell: Any, packed: Any, checksum: Any, measured: Any) -> CellResult | None:
    """The payload of a row if everything in it fits together, else None: damaged bytes may be of any type."""
    try:
        text = zlib.decompress(packed).decode()
        if checksum_of(cell) != key or checksum_of(cell, text) != checksum:
            return None
        plain, times = json.loads(text), plain_object(measured)
        if times is None:
            return None
        return CellResult(
            arrays={name: decode_array(value) for name, value in plain["arrays"].items()},
            numbers={name: float(decode_array(value)) for name, value in plain["numbers"].items()},
            measured=times,
        )
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return None


def definition_of(name: Any, definition: Any, checksum: Any) -> dict[str, Any] | None:
    """The definition of an experiment if it fits its checksum, else None."""
    try:
        return plain_object(definition) if checksum_of(name, definition) == checksum else None
    except TypeError:
        return None


def plain_object(text: Any) -> dict[str, Any] | None:
    """The dictionary that a JSON text holds, None if it is another thing or none."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _pack(payload: CellResult) -> str:
    arrays = {name: encode_array(np.asarray(array)) for name, array in payload.arrays.items()}
    numbers = {name: encode_array(np.asarray(value, np.float64)) for name, value in payload.numbers.items()}
    return canonical({"arrays": arrays, "numbers": numbers})  # numbers as bytes: NaN and -0.0 survive


# -- the file: opening, its format, transactions, and SQLite's errors as sentences ------------------------------------


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
