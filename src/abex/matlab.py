"""Matrices of numbers from MATLAB 5 files, every size checked before it is believed.

SciPy's reader follows the sizes in a damaged file wherever they lead, out of its memory too. What is read here is less: full and
sparse matrices of real numbers. Cells, records, texts and complex matrices are stepped over.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError
from abex.extras import needed
from abex.reading import CHUNK, check_size, reading

HEADER = 128
MATRIX, PACKED = 14, 15  # kinds of elements
KINDS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
SPARSE, FULL = 5, range(6, 16)  # classes of matrices
COMPLEX, LOGICAL = 0x0800, 0x0200  # flags


class Element(NamedTuple):
    """A piece of a file: what it is, and its bytes."""

    kind: int
    content: bytes


def matrices_of(content: bytes, where: str, names: list[str] | None = None) -> dict[str, Any]:
    """The real matrices of a MATLAB 5 file by name, in the type they are stored in; sparse ones as SciPy has them.

    All, or those that ``names`` lists. Files of version 7.3 are of another format (HDF5).
    """
    with reading(f"read {where} as a MATLAB file"):
        if content[:10] == b"MATLAB 7.3":
            raise UserError(f"{where} is a MATLAB file of version 7.3: save it with -v7")
        order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
        if order is None:
            raise UserError(f"{where} is not a readable MATLAB file: it has no header of MATLAB 5")
        found: dict[str, Any] = {}
        for element in _elements(content, order, where, HEADER):
            matrix = _matrix(element.content, order, where, names) if element.kind == MATRIX else None
            if matrix is not None:
                found[matrix[0]] = matrix[1]
        return found


def _elements(content: bytes, order: str, where: str, start: int = 0) -> Iterator[Element]:
    """The elements from ``start`` on; packed ones are unpacked."""
    at, unpacked = start, 0
    while at + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        if kind >> 16:  # up to four bytes fit into the tag itself
            kind, size, begin, at = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            if size > 4:
                raise UserError(f"{where} is damaged: a short element of {size} bytes")
        else:
            begin = at + 8
            at = begin + size + (-size % 8 if kind != PACKED else 0)
        if begin + size > len(content):
            raise UserError(f"{where} is damaged or cut off: {size:,} bytes are promised where the file ends")
        inside = content[begin : begin + size]
        if kind == PACKED:
            inside = _unpacked(inside, unpacked, where)
            unpacked += len(inside)
            yield from _elements(inside, order, where) if inside[:1] and not _is_packed(inside, order) else ()
        else:
            yield Element(kind, inside)


def _is_packed(content: bytes, order: str) -> bool:
    """Whether a packed element holds another one, as no sound file does."""
    return len(content) >= 4 and struct.unpack_from(f"{order}I", content)[0] == PACKED


def _unpacked(content: bytes, before: int, where: str) -> bytes:
    unpacker, parts, size = zlib.decompressobj(), [], before
    while content and not unpacker.eof:
        parts.append(unpacker.decompress(content, CHUNK))
        size += len(parts[-1])
        check_size(size, where)
        content = unpacker.unconsumed_tail
    if not unpacker.eof:
        raise UserError(f"{where} is damaged or cut off: a packed matrix has no end")
    return b"".join(parts)


def _matrix(content: bytes, order: str, where: str, names: list[str] | None) -> tuple[str, Any] | None:
    """Name and values of a matrix of real numbers; None for whatever else it is."""
    parts = _elements(content, order, where)
    about, size, name = next(parts, None), next(parts, None), next(parts, None)
    if about is None or size is None or name is None or len(about.content) < 8:
        return None
    flags = struct.unpack(f"{order}I", about.content[:4])[0]
    title = name.content.decode("latin-1")
    if flags & COMPLEX or (names is not None and title not in names):
        return None
    shape = tuple(int(n) for n in _numbers(size, order, where))
    if len(shape) < 2 or min(shape) < 0:
        raise UserError(f"{where} is damaged: a matrix without a shape")
    if flags & 0xFF == SPARSE:
        return title, _sparse(
            [_numbers(part, order, where) for part, _ in zip(parts, range(3), strict=False)], shape, where
        )
    if flags & 0xFF not in FULL:
        return None
    values = next(parts, None)
    numbers = np.empty(0) if values is None else _numbers(values, order, where)
    if numbers.size != math.prod(shape):
        raise UserError(f"{where} is damaged: {numbers.size} numbers for a matrix of shape {shape[:4]}")
    return title, numbers.reshape(shape, order="F")


def _numbers(element: Element, order: str, where: str) -> NDArray[Any]:
    kind = KINDS.get(element.kind)
    if kind is None or len(element.content) % int(kind[1]):
        raise UserError(f"{where} is damaged: numbers of an unknown kind")
    dtype = np.dtype(order + kind)
    return np.frombuffer(element.content, dtype).astype(dtype.newbyteorder("="))


def _sparse(parts: list[NDArray[Any]], shape: tuple[int, ...], where: str) -> Any:
    """Rows, ends of columns and values, which must fit each other."""
    with needed():
        from scipy.sparse import csc_matrix

    if len(parts) != 3 or len(shape) != 2:
        raise UserError(f"{where} is damaged: a sparse matrix with a part missing")
    rows, ends, values = parts[0].astype(np.int64), parts[1].astype(np.int64), parts[2]
    sound = ends.size == shape[1] + 1 and ends[0] == 0 and (np.diff(ends) >= 0).all()
    if not sound or ends[-1] > min(rows.size, values.size):
        raise UserError(f"{where} is damaged: the columns of a sparse matrix do not fit")
    rows, values = rows[: ends[-1]], values[: ends[-1]]
    if rows.size and not (rows.min() >= 0 and rows.max() < shape[0]):
        raise UserError(f"{where} is damaged: a sparse matrix with a row that is not there")
    return csc_matrix((values, rows, ends), shape=shape)
