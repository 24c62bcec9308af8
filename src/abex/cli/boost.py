"""`abex boost`: train and use boosted classifiers on a data set or a file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from abex.cli.boost_table import as_frame, labels_of, read_data, read_rows
from abex.cli.help import examples, number_option
from abex.cli.output import can_be_written, print_table
from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.figures import canvas, entitle, save, style_of

BASES = ("tree", "product", "stump")
POINTS = 100  # of a learning curve
MAX_SEED = 4 * 10**9  # below the 2**32 of NumPy's older generator, with room for further seeds


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
@click.option("--test", help="Second file, with test rows; default a quarter of your own file.")
@click.option("--base", type=click.Choice(BASES), default="tree", show_default=True, help="Base learner.")
@number_option("--iterations", 1000, "Number of base classifiers.")
@number_option("--seed", 0, "Names all random numbers.", least=0, most=MAX_SEED)
def train(
    data: str,
    policy: str,
    out: str,
    target: str | None,
    test: str | None,
    base: str,
    iterations: int,
    seed: int,
) -> None:
    """Train on DATA; writes the model and its learning curve, prints errors and how the policy chose."""
    from abex.boosting import AdaBoostMHClassifier
    from abex.boosting.settings import checked_settings

    can_be_written(out)
    classifier = AdaBoostMHClassifier(
        iterations, None if policy.lower() == "none" else policy, base=base, random_state=seed, verbose=1
    )
    checked_settings(classifier)
    problem = read_data(data, target, test)
    began = time.process_time()
    fit(classifier, problem)
    seconds = time.process_time() - began
    classifier.save(f"{out}.abex")
    counts, curves = learning_curves(classifier, problem)
    error_curves(
        counts, list(curves.items()), title=f"{problem.name}: {policy}, {base}",
        subtitle=f"{classifier.n_iter_} classifiers, {seconds:.1f} s of CPU", path=f"{out}.png",
    )  # fmt: skip
    rows = [[name, f"{errors[-1]:.2f} %", f"{errors.min():.2f} %"] for name, errors in curves.items()]
    title = f"{problem.name}, {classifier.n_iter_} classifiers, {seconds:.1f} s of CPU"
    print_table(title, ["rows", "error at the end", "smallest"], rows, (1, 2))
    full = "full search: every feature was tried in each search"
    click.echo(full if classifier.policy is None else str(classifier.policy_report()))
    click.echo(f"wrote {out}.abex and {out}.png")


@command.command(
    short_help="Classes and probabilities for the rows of a file.",
    epilog=examples("abex boost predict fruit.abex new-fruit.csv --out answers.csv"),
)
@click.argument("model")
@click.argument("file")
@click.option(
    "--out", default="predictions.csv", show_default=True, help="Table with a row for each row of FILE."
)
@click.option(
    "--target", default=None, help="Position of a column of classes in a NumPy matrix; default the last."
)
def predict(model: str, file: str, out: str, target: str | None) -> None:
    """Classes and probabilities for the rows of FILE.

    Columns of CSV and Parquet files are found by name, those of LIBSVM and NumPy files by position.
    """
    with needed():
        import pandas as pd

    from abex.boosting import load
    from abex.support.files import write_atomically

    can_be_written(out)
    classifier = load(model)
    X = read_rows(classifier, file, target)
    decided, probabilities = classifier.predict(X), classifier.predict_proba(X)
    labels = [f"label {name}" for name in classifier.classes_] if classifier.multilabel_ else ["class"]
    answer = pd.concat(
        [
            pd.DataFrame(decided, columns=labels),
            pd.DataFrame(probabilities, columns=[f"probability {name}" for name in classifier.classes_]),
        ],
        axis=1,
    )
    write_atomically(out, answer.to_csv(index=False).encode())
    click.echo(f"wrote {out}: {len(answer):,} rows")


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


def fit(classifier: Any, problem: Any) -> None:
    """Train on the training rows."""
    X = as_frame(problem.X_train, problem.feature_names)
    try:
        classifier.fit(X, labels_of(problem, problem.y_train))
    except MemoryError:
        raise UserError(
            f"there is not enough memory for --iterations {classifier.n_estimators} on {problem.name}: take fewer"
        ) from None


def learning_curves(classifier: Any, problem: Any) -> tuple[Any, dict[str, Any]]:
    """Errors in per cent on training and test rows at about a hundred sizes."""
    every = max(1, classifier.n_iter_ // POINTS)
    halves = {"training": (problem.X_train, problem.y_train), "test": (problem.X_test, problem.y_test)}
    errors = {
        name: 100
        * (1 - classifier.staged_score(as_frame(X, problem.feature_names), labels_of(problem, y), every))
        for name, (X, y) in halves.items()
    }
    return every * np.arange(1, len(errors["test"]) + 1), errors


def error_curves(
    counts: Any,
    lines: Sequence[tuple[str, Any]],
    *,
    title: str = "Error",
    subtitle: str = "",
    across: str = "classifiers",
    path: str | Path | None = None,
) -> Any:
    """Error in per cent over the number of classifiers, labels at the line's end."""
    figure, axes = canvas()
    for position, (label, errors) in enumerate(lines):
        axes.plot(counts, errors, label=label, linewidth=1.6, **style_of(position))
    if len(counts) > 1:
        axes.set_xscale("log")
        axes.set_xlim(float(counts[0]), float(counts[-1]))
    if all(np.min(errors) > 0 for _, errors in lines):
        axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel("error (per cent)")
    axes.legend()
    entitle(axes, title, subtitle)
    return save(figure, path)
