"""What may come of a case: correct work, or one `UserError` whose sentence is short and stands in one line."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from abex.support.errors import UserError

WORKED, REFUSED = "worked", "refused"
LONGEST = 200  # characters of a sentence


class File(NamedTuple):
    """A file that is to be read: its name, its content, and how."""

    name: str
    content: bytes
    options: tuple[tuple[str, Any], ...] = ()


@functools.cache
def folder() -> Path:
    """A folder of this process, gone when it ends."""
    made = tempfile.TemporaryDirectory(prefix="f", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    _kept.append(made)
    return Path(made.name)


_kept: list[Any] = []


def told(function: Callable[[], object]) -> str:
    """Run ``function``: "worked", or "refused" by a proper sentence; whatever else it raises is a failure."""
    try:
        function()
    except UserError as error:
        check_sentence(str(error))
        return REFUSED
    return WORKED


def check_sentence(text: str) -> None:
    """Short, in one line, and of characters that a terminal can show."""
    assert text, "an empty sentence"
    assert len(text) < LONGEST, f"a sentence of {len(text)} characters: {text}"
    assert "\n" not in text, f"a sentence of several lines: {text!r}"
    assert "\r" not in text, f"a sentence with a carriage return: {text!r}"
    text.encode("utf-8")


def read_file(case: File, reader: Callable[..., object]) -> str:
    """What comes of reading the file of ``case``."""
    path = folder() / case.name
    path.write_bytes(case.content)
    try:
        return told(lambda: reader(path, **dict(case.options)))
    finally:
        path.unlink()
