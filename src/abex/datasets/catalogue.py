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

    It is accepted plain, as ``.gz`` and ``.Z``, and inside its ``remote`` when that is an archive.
    ``sha256`` is that of the unpacked bytes, so the packing does not matter; None where copies may differ
    in form, the data set's own checksum decides then.
    """

    name: str
    sha256: str | None
    remote: Remote


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
    size: str  # rows, features and classes in words, for the table
    description: str
    citation: str
    licence: str

    @property
    def remotes(self) -> tuple[Remote, ...]:
        """The files to fetch, each once."""
        return tuple(dict.fromkeys(part.remote for part in self.parts))


@dataclass(frozen=True)
class Found:
    """Where a part is: a file, or a member of an archive."""

    path: Path
    member: str | None = None
