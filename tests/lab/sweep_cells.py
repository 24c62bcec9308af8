"""Cells for the tests of sweeps: importable in worker processes, quick, and without the compiler."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
import zlib
from pathlib import Path

import numpy as np

from abex.lab.results import CellResult, Store
from abex.lab.results.store import row_of
from abex.lab.sweeps.executors import executor_of
from abex.lab.sweeps.sweep import raise_on_failure, sweep
from abex.support.randomness import stream
from tests.waiting import wait_until


def dump(store):
    """The logical content: a line for each cell in the order of keys, without measured times.

    Two stores that hold the same results have the same dump, byte for byte, whatever happened to the runs.
    """
    rows = [row_of(cell, payload)[:4] for _, cell, payload in store]
    return b"".join(
        f"{key} {cell} {zlib.decompress(packed).decode()} {checksum}\n".encode()
        for key, cell, packed, checksum in rows
    )


def numbers(cell, stopped):
    """Random numbers named by the cell, after a short pause; not before there is the file that is its gate."""
    if "begun" in cell:
        Path(cell["begun"]).touch()
    time.sleep(cell.get("pause", 0.0))
    if "gate" in cell:
        wait_until(Path(cell["gate"]).exists)
    if "diary" in cell:
        with open(cell["diary"], "a") as diary:
            diary.write(f"{cell['replication']}\n")
    rng = stream(cell["seed"], cell["replication"])
    return CellResult({"values": rng.random(50), "counts": np.arange(3)}, {"mean": float(rng.random())})


def killer(cell, stopped):
    """Kills its process; only so many times (once unless told) where it can leave a mark."""
    time.sleep(cell.get("pause", 0.0))
    mark = cell.get("mark")
    if mark is None:
        os.kill(os.getpid(), 9)
    with open(mark, "a+") as file:
        file.write("x")
        if file.tell() <= cell.get("times", 1):
            file.flush()
            os.kill(os.getpid(), 9)
    return numbers(cell, stopped)


def dies_later(cell, stopped):
    """Its process dies after the work is done."""
    threading.Timer(0.3, os.kill, (os.getpid(), 9)).start()
    return numbers(cell, stopped)


def deaf(cell, stopped):
    """Works for hours in compiled code, whatever the interpreter would like to tell it."""
    Path(cell["begun"]).touch()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9, dklen=3200)


def fails(cell, stopped):
    raise ZeroDivisionError("by intent")


def cells(count: int, **more):
    return [
        {"kind": "tests.lab.sweep_cells:numbers", "seed": 3, "replication": r, **more} for r in range(count)
    ]


if __name__ == "__main__":  # store, number of cells, pause, executor, more about the cells
    path, count, pause, where = sys.argv[1:5]
    more = json.loads(sys.argv[5]) if len(sys.argv) > 5 else {}
    with executor_of(where, 2) as executor, Store(path) as store:
        raise_on_failure(sweep(cells(int(count), pause=float(pause), **more), store, executor))
