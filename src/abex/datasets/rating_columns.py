"""Which column of a person's table is what: names decide, positions only where nothing contradicts them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets.table_files import Columns
from abex.errors import UserError, nearest, shown

#: role -> names by which it goes, without case, spaces, "_", "-" and a final "id"
RATING_ROLES = {
    "user": (
        "user",
        "rater",
        "reviewer",
        "customer",
        "person",
        "member",
        "profile",
        "account",
        "viewer",
        "reader",
    ),
    "item": (
        "item",
        "product",
        "movie",
        "film",
        "book",
        "isbn",
        "song",
        "track",
        "artist",
        "game",
        "recipe",
        "business",
        "asin",
    ),
    "rating": (
        "rating",
        "ratings",
        "stars",
        "star",
        "score",
        "rate",
        "userrating",
        "itemrating",
        "ratingvalue",
    ),
}
TRUST_ROLES = {
    "truster": ("truster", "trustor", "from", "source", "follower", "user", "user1", "person1"),
    "trustee": (
        "trustee",
        "trusted",
        "to",
        "target",
        "followee",
        "followed",
        "friend",
        "user2",
        "person2",
    ),
}
SCALE = (1.0, 5.0)  # of the ratings in the MATLAB files of Epinions and Ciao


def plain(name: str) -> str:
    """A column's name as it is compared.

    >>> plain("User_ID"), plain(" movieId"), plain("id")
    ('user', 'movie', 'id')
    """
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    return letters.removesuffix("id") or letters


def pick(
    columns: Columns,
    roles: dict[str, tuple[str, ...]],
    asked: Sequence[str | int] | None,
    named: bool,
    path: Path,
) -> list[NDArray[Any]]:
    """The columns that play the ``roles``, in their order.

    ``asked`` says which; else their names do. Where no name is known, the table must have as many columns as there are
    roles, and they are taken in order; so are those that names leave over, if the named ones stand in order, too.
    """
    names = list(columns)
    hint = f"say which are {' and '.join(roles)}, for example columns={tuple(range(len(roles)))}"
    if asked is not None:
        return [columns[name] for name in _asked(names, list(roles), asked, path)]
    if len(names) < len(roles):
        raise UserError(f"{path} has {len(names)} columns, expected at least {len(roles)}")
    found: dict[str, str] = {}
    for role, known in roles.items() if named else ():
        fitting = [name for name in names if plain(name) in known]
        exact = [name for name in fitting if plain(name) == role]
        fitting = exact if len(exact) == 1 else fitting
        if len(fitting) > 1:
            raise UserError(f"{path} has several columns that may be the {role}, {_list(fitting)}: {hint}")
        if fitting:
            found[role] = fitting[0]
    if len(found) == len(roles):
        return [columns[found[role]] for role in roles]
    in_order = all(names.index(name) == list(roles).index(role) for role, name in found.items())
    nameless = named and any(
        name.startswith("Unnamed:") for name in names
    )  # a first row with a gap, not names
    if len(names) == len(roles) and in_order and not nameless:
        return [columns[name] for name in names]
    if not named:
        raise UserError(f"{path} has {len(names)} columns without names: {hint}")
    missing = next(role for role in roles if role not in found)
    raise UserError(f"{path} has no column that is clearly the {missing} among {_list(names)}: {hint}")


def tang_columns(matrix: NDArray[Any]) -> tuple[int, int, int] | None:
    """(0, 1, 3) where a matrix is laid out as those of Epinions and Ciao: user, product, category, rating and more.

    The fourth column must hold nothing but ratings from 1 to 5, and the third something else.
    """
    if matrix.shape[1] < 4:
        return None

    def rates(column: NDArray[Any]) -> bool:
        whole = np.isfinite(column).all() and np.array_equal(column, np.rint(column))
        return bool(whole and column.min() >= SCALE[0] and column.max() <= SCALE[1])

    return (0, 1, 3) if rates(matrix[:, 3]) and not rates(matrix[:, 2]) else None


def _asked(names: list[str], roles: list[str], asked: Sequence[str | int], path: Path) -> list[str]:
    """The names of the columns that a person asked for, by name or position."""
    if isinstance(asked, str) or not isinstance(asked, Sequence) or len(asked) != len(roles):
        raise UserError(
            f"columns must be {len(roles)} names or positions, for {' and '.join(roles)}, got {shown(asked)}"
        )
    chosen = []
    for one in asked:
        if isinstance(one, str) and one in names:
            chosen.append(one)
        elif isinstance(one, int) and not isinstance(one, bool) and 0 <= one < len(names):
            chosen.append(names[one])
        else:
            raise UserError(
                f"{path} has no column {one!r}{nearest(str(one), names)}; it has {_list(names)}, numbered from 0"
            )
    if len(set(chosen)) < len(chosen):
        raise UserError(f"columns must be different, got {shown(asked)}")
    return chosen


def _list(names: Sequence[str]) -> str:
    """The first names of a table.

    >>> _list(["a", "b"]), _list([str(k) for k in range(99)])
    ('a, b', '0, 1, 2, 3, 4, 5, ...')
    """
    short = [name if len(name) <= 20 else f"{name[:17]}..." for name in names[:6]]
    return ", ".join(short) + (", ..." if len(names) > 6 else "")
