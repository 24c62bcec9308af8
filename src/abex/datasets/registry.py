"""The data sets by name."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from abex.datasets import classification, epinions, networks
from abex.datasets.catalogue import CatalogueEntry
from abex.datasets.storage import load_arrays
from abex.errors import UserError, one_of


@cache
def entries() -> dict[str, CatalogueEntry]:
    """Every data set that has a loader."""
    return {entry.name: entry for entry in (*classification.ENTRIES, *networks.ENTRIES, epinions.ENTRY)}


def names() -> list[str]:
    """The names `load` understands."""
    return list(entries())


def load(name: str | Path, **options: Any) -> Any:
    """The data set called ``name``: a `Dataset`, a `Network` or `Ratings`.

    Files are looked for in ``$ABEX_DATA``, then in the user's cache, then upstream. What was parsed is kept,
    so the second call is fast. A path reads a file of one's own, with the options of `read`.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.X_train.shape, digits.X_test.shape, digits.class_names[:3]
    ((1200, 64), (597, 64), ('0', '1', '2'))
    """
    if is_path(name):
        from abex.datasets.user_data import read

        return read(name, **options)
    entry = entry_of(str(name))
    if options:
        raise UserError(f"{name} takes no options, got {', '.join(options)}: they are for files of your own")
    return entry.build(entry, load_arrays(entry, _obtain))


def is_path(name: str | Path) -> bool:
    """Whether ``name`` is taken for a file of one's own.

    >>> is_path("digits"), is_path("fruit.csv")
    (False, True)
    """
    return name not in entries() and (isinstance(name, Path) or bool(Path(name).suffix) or os.sep in name)


def entry_of(name: str) -> CatalogueEntry:
    """The entry called ``name``, or an error that suggests the nearest."""
    return entries()[one_of("data set", name, entries())]


def _obtain(entry: CatalogueEntry) -> None:
    from abex.datasets.download import obtain

    obtain(entry)
