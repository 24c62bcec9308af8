"""Stores of results: fields exchanged, bytes damaged, ends cut off."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from abex.lab.results import CellResult, Store
from tests.fuzz.damage import Rng, maybe_damaged, one
from tests.fuzz.outcomes import File, folder, read_file

VALUES: tuple[Any, ...] = (
    None,
    "",
    "x",
    0,
    -1,
    2**62,
    1.5,
    b"\xff\x00",
    "{}",
    "[]",
    '{"arrays": 5}',
    "[" * 5000,
    "9" * 5000,
    "NaN",
    "null",
)


@functools.cache
def saved_store() -> bytes:
    """A store of three cells and an experiment."""
    path = folder() / "saved.sqlite"
    with Store(path) as store:
        for seed in range(3):
            arrays = {"step": np.arange(4), "regret": np.linspace(0, 1, 4), "hits": np.zeros(4)}
            store.put(
                [
                    (
                        {"kind": "bandit", "policy": "UCB1", "seed": seed},
                        CellResult(arrays, {"slots": 1.0}, {"nanoseconds": 5.0}),
                    )
                ]
            )
        store.save_experiment("mine-v1", {"name": "mine", "version": 1})
    return path.read_bytes()


def cases(rng: Rng) -> Iterator[File]:
    """Stores with a field exchanged by SQL, or with damaged pages."""
    while True:
        content = saved_store()
        if rng.random() < 0.6:
            path = folder() / "forged.sqlite"
            path.write_bytes(content)
            with closing(sqlite3.connect(path)) as base:
                tables = [
                    row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                ]
                table = one(rng, tables)
                columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
                try:
                    statement = one(rng, ("UPDATE {t} SET {c} = ?", "UPDATE {t} SET {c} = ?", "DELETE FROM {t}", "DROP TABLE {t}",
                                          "ALTER TABLE {t} RENAME COLUMN {c} TO other", "PRAGMA user_version = 7"))  # fmt: skip
                    base.execute(
                        statement.format(t=table, c=one(rng, columns)),
                        (one(rng, VALUES),) if "?" in statement else (),
                    )
                    base.commit()
                except sqlite3.Error:  # a field that may not be so: another case
                    base.rollback()
            content = path.read_bytes()
        yield File("s.sqlite", maybe_damaged(content, rng, 0.5))


def run(case: File) -> str:
    """Open the store and ask it everything; no damaged entry may be taken for a result."""

    def use(path: Path) -> None:
        with Store(path) as store:
            for _, _, payload in store:
                assert payload is None or isinstance(payload.arrays, dict)
            for cell, measured in store.measured():
                json.dumps([cell, measured])
            len(store), store.damaged(), store.experiments()
            store.get({"kind": "bandit", "policy": "UCB1", "seed": 1})
            store.put([({"seed": 99}, CellResult({"a": np.arange(2)}, {}, {}))])
            assert store.get({"seed": 99}) is not None

    outcome = read_file(case, use)
    for left in folder().glob("s.sqlite*"):
        left.unlink()
    return outcome
