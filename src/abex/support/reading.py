"""Readers of files that others wrote: their errors as one sentence, and a limit of memory.

A reader of another library may fail with any exception; `reader_errors` turns each into one sentence that names the file.
A few bytes may stand for gigabytes (packed zeros, a header that promises an array, one huge index): whatever is unpacked or
laid out is measured first and may take `max_bytes`, an eighth of the machine's memory unless ``ABEX_MAX_BYTES`` says more.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import stat
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, brief, shown, whole_number

LIMIT = "ABEX_MAX_BYTES"
SHARE = 8  # of the memory: a table is held several times while it is laid out
UNKNOWN_MEMORY = 2**33
CHUNK = 2**20
MAX_COLUMNS = 10**6  # of a table, or the largest index of a sparse one
JSON_VALUE, JSON_ENTRY = 64, 160  # bytes of a list, a number or a word, and of an entry of an object
PLAIN_KINDS = "biufUS"  # what a NumPy file may hold: numbers and words, never objects


def max_bytes() -> int:
    """The memory that a file may take: ``$ABEX_MAX_BYTES``, else an eighth of the machine's."""
    given = os.environ.get(LIMIT)
    if given:
        try:
            number: Any = float(given)
        except ValueError:
            number = given
        return whole_number(LIMIT, number, least=1)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY // SHARE


def check_size(n_bytes: int, what: str) -> None:
    """Refuse what would take more than `max_bytes`."""
    limit = max_bytes()
    if n_bytes > limit:
        raise UserError(
            f"{what} would take {_size(n_bytes)}, more than {_size(limit)}: {LIMIT} may allow more"
        )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes < 10**15 else "over a petabyte"


def short_path(path: str | Path) -> str:
    """A path for a message: its end, where it is long.

    >>> short_path("/home/" + "very/" * 30 + "long.csv")[:20]
    '...ery/very/very/ver'
    """
    text = brief(str(path), 4096)
    return text if len(text) <= 80 else f"...{text[-77:]}"


@contextmanager
def reader_errors(task: str, advice: str = "") -> Iterator[None]:
    """A context that turns every exception of a foreign reader into one sentence: cannot ``task``, and why.

    >>> with reader_errors("read stars.csv as a table"):
    ...     raise StopIteration
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: cannot read stars.csv as a table: StopIteration
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a reader warns of is checked afterwards
            yield
    except UserError:
        raise
    except MemoryError:
        raise UserError(f"cannot {task}: there is not enough memory for it") from None
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise UserError(f"cannot {task}: it is damaged or cut off ({_reason(error)}){advice}") from None
    except OSError as error:
        raise UserError(f"cannot {task}: {error.strerror or _reason(error)}{advice}") from None
    except Exception as error:  # foreign errors have no common base
        raise UserError(f"cannot {task}: {_reason(error)}{advice}") from None


def _reason(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return brief(lines[0] if lines else type(error).__name__, 70).rstrip(". ")


# -- bytes ----------------------------------------------------------------------------------------------------


def read_bytes(path: Path, packed: bool | None = None) -> bytes:
    """The content of a file, unpacked where it is gzip; None: told by its first bytes, not by its name."""
    with reader_errors(f"read {short_path(path)}"), open(path, "rb") as file:
        about = os.fstat(file.fileno())
        if stat.S_ISREG(about.st_mode):
            check_size(about.st_size, short_path(path))
        content = up_to(file, max_bytes(), short_path(path))
    if packed or (packed is None and content[:2] == b"\x1f\x8b"):
        return gunzip(content, short_path(path))
    return content


class _Limited(io.RawIOBase):
    """A stream that must not be longer than ``most`` bytes."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, most: int, where: str) -> None:
        self._file, self._left, self._most, self._where = file, most, most, where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._file.read(len(buffer))
        self._left -= len(part)
        if self._left < 0:
            raise _endless(self._where, self._most)
        buffer[: len(part)] = part
        return len(part)


@contextmanager
def opened(path: Path, packed: bool) -> Iterator[io.BufferedReader]:
    """A file that is read piece by piece and unpacked on the way, up to `max_bytes` of it."""
    where, most = short_path(path), max_bytes()
    with reader_errors(f"read {where}"), open(path, "rb") as file:
        content = gzip.GzipFile(fileobj=file) if packed else file
        yield io.BufferedReader(_Limited(content, most, where), CHUNK)


def check_json(text: str, where: str) -> None:
    """Refuse JSON whose values would take more than `max_bytes`: an empty list is two characters of a file and 64 bytes here.

    >>> check_json('[{"a": 1}, 2]', "this")
    """
    values = sum(map(text.count, "[{,"))
    check_size(JSON_VALUE * values + JSON_ENTRY * text.count(":"), f"{where} as JSON values")


def gunzip(content: bytes, where: str, most: int | None = None, advice: str = "") -> bytes:
    """What gzip packed, up to `max_bytes` of it."""
    with reader_errors(f"unpack {where}", advice), gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        return up_to(file, max_bytes() if most is None else most, where)


def up_to(file: IO[bytes] | gzip.GzipFile, most: int, where: str) -> bytes:
    """All bytes of a stream, which must not be more than ``most``."""
    parts, size = [], 0
    while part := file.read(CHUNK):
        parts.append(part)
        size += len(part)
        if size > most:
            raise _endless(where, most)
    return b"".join(parts)


def _endless(where: str, most: int) -> UserError:
    return UserError(f"{where} grows beyond {_size(most)} when it is read: {LIMIT} may allow more")


# -- NumPy ----------------------------------------------------------------------------------------------------


def array_of(content: bytes, where: str) -> NDArray[Any]:
    """The array of an .npy file: plain numbers or words, as many as follow its header; nothing is unpickled."""
    with reader_errors(f"read {where} as NumPy data"):
        stream = io.BytesIO(content)
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise UserError(f"cannot read {where} as NumPy data: it is of version {version[0]}.{version[1]}")
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
        if dtype.kind not in PLAIN_KINDS or dtype.itemsize == 0 or dtype.subdtype is not None:
            raise UserError(
                f"cannot read {where} as NumPy data: it has {brief(str(dtype), 40)}, not plain numbers or words"
            )
        count, start = math.prod(shape), stream.tell()
        if min(shape, default=0) < 0 or count * dtype.itemsize > len(content) - start:
            promised = shown(tuple(shape))
            raise UserError(f"{where} is damaged: its shape {promised} needs more than the bytes that follow")
        if count == 0:
            return np.empty(shape, dtype)
        flat = np.frombuffer(content, dtype, count, start).astype(dtype.newbyteorder("="))
        return _words(flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape), where)


def _words(array: NDArray[Any], where: str) -> NDArray[Any]:
    """Words as Python has them; numbers as they are."""
    if array.dtype.kind == "S":
        check_size(4 * array.nbytes, where)
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "U" and np.ascontiguousarray(array).reshape(-1).view(np.uint32).max() > 0x10FFFF:
        raise UserError(f"{where} is damaged: it has words of characters that do not exist")
    return array


def arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name."""
    where, room = short_path(path), max_bytes()
    arrays = {}
    with reader_errors(f"read {where} as NumPy data"), zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name, dot, _ = entry.filename.rpartition(".npy")
            if not dot:
                continue
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise UserError(
                    f"cannot read {where} as NumPy data: it is packed in a way NumPy does not write"
                )
            with archive.open(entry) as file:
                content = up_to(file, room, where)
            room -= len(content)
            arrays[name] = array_of(content, where)
    return arrays
