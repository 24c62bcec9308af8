r"""Categorical columns: categories become numbers whose order is that of what they say about the labels.

A category c with :math:`N_c` rows has the smoothed label rates :math:`p_c = (\sum_i y_i + m\,p) / (N_c + m)`, :math:`p` the
rates of all rows. Its code is the place of :math:`p_c` on the first principal component of these rates: for two classes their
share, for more the order that Coppersmith, Hong and Hosking (1999) recommend. Splits between codes are splits of the categories
into two sets.

A row must not find its own label in its code, else a column of names would explain everything. So the rows of a fit whose
category has fewer than 20 rows are coded by the rates of the rows outside of their fold (of five), all others and new rows by
those of all. A category that no training row has, and a blank, is missing: every split has learnt where these go.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.examples import Examples, column_of, is_table, numbers_of
from abex.boosting.selection import CATEGORY_FOLDS, CATEGORY_SMOOTHING, SURE_ROWS
from abex.support.errors import UserError, shown
from abex.support.randomness import stream

FROM_DTYPE = "from_dtype"


class Category(NamedTuple):
    """A categorical column: the categories known, in ascending order, and the code of each."""

    column: int
    values: NDArray[Any]  # doubles or words
    codes: NDArray[np.float64]


def categorical_columns(X: Any, wanted: Any) -> list[int]:
    """The columns that the parameter ``categorical_features`` means: positions, names, a mask, or those of the type category.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.0, 2.0], "colour": pd.Categorical(["red", "blue"])})
    >>> categorical_columns(table, "from_dtype"), categorical_columns(table, ["size"]), categorical_columns(table, [True, False])
    ([1], [0], [0])
    """
    names = list(X.columns) if is_table(X) else []
    if wanted is None:
        return []
    if isinstance(wanted, str) and wanted == FROM_DTYPE:
        kinds = [str(kind).lower() for kind in X.dtypes] if names else []
        return [j for j, kind in enumerate(kinds) if kind.startswith(("category", "categorical", "enum"))]
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise UserError(
            f"categorical_features must be 'from_dtype', None, a mask, or a list of columns, got {shown(wanted)[:80]}"
        )
    given, shape = list(wanted), np.shape(X)
    width = shape[1] if len(shape) == 2 else 0
    if given and all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != width:
            raise UserError(f"categorical_features is a mask of {len(given)} columns, but X has {width}")
        return np.flatnonzero(given).tolist()
    found = set()
    for item in given:
        column = names.index(item) if isinstance(item, str) and item in names else item
        if not isinstance(column, int | np.integer) or not 0 <= column < width:
            raise UserError(
                f"categorical_features names the column {shown(item)[:80]}, which X does not have"
            )
        found.add(int(column))
    return sorted(found)


def positions_of(
    X: Any, columns: list[int], known: tuple[Category, ...] | None = None
) -> tuple[Any, list[NDArray[Any]]]:
    """X as doubles with positions in place of categories (NaN: missing or not known), and the categories of each column."""
    if not columns:
        return X, []
    if hasattr(X, "toarray"):
        raise UserError("categorical columns cannot be in a sparse matrix: give a table or an array")
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    plain = np.empty(X.shape)
    values: list[NDArray[Any]] = []
    for j in range(X.shape[1]):
        if j in columns:
            name = repr(X.columns[j]) if is_table(X) else str(j)
            names = categories_of(column_of(X, j), name) if known is None else known[len(values)].values
            where = {value: k for k, value in enumerate(names.tolist())}
            plain[:, j] = [where.get(value, np.nan) for value in column_of(X, j)]
            values.append(names)
        else:
            plain[:, j] = numbers_of(X, j)
    return plain, values


def categories_of(column: Any, name: str) -> NDArray[Any]:
    """The categories of a column, ascending: words or doubles."""
    found = {value for value in column if not _is_missing(value)}
    words = all(isinstance(value, str) for value in found)
    if not words and not all(isinstance(value, Number | np.bool_) for value in found):
        raise UserError(f"column {name} must have words or numbers for categories, not both and nothing else")
    return np.sort(np.array(list(found), dtype=str if words else np.float64))


def _is_missing(value: Any) -> bool:
    """None, NaN, and the marks that pandas has for them."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def with_codes(
    data: Examples, columns: list[int], values: list[NDArray[Any]], known: tuple[Category, ...] | None = None
) -> tuple[Examples, tuple[Category, ...]]:
    """The examples of a fit, their positions replaced by codes; and the codes for new rows.

    With ``known``, the codes for new rows stay what they are.
    """
    if not columns:
        return data, ()
    X = np.array(data.X, dtype=np.float64)
    there = data.signs > 0
    weight = data.weight / data.weight.mean()
    fold = stream(0, "categories").permutation(weight.size) % CATEGORY_FOLDS
    found = []
    for j, names in zip(columns, values, strict=True):
        codes, rows = codes_of(X[:, j], max(1, names.size), there, weight, fold)
        X[:, j] = rows
        found.append(Category(j, names, codes[: names.size]))
    return data._replace(X=X), tuple(found) if known is None else known


def codes_of(
    position: NDArray[np.float64], count: int, there: NDArray[np.bool_], weight: NDArray[np.float64], fold: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Codes of the categories 0, ..., count - 1, and of each row; missing stays NaN."""
    present = ~np.isnan(position)
    place = position[present].astype(np.int64)
    cell = fold[present] * count + place
    mass = np.bincount(cell, weight[present], CATEGORY_FOLDS * count).reshape(CATEGORY_FOLDS, count)
    sums = np.stack(
        [np.bincount(cell, weight[present] * label[present], CATEGORY_FOLDS * count) for label in there.T],
        axis=1,
    ).reshape(CATEGORY_FOLDS, count, -1)
    every, total = mass.sum(axis=0), sums.sum(axis=0)
    mean = total.sum(axis=0) / max(float(every.sum()), 1e-300)
    rate = smoothed(total, every, mean)
    _, axes = np.linalg.eigh((rate * every[:, None]).T @ rate)
    axis = axes[:, -1] * np.sign(axes[np.abs(axes[:, -1]).argmax(), -1])
    codes: NDArray[np.float64] = rate @ axis
    elsewhere = smoothed(total - sums, every - mass, mean) @ axis
    rows = np.full(position.size, np.nan)
    rows[present] = np.where(every[place] >= SURE_ROWS, codes[place], elsewhere.ravel()[cell])
    return codes, rows


def smoothed(
    sums: NDArray[np.float64], mass: NDArray[np.float64], mean: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rates of the labels less their mean, with `CATEGORY_SMOOTHING` rows of the mean added.

    >>> smoothed(np.array([[30.0]]), np.array([30.0]), np.array([0.2])).round(3).tolist()
    [[0.6]]
    """
    rates: NDArray[np.float64] = (sums - mass[..., None] * mean) / (mass[..., None] + CATEGORY_SMOOTHING)
    return rates


def with_known_codes(X: Any, categories: tuple[Category, ...]) -> Any:
    """X with codes in place of categories, for a fitted model."""
    X, _ = positions_of(X, [category.column for category in categories], categories)
    for category in categories:
        place = np.nan_to_num(X[:, category.column], nan=-1.0).astype(np.int64)
        X[:, category.column] = np.append(category.codes, np.nan)[place]
    return X
