"""A person's own classification data: a data frame, or a file of CSV, Parquet, LIBSVM or NumPy."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.lab.datasets.types import Dataset, smallest
from abex.support.errors import UserError, brief, nearest, real_number, shown
from abex.support.extras import needed
from abex.support.randomness import stream
from abex.support.reading import MAX_COLUMNS, arrays_of, check_size, reader_errors, short_path
from abex.support.table_files import (
    Columns,
    Source,
    content_of,
    file_name,
    is_file,
    kind_of,
    line_of,
    name_of,
    position_of,
    read_columns,
    words_of,
)

MAX_CLASSES = 1000
MAX_CLASS = 2**53  # as a number: floats tell smaller ones apart
MAX_LEVELS = 1000  # distinct words in one column that become columns of their own
CLASS = "class"  # the column of labels of a matrix, whose features are f0, f1, ...


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
        ``.svm``/``.libsvm``/``.svmlight`` or ``.npz`` (arrays X and y).
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
    columns = columns_of(source)
    label = target_name(columns, target, where)
    levels = _levels(columns, label, where)
    *rows, names = _encoded(columns, label, levels, where, missing)
    if test is None:
        held = held_rows(rows[1], test_share, seed, where)
        train, tested = ([part[which] for part in rows] for which in (~held, held))
    else:
        others = columns_of(test, words=levels, features=len(columns) - 1)
        if odd := sorted(set(others) ^ set(columns)):
            raise UserError(
                f"{name_of(test)} and {where} must have the same columns, only one has {shown(odd[0])}"
            )
        others = {column: others[column] for column in columns}
        train, (*tested, _) = rows, _encoded(others, label, levels, name_of(test), missing)
    class_names, y_train, y_test = _positions(train[1], tested[1], where)
    X = smallest(np.concatenate([train[0], tested[0]]))
    n_train = len(train[0])
    return Dataset(
        name=name or file_name(source).split(".")[0],
        X_train=X[:n_train],
        y_train=y_train,
        X_test=X[n_train:],
        y_test=y_test,
        feature_names=names,
        class_names=class_names,
        description=f"read from {file_name(source)}",
    )


def columns_of(source: Source, words: Any = (), features: int | None = None) -> Columns:
    """The columns of a table or a matrix by name, labels among them; a LIBSVM file may leave out the last of ``features``."""
    kind = kind_of(Path(source)) if is_file(source) else "frame"
    if kind not in ("libsvm", "numpy"):
        return read_columns(source, words=words)
    X, y = _libsvm(Path(source), features) if kind == "libsvm" else _npz(Path(source))
    return {**{f"f{k}": X[:, k] for k in range(X.shape[1])}, CLASS: y}


def _npz(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    arrays, where = arrays_of(path), short_path(path)
    if not {"X", "y"} <= set(arrays):
        raise UserError(f"{where} must hold the arrays X and y; it has {shown(sorted(arrays))}")
    X, y = arrays["X"], arrays["y"]
    if X.ndim != 2 or X.size == 0 or X.dtype.kind not in "biuf" or y.shape != X.shape[:1]:
        raise UserError(
            f"{where} must hold a matrix of numbers, and as many labels as it has rows, got {shown(X.shape)} and {shown(y.shape)}"
        )
    return X, y


def _libsvm(path: Path, features: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    with needed("data"):
        from sklearn.datasets import load_svmlight_file

    where = short_path(path)
    with reader_errors(f"read {where} as LIBSVM"):
        X, y = load_svmlight_file(io.BytesIO(content_of(path)))
        width = max(X.shape[1], features or 0)
        if not 0 <= width <= MAX_COLUMNS:
            raise UserError(f"{where} has a feature of number {width:,}, at most {MAX_COLUMNS:,} can be read")
        check_size(8 * X.shape[0] * width, f"{where} without gaps, {X.shape[0]:,} x {width:,}")
        X.resize((X.shape[0], width))
        return X.toarray(), y


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


def _encoded(
    columns: Columns, label: str, levels: dict[str, NDArray[Any]], where: str, missing: bool
) -> tuple[NDArray[np.float64], NDArray[Any], tuple[str, ...]]:
    """Features as numbers, labels, names; refuses missing values, unless they are wanted, and targets that are no classes."""
    labels = classes_of(columns[label], where)
    check_size(
        8 * labels.size * (len(columns) + sum(words.size for words in levels.values())),
        f"{where} with a column for each word",
    )
    numbers = {name: values for name, values in columns.items() if name not in (label, *levels)}
    for name, values in numbers.items():
        if values.dtype.kind not in "biuf":
            raise UserError(
                f"column {shown(name)} holds words in the test file but numbers in the training file"
            )
        if not (np.isfinite(values) | (np.isnan(values) & missing)).all():
            raise UserError(
                f"{where} has a missing or infinite value in column {shown(name)}: fill or drop such rows"
            )
    words = {
        f"{name}={word}": found == word
        for name, known in levels.items()
        for found in (words_of(columns[name], name, where),)
        for word in known
    }
    if not numbers and not words:
        raise UserError(f"there is no column beside the target {shown(label)}")
    if twice := numbers.keys() & words.keys():
        raise UserError(
            f"{where} has a column {shown(min(twice))} and a word that becomes one: rename the column"
        )
    features: dict[str, NDArray[Any]] = {**numbers, **words}
    return np.column_stack(list(features.values())).astype(np.float64), labels, tuple(features)


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
