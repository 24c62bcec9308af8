"""A person's own ratings and trust or friend list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.lab.datasets.types import Ratings
from abex.support.errors import UserError, brief, real_number, shown
from abex.support.extras import needed
from abex.support.reading import check_size
from abex.support.table_files import (
    Source,
    column_named,
    content_of,
    file_name,
    is_text,
    name_of,
    read_columns,
)

RATING = ("user", "item", "rating")
TRUST = ("truster", "trustee")


def read_ratings(
    source: Source,
    trust: Source | None = None,
    *,
    directed: bool = True,
    columns: Sequence[str | int] | None = None,
    trust_columns: Sequence[str | int] | None = None,
    lowest: float | None = None,
    highest: float | None = None,
    name: str | None = None,
) -> Ratings:
    r"""Ratings from a table with the columns user, item and rating; further ones are ignored.

    Columns that are called so (``user_id`` and ``Item ID`` are, too) may stand anywhere. A table of three columns under other
    names, or without any, has them in this order. Whatever leaves a doubt is an error: then say ``columns``.

    Parameters
    ----------
    source, trust : path or data frame
        ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``), ``.parquet``, or a table of pandas, polars or Arrow. A first line of names is
        recognised. Ids are numbers or words. ``trust`` has the columns truster and trustee; people in it who rated
        nothing count as users.
    directed : bool
        False: the second table is a list of friends, who trust each other.
    columns, trust_columns : sequence of str or int, optional
        Which columns are user, item and rating (truster and trustee), by name or by position from 0.
    lowest, highest : float, optional
        Ends of the scale; default the smallest and the largest rating there is.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "stars.csv"
    >>> _ = file.write_text("user,item,stars\nann,tea,5\nbob,tea,2\nann,milk,3\n")
    >>> read_ratings(file)
    Ratings('stars': 2 users, 2 items, 3 ratings, 0 trust pairs)
    """
    user, item, rating = _columns(source, RATING, columns)
    where = name_of(source)
    if rating.dtype.kind not in "biuf" or not np.isfinite(rating.astype(np.float64)).all():
        raise UserError(f"{where} has something that is not a number in its column of ratings")
    rating = rating.astype(np.float64)
    low = float(rating.min()) if lowest is None else real_number("lowest", lowest)
    high = float(rating.max()) if highest is None else real_number("highest", highest)
    if not low < high:
        raise UserError(
            f"the ratings of {where} need a scale with lowest < highest, got {low:g} and {high:g}"
        )
    outside = (rating < low) | (rating > high)
    if outside.any():
        raise UserError(f"{where} has the rating {rating[outside][0]:g}, outside {low:g} to {high:g}")
    ends: list[NDArray[Any]] = [np.empty(0, dtype=user.dtype), np.empty(0, dtype=user.dtype)]
    if trust is not None:
        ends = _columns(trust, TRUST, trust_columns)
        if (ends[0].dtype.kind in "iu") != (user.dtype.kind in "iu"):
            ends, user = [end.astype(str) for end in ends], user.astype(str)
        if not directed:
            ends = [np.concatenate(ends), np.concatenate(ends[::-1])]
    user_labels, places = np.unique(np.concatenate([user, *ends]), return_inverse=True)
    item_labels, items = np.unique(item, return_inverse=True)
    users, trusters, trustees = np.split(places.astype(np.int32), [rating.size, rating.size + ends[0].size])
    return Ratings(
        name=name or file_name(source).split(".")[0],
        users=users,
        items=items.astype(np.int32),
        ratings=rating.astype(np.float32),
        trusters=trusters,
        trustees=trustees,
        user_labels=user_labels,
        item_labels=item_labels,
        lowest=low,
        highest=high,
        description=f"read from {file_name(source)}",
    )


def _columns(source: Source, roles: tuple[str, ...], asked: Sequence[str | int] | None) -> list[NDArray[Any]]:
    """The columns of the ``roles``: ids as whole numbers where they all are, else as words."""
    table = read_columns(source, header=not is_text(source) or _has_names(content_of(source), roles))
    names, where = list(table), name_of(source)
    if asked is None:
        said = [_plain(name) for name in names]
        doubt = len(names) != len(roles) or any(name.startswith("Unnamed:") for name in names)
        if all(said.count(role) == 1 for role in roles):
            asked = [said.index(role) for role in roles]
        elif doubt or any(name in roles and name != role for name, role in zip(said, roles, strict=True)):
            raise UserError(
                f"{where} has the columns {brief(', '.join(names))}: say which are {' and '.join(roles)}, for example "
                f"columns={tuple(range(len(roles)))}"
            )
        else:
            asked = range(len(roles))
    if isinstance(asked, str) or not isinstance(asked, Sequence) or len(asked) != len(roles):
        raise UserError(
            f"columns must be {len(roles)} names or positions, for {' and '.join(roles)}, got {shown(asked)}"
        )
    chosen = [column_named(table, one, where) for one in asked]
    if len(set(chosen)) < len(chosen):
        raise UserError(f"columns must be different, got {shown(asked)}")
    picked = [table[name] for name in chosen]
    return [_ids(column, where) for column in picked[:2]] + picked[2:]


def _plain(name: str) -> str:
    """A column's name as it is compared: without case, marks and a final "id"."""
    return re.sub(r"[^a-z]", "", name.lower()).removesuffix("id")


def _has_names(content: bytes, roles: tuple[str, ...]) -> bool:
    """Whether the first line holds names: it names the roles, or it has no number; in a list of ids, numbers then follow."""
    lines = [
        re.split(r"[\s,;]+", line.decode("utf-8", "replace").strip()) for line in content.split(b"\n", 2)[:2]
    ]
    numbers = [any(map(_is_number, line)) for line in lines]
    said = set(roles) <= set(map(_plain, lines[0]))
    return said or (not numbers[0] and (len(roles) == 3 or numbers[-1]))


def _is_number(word: str) -> bool:
    with suppress(ValueError):
        float(word)
        return True
    return False


def _ids(column: NDArray[Any], where: str) -> NDArray[Any]:
    if column.dtype.kind in "biuf":
        if not np.array_equal(column, np.rint(column)):
            raise UserError(f"{where} has an id that is missing or not whole")
        return column.astype(np.int64)
    with needed():
        import pandas as pd

    if pd.isna(column).any():
        raise UserError(f"{where} has a missing id")
    words = [str(value) for value in column.tolist()]
    check_size(4 * len(words) * max(map(len, words), default=0), f"the ids of {where}")
    return np.array(words)
