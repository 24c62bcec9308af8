"""Edge lists from files, at the speed of the disk: one compiled pass over the bytes that also finds damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError, brief, one_of
from abex.kernels import fast, kernel
from abex.reading import check_size, named, read_bytes

Edges = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]

NEWLINE, RETURN, SPACE, TAB, COMMA, HASH, PERCENT, MINUS, ZERO, NINE = b"\n\r \t,#%-09"
GOOD, NOT_A_NUMBER, NEGATIVE, TOO_LARGE, WRONG_COUNT = range(5)
COMPLAINTS = {
    NOT_A_NUMBER: 'has an id that is not a whole number (ids may be words with ids="words")',
    NEGATIVE: "has a negative id",
    TOO_LARGE: "has an id beyond 18 digits",
    WRONG_COUNT: "must hold two ids",
}


def read_edges(path: Path, ids: str) -> Edges:
    """The distinct ids in order, and both ends of every edge as positions in them."""
    one_of("ids", ids, ["numbers", "words"])
    text = read_bytes(path)
    most = text.count(b"\n") + 1
    check_size(16 * most, f"the edges of {named(path)}")
    if ids == "words":
        return _words(path, text)
    content = np.frombuffer(text, dtype=np.uint8)
    sources, targets = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    count, line, problem = fast(scan)(content, sources, targets)
    if problem != GOOD:
        got = _line(text, int(line))
        raise UserError(f"{named(path)}, line {line} {COMPLAINTS[int(problem)]}, got {got!r}")
    return _compact(path, np.concatenate([sources[:count], targets[:count]]))


@kernel
def separates(byte: int) -> bool:
    """Whether a byte stands between two ids."""
    return byte in (SPACE, TAB, COMMA, RETURN)


@kernel
def scan(text: Any, sources: Any, targets: Any) -> Any:
    """Edges of ``text`` into the two arrays: (edges, last line looked at, GOOD or what is wrong with it)."""
    edges = 0
    line = 0
    i = 0
    size = text.size
    while i < size:
        line += 1
        found = 0
        comment = False
        while i < size and text[i] != NEWLINE:
            byte = text[i]
            if separates(byte):
                i += 1
                continue
            if found == 0 and byte in (HASH, PERCENT):
                comment = True
                while i < size and text[i] != NEWLINE:
                    i += 1
                break
            if byte == MINUS:
                return edges, line, NEGATIVE
            value = np.int64(0)
            digits = 0
            while i < size and ZERO <= text[i] <= NINE:
                value = value * 10 + np.int64(text[i] - ZERO)
                digits += 1
                i += 1
            if digits == 0:
                return edges, line, NOT_A_NUMBER
            if digits > 18:
                return edges, line, TOO_LARGE
            if i < size and text[i] != NEWLINE and not separates(text[i]):
                return edges, line, NOT_A_NUMBER
            if found == 0:
                sources[edges] = value
            elif found == 1:
                targets[edges] = value
            found += 1
        i += 1
        if found == 2:
            edges += 1
        elif not comment and found > 0:
            return edges, line, WRONG_COUNT
    return edges, line, GOOD


def _line(text: bytes, number: int) -> str:
    """Line ``number`` as a person can read it, cut to 40 characters."""
    return brief(text.split(b"\n", number)[number - 1][:400].decode("utf-8", "replace").strip(), 40)


def _compact(path: Path, ends: NDArray[np.int64]) -> Edges:
    """Ids to positions: by a table where the ids are dense, by sorting otherwise."""
    if ends.size == 0:
        raise UserError(f"{named(path)} holds no edge")
    largest = int(ends.max())
    if largest < 4 * ends.size + 1000:
        there = np.zeros(largest + 1, dtype=bool)
        there[ends] = True
        labels = np.flatnonzero(there)
        position = np.cumsum(there) - 1
        places = position[ends]
    else:
        labels, places = np.unique(ends, return_inverse=True)
    half = ends.size // 2
    return labels, places[:half], places[half:]


def _words(path: Path, text: bytes) -> Edges:
    """As above for ids that are words; a line at a time."""
    first: list[str] = []
    second: list[str] = []
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), start=1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0][0] in "#%":
            continue
        if len(fields) != 2:
            raise UserError(f"{named(path)}, line {number} must hold two ids, got {brief(line, 40)!r}")
        first.append(fields[0])
        second.append(fields[1])
    if not first:
        raise UserError(f"{named(path)} holds no edge")
    words = first + second
    check_size(4 * len(words) * max(map(len, words)), f"the ids of {named(path)}")
    labels, places = np.unique(np.array(words), return_inverse=True)
    return labels, places[: len(first)], places[len(first) :]
