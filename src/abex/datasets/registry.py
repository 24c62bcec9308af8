"""The data sets by name."""

from __future__ import annotations

from functools import cache
from typing import Any

from abex.datasets import classification
from abex.datasets.catalogue import Entry
from abex.datasets.files import load_arrays, missing
from abex.errors import UserError, one_of


@cache
def entries() -> dict[str, Entry]:
    """Every data set that has a loader."""
    return {entry.name: entry for entry in classification.ENTRIES}


def names() -> list[str]:
    """The names `load` understands."""
    return list(entries())


def load(name: str) -> Any:
    """The data set called ``name``.

    Files are looked for in ``$ABEX_DATA``, then in the user's cache, then upstream. What was parsed is kept,
    so the second call is fast.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.X_train.shape, digits.X_test.shape, digits.class_names[:3]
    ((1200, 64), (597, 64), ('0', '1', '2'))
    """
    entry = entries()[one_of("data set", name, entries())]
    return entry.build(entry, load_arrays(entry, _obtain))


def _obtain(entry: Entry) -> None:
    raise UserError(f"{entry.name} is missing {missing(entry)[0].name}")
