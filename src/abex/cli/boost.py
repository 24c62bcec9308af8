"""`abex boost`: train and use boosted classifiers on a data set or a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from abex.cli.help import can_be_written, examples, number_option, print_table
from abex.support.errors import UserError, shown
from abex.support.extras import needed
from abex.support.figures import canvas, entitle, save, style_of
from abex.support.table_files import column_named, line_of, read_columns, words_of

POINTS = 100  # of a learning curve
HELD = 0.25  # of the rows of a file of one's own are for the test


@click.group(epilog=examples("abex boost train letter --out letter"))
def command() -> None:
    """AdaBoost.MH whose features are chosen by a policy, on a data set (`abex data`) or a file of your own."""


@command.command(
    short_help="Train; writes the model and its learning curve.",
    epilog=examples('abex boost train letter --policy "ABE(eta=0.1)" --iterations 500 --out letter'),
)
@click.argument("data")
@click.option(
    "--policy", default="auto", show_default=True, help='Such as "ABE(eta=0.1)"; none: full search.'
)
@click.option(
    "--out", default="abex-boost", show_default=True, help="Name of the files: model (.abex), curve (.png)."
)
@click.option("--target", help="Column with the classes in your own file; default the last.")
@number_option("--iterations", 1000, "Number of trees.")
def train(data: str, policy: str, out: str, target: str | None, iterations: int) -> None:
    """Train on DATA; writes the model and its learning curve, prints errors and how the policy chose.

    Of a file of your own a quarter of each class is set aside for the test; columns of words are categories, those that name rows
    are left out.
    """
    from abex.boosting import AdaBoostMHClassifier
    from abex.boosting.settings import checked_settings

    can_be_written(out)
    asked = None if policy.lower() == "none" else policy
    classifier = AdaBoostMHClassifier(iterations, asked, random_state=0, verbose=1)
    checked_settings(classifier)
    halves = read_halves(data, target)
    began = time.process_time()
    try:
        classifier.fit(*halves["training"])
    except MemoryError:
        raise UserError(
            f"there is not enough memory for --iterations {iterations} on {data}: take fewer"
        ) from None
    about = f"{classifier.n_iter_} classifiers, {time.process_time() - began:.1f} s of CPU"
    classifier.save(f"{out}.abex")
    every = max(1, classifier.n_iter_ // POINTS)
    curves = {name: 100.0 * (1.0 - classifier.staged_score(X, y, every)) for name, (X, y) in halves.items()}
    draw_errors(every, curves, f"{data}: {policy}", about, f"{out}.png")
    rows = [[name, f"{errors[-1]:.2f} %", f"{errors.min():.2f} %"] for name, errors in curves.items()]
    full = "full search: every feature was tried in each search"
    click.echo(full if classifier.policy is None else str(classifier.policy_report()).partition("\n")[0])
    print_table(f"{data}, {about}", ["rows", "error at the end", "smallest"], rows, (1, 2))
    click.echo(f"wrote {out}.abex and {out}.png")
    click.echo(score_of(classifier, *halves["test"]))


def score_of(classifier: Any, X: Any, y: Any) -> str:
    """How often the rows that were held out are classified right, beside the class that is most frequent."""
    if classifier.multilabel_:
        return f"right in all labels of {classifier.score(X, y):.1%} of the {len(y):,} rows held out"
    often = np.unique(y, return_counts=True)[1].max() / len(y)
    return f"right on {classifier.score(X, y):.1%} of the {len(y):,} rows held out; their most frequent class has {often:.1%}"


def read_halves(data: str, target: str | None) -> dict[str, tuple[Any, Any]]:
    """Rows and labels for training and test: those of a data set, or of a file of one's own."""
    from abex.lab.datasets import Dataset, load
    from abex.lab.datasets.own_tables import classes_of, held_rows
    from abex.lab.datasets.registry import is_path

    if is_path(data):
        columns = read_columns(data)
        y = classes_of(columns.pop(column_named(columns, -1 if target is None else target, data)), data)
        leave_out_identifiers(columns, data)
        warn_of_odd_words(columns, data)
        X, held = as_frame(columns, data), held_rows(y, HELD, 0, data)
        return {"training": (X[~held], y[~held]), "test": (X[held], y[held])}
    problem = load(data)
    if not isinstance(problem, Dataset):
        raise UserError(f"{data} is not a classification problem")
    if target is not None:
        raise UserError(f"{data} says itself what its classes are: --target is for files of your own")
    halves = {"training": (problem.X_train, problem.y_train), "test": (problem.X_test, problem.y_test)}
    labels = np.array(problem.class_names)
    return {
        name: (as_frame(dict(zip(problem.feature_names, X.T, strict=True)), data), labels[y])
        for name, (X, y) in halves.items()
    }


def leave_out_identifiers(columns: dict[str, Any], where: str) -> None:
    """Leave out what names rows: nothing that is learned from it holds for new rows."""
    from abex.boosting.examples import is_identifier

    for name in [name for name, values in columns.items() if is_identifier(values)]:
        click.echo(f"abex: column {shown(name)} of {where} names the rows: it is left out", err=True)
        del columns[name]
    if not columns:
        raise UserError(f"{where} has no column to learn from beside the target")


def warn_of_odd_words(columns: dict[str, Any], where: str) -> None:
    """Say where a word stands among numbers: it makes categories of all of them."""
    for name, values in columns.items():
        odd = words_among(values)
        if 0 < odd.sum() < len(values) / 2:
            click.echo(
                f"abex: column {shown(name)} of {where} has {first(values, odd, where)} among numbers: "
                "all of them are taken for categories",
                err=True,
            )


def words_among(values: Any) -> Any:
    """Which values are no numbers, and not missing."""
    with needed():
        import pandas as pd

    column = pd.Series(values)
    return (pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy()


def first(values: Any, wrong: Any, where: str) -> str:
    """The first value that is wrong, and where it stands."""
    row = int(wrong.argmax())
    return f"{shown(values[row])} in {line_of(row, where)}"


def as_frame(columns: dict[str, Any], where: str) -> Any:
    """Columns as a data frame, in which words are categories."""
    with needed():
        import pandas as pd

    words = {name for name, values in columns.items() if values.dtype.kind not in "biuf"}
    for name in columns.keys() - words:
        if (wrong := np.isinf(columns[name])).any():
            place = line_of(int(wrong.argmax()), where)
            raise UserError(
                f"{where} has an infinite value in column {shown(name)}, {place}: correct or drop such rows"
            )
    return pd.DataFrame({name: pd.Categorical(v) if name in words else v for name, v in columns.items()})


@command.command(
    short_help="Classes and probabilities for the rows of a file.",
    epilog=examples("abex boost predict fruit.abex new-fruit.csv --out answers.csv"),
)
@click.argument("model")
@click.argument("file")
@click.option(
    "--out", default="predictions.csv", show_default=True, help="Table with a row for each row of FILE."
)
def predict(model: str, file: str, out: str) -> None:
    """Classes and probabilities for the rows of FILE, whose columns are found by name; other columns stay."""
    with needed():
        import pandas as pd
    from abex.boosting import load
    from abex.support.files import write_atomically

    can_be_written(out)
    classifier = load(model)
    X, beside = read_rows(classifier, file)
    answer = classifier.predict_frame(X)
    kept = pd.DataFrame({name: values for name, values in beside.items() if name not in answer}, answer.index)
    answer = kept.join(answer)
    write_atomically(out, answer.to_csv(index=False).encode())
    click.echo(f"wrote {out}: {len(answer):,} rows")


def read_rows(classifier: Any, file: str) -> tuple[Any, dict[str, Any]]:
    """The columns that a model was trained on; its categories are words, whatever they look like in the file. And the others."""
    names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        raise UserError(
            "the model was trained without names of columns, by which those of the file are found"
        )
    of_words = {str(names[c.column]) for c in classifier.categories_ if c.values.dtype.kind == "U"}
    columns = read_columns(file, words=of_words)
    beside = columns.keys() - set(map(str, names))
    if beside:  # as they are written: 007 is no number
        columns = read_columns(file, words=of_words | beside)
    found: dict[str, Any] = {}
    for name in map(str, names):
        if name not in columns:
            raise UserError(f"{file} has no column {shown(name)}, which the model needs")
        are_words = columns[name].dtype.kind not in "biuf"
        if are_words and name not in of_words:
            wrong = first(columns[name], words_among(columns[name]), file)
            raise UserError(
                f"column {shown(name)} of {file} has {wrong} where the model needs numbers: correct it"
            )
        turned = name in of_words and not are_words
        found[name] = words_of(columns[name], name, file) if turned else columns[name]
    return as_frame(found, file), {name: values for name, values in columns.items() if name in beside}


@command.command(
    short_help="A model for other programs, as ONNX.",
    epilog=examples("abex boost export letter.abex --out letter.onnx"),
)
@click.argument("model")
@click.option("--out", default=None, help="Name of the file; default that of MODEL with another ending.")
def export(model: str, out: str | None) -> None:
    """MODEL as ONNX, which other programs run: labels, calibrated probabilities and scores of rows of doubles."""
    from abex.boosting import load
    from abex.support.files import write_atomically

    out = out or str(Path(model).with_suffix(".onnx"))
    can_be_written(out)
    content = load(model).to_onnx().SerializeToString()
    write_atomically(out, content)
    click.echo(f"wrote {out}: {len(content):,} bytes")


def draw_errors(every: int, curves: dict[str, Any], title: str, about: str, path: str) -> None:
    """Errors in per cent over the number of classifiers, both logarithmic where they can be."""
    figure, axes = canvas()
    for position, (label, errors) in enumerate(curves.items()):
        counts = every * np.arange(1, errors.size + 1)
        axes.plot(counts, errors, label=label, linewidth=1.6, **style_of(position))
    axes.set_xscale("log")
    if all(errors.min() > 0 for errors in curves.values()):
        axes.set_yscale("log")
    axes.set_xlabel("classifiers")
    axes.set_ylabel("error (per cent)")
    axes.legend()
    entitle(axes, title, about)
    save(figure, path)
