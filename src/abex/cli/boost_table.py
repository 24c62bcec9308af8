"""Rows to train on, and rows as a trained model wants them: columns found by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError
from abex.support.extras import needed

SHOWN = 3  # unknown words in a warning
TRUTH = {"true": 1.0, "false": 0.0}


def read_data(name: str, target: str | None, test: str | None = None) -> Any:
    """A classification problem: a data set by name or a file, whose blanks among numbers are NaN."""
    from abex.lab.datasets import load
    from abex.lab.datasets.registry import is_path

    options: dict[str, Any] = {"missing": True} if is_path(name) else {}
    options |= {key: value for key, value in (("target", target), ("test", test)) if value is not None}
    problem = load(name, **options)
    if not hasattr(problem, "X_train"):
        raise UserError(f"{name} is not a classification problem")
    return problem


def read_rows(classifier: Any, file: str, target: str | None = None) -> Any:
    """All rows of a file of one's own as a model wants them."""
    from abex.lab.datasets.matrix_files import read_rows as read_matrix_rows
    from abex.support.table_files import kind_of, read_columns

    path = Path(file)
    names = getattr(classifier, "feature_names_in_", None)
    if kind_of(path) in ("libsvm", "numpy"):
        if names is not None and list(names) != [f"f{k}" for k in range(len(names))]:
            raise UserError(
                f"{file} has no names of columns, by which the model finds its own ({', '.join(names[:5])}): give a table"
            )
        X, _ = read_matrix_rows(path, classifier.n_features_in_, target)
        return X if names is None else as_frame(X, names)
    if names is None:
        raise UserError(
            f"the model was trained without names of columns: give a NumPy or LIBSVM file in place of {file}"
        )
    sources = sources_of(names, read_columns(path), file)
    of_words = {str(names[c.column]) for c in classifier.categories_ if c.values.dtype.kind == "U"}
    words = {column for column, word in sources if word is not None} | of_words
    return features(names, sources, read_columns(path, words=words), file, of_words)


def sources_of(names: Any, columns: Any, file: str) -> list[tuple[str, str | None]]:
    """The column of each feature, and the word for which it is 1: 'colour=red' is 1 where colour is red.

    >>> sources_of(["weight", "colour=a=b"], ["colour", "weight"], "fruit.csv")
    [('weight', None), ('colour', 'a=b')]
    """
    known = set(names)
    found: list[tuple[str, str | None]] = []
    for name in names:
        ends = [mark.start() for mark in re.finditer("=", name)]
        fitting = [end for end in ends if name[:end] in columns and name[:end] not in known]
        if name in columns:
            found.append((name, None))
        elif fitting:
            found.append((name[: fitting[-1]], name[fitting[-1] + 1 :]))
        else:
            words = f" (or {name[: ends[0]]!r} with words)" if ends else ""
            raise UserError(f"{file} has no column {name!r}{words}, which the model needs")
    return found


def features(
    names: Any, sources: list[tuple[str, str | None]], columns: dict[str, Any], file: str, of_words: set[str]
) -> Any:
    """The features of a model from the columns of a table; says which words the model does not know.

    Columns ``of_words`` are the model's own categories and stay words.
    """
    with needed():
        import pandas as pd
    from abex.support.table_files import words_of

    known: dict[str, list[str]] = {}
    for column, word in sources:
        if word is not None:
            known.setdefault(column, []).append(word)
    words = {column: words_of(columns[column], column, file) for column in known}
    for column, those in known.items():
        unknown = sorted(set(words[column].tolist()) - set(those))
        if unknown:
            some = ", ".join(map(repr, unknown[:SHOWN])) + ", ..." * (len(unknown) > SHOWN)
            click.echo(
                f"abex: column {column!r} of {file} has words the model does not know ({some}): "
                "they count as none of the known ones",
                err=True,
            )
    parts = [
        columns[column]
        if column in of_words
        else numbers_of(columns[column], column, file)
        if word is None
        else (words[column] == word).astype(np.float64)
        for column, word in sources
    ]
    return pd.DataFrame(dict(zip(names, parts, strict=True)))


def numbers_of(values: NDArray[Any], name: str, file: str) -> NDArray[np.float64]:
    """A column as numbers, NaN where there is none; true and false are 1 and 0."""
    with needed():
        import pandas as pd

    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
    else:
        missing = pd.isna(values)
        numbers = np.full(values.size, np.nan)
        for k in np.flatnonzero(~missing):
            text = str(values[k]).strip()
            try:
                numbers[k] = TRUTH[text.lower()] if text.lower() in TRUTH else float(text)
            except ValueError:
                raise UserError(
                    f"column {name!r} of {file} has the word {text!r} where the model needs a number: correct it"
                ) from None
    if np.isinf(numbers).any():
        raise UserError(f"{file} has an infinite value in column {name!r}: correct or drop such rows")
    return numbers


def as_frame(X: Any, names: Any) -> Any:
    """Features with their names."""
    with needed():
        import pandas as pd

    return pd.DataFrame(X, columns=list(names))


def labels_of(problem: Any, y: Any) -> Any:
    """Labels by name."""
    return np.array(problem.class_names)[y]
