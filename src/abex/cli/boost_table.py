"""ModelInput to train on, and rows as a trained model wants them: columns found by name, classes by what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError
from abex.support.extras import needed

SHOWN = 3  # unknown words in a warning
WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0*)?")
TRUTH = {"true": 1.0, "false": 0.0}


class ModelInput(NamedTuple):
    """Features in the order of the model, and the labels of the file where it has them."""

    X: Any
    labels: Any


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


def rows_to_evaluate(classifier: Any, model: str, data: str, target: str | None) -> tuple[str, ModelInput]:
    """A title, and the test rows of a data set or all rows of a file."""
    from abex.lab.datasets.registry import is_path

    if is_path(data):
        return Path(data).name.split(".")[0], read_rows(classifier, data, target, labelled=True)
    problem = read_data(data, target)
    names = list(getattr(classifier, "feature_names_in_", problem.feature_names))
    if sorted(names) != sorted(problem.feature_names) or len(names) != classifier.n_features_in_:
        raise UserError(
            f"{problem.name} does not have the columns {model} was trained on ({', '.join(names[:5])}, ...)"
        )
    X = as_frame(problem.X_test, problem.feature_names)[names]
    named = hasattr(classifier, "feature_names_in_")
    return problem.name, ModelInput(X if named else X.to_numpy(), labels_of(problem, problem.y_test))


def read_rows(classifier: Any, file: str, target: str | None = None, *, labelled: bool) -> ModelInput:
    """All rows of a file of one's own for a model, with labels if they are asked for."""
    from abex.lab.datasets.matrix_files import read_rows as read_matrix_rows
    from abex.lab.datasets.table_files import kind_of, read_columns

    path = Path(file)
    names = getattr(classifier, "feature_names_in_", None)
    if kind_of(path) in ("libsvm", "numpy"):
        if names is not None and list(names) != [f"f{k}" for k in range(len(names))]:
            raise UserError(
                f"{file} has no names of columns, by which the model finds its own ({', '.join(names[:5])}): give a table"
            )
        X, labels = read_matrix_rows(path, classifier.n_features_in_, target)
        if labelled and labels is None:
            raise UserError(f"{file} has no classes to compare with")
        return ModelInput(X if names is None else as_frame(X, names), labels)
    if names is None:
        raise UserError(
            f"the model was trained without names of columns: give a NumPy or LIBSVM file in place of {file}"
        )
    columns = read_columns(path)
    sources = sources_of(names, columns, file)
    of_words = {str(names[c.column]) for c in classifier.categories_ if c.values.dtype.kind == "U"}
    words = {column for column, word in sources if word is not None} | of_words
    columns = read_columns(path, words=words)
    labels = _labels(columns, {column for column, _ in sources}, target, path) if labelled else None
    return ModelInput(features(names, sources, columns, file, of_words), labels)


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
    from abex.lab.datasets.table_files import words_of

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


def places_of(classes: NDArray[Any], labels: NDArray[Any], model: str, file: str) -> NDArray[np.int64]:
    """The position of each label among the classes of a model; 3, "3" and 3.0 are the same, so are true and 1.

    >>> places_of(np.array([1, 3]), np.array(["3", "1.0"]), "a.abex", "a.csv").tolist()
    [1, 0]
    """
    place: dict[str, int] = {}
    for spelling in (plain_text, str):  # what a class is called exactly counts more
        place.update({spelling(name): k for k, name in enumerate(classes.tolist())})
    distinct, which = np.unique(labels.astype(str), return_inverse=True)
    found = [place.get(text, place.get(plain_text(text), -1)) for text in distinct.tolist()]
    if -1 in found:
        raise UserError(f"{model} does not know the class {str(distinct[found.index(-1)])!r} of {file}")
    places: NDArray[np.int64] = np.array(found, dtype=np.int64)[which]
    return places


def plain_text(value: Any) -> str:
    """A class as text: whole numbers without a fraction, true and false as 1 and 0."""
    text = str(value).strip()
    if text.lower() in TRUTH:
        return str(int(TRUTH[text.lower()]))
    whole = WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _labels(columns: dict[str, Any], used: set[str], target: str | None, path: Path) -> NDArray[Any]:
    """The column of classes, which must not be one of the features."""
    with needed():
        import pandas as pd

    from abex.lab.datasets.own_tables import target_name

    name = target_name(columns, target, str(path))
    if name in used:
        raise UserError(
            f"column {name!r} of {path} is a feature of the model: name that of the classes by --target"
        )
    labels: NDArray[Any] = columns[name]
    if pd.isna(labels).any():
        raise UserError(f"the target {name!r} of {path} has a missing value: drop such rows")
    return labels
