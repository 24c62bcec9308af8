"""What to do about a damaged store: copy every undamaged entry into a new file, prove that one, take it into use.

Nothing is ever overwritten or deleted: the damaged file stays beside the new one under a numbered name, with its journal.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from abex.lab.results.database import SELECT, connect, explained, format_of
from abex.lab.results.entries import Payload, definition_of, payload_of, plain_object
from abex.lab.results.store import Store
from abex.support.errors import UserError

PATIENCE = 5.0  # seconds to wait for a process that is writing
TOGETHER = 200  # cells that are committed at once
DIGITS = "0123456789abcdef"
BESIDE = ("-journal", "-wal", "-shm")  # files of SQLite that belong to a database


class Salvaged(NamedTuple):
    """What a salvage has done; ``aside`` is where the damaged file is now, None if the store was sound."""

    copied: int
    lost: int
    aside: Path | None


def salvage_in_place(path: str | Path) -> Salvaged:
    """Replace a damaged store by a new one of all that can be read of it; a sound one is left as it is, to the byte.

    SQLite cleans up first: what a killed writer left half done is no damage. The damaged file keeps its bytes under the
    first free name ``NAME.damaged-1``, ``-2``, ... and at every moment the store's name leads to a whole file.
    """
    store = Path(path)
    with closing(_opened(store)) as base:
        sound = _is_sound(base, store)
        if sound is not None:
            return Salvaged(sound, 0, None)
        _lock(base, store)  # held until the new file is in use: nobody writes to the old one meanwhile
        handle, name = tempfile.mkstemp(dir=store.parent, prefix=f"{store.name}.salvaging-")
        os.close(handle)
        fresh = Path(name)
        try:
            copied, lost = _copy(base, fresh)
            if not copied:
                raise UserError(
                    f"nothing can be read of {str(store)!r}; it is left as it is: move it away to begin anew"
                )
            os.chmod(fresh, store.stat().st_mode)
            aside = _put_aside(store)
            os.replace(fresh, store)
            _make_durable(store.parent)
        except OSError as error:
            raise UserError(f"cannot replace the store {str(store)!r}: {error.strerror or error}") from error
        finally:
            for beside in ("", *BESIDE):
                Path(f"{fresh}{beside}").unlink(missing_ok=True)
    return Salvaged(copied, lost, aside)


def salvage(path: str | Path, target: str | Path) -> tuple[int, int]:
    """Copy every undamaged cell of a damaged file into a new store; returns (copied, seen but damaged).

    Rows are looked up one by one, so that a bad page costs the rows on it and no others.
    """
    if Path(target).exists():
        raise UserError(f"cannot salvage into {str(target)!r}: it is there already, name a new file")
    with closing(_opened(Path(path))) as base:
        return _copy(base, Path(target))


def _opened(path: Path) -> sqlite3.Connection:
    """The file, after SQLite has rolled back what a killed writer left; a newer format is refused."""
    if not path.is_file():
        raise UserError(f"cannot salvage {str(path)!r}: there is no such file")
    with explained(path, "salvage"):
        base = connect(path, PATIENCE)
        try:
            base.execute("SELECT count(*) FROM sqlite_master")
            format_of(base, path)
        except UserError:
            base.close()
            raise
        except sqlite3.DatabaseError as error:
            if "malformed" not in str(error) and "not a database" not in str(error):
                base.close()
                raise  # nothing is known about the file if it cannot be opened
        return base


def _is_sound(base: sqlite3.Connection, path: Path) -> int | None:
    """The number of cells if the file and all its entries are undamaged, else None."""
    try:
        base.execute("BEGIN")
        try:
            found = format_of(base, path)
            if base.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                return None
            if found == 0:
                return 0
            rows = [payload_of(*row) is not None for row in base.execute(SELECT["cells"])]
            definitions = [definition_of(*row) for row in base.execute(SELECT["experiments"])]
        finally:
            if base.in_transaction:
                base.execute("ROLLBACK")
    except sqlite3.DatabaseError:
        return None
    return len(rows) if all(rows) and None not in definitions else None


def _lock(base: sqlite3.Connection, path: Path) -> None:
    """Keep other processes away; where the damage prevents that they cannot write either."""
    try:
        base.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise UserError(
                f"cannot salvage {str(path)!r}: another process is using it, stop it first"
            ) from error
    except sqlite3.DatabaseError:
        pass


def _copy(base: sqlite3.Connection, target: Path) -> tuple[int, int]:
    """Put every undamaged entry of ``base`` into a new store and prove that it is there; (copied, lost)."""
    copied, lost, waiting = 0, 0, []
    definitions = {}
    with Store(target) as store:
        for row in _rows(base, "cells", "key", DIGITS):
            payload = payload_of(*row)
            if payload is None:
                lost += 1
                continue
            waiting.append((plain_object(row[1]) or {}, payload))
            if len(waiting) == TOGETHER:
                copied += _stored(store, waiting)
                waiting = []
        copied += _stored(store, waiting)
        for row in _rows(base, "experiments", "name", ""):
            definition = definition_of(*row)
            if definition is not None:
                definitions[row[0]] = definition
                store.remember(row[0], definition)
    with closing(connect(target)) as again, Store(target) as store:
        proved = _is_sound(again, target) == copied and store.experiments() == definitions
    if not proved:
        raise UserError(f"the new file {str(target)!r} cannot be read back: the disk may be failing")
    return copied, lost


def _stored(store: Store, results: list[tuple[dict[str, Any], Payload]]) -> int:
    store.put(results)
    return len(results)


def _rows(base: sqlite3.Connection, table: str, name: str, digits: str) -> Iterator[tuple[Any, ...]]:
    """Every row of a damaged table that can be reached from its root, each looked up by its key.

    Keys are listed from both ends of many short ranges (of all three first digits): a bad page ends the list of
    its range, and a row that cannot be read costs itself alone.
    """
    starts = [a + b + c for a in digits for b in digits for c in digits]
    keys: dict[Any, None] = {}
    for first, last in zip(["", *starts], [*starts, "\U0010ffff"], strict=True):
        for order in ("ASC", "DESC"):
            query = f"SELECT {name} FROM {table} WHERE {name} >= ? AND {name} < ? ORDER BY {name} {order}"
            with suppress(sqlite3.DatabaseError):
                cursor = base.execute(query, (first, last))
                while (row := cursor.fetchone()) is not None and row[0] not in keys:
                    keys[row[0]] = None
    for key in keys:
        with suppress(sqlite3.DatabaseError):
            yield from base.execute(f"{SELECT[table]} WHERE {name} = ?", (key,)).fetchmany(1)


def _make_durable(folder: Path) -> None:
    """The new names are on disk when this returns, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _put_aside(store: Path) -> Path:
    """Give the damaged file a second name that nothing has yet, and its journal the same."""
    for number in count(1):
        aside = store.with_name(f"{store.name}.damaged-{number}")
        if any(Path(f"{aside}{beside}").exists() for beside in BESIDE):
            continue
        try:
            os.link(store, aside)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
            if aside.exists():
                continue
            os.rename(store, aside)  # this file system has no second names
        for beside in BESIDE:
            with suppress(FileNotFoundError):
                os.rename(f"{store}{beside}", f"{aside}{beside}")
        return aside
    raise AssertionError  # pragma: no cover - numbers do not end
