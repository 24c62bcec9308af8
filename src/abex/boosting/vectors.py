"""Vectors for kernels: 64 bytes at a time (16 floats or 8 doubles), one instruction where the processor has it.

A row of an array of shape (rows, numbers), padded to whole vectors by `new_rows`, is one vector value where it is 64 or 128
bytes long; longer rows are passed over in pieces of 64 bytes, rows of a few numbers are half or a quarter of a vector. The
*width* of the rows says which, and its class is part of the types that code is compiled for. A loop over rows is written
once, for all widths:

>>> rows = new_rows(2, 10, np.float64)
>>> rows[:, :10] = 1.5
>>> width = width_of(10, np.float64)
>>> for piece in range(pieces(width)):
...     store(rows, 0, piece, width, load(rows, 0, piece, width) * load(rows, 1, piece, width))
>>> float(rows[0, 9]), rows.shape, width
(2.25, (2, 16), TwoVectors(pieces=1))

In Python a vector is a NumPy array. In compiled code it is a value in registers (`vector_type`), so that nothing it is
computed from can overlap with what is written; with checks of bounds it is an array there too. Vectors are values: write
``total = total + vector``, not ``+=``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from abex.kernels import before_compiling, bounds_checked, kernel, rare_kernel, single_dispatch

VECTOR_BYTES = 64
Vector = Any  # an array of numbers in Python
Function = TypeVar("Function", bound=Callable[..., Any])

OPERATIONS: list[Callable[..., Any]] = []


class QuarterVector(NamedTuple):
    """Rows of a quarter of a vector."""

    pieces: int = 1


class HalfVector(NamedTuple):
    """Rows of half a vector."""

    pieces: int = 1


class OneVector(NamedTuple):
    """Rows of one vector."""

    pieces: int = 1


class TwoVectors(NamedTuple):
    """Rows of two vectors, which are computed with together."""

    pieces: int = 1


class ManyVectors(NamedTuple):
    """Rows of more, one vector a piece."""

    pieces: int


Width = QuarterVector | HalfVector | OneVector | TwoVectors | ManyVectors
#: widths of rows that are one vector value -> quarters of a vector they hold
QUARTERS: dict[type, int] = {QuarterVector: 1, HalfVector: 2, OneVector: 4, TwoVectors: 8}


def lanes_of(dtype: Any) -> int:
    """How many numbers of this type a vector holds."""
    return VECTOR_BYTES // int(np.dtype(dtype).itemsize)


def width_of(numbers: int, dtype: Any) -> Width:
    """The width of rows that hold so many numbers.

    >>> [type(width_of(numbers, np.float64)).__name__ for numbers in (2, 3, 5)]
    ['QuarterVector', 'HalfVector', 'OneVector']
    """
    lanes = lanes_of(dtype)
    for kind, quarters in QUARTERS.items():
        if 4 * numbers <= quarters * lanes:
            return kind()  # type: ignore[no-any-return]
    return ManyVectors(-(-numbers // lanes))


def new_rows(count: int, numbers: int, dtype: Any) -> NDArray[Any]:
    """Zeros: ``count`` rows of so many numbers, padded to their `width_of` and aligned to a vector's size."""
    lanes, width = lanes_of(dtype), width_of(numbers, dtype)
    padded = lanes * width.pieces if isinstance(width, ManyVectors) else lanes * QUARTERS[type(width)] // 4
    raw = np.zeros(count * padded + lanes, dtype=dtype)
    skip = (-raw.ctypes.data % VECTOR_BYTES) // raw.itemsize
    return raw[skip : skip + count * padded].reshape(count, padded)


def operation(function: Function) -> Function:
    """An operation on vectors: Python runs it as it stands, compiled code as `vector_type` has it."""
    OPERATIONS.append(function)
    return function


@operation
def stand_apart() -> None:
    """Within a rare kernel: it is not made part of its callers. A loop inside a long function has no registers left."""


@single_dispatch
def pieces(width: Any) -> int:
    """How many pieces a row is passed over in."""
    return 1


@pieces.register(ManyVectors)
@kernel
def pieces_of_many(width: ManyVectors) -> int:
    """One vector a piece."""
    return width.pieces


@operation
def load(rows: NDArray[Any], row: int, piece: int, width: Width) -> Vector:
    """A piece of a row."""
    size = rows.shape[1] // width.pieces
    return rows[row, piece * size : (piece + 1) * size].copy()


@operation
def store(rows: NDArray[Any], row: int, piece: int, width: Width, vector: Vector) -> None:
    """Set a piece of a row."""
    size = rows.shape[1] // width.pieces
    rows[row, piece * size : (piece + 1) * size] = vector


@operation
def filled(rows: NDArray[Any], width: Width, number: float) -> Vector:
    """A piece of equal numbers, of the type that the rows have."""
    return np.full(rows.shape[1] // width.pieces, number, rows.dtype)


@operation
def absolute(vector: Vector) -> Vector:
    """Absolute values."""
    return np.abs(vector)


@operation
def maximum(a: Vector, b: Vector) -> Vector:
    """The larger numbers of two vectors."""
    return np.maximum(a, b)


@operation
def copysign(sizes: Vector, signs: Vector) -> Vector:
    """The sizes of one vector with the signs of another."""
    return np.copysign(sizes, signs)


@operation
def without(vector: Vector, lane: int) -> Vector:
    """The vector with a zero for number ``lane``, if it has one."""
    result = vector.copy()
    if 0 <= lane < result.size:
        result[lane] = 0.0
    return result


@operation
def lane_sum(vector: Vector) -> Any:
    """The sum of all numbers, by halves: in the same order on every machine.

    >>> float(lane_sum(np.arange(16.0)))
    120.0
    """
    size = vector.size
    while size > 1:
        size //= 2
        vector = vector[:size] + vector[size : 2 * size]
    return vector[0]


@before_compiling
def _compile_as_arrays() -> None:
    if bounds_checked():
        for function in OPERATIONS:
            rare_kernel(function)
