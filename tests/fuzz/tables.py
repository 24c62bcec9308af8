"""Tables of one's own: CSV, LIBSVM and Parquet, with wrong cells, wrong shapes and damaged bytes."""

from __future__ import annotations

import functools
import gzip
import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from abex.lab.datasets import read
from tests.fuzz.damage import Rng, damaged, grid, maybe_damaged, one, token
from tests.fuzz.outcomes import File, read_file

TARGETS = (None, None, None, None, None, None, None, None, 0, -1, "y", "1", "no such", 10**30, 99)


def csv(rng: Rng) -> Iterator[File]:
    """Tables with separators, quotes, blanks, short and long lines; sometimes packed."""
    while True:
        mark = one(rng, (",", "\t", ";", " "))
        width = int(rng.integers(1, 5))
        header = [one(rng, (f"c{k}", f"c{k}", f"c{k}", token(rng))) for k in range(width - 1)] + ["y"]
        lines = [mark.join(header)]
        for cells in grid(rng, int(rng.integers(0, 24)), width):
            if rng.random() < 0.02:
                cells = cells[: int(rng.integers(0, width + 1))] + ["7"] * int(rng.integers(0, 3))
            lines.append(mark.join(cells))
        content = one(rng, ("\n", "\n", "\r\n", "\r")).join(lines).encode("utf-8", "surrogatepass")
        content = maybe_damaged(content, rng, 0.2)
        name = one(rng, ("t.csv", "t.tsv", "t.txt", "t.csv.gz"))
        if name.endswith(".gz"):
            content = maybe_damaged(gzip.compress(content, 1, mtime=0), rng, 0.5)
        yield File(name, content, (("target", one(rng, TARGETS)), ("missing", bool(rng.integers(2)))))


@functools.cache
def parquet_files() -> list[bytes]:
    """Small tables of several kinds, written once."""
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, Any] = {
        "a": np.arange(12) * 0.5, "b": np.arange(12) % 4, "w": ["red", "green", "blue"] * 4, "n": [None, 1.0, 2.0] * 4,
        "t": np.arange(12).astype("datetime64[D]"), "d": pa.array([b"x", b"\xff"] * 6), "f": np.arange(12).astype(np.float32),
        "l": [[1], [2, 3], None] * 4, "s": pa.array([{"k": 1}] * 12), "e": pa.array(["p", "q"] * 6).dictionary_encode(),
    }  # fmt: skip
    files = []
    for names in (
        ("a", "b"),
        ("a", "w"),
        ("b", "n"),
        ("t",),
        ("d", "a"),
        ("f", "e"),
        ("l", "a"),
        ("s",),
        ("w", "e", "b"),
    ):
        table = pa.table({**{name: columns[name] for name in names}, "y": np.arange(12) % 3})
        for packing in ("none", "snappy"):
            buffer = io.BytesIO()
            parquet.write_table(table, buffer, compression=packing)
            files.append(buffer.getvalue())
    return files


def parquet(rng: Rng) -> Iterator[File]:
    """Sound files and such with damage in pages and footers."""
    while True:
        content = one(rng, parquet_files())
        if rng.random() < 0.6:  # the footer is what a reader believes
            size = int.from_bytes(content[-8:-4], "little")
            cut = len(content) - 8 - size
            content = content[:cut] + damaged(content[cut:-8], rng) + content[-8:]
        yield File("t.parquet", maybe_damaged(content, rng, 0.4), (("target", one(rng, TARGETS)),))


def run(case: File) -> str:
    """Read the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_file(case, read)
