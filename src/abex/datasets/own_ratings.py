"""A person's own ratings and trust or friend list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets.own_files import content_of, kind_of, read_columns
from abex.datasets.records import Ratings
from abex.errors import UserError, real_number
from abex.reading import array_of, check_size, named


def read_ratings(
    path: str | Path,
    trust: str | Path | None = None,
    *,
    directed: bool = True,
    lowest: float | None = None,
    highest: float | None = None,
    name: str | None = None,
) -> Ratings:
    r"""Ratings from a table whose first three columns are user, item and rating; further ones are ignored.

    Parameters
    ----------
    path, trust : path
        ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``), ``.parquet`` or ``.npy``. A first line of names is recognised.
        Ids are numbers or words. ``trust`` has the columns truster and trustee; people in it who rated nothing
        count as users.
    directed : bool
        False: the second file is a list of friends, who trust each other.
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
    path = Path(path)
    user, item, rating = _table(path, 3)
    if rating.dtype.kind not in "biuf" or not np.isfinite(rating.astype(np.float64)).all():
        raise UserError(
            f"the third column of {path} must hold ratings, it has something that is not a number"
        )
    rating = rating.astype(np.float64)
    scale = [
        float(rating.min()) if lowest is None else real_number("lowest", lowest),
        float(rating.max()) if highest is None else real_number("highest", highest),
    ]
    if not scale[0] < scale[1]:
        raise UserError(
            f"the ratings of {path} need a scale with lowest < highest, got {scale[0]:g} and {scale[1]:g}"
        )
    outside = (rating < scale[0]) | (rating > scale[1])
    if outside.any():
        raise UserError(f"{path} has the rating {rating[outside][0]:g}, outside {scale[0]:g} to {scale[1]:g}")
    ends: list[NDArray[Any]] = [np.empty(0, dtype=user.dtype), np.empty(0, dtype=user.dtype)]
    if trust is not None:
        ends = _table(Path(trust), 2)
        if (ends[0].dtype.kind in "iu") != (user.dtype.kind in "iu"):
            ends, user = [end.astype(str) for end in ends], user.astype(str)
        if not directed:
            ends = [np.concatenate(ends), np.concatenate(ends[::-1])]
    user_labels, places = np.unique(np.concatenate([user, *ends]), return_inverse=True)
    item_labels, items = np.unique(item, return_inverse=True)
    users: NDArray[np.int32] = places.astype(np.int32)
    n_ratings, n_trust = rating.size, ends[0].size
    return Ratings(
        name=name or path.name.split(".")[0],
        users=users[:n_ratings],
        items=items.astype(np.int32),
        ratings=rating.astype(np.float32),
        trusters=users[n_ratings : n_ratings + n_trust],
        trustees=users[n_ratings + n_trust :],
        user_labels=user_labels,
        item_labels=item_labels,
        lowest=scale[0],
        highest=scale[1],
        description=f"read from {path.name}",
    )


def _table(path: Path, n_columns: int) -> list[NDArray[Any]]:
    """The first columns: ids as whole numbers where they all are, else as words."""
    if kind_of(path) == "numpy":
        if path.suffix.lower() == ".npz":
            raise UserError(f"{named(path)} holds many arrays: a matrix is needed, in a .npy file")
        matrix = array_of(content_of(path), named(path))
        if getattr(matrix, "ndim", 0) != 2 or matrix.shape[1] < n_columns:
            raise UserError(f"{path} must hold a matrix with at least {n_columns} columns")
        columns = [matrix[:, k] for k in range(n_columns)]
    else:
        read = read_columns(path, header=_has_header(path, n_columns))
        if len(read) < n_columns:
            raise UserError(f"{path} has {len(read)} columns, expected at least {n_columns}")
        columns = list(read.values())[:n_columns]
    return [_ids(column, path) for column in columns[:2]] + columns[2:]


def _has_header(path: Path, n_columns: int) -> bool:
    """Whether the first line holds names: in a table of ratings no rating, in a list of pairs words over numbers."""
    if kind_of(path) != "text":
        return True
    lines = content_of(path).split(b"\n", 2)[:2]
    marks = bytes.maketrans(b",;\t", b"   ")
    numeric = [[_is_number(word) for word in line.translate(marks).split()] for line in lines]
    if n_columns == 3:
        return len(numeric[0]) >= 3 and not numeric[0][2]
    return len(numeric) == 2 and not any(numeric[0]) and any(numeric[1])


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _ids(column: NDArray[Any], path: Path) -> NDArray[Any]:
    if column.dtype.kind in "iub":
        return column.astype(np.int64)
    if column.dtype.kind == "f":
        if not np.array_equal(column, np.rint(column)):
            raise UserError(f"{path} has an id that is missing or not whole")
        return column.astype(np.int64)
    if any(value is None or value != value for value in column.tolist()):
        raise UserError(f"{path} has a missing id")
    words = [str(value) for value in column.tolist()]
    check_size(4 * len(words) * max(map(len, words), default=0), f"the ids of {named(path)}")
    return np.array(words)
