"""The durable store: what a sweep has computed, kept under the hash of everything that determines it.

One SQLite file with a rollback journal: WAL can corrupt a database in SQLite before 3.51.3 and does not work on
network file systems. A finished cell is there whole or not at all; a kill loses at most the
cells in flight. What a cell computes is a function of the cell, so the *logical content* (`Store.dump`) does not depend
on the order of work, on machines or on interruptions. What depends on them, the CPU time, is kept beside it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError
from abex.files import decode_array, encode_array

Cell = dict[str, Any]  # plain JSON: what is computed; see `abex.sweeps.cells`
FORMAT = 1
PATIENCE = 120.0  # seconds to wait for another process that is writing
SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    key TEXT PRIMARY KEY, cell TEXT NOT NULL, payload BLOB NOT NULL, checksum TEXT NOT NULL, measured TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS experiments (
    name TEXT PRIMARY KEY, definition TEXT NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, eq=False)
class Payload:
    """What a cell computed.

    ``arrays`` and ``numbers`` depend on the cell alone; ``measured`` (CPU seconds) depends on the machine too.
    """

    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, float] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)


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
    return hashlib.sha256(canonical(cell).encode()).hexdigest()


def _pack(payload: Payload) -> str:
    arrays = {name: encode_array(np.asarray(array)) for name, array in payload.arrays.items()}
    numbers = {name: encode_array(np.asarray(value, np.float64)) for name, value in payload.numbers.items()}
    return canonical({"arrays": arrays, "numbers": numbers})  # numbers as bytes: NaN and -0.0 survive


def _unpack(text: str, measured: str) -> Payload:
    plain = json.loads(text)
    return Payload(
        arrays={name: decode_array(value) for name, value in plain["arrays"].items()},
        numbers={name: float(decode_array(value)) for name, value in plain["numbers"].items()},
        measured=json.loads(measured),
    )


def _checksum(cell: str, payload: str) -> str:
    return hashlib.sha256(f"{cell}\n{payload}".encode()).hexdigest()


class Store:
    """The results in one file.

    Parameters
    ----------
    path : path
        The SQLite file; made with its folder where it is missing.

    Examples
    --------
    >>> import tempfile, numpy
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(folder.name + "/cells.sqlite")
    >>> store.put([({"policy": "UCB1", "seed": 1}, Payload({"regret": numpy.array([1.0, 2.0])}))])
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
            self._base = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._base.text_factory = _text
            self._base.execute("PRAGMA journal_mode=DELETE")
            self._base.execute("PRAGMA synchronous=FULL")
            version = self._base.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, FORMAT):
                raise UserError(
                    f"the store {str(self.path)!r} was written by a newer abex (format {version}); upgrade abex"
                )
            if version == 0:
                with self._transaction():
                    for statement in SCHEMA.split(";"):
                        self._base.execute(statement)
                    self._base.execute(f"PRAGMA user_version={FORMAT}")

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn SQLite's errors into a sentence that names the file."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            text, where = str(error), str(self.path)
            if "full" in text:
                why = "the disk is full: free some space and run again, what was finished is kept"
            elif "disk I/O error" in text:
                why = "a quota or limit is reached, or the disk fails; what was finished is kept, run again when there is room"
            elif "locked" in text:
                why = f"another process has been writing to it for {PATIENCE:.0f} s"
            elif "malformed" in text or "not a database" in text:
                why = "the file is damaged or not a store: `abex results salvage` copies what can be read into a new one"
            else:
                why = text
            raise UserError(f"cannot {doing} the store {where!r}: {why}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._base.execute("COMMIT")
        except BaseException:
            if self._base.in_transaction:  # a full disk has rolled back already
                self._base.execute("ROLLBACK")
            raise

    # -- cells -------------------------------------------------------------------------------------------

    def put(self, results: Iterable[tuple[Cell, Payload]]) -> None:
        """Store finished cells, all of them or none; they are safe on disk when this returns."""
        rows = []
        for cell, payload in results:
            text, packed = canonical(cell), _pack(payload)
            rows.append(
                (
                    key_of(cell),
                    text,
                    zlib.compress(packed.encode(), 6),
                    _checksum(text, packed),
                    canonical(payload.measured),
                )
            )
        with self._explained("write to"), self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", rows)

    def get(self, cell: Cell) -> Payload | None:
        """What a cell computed; None if it is missing or damaged."""
        return self.read([key_of(cell)]).get(key_of(cell))

    def read(self, keys: Iterable[str]) -> dict[str, Payload]:
        """The payloads of those keys that are there and undamaged."""
        found: dict[str, Payload] = {}
        with self._explained("read"):
            for key in keys:
                row = self._base.execute(
                    "SELECT cell, payload, checksum, measured FROM cells WHERE key = ?", (key,)
                ).fetchone()
                payload = None if row is None else _verified(key, *row)
                if payload is not None:
                    found[key] = payload
        return found

    def __contains__(self, cell: Cell) -> bool:
        return self.get(cell) is not None

    def __len__(self) -> int:
        with self._explained("read"):
            return int(self._base.execute("SELECT count(*) FROM cells").fetchone()[0])

    def state(self) -> tuple[int, int]:
        """Something that changes whenever the store does, also by another process."""
        with self._explained("read"):
            return len(self), int(self._base.execute("PRAGMA data_version").fetchone()[0])

    def keys(self) -> set[str]:
        """The keys of all cells, damaged ones included."""
        with self._explained("read"):
            return {key for (key,) in self._base.execute("SELECT key FROM cells")}

    def __iter__(self) -> Iterator[tuple[str, Cell, Payload | None]]:
        """All cells in the order of their keys; a damaged one has no payload."""
        with self._explained("read"):
            for key, text, packed, checksum, measured in self._base.execute(
                "SELECT * FROM cells ORDER BY key"
            ):
                payload = _verified(key, text, packed, checksum, measured)
                try:
                    cell = json.loads(text)
                except (TypeError, ValueError):
                    cell = {}
                yield key, cell if isinstance(cell, dict) else {}, payload

    def measured(self) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Cells and what was measured about them (CPU seconds), without their results."""
        with self._explained("read"):
            for text, measured in self._base.execute("SELECT cell, measured FROM cells"):
                try:
                    yield json.loads(text), json.loads(measured)
                except (TypeError, ValueError):
                    continue

    def damaged(self) -> list[tuple[str, Cell]]:
        """Keys and cells whose stored bytes do not fit their checksum."""
        return [(key, cell) for key, cell, payload in self if payload is None]

    def remove(self, keys: Iterable[str]) -> int:
        """Forget cells and give their room back; returns how many there were."""
        with self._explained("write to"):
            before = len(self)
            with self._transaction():
                self._base.executemany("DELETE FROM cells WHERE key = ?", [(key,) for key in keys])
            self._base.execute("VACUUM")
            return before - len(self)

    def dump(self) -> bytes:
        """The logical content: a line for each cell in the order of keys, without measured times.

        Two stores that hold the same results have the same dump, byte for byte, whatever happened to the runs.
        """
        with self._explained("read"):
            rows = self._base.execute(
                "SELECT key, cell, payload, checksum FROM cells ORDER BY key"
            ).fetchall()
        lines = [
            f"{key} {cell} {zlib.decompress(packed).decode()} {sum_}\n" for key, cell, packed, sum_ in rows
        ]
        return "".join(lines).encode()

    # -- experiments ---------------------------------------------------------------------------------------

    def remember(self, name: str, definition: dict[str, Any]) -> None:
        """Keep the definition of an experiment, so that a report can be made from the store alone."""
        text = canonical(definition)
        with self._explained("write to"):
            row = self._base.execute("SELECT definition FROM experiments WHERE name = ?", (name,)).fetchone()
            if row is None or row[0] != text:
                with self._transaction():
                    self._base.execute("INSERT OR REPLACE INTO experiments VALUES (?, ?)", (name, text))

    def experiments(self) -> dict[str, dict[str, Any]]:
        """Definitions by name."""
        with self._explained("read"):
            rows = self._base.execute("SELECT name, definition FROM experiments ORDER BY name").fetchall()
        return {name: json.loads(text) for name, text in rows}

    def forget(self, name: str) -> None:
        """Drop the definition of an experiment; its cells stay."""
        with self._explained("write to"), self._transaction():
            self._base.execute("DELETE FROM experiments WHERE name = ?", (name,))

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _text(content: bytes) -> str:
    """Text of the file; where bytes are damaged it is other text, and the checksum tells."""
    return content.decode("utf-8", "replace")


def _verified(key: str, cell: str, packed: bytes, checksum: str, measured: str) -> Payload | None:
    """The payload if key, cell and bytes fit together, else None."""
    try:
        text = zlib.decompress(packed).decode()
        if hashlib.sha256(cell.encode()).hexdigest() != key or _checksum(cell, text) != checksum:
            return None
        return _unpack(text, measured)
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return None


def salvage(path: str | Path, target: str | Path) -> tuple[int, int]:
    """Copy every undamaged cell of a damaged file into a new store; returns (copied, lost where known).

    Rows are read one by one from both ends, so that a bad page costs the rows on it and no others.
    """
    source, copied, lost = Path(path), 0, 0
    if not source.exists():
        raise UserError(f"cannot salvage {str(path)!r}: there is no such file")
    if Path(target).exists():
        raise UserError(f"cannot salvage into {str(target)!r}: it is there already, name a new file")
    base = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
    base.text_factory = _text
    with Store(target) as store:
        seen: set[str] = set()
        for direction in ("ASC", "DESC"):
            try:
                for row in base.execute(f"SELECT * FROM cells ORDER BY key {direction}"):
                    if row[0] in seen:
                        break
                    seen.add(row[0])
                    payload = _verified(*row)
                    if payload is None:
                        lost += 1
                    else:
                        store.put([(json.loads(row[1]), payload)])
                        copied += 1
            except sqlite3.DatabaseError:
                continue
        try:
            for name, definition in base.execute("SELECT name, definition FROM experiments").fetchall():
                store.remember(name, json.loads(definition))
        except (sqlite3.DatabaseError, ValueError):
            pass
    base.close()
    return copied, lost
