"""Files that are either there whole or not at all."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError

PLAIN_KINDS = "fiub"  # floats, integers, unsigned, booleans: nothing that could hold an object


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there: a kill or a full disk leaves the old file as it was."""
    import tempfile

    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise UserError(f"cannot write {str(target)!r}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _usual_mode(target))
        os.replace(temporary, target)
    except OSError as error:
        raise UserError(f"cannot write {str(target)!r}: {error.strerror or error}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _usual_mode(target: Path) -> int:
    """The mode of the file to be replaced, else what a newly opened file would have (temporary files are private)."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a file, with an error that names it."""
    try:
        return Path(path).read_text(encoding="utf-8")
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
        shape = tuple(int(size) for size in value["shape"])
        data = base64.b64decode(value["data"], validate=True)
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"not an array: {error}") from error
    if dtype.kind not in PLAIN_KINDS:
        raise ValueError(f"arrays of {dtype} are not allowed")
    array = np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape)
    return array.astype(dtype)  # a copy, in this machine's byte order
