"""A person's own ratings and trust or friend list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets.rating_columns import RATING_ROLES, TRUST_ROLES, pick, plain, tang_columns
from abex.datasets.table_files import content_of, kind_of, read_columns
from abex.datasets.types import Ratings
from abex.errors import UserError, real_number
from abex.extras import needed
from abex.matlab import matrices_of
from abex.reading import array_of, check_size, named


def read_ratings(
    path: str | Path,
    trust: str | Path | None = None,
    *,
    directed: bool = True,
    columns: Sequence[str | int] | None = None,
    trust_columns: Sequence[str | int] | None = None,
    lowest: float | None = None,
    highest: float | None = None,
    name: str | None = None,
) -> Ratings:
    r"""Ratings from a table with the columns user, item and rating; further ones are ignored.

    The names of the columns decide (user, userid, reviewer, ...; item, movieId, product, ...; rating, stars, score, ...).
    Without names there must be three columns, in this order. Whatever leaves a doubt is an error: then say ``columns``.

    Parameters
    ----------
    path, trust : path
        ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``), ``.parquet``, ``.npy`` or ``.mat``. A first line of names is
        recognised. Ids are numbers or words. ``trust`` has the columns truster and trustee; people in it who rated
        nothing count as users. A ``.mat`` file holds a matrix of rows, in the layout of Epinions and Ciao (user,
        product, category, rating, ...) or with three columns, or a sparse matrix users x items (users x users for trust).
    directed : bool
        False: the second file is a list of friends, who trust each other.
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
    path = Path(path)
    user, item, rating = _table(path, RATING_ROLES, columns)
    if rating.dtype.kind not in "biuf" or not np.isfinite(rating.astype(np.float64)).all():
        raise UserError(
            f"the ratings of {named(path)} must be numbers, its column of ratings has something that is not a number"
        )
    rating = rating.astype(np.float64)
    scale = [
        float(rating.min()) if lowest is None else real_number("lowest", lowest),
        float(rating.max()) if highest is None else real_number("highest", highest),
    ]
    if not scale[0] < scale[1]:
        raise UserError(
            f"the ratings of {named(path)} need a scale with lowest < highest, got {scale[0]:g} and {scale[1]:g}"
        )
    outside = (rating < scale[0]) | (rating > scale[1])
    if outside.any():
        raise UserError(
            f"{named(path)} has the rating {rating[outside][0]:g}, outside {scale[0]:g} to {scale[1]:g}"
        )
    ends: list[NDArray[Any]] = [np.empty(0, dtype=user.dtype), np.empty(0, dtype=user.dtype)]
    if trust is not None:
        ends = _table(Path(trust), TRUST_ROLES, trust_columns)
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


def _table(
    path: Path, roles: dict[str, tuple[str, ...]], asked: Sequence[str | int] | None
) -> list[NDArray[Any]]:
    """The columns of the ``roles``: ids as whole numbers where they all are, else as words."""
    kind = kind_of(path)
    if kind in ("numpy", "matlab"):
        matrix = _numpy(path) if kind == "numpy" else _matlab(path, len(roles))
        if asked is None and kind == "matlab" and len(roles) == 3:
            asked = tang_columns(matrix)
        table, has_names = {str(k): matrix[:, k] for k in range(matrix.shape[1])}, False
    else:
        has_names = _has_header(path, roles)
        table = read_columns(path, header=has_names)
    picked = pick(table, roles, asked, has_names, path)
    return [_ids(column, path) for column in picked[:2]] + picked[2:]


def _numpy(path: Path) -> NDArray[Any]:
    if path.suffix.lower() == ".npz":
        raise UserError(f"{named(path)} holds many arrays: a matrix is needed, in a .npy file")
    matrix = array_of(content_of(path), named(path))
    if matrix.ndim != 2 or matrix.size == 0 or matrix.dtype.kind not in "biufU":
        raise UserError(f"{named(path)} must hold a matrix, one row for each rating or pair")
    return matrix


def _matlab(path: Path, n_columns: int) -> NDArray[Any]:
    """The rows of the only matrix of the file, or of the one that is named for what is asked."""
    with needed("data"):
        from scipy.sparse import issparse

    arrays = {
        name: value
        for name, value in matrices_of(content_of(path), named(path)).items()
        if getattr(value, "ndim", 0) == 2
        and value.dtype.kind in "biuf"
        and (issparse(value) or value.shape[1] >= n_columns)
        and 0 not in value.shape
    }
    wanted = "rating" if n_columns == 3 else "trust"
    fitting = [name for name in arrays if wanted in plain(name)] if len(arrays) > 1 else list(arrays)
    if not arrays:
        raise UserError(
            f"{named(path)} must hold a matrix of numbers with at least {n_columns} columns, or a sparse one"
        )
    if len(fitting) != 1:
        raise UserError(
            f"{named(path)} must hold one matrix called {wanted!r}, it has {', '.join(sorted(arrays)[:6])}"
        )
    matrix = arrays[fitting[0]]
    if not issparse(matrix):
        return matrix  # type: ignore[no-any-return]
    entries = matrix.tocoo()
    if n_columns == 2:
        entries.eliminate_zeros()  # a 0 in a network is no link; among ratings it may be one
    if entries.nnz == 0:
        raise UserError(f"{named(path)} has no rows")
    return np.column_stack([entries.row, entries.col, entries.data][:n_columns])


def _has_header(path: Path, roles: dict[str, tuple[str, ...]]) -> bool:
    """Whether the first line holds names: in a table of ratings no number, in a list of pairs words over numbers."""
    if kind_of(path) != "text":
        return True
    lines = content_of(path).removeprefix(b"\xef\xbb\xbf").split(b"\n", 2)[:2]
    marks = bytes.maketrans(b",;\t", b"   ")
    words = [line.translate(marks).split() for line in lines]
    numeric = [[_is_number(word) for word in line] for line in words]
    if len(roles) == 3:
        return len(numeric[0]) >= 2 and not any(numeric[0])
    known = {name for names in roles.values() for name in names}
    if {plain(word.decode("utf-8", "replace")) for word in words[0]} <= known and len(words[0]) >= 2:
        return True
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
            raise UserError(f"{named(path)} has an id that is missing or not whole")
        return column.astype(np.int64)
    if any(value is None or value != value for value in column.tolist()):
        raise UserError(f"{named(path)} has a missing id")
    words = [str(value) for value in column.tolist()]
    check_size(4 * len(words) * max(map(len, words), default=0), f"the ids of {named(path)}")
    return np.array(words)
