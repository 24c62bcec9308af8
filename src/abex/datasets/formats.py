"""Parsers of the upstream formats: bytes in, arrays out, one clear sentence when the bytes are wrong."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError
from abex.matlab import matrices_of
from abex.reading import reading

IDX_BYTES = 0x08  # the only element type of MNIST's files


def idx(content: bytes, where: str) -> NDArray[np.uint8]:
    """An IDX file of bytes: two zeros, the type, the number of sizes, the sizes (big-endian), the data."""
    if len(content) < 4 or content[:2] != b"\x00\x00" or content[2] != IDX_BYTES or not 1 <= content[3] <= 4:
        raise UserError(f"{where} is not an IDX file of bytes (it begins with {content[:4].hex(' ')})")
    n_dimensions = content[3]
    start = 4 + 4 * n_dimensions
    if len(content) < start:
        raise UserError(f"{where} is damaged: it ends within its first {start} bytes")
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], dtype=">u4"))
    if len(content) - start != math.prod(shape):
        raise UserError(f"{where} is damaged: {len(content) - start} data bytes for the shape {shape}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape).copy()


def numbers(
    content: bytes, n_columns: int, where: str, *, delimiter: str | None = None
) -> NDArray[np.float64]:
    """A table of numbers, ``n_columns`` in each line."""
    with reading(f"read {where} as a table of numbers"):
        table = np.loadtxt(io.BytesIO(content), delimiter=delimiter, ndmin=2, comments="#")
    if table.size == 0:
        raise UserError(f"{where} has no rows")
    if table.shape[1] != n_columns:
        raise UserError(f"{where} has {table.shape[1]} columns, expected {n_columns}")
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise UserError(f"{where} has a number that is not finite in row {row + 1}")
    return table


def lettered(content: bytes, n_columns: int, where: str) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Lines ``A,1,2,...``: a capital letter as 0..25, then numbers separated by commas."""
    lines = content.splitlines()
    for row, line in enumerate(lines):
        if not (len(line) > 1 and 65 <= line[0] <= 90 and line[1:2] == b","):
            raise UserError(
                f"{where} must have a capital letter and a comma first in each line, line {row + 1} does not"
            )
    letters = np.frombuffer(bytes(line[0] for line in lines), dtype=np.uint8) - np.uint8(65)
    return letters, numbers(b"\n".join(line[2:] for line in lines), n_columns - 1, where, delimiter=",")


def edges(content: bytes, where: str) -> NDArray[np.int64]:
    """Pairs of node numbers, one a line; what follows ``#`` is a comment. Shape (lines, 2)."""
    table = numbers(content, 2, where)
    pairs = table.astype(np.int64)
    if not np.array_equal(pairs, table) or pairs.min() < 0:
        row = int(np.flatnonzero(((pairs != table) | (pairs < 0)).any(axis=1))[0])
        raise UserError(f"{where} must hold whole numbers >= 0, row {row + 1} does not")
    return pairs


def matlab(content: bytes, key: str, n_columns: int, where: str) -> NDArray[Any]:
    """The matrix called ``key`` of a MATLAB 5 file."""
    found = matlab_arrays(content, where, [key])
    if key not in found:
        raise UserError(f"{where} has no matrix called {key!r}")
    matrix: NDArray[Any] = found[key]
    if matrix.ndim != 2 or matrix.shape[1] != n_columns or matrix.dtype.kind not in "iuf":
        raise UserError(
            f"{where}: {key!r} must be a matrix of numbers with {n_columns} columns, got {matrix.shape}"
        )
    return matrix


def matlab_arrays(content: bytes, where: str, names: list[str] | None = None) -> dict[str, Any]:
    """The matrices of numbers of a MATLAB 5 file by name (all, or what ``names`` lists); sparse ones as SciPy has them."""
    return matrices_of(content, where, names)
