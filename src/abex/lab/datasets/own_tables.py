"""A person's own classification data: a data frame, or a file of CSV or Parquet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.lab.datasets.types import Dataset, smallest
from abex.support.errors import UserError, real_number, shown
from abex.support.extras import needed
from abex.support.randomness import stream
from abex.support.reading import check_size
from abex.support.table_files import (
    Columns,
    Source,
    column_named,
    file_name,
    line_of,
    name_of,
    read_columns,
    words_of,
)

MAX_CLASSES = 1000
MAX_CLASS = 2**53  # as a number: floats tell smaller ones apart
MAX_LEVELS = 1000  # distinct words in one column that become columns of their own


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
        A table of pandas, polars or Arrow, or a file ``.csv``, ``.tsv`` (both also ``.gz``) or ``.parquet``.
    target : str or int, optional
        The column with the classes, by name or, where no column is called so, by position; default the last.
    test : path or data frame, optional
        The test rows; without them a share of each class is set aside.
    test_share, seed : float, int
        That share, and the seed of the choice.
    missing : bool
        Whether blanks among numbers become NaN; else they are an error, as blanks among words always are.

    Columns of words become one 0/1 column for each word, after those of numbers.

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
    columns = read_columns(source)
    names = set(columns)
    label = column_named(columns, -1 if target is None else target, where)
    labels = classes_of(columns.pop(label), where)
    words = {column for column, values in columns.items() if values.dtype.kind not in "biuf"}
    rows = _numbers(columns, words, where, missing)
    if test is None:
        held = held_rows(labels, test_share, seed, where)
        train, tested, y, y_tested = rows[~held], rows[held], labels[~held], labels[held]
    else:
        others = read_columns(test, words=words)
        if odd := sorted(names ^ set(others)):
            raise UserError(
                f"{name_of(test)} and {where} must have the same columns, only one has {shown(odd[0])}"
            )
        train, y, y_tested = rows, labels, classes_of(others.pop(label), name_of(test))
        others = {column: others[column] for column in columns}
        tested = _numbers(others, words, name_of(test), missing).reindex(columns=rows.columns, fill_value=0.0)
    class_names, y_train, y_test = _positions(y, y_tested, where)
    X = smallest(np.concatenate([train.to_numpy(np.float64), tested.to_numpy(np.float64)]))
    n_train = len(train)
    return Dataset(
        name=name or file_name(source).split(".")[0],
        X_train=X[:n_train],
        y_train=y_train,
        X_test=X[n_train:],
        y_test=y_test,
        feature_names=tuple(rows.columns),
        class_names=class_names,
        description=f"read from {file_name(source)}",
    )


def _numbers(columns: Columns, words: set[str], where: str, missing: bool) -> Any:
    """A frame of the numbers and, for each column of ``words``, a column of 0 and 1 for each word in it; blanks are refused."""
    with needed():
        import pandas as pd

    if not columns:
        raise UserError(f"{where} has no column beside the target")
    spelt = {name: words_of(columns[name], name, where) for name in columns if name in words}
    levels = {name: len(set(values.tolist())) for name, values in spelt.items()}
    for name, count in levels.items():
        if count > MAX_LEVELS:
            raise UserError(f"column {shown(name)} of {where} has {count} different words: remove it")
    numbers = {name: values for name, values in columns.items() if name not in words}
    rows = len(next(iter(columns.values())))
    check_size(8 * rows * (len(numbers) + sum(levels.values())), f"{where} with a column for each word")
    for name, values in numbers.items():
        if values.dtype.kind not in "biuf":
            raise UserError(
                f"column {shown(name)} holds words in the test file but numbers in the training file"
            )
        if not (np.isfinite(values) | (np.isnan(values) & missing)).all():
            raise UserError(
                f"{where} has a missing or infinite value in column {shown(name)}: fill or drop such rows"
            )
    frame = pd.DataFrame(numbers)
    if spelt:
        frame = pd.concat([frame, pd.get_dummies(pd.DataFrame(spelt), prefix_sep="=")], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise UserError(f"{where} has a column {shown(twice)} and a word that becomes one: rename the column")
    return frame


def classes_of(labels: NDArray[Any], where: str) -> NDArray[Any]:
    """Labels as whole numbers or words; what is missing or no class is refused."""
    with needed():
        import pandas as pd

    if (missing := pd.isna(labels)).any():
        place = line_of(int(missing.argmax()), where)
        raise UserError(f"the target of {where} has a missing value in {place}: drop such rows")
    if labels.dtype.kind not in "biuf":
        return _texts(labels)
    if labels.dtype.kind == "f" and not (labels == np.rint(labels)).all():
        raise UserError(f"the target of {where} must be classes: it has fractions")
    if labels.dtype.kind in "uf" and labels.size and not np.abs(labels).max() < MAX_CLASS:
        raise UserError(f"the target of {where} must be classes: it has a number beyond {MAX_CLASS:.0e}")
    return labels.astype(np.int64)


def _positions(train: NDArray[Any], test: NDArray[Any], where: str) -> tuple[tuple[str, ...], Any, Any]:
    """Names of the classes in order and the positions of the labels among them."""
    if train.dtype != test.dtype:
        train, test = _texts(train), _texts(test)
    names = np.unique(train)
    if not 2 <= names.size <= MAX_CLASSES:
        raise UserError(f"the target of {where} must have 2 to {MAX_CLASSES} classes, it has {names.size}")
    places = [np.searchsorted(names, half).clip(max=names.size - 1) for half in (train, test)]
    unknown = names[places[1]] != test
    if unknown.any():
        raise UserError(
            f"class {shown(test[unknown][0])} of the test rows does not occur in the training rows of {where}"
        )
    return tuple(str(value) for value in names), smallest(places[0]), smallest(places[1])


def _texts(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as words, each as long as it is."""
    return np.array([str(label) for label in labels.tolist()], dtype=object)


def held_rows(labels: NDArray[Any], share: float, seed: int, where: str) -> NDArray[np.bool_]:
    """Which rows are set aside: a random ``share`` of each class."""
    share = real_number("test_share", share, above=0.0, most=0.9)
    rng = stream(seed, "rows", "set aside")
    held = np.zeros(labels.shape[0], dtype=bool)
    _, which = np.unique(_texts(labels), return_inverse=True)
    for k in range(int(which.max()) + 1 if which.size else 0):
        members = rng.permutation(np.flatnonzero(which == k))
        held[members[: round(share * members.size)]] = True  # a class of one row stays in training
    if held.all() or not held.any():
        raise UserError(
            f"{where} has too few rows ({held.size}) to set {share:g} of them aside: add rows, or name a "
            "second file with test rows (test=...)"
        )
    return held
