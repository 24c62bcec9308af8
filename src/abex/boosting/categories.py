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

from numbers import Number
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.examples import Examples
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
    names = list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None
    if wanted is None:
        return []
    if isinstance(wanted, str):
        if wanted != FROM_DTYPE:
            raise _not_understood(wanted)
        if names is None:
            return []
        kinds = X.dtypes if isinstance(X.dtypes, list) else X.dtypes.tolist()
        return [
            j
            for j, kind in enumerate(kinds)
            if str(kind).lower().startswith(("category", "categorical", "enum"))
        ]
    width = np.shape(X)[1] if len(np.shape(X)) == 2 else 0
    try:
        given = list(wanted)
    except TypeError:
        raise _not_understood(wanted) from None
    if given and all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != width:
            raise UserError(f"categorical_features is a mask of {len(given)} columns, but X has {width}")
        return np.flatnonzero(given).tolist()
    found = set()
    for item in given:
        if isinstance(item, str):
            if names is None or item not in names:
                raise UserError(
                    f"categorical_features names the column {shown(item)[:80]}, which X does not have"
                )
            found.add(names.index(item))
            continue
        try:
            column = index(item)
        except TypeError:
            raise _not_understood(wanted) from None
        if not 0 <= column < width:
            raise UserError(f"categorical_features has the column {column}, but X has {width} columns")
        found.add(column)
    return sorted(found)


def _not_understood(wanted: Any) -> UserError:
    return UserError(
        f"categorical_features must be 'from_dtype', None, a mask, or a list of columns, got {shown(wanted)[:80]}"
    )


def positions_of(
    X: Any, columns: list[int], known: tuple[Category, ...] | None = None
) -> tuple[Any, list[NDArray[Any]]]:
    """X with positions in place of categories (NaN: missing or not known), and the categories of each column."""
    if not columns:
        return X, []
    if hasattr(X, "toarray"):
        raise UserError("categorical columns cannot be in a sparse matrix: give a table or an array")
    framed = hasattr(X, "columns")
    table: Any = X if framed else np.asarray(X)
    if not framed and table.dtype.kind not in "biuf":
        table = np.asarray(X, dtype=object)
    parts, values = {}, []
    for k, j in enumerate(columns):
        name = repr(table.columns[j]) if framed else str(j)
        column = _column(table, j)
        place, found = _factorised(column, name, None if known is None else known[k].values)
        parts[j] = place
        values.append(found)
    return _replaced(table, parts), values


def _column(table: Any, j: int) -> Any:
    if not hasattr(table, "columns"):
        return table[:, j]
    part = table.iloc[:, j] if hasattr(table, "iloc") else table[table.columns[j]]
    return (
        part.to_list()
        if str(part.dtype).lower().startswith(("category", "categorical", "enum"))
        else part.to_numpy()
    )


def _factorised(
    column: Any, name: str, known: NDArray[Any] | None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Positions among the known categories, or among those there are, and what they are."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        found: Any = np.unique(column[~np.isnan(column)].astype(np.float64))
        words = False
    else:
        found = {value for value in column if not _is_missing(value)}
        words = all(isinstance(value, str) for value in found)
        if not words and not all(isinstance(value, Number | np.bool_) for value in found):
            raise UserError(
                f"column {name} must have words or numbers for categories, not both and nothing else"
            )
    if known is None:
        known = np.sort(np.array(list(found), dtype=str if words else np.float64))
    where = {value: k for k, value in enumerate(known.tolist())}
    return np.array([where.get(value, np.nan) for value in column], np.float64), known


def _is_missing(value: Any) -> bool:
    """None, NaN, and the marks that pandas has for them."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _replaced(table: Any, parts: dict[int, NDArray[np.float64]]) -> Any:
    """The table with other columns in some places; the rest as it was."""
    if hasattr(table, "iloc"):
        table = table.copy(deep=False)
        for j, part in parts.items():
            table.isetitem(j, part)
        return table
    if hasattr(table, "columns"):
        table = table.clone()
        for j, part in parts.items():
            old = table[table.columns[j]]
            table = table.with_columns(type(old)(old.name, part))
        return table
    table = table.copy() if table.dtype == object else table.astype(np.float64)
    for j, part in parts.items():
        table[:, j] = part
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError):
        raise UserError("X has words outside of its categorical columns: name those too") from None


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


def with_known_codes(X: Any, categories: tuple[Category, ...], n_features: int) -> Any:
    """X with codes in place of categories, for a fitted model; what has another width is left to be refused."""
    if not categories or np.ndim(X) != 2 or np.shape(X)[1] != n_features:
        return X
    table, _ = positions_of(X, [category.column for category in categories], categories)
    parts = {}
    for category in categories:
        place = np.asarray(_column(table, category.column), np.float64)
        known = ~np.isnan(place)
        parts[category.column] = np.full(place.size, np.nan)
        parts[category.column][known] = category.codes[place[known].astype(np.int64)]
    return _replaced(table, parts)


def as_header(categories: tuple[Category, ...]) -> list[dict[str, Any]]:
    """Categories as a model file has them."""
    return [{"column": c.column, "values": c.values.tolist(), "codes": c.codes.tolist()} for c in categories]


def from_header(given: Any, n_features: int) -> tuple[Category, ...]:
    """Categories from a model file, or a `ValueError` that says what cannot be."""
    if not isinstance(given, list):
        raise ValueError("categories must be a list")
    found = []
    for item in given:
        column = item["column"]
        if not isinstance(column, int) or isinstance(column, bool) or not 0 <= column < n_features:
            raise ValueError("a categorical column is not there")
        values, codes = item["values"], item["codes"]
        words = isinstance(values, list) and all(isinstance(value, str) for value in values)
        numbers = isinstance(values, list) and all(isinstance(value, float) for value in values)
        if not (words or numbers) or not isinstance(codes, list) or len(codes) != len(values):
            raise ValueError("categories must be words or numbers with a code each")
        if not all(isinstance(code, float) and np.isfinite(code) for code in codes):
            raise ValueError("codes of categories must be finite")
        array = np.array(values, dtype=str if words else np.float64)
        if not (array[1:] > array[:-1]).all() or (array != array).any():
            raise ValueError("categories must ascend")
        found.append(Category(column, array, np.array(codes, np.float64)))
    columns = [category.column for category in found]
    if columns != sorted(set(columns)):
        raise ValueError("categorical columns must ascend")
    return tuple(found)
