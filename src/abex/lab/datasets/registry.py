"""The data sets by name: found or fetched, parsed, proved by the checksum of their values; and what is here."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from abex.lab.datasets import source_files
from abex.lab.datasets.paper_sets import READERS, Arrays, Contents, Reader
from abex.lab.datasets.source_files import SourceFile, place_of
from abex.support.errors import UserError, one_of
from abex.support.extras import MissingExtraError
from abex.support.files import checksum_of, write_atomically
from abex.support.reading import reader_errors


@dataclass(frozen=True)
class CatalogueEntry:
    """A data set of the catalogue: its files, what must come out of them, and what is told of it."""

    name: str
    folder: str
    parts: tuple[SourceFile, ...]
    reader: Reader
    checksum: str | None = None  # of the arrays, see `checksum_of`; None where no copy was at hand
    rows: str = "?"
    features: str = ""
    classes: str = ""
    description: str = ""
    brief: str = ""  # the citation in three words
    citation: str = ""
    licence: str = ""


@cache
def entries() -> dict[str, CatalogueEntry]:
    """Every data set of ``catalogue.toml``."""
    text = files("abex.lab.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    found = {}
    for name, about in tomllib.loads(text).items():
        parts = tuple(
            SourceFile(one["name"], one.get("sha256"), tuple(one["urls"])) for one in about.pop("files", ())
        )
        found[name] = CatalogueEntry(name=name, parts=parts, reader=READERS[about["folder"]], **about)
    return found


def names() -> list[str]:
    """The names `load` understands."""
    return list(entries())


def entry_of(name: str) -> CatalogueEntry:
    """The entry called ``name``, or an error that suggests the nearest."""
    return entries()[one_of("data set", name, entries())]


def load(name: str | Path, **options: Any) -> Any:
    """The data set called ``name``: a `Dataset`, a `Network` or `Ratings`.

    Files are looked for in ``$ABEX_DATA``, then in the user's cache, then upstream. A path reads a file of one's own, with the
    options of `read`.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.X_train.shape, digits.X_test.shape, digits.class_names[:3]
    ((1200, 64), (597, 64), ('0', '1', '2'))
    """
    if is_path(name):
        from abex.lab.datasets.own_tables import read

        return read(name, **options)
    entry = entry_of(str(name))
    if options:
        raise UserError(f"{name} takes no options, got {', '.join(options)}: they are for files of your own")
    return entry.reader.build(entry, arrays_for(entry))


def is_path(name: str | Path) -> bool:
    """Whether ``name`` is taken for a file of one's own.

    >>> is_path("digits"), is_path("fruit.csv")
    (False, True)
    """
    return name not in entries() and (isinstance(name, Path) or bool(Path(name).suffix) or os.sep in name)


# -- arrays -------------------------------------------------------------------------------------------------------


def arrays_for(entry: CatalogueEntry) -> Arrays:
    """The arrays in the files of an entry; what is not on this machine is fetched, and kept once all is checked."""
    contents, fetched = contents_of(entry), dict[str, bytes]()
    for part in entry.parts:
        if part.name not in contents:
            try:
                contents[part.name] = source_files.fetch(part, fetched)
            except UserError as reason:
                raise UserError(offline_message(entry, str(reason))) from None
    arrays = parse(entry, contents)
    for name, content in fetched.items():
        keep(source_files.cache() / entry.folder / name, content)
    return arrays


def contents_of(entry: CatalogueEntry, folders: list[Path] | None = None) -> Contents:
    """The checked bytes of the files that are there."""
    places = [(part, place_of(part, entry.folder, folders)) for part in entry.parts]
    return {part.name: source_files.read(part, place) for part, place in places if place is not None}


def parse(entry: CatalogueEntry, contents: Contents) -> Arrays:
    """Arrays from the bytes of all files; their values must be the registered ones."""
    with reader_errors(f"read the files of {entry.name}"):
        arrays = entry.reader.read({part.name: contents[part.name] for part in entry.parts})
    if entry.checksum not in (None, checksum_of(arrays.values())):
        place = look(entry).place
        raise UserError(
            f"the files{f' in {place}' if place else ''} hold other values than {entry.name} has (their checksum is not "
            "the registered one): delete them and fetch them again"
        )
    return arrays


def keep(path: Path, content: bytes) -> None:
    """Put a file into the cache, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to the cache {path.parent}: {error.strerror or error}") from None
    write_atomically(path, content)


def offline_message(entry: CatalogueEntry, reason: str) -> str:
    """One sentence: which files to put where."""
    absent = [part for part in entry.parts if place_of(part, entry.folder) is None]
    listed = " and ".join(part.expected for part in absent)
    return (
        f"{entry.name} is not here and could not be downloaded ({reason}): put {listed} from "
        f"{absent[0].urls[0].rsplit('/', 1)[0]} into {source_files.cache() / entry.folder}, or where ABEX_DATA says"
    )


# -- what is here -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """Where a data set is and whether its files are right."""

    place: Path | None  # folder of its first file; None if it is bundled or missing
    status: str  # "bundled", "missing", "incomplete", "there", "verified", "unregistered" or "damaged"
    detail: str = ""


def look(entry: CatalogueEntry) -> State:
    """Whether the files are there; they are not read."""
    places = [place_of(part, entry.folder) for part in entry.parts]
    there = [place.parent for place in places if place is not None]
    if not there:
        return State(None, "missing" if places else "bundled")
    if len(there) < len(places):
        return State(there[0], "incomplete", f"{entry.parts[places.index(None)].name} is missing")
    return State(there[0], "there")


def check(entry: CatalogueEntry, *, quick: bool = False) -> State:
    """Compare the checksums of files and values; ``quick``: of values only where the bytes may vary from copy to copy."""
    state = look(entry)
    if state.status not in ("there", "bundled") or (quick and state.status == "bundled"):
        return state
    try:
        contents = contents_of(entry)
        if not quick or any(part.sha256 is None for part in entry.parts):
            parse(entry, contents)
    except MissingExtraError:
        raise
    except UserError as error:
        return State(state.place, "damaged", str(error))
    return State(state.place, "verified" if entry.checksum else "unregistered")
