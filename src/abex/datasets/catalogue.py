"""How a data set is described: its files, where they come from, what must come out of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

Contents = dict[str, bytes]  # plain name of a part -> its plain bytes
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Remote:
    """A file on upstream's server and its mirrors; ``sha256`` is None where its bytes are not known."""

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class SourceFile:
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
class CatalogueEntry:
    """A data set of the registry."""

    name: str
    folder: str
    parts: tuple[SourceFile, ...]
    read: Callable[[Contents], Arrays]  # parts -> arrays
    build: Callable[[CatalogueEntry, Arrays], Any]  # arrays -> what `load` returns
    checksum: str | None  # of the arrays, see `checksum_of`
    rows: str  # for the table, as are the next two
    description: str
    brief: str  # the citation in three words
    citation: str
    licence: str
    features: str = ""
    classes: str = ""


@dataclass(frozen=True)
class FileLocation:
    """Where a part is: a file, or a member of an archive."""

    path: Path
    member: str | None = None


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    text = files("abex.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def entry_from(
    name: str, read: Callable[[Contents], Arrays], build: Callable[[CatalogueEntry, Arrays], Any]
) -> CatalogueEntry:
    """The data set that ``catalogue.toml`` describes, with its parser."""
    about = dict(_catalogue()[name])
    parts = tuple(
        SourceFile(
            part["name"],
            part.get("sha256"),
            tuple(Remote(one["file"], tuple(one["urls"]), one.get("sha256")) for one in part["remotes"]),
        )
        for part in about.pop("files", ())
    )
    return CatalogueEntry(name=name, parts=parts, read=read, build=build, **about)
