"""What is on this machine: for the table of `abex data` and for `abex data check`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from abex.datasets.catalogue import CatalogueEntry
from abex.datasets.storage import find, parse, read_parts
from abex.errors import UserError
from abex.extras import MissingExtraError


@dataclass(frozen=True)
class State:
    """Where a data set is and whether its files are right."""

    place: Path | None  # folder of its first file; None if it is bundled or missing
    status: str  # "bundled", "missing", "incomplete", "there", "verified", "unregistered" or "damaged"
    detail: str = ""

    @property
    def usable(self) -> bool:
        """Nothing is wrong with what is there."""
        return self.status not in ("damaged", "incomplete")


def look(entry: CatalogueEntry) -> State:
    """Whether the files are there; they are not read."""
    if not entry.parts:
        return State(None, "bundled")
    places = [find(entry, part) for part in entry.parts]
    there = [found.path.parent for found in places if found is not None]
    if not there:
        return State(None, "missing")
    if len(there) < len(places):
        absent = next(part.name for part, found in zip(entry.parts, places, strict=True) if found is None)
        return State(there[0], "incomplete", f"{absent} is missing")
    return State(there[0], "there")


def check(entry: CatalogueEntry) -> State:
    """Read and parse the files and compare all checksums."""
    state = look(entry)
    return _checked(entry, state, parse) if state.status in ("there", "bundled") else state


def quick_check(entry: CatalogueEntry) -> State:
    """Compare the checksums of the files; parse only those whose bytes may vary from copy to copy."""
    state = look(entry)
    if state.status != "there":
        return state
    fixed = all(part.sha256 is not None for part in entry.parts)
    return _checked(entry, state, read_parts if fixed else parse)


def _checked(entry: CatalogueEntry, state: State, test: Callable[[CatalogueEntry], object]) -> State:
    try:
        test(entry)
    except MissingExtraError:
        raise
    except UserError as error:
        return State(state.place, "damaged", str(error))
    return State(state.place, "verified" if entry.checksum else "unregistered")
