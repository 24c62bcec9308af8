"""How a data set is described: its files, where they come from, what must come out of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Contents = dict[str, bytes]  # plain name of a part -> its plain bytes


@dataclass(frozen=True)
class Remote:
    """A file on upstream's server and its mirrors; ``sha256`` is None where its bytes are not known."""

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Part:
    """One file of a data set under its unpacked name.

    ``remotes`` are the ways to get it, tried in turn. It is accepted plain, as ``.gz`` and ``.Z``, and
    inside a remote's file when that is an archive.
    ``sha256`` is that of the unpacked bytes, so the packing does not matter; None where copies may differ
    in form, the data set's own checksum decides then.
    """

    name: str
    sha256: str | None
    remotes: tuple[Remote, ...]


@dataclass(frozen=True)
class Entry:
    """A data set of the registry."""

    name: str
    kind: str  # "classes", "network" or "ratings"
    folder: str
    parts: tuple[Part, ...]
    read: Callable[[Contents], dict[str, Any]]  # parts -> arrays
    build: Callable[[Entry, dict[str, Any]], Any]  # arrays -> what `load` returns
    checksum: str | None  # of the arrays, see `checksum_of`
    rows: str  # for the table, as are the next two
    description: str
    brief: str  # the citation in three words
    citation: str
    licence: str
    features: str = ""
    classes: str = ""


@dataclass(frozen=True)
class Found:
    """Where a part is: a file, or a member of an archive."""

    path: Path
    member: str | None = None
