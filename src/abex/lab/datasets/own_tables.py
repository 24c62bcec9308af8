"""A person's own classification data: a data frame, or a file of CSV, Parquet, LIBSVM or NumPy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.lab.datasets.matrix_files import read_matrix
from abex.lab.datasets.types import Dataset, smallest
from abex.support.errors import UserError, brief, nearest, real_number, shown
from abex.support.extras import needed
from abex.support.randomness import stream
from abex.support.reading import check_size
from abex.support.table_files import (
    Columns,
    Source,
    file_name,
    is_file,
    kind_of,
    name_of,
    position_of,
    read_columns,
    words_of,
)

MAX_CLASSES = 1000
MAX_CLASS = 2**53  # as a number: floats tell smaller ones apart
MAX_LEVELS = 1000  # distinct words in one column that become columns of their own


class LabelledRows(NamedTuple):
    """Numbers, labels as they are in the file, names of the columns."""

    X: NDArray[Any]
    labels: NDArray[Any]
    feature_names: tuple[str, ...]


def read(
    source: Source,
    *,
    target: str | int | None = None,
    test: Source | None = None,
    test_share: float = 0.25,
    seed: int = 0,
    missing: bool = False,
    name: str | None = None,
) -> Dataset:
    r"""A classification problem from a data frame, or from a file, told by its ending.

    Parameters
    ----------
    source : path or data frame
        A table of pandas, polars or Arrow, or a file ``.csv``, ``.tsv`` (both also ``.gz``), ``.parquet``,
        ``.svm``/``.libsvm``/``.svmlight``, ``.npz`` (arrays X and y, or X_train, y_train, X_test and y_test) or
        ``.npy`` (a matrix).
    target : str or int, optional
        The column with the classes, by name or, where no column is called so, by position; default the last.
        (LIBSVM and .npz say it themselves.)
    test : path or data frame, optional
        The test rows; without them a share of each class is set aside.
    test_share, seed : float, int
        That share, and the seed of the choice.
    missing : bool
        Whether blanks among numbers become NaN; else they are an error, as blanks among words always are.

    Columns of words become one 0/1 column for each word.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = file.write_text("weight,colour,fruit\n" + "150,red,apple\n120,yellow,lemon\n" * 8)
    >>> data = read(file)
    >>> data.feature_names, data.class_names, data.X_train.shape, data.X_test.shape
    (('weight', 'colour=red', 'colour=yellow'), ('apple', 'lemon'), (12, 3), (4, 3))
    """
    where = name_of(source)
    if is_file(source) and kind_of(Path(source)) in ("libsvm", "numpy"):
        if test is not None and not is_file(test):
            raise UserError(f"the test rows of {where} must be in a file, too")
        blocks = read_matrix(Path(source), target, None if test is None else Path(test))
        halves = [LabelledRows(X, labels, tuple(f"f{k}" for k in range(X.shape[1]))) for X, labels in blocks]
    else:
        halves = _from_columns(source, test, target)
    for half, file in zip(halves, (source, source if test is None else test), strict=False):
        _check(half, name_of(file), missing)
    train, held = halves if len(halves) == 2 else _set_aside(halves[0], test_share, seed, where)
    if held.X.shape[1] != train.X.shape[1]:
        raise UserError(
            f"{where} has {train.X.shape[1]} features for training, {held.X.shape[1]} for the test"
        )
    class_names, y_train, y_test = _classes(train.labels, held.labels, where)
    X = smallest(np.concatenate([train.X, held.X]))
    n_train = train.X.shape[0]
    return Dataset(
        name=name or file_name(source).split(".")[0],
        X_train=X[:n_train],
        y_train=y_train,
        X_test=X[n_train:],
        y_test=y_test,
        feature_names=train.feature_names,
        class_names=class_names,
        description=f"read from {file_name(source)}",
    )


def _from_columns(source: Source, test: Source | None, target: str | int | None) -> list[LabelledRows]:
    train, where = read_columns(source), name_of(source)
    label = target_name(train, target, where)
    levels = _levels(train, label, where)
    halves = [_encode(train, label, levels, where)]
    if test is not None:
        held = read_columns(test, words=levels)
        if set(held) != set(train):
            odd = sorted(set(held) ^ set(train))[0]
            raise UserError(
                f"{name_of(test)} and {where} must have the same columns, only one has {shown(odd)}"
            )
        halves.append(_encode({column: held[column] for column in train}, label, levels, name_of(test)))
    return halves


def target_name(columns: Columns, target: str | int | None, where: str) -> str:
    """The column that is meant; a text is a name if there is one such, else it may be a position."""
    names = list(columns)
    if isinstance(target, str) and target in columns:
        return target
    position = -1 if target is None else position_of(target)
    if position is not None:
        if not -len(names) <= position < len(names):
            raise UserError(f"target {target} is not a column of {where}, which has {len(names)}")
        return names[position]
    raise UserError(
        f"{where} has no column {shown(target)}{nearest(str(target), names)}; it has: {brief(', '.join(names))}"
    )


def _levels(columns: Columns, label: str, where: str) -> dict[str, NDArray[Any]]:
    """The words of each column of words, in order."""
    levels = {}
    for name, values in columns.items():
        if name != label and values.dtype.kind not in "biuf":
            levels[name] = np.unique(words_of(values, name, where))
            if levels[name].size > MAX_LEVELS:
                raise UserError(
                    f"column {shown(name)} of {where} has {levels[name].size} different words: remove it"
                )
    return levels


def _encode(columns: Columns, label: str, levels: dict[str, NDArray[Any]], where: str) -> LabelledRows:
    parts: list[NDArray[Any]] = []
    names: list[str] = []
    n_cells = columns[label].size * (len(columns) + sum(words.size for words in levels.values()))
    check_size(8 * n_cells, f"{where} with a column for each word")
    for name, values in columns.items():
        if name == label:
            continue
        if name in levels:
            words = words_of(values, name, where)
            place = {word: k for k, word in enumerate(levels[name])}
            found = np.array([place.get(word, -1) for word in words])
            parts += [(found == k).astype(np.float64) for k in range(levels[name].size)]
            names += [f"{name}={word}" for word in levels[name]]
        elif values.dtype.kind not in "biuf":
            raise UserError(
                f"column {shown(name)} holds words in the test file but numbers in the training file"
            )
        else:
            parts.append(values.astype(np.float64))
            names.append(name)
    if not parts:
        raise UserError(f"there is no column beside the target {shown(label)}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(
            f"{where} has a column {shown(twice[0])} and a word that becomes one: rename the column"
        )
    return LabelledRows(np.stack(parts, axis=1), columns[label], tuple(names))


def _check(rows: LabelledRows, where: str, missing: bool) -> None:
    """Refuse missing values, unless they are wanted, infinite ones, and targets that are no classes."""
    with needed():
        import pandas as pd

    finite = (np.isfinite(rows.X) | (np.isnan(rows.X) & missing)).all(axis=0)
    if not finite.all():
        column = rows.feature_names[int(np.argmin(finite))]
        raise UserError(
            f"{where} has a missing or infinite value in column {shown(column)}: fill or drop such rows"
        )
    labels = rows.labels
    if pd.isna(labels).any():
        raise UserError(f"the target of {where} has a missing value: drop such rows")
    if labels.dtype.kind == "f" and not (labels == np.rint(labels)).all():
        raise UserError(f"the target of {where} must be classes: it has fractions")
    if labels.dtype.kind in "uf" and labels.size and not np.abs(labels).max() < MAX_CLASS:
        raise UserError(f"the target of {where} must be classes: it has a number beyond {MAX_CLASS:.0e}")


def _classes(train: NDArray[Any], test: NDArray[Any], where: str) -> tuple[tuple[str, ...], Any, Any]:
    """Names of the classes in order and the positions of the labels among them."""
    numbers = train.dtype.kind in "biuf" and test.dtype.kind in "biuf"
    plain = [array.astype(np.int64) if numbers else _texts(array) for array in (train, test)]
    names = np.unique(plain[0])
    if not 2 <= names.size <= MAX_CLASSES:
        raise UserError(f"the target of {where} must have 2 to {MAX_CLASSES} classes, it has {names.size}")
    places = [np.searchsorted(names, half).clip(max=names.size - 1) for half in plain]
    unknown = names[places[1]] != plain[1]
    if unknown.any():
        odd = shown(plain[1][unknown][0])
        raise UserError(f"class {odd} of the test rows does not occur in the training rows of {where}")
    return tuple(str(value) for value in names), smallest(places[0]), smallest(places[1])


def _texts(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as words, each as long as it is."""
    return np.array([str(label) for label in labels.tolist()], dtype=object)


def _set_aside(rows: LabelledRows, share: float, seed: int, where: str) -> tuple[LabelledRows, LabelledRows]:
    """A random ``share`` of the rows of each class as test rows; the order of the file is kept."""
    share = real_number("test_share", share, above=0.0, most=0.9)
    rng = stream(seed, "rows", "set aside")
    held = np.zeros(rows.labels.shape[0], dtype=bool)
    _, which = np.unique(_texts(rows.labels), return_inverse=True)
    for k in range(int(which.max()) + 1 if which.size else 0):
        members = rng.permutation(np.flatnonzero(which == k))
        held[members[: round(share * members.size)]] = True  # a class of one row stays in training
    if held.all() or not held.any():
        raise UserError(
            f"{where} has too few rows ({held.size}) to set {share:g} of them aside: add rows, or name a "
            "second file with test rows (test=..., --test)"
        )
    return (
        LabelledRows(rows.X[~held], rows.labels[~held], rows.feature_names),
        LabelledRows(rows.X[held], rows.labels[held], rows.feature_names),
    )
