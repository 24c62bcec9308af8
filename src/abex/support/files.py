"""Atomic writes of files, arrays as JSON, and their checksums."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import math
import os
import stat
from collections.abc import Iterable
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.reading import max_bytes, short_path, up_to

PLAIN_KINDS = "fiub"  # floats, integers, unsigned, booleans: nothing that could hold an object


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there: a kill or a full disk leaves the old file as it was.

    A link is written through to the file it stands for, and what is no file (a pipe, a terminal) is written to as it is. A
    replaced file keeps its mode, a new one has the mode of any file.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        _replace(Path(os.path.realpath(target)), content)
    except OSError as error:
        raise UserError(f"cannot write {str(target)!r}: {error.strerror or error}") from error


def _replace(target: Path, content: bytes) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.parent / f".{target.name[:100]}.{os.urandom(8).hex()}.part"
    # the system takes the umask away from 0o666; nobody else sees what will replace a private file
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def table_bytes(frame: Any, kind: str) -> bytes:
    """A data frame as the content of a file whose name ends in ``kind``, ".csv" or ".parquet"."""
    buffer = io.BytesIO()
    if kind == ".csv":
        frame.to_csv(buffer, index=False)
    else:
        with needed():
            import pyarrow  # noqa: F401 - pandas writes with it
        frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a file, with an error that names it."""
    try:
        with open(path, "rb") as file:
            return up_to(file, max_bytes(), f"the {what} {short_path(Path(path))}").decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise UserError(f"cannot read the {what} {str(path)!r}: {reason}") from error


def encode_array(array: NDArray[Any]) -> dict[str, Any]:
    """A JSON value that holds the array exactly."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "data": base64.b64encode(little.tobytes()).decode("ascii"),
    }


def decode_array(value: Any) -> NDArray[Any]:
    """The array of `encode_array`, writable. Raises ValueError where it is damaged."""
    try:
        dtype = np.dtype(str(value["dtype"]))
        shape = tuple(index(size) for size in value["shape"])
        data = base64.b64decode(value["data"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise ValueError(f"not an array: {error}") from error
    if dtype.kind not in PLAIN_KINDS:
        raise ValueError(f"arrays of {dtype} are not allowed")
    if min(shape, default=0) < 0 or len(data) != dtype.itemsize * math.prod(shape):
        raise ValueError("an array does not have the size that it says")
    array = np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape)
    return array.astype(dtype)  # a copy, in this machine's byte order


def checksum_of(arrays: Iterable[NDArray[Any]]) -> str:
    """SHA-256 of arrays: types, shapes and values (little-endian, row by row).

    >>> checksum_of([np.array([1, 2], dtype=np.uint8)])[:16]
    '3aac44d574b40f73'
    """
    digest = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{plain.dtype.str}{plain.shape}".encode())
        digest.update(plain.data)
    return digest.hexdigest()
