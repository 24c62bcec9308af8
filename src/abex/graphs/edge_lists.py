"""Edge lists from files, by `numpy.loadtxt` after a check of every byte; a damaged file is read again to name the line."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, brief, one_of
from abex.support.reading import check_size, read_bytes, short_path

Edges = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]

COMMENT = re.compile(rb"^[ \t\r,]*[#%].*$", re.MULTILINE)
BLANK = re.compile(rb"\n[ \n]*\n")  # lines, of which `loadtxt` would warn
SEPARATORS = bytes.maketrans(b"\t\r,", b"   ")
MAX_DIGITS = 18  # of an id: more might not fit into 64 bits


def read_edges(path: Path, ids: str) -> Edges:
    """The distinct ids in order, and the ends of every edge as positions in them."""
    one_of("ids", ids, ["numbers", "words"])
    text = read_bytes(path)
    check_size(16 * (text.count(b"\n") + 1), f"the edges of {short_path(path)}")
    ends = _ends(path, text, np.int64 if ids == "numbers" else np.str_)
    if ends.size == 0:
        raise UserError(f"{short_path(path)} holds no edge")
    labels, places = np.unique(ends, return_inverse=True)
    places = places.reshape(-1, 2)
    return labels, places[:, 0], places[:, 1]


def _ends(path: Path, text: bytes, dtype: Any) -> NDArray[Any]:
    """The two ids of every line that is no comment."""
    plain = BLANK.sub(b"\n", COMMENT.sub(b"", text).translate(SEPARATORS)).strip()
    if dtype is np.int64 and plain.translate(None, b"0123456789 \n"):
        raise _damage(path, text, dtype)
    if not plain:
        return np.empty((0, 2), dtype=dtype)
    if dtype is np.str_:
        words = plain.split()
        check_size(4 * len(words) * max(map(len, words)), f"the ids of {short_path(path)}")
    try:
        table = np.loadtxt(io.StringIO(plain.decode("utf-8", "replace")), dtype=dtype, comments=None, ndmin=2)
    except ValueError:
        raise _damage(path, text, dtype) from None
    if table.shape[1] != 2:
        raise _damage(path, text, dtype)
    return table


def _damage(path: Path, text: bytes, dtype: Any) -> UserError:
    """The error for the first line that is not an edge."""
    for number, line in enumerate(text.split(b"\n"), start=1):
        for complaint in _complaints(_fields(line), dtype):
            return UserError(f"{short_path(path)}, line {number} {complaint}, got {_shown(line)}")
    return UserError(f"{short_path(path)} cannot be read as edges")


def _complaints(fields: list[str], dtype: Any) -> list[str]:
    if len(fields) not in (0, 2):
        return ["must hold two ids"]
    if dtype is np.str_:
        return []
    if any(re.fullmatch("-[0-9]+", field) for field in fields):
        return ["has a negative id"]
    if not all(re.fullmatch("[0-9]+", field) for field in fields):
        return ['has an id that is not a whole number (ids may be words with ids="words")']
    return [f"has an id beyond {MAX_DIGITS} digits"] * any(len(field) > MAX_DIGITS for field in fields)


def _fields(line: bytes) -> list[str]:
    """The ids of a line, none if it is a comment."""
    fields = line.decode("utf-8", "replace").replace(",", " ").split()
    return [] if fields and fields[0][0] in "#%" else fields


def _shown(line: bytes) -> str:
    """A line as a person can read it, cut to 40 characters."""
    return repr(brief(line[:400].decode("utf-8", "replace").strip(), 40))
