"""`abex boost`: train, evaluate, compare and use boosted classifiers on a data set or a file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from abex.cli.boost_table import as_frame, labels_of, places_of, read_data, read_rows, rows_to_evaluate
from abex.cli.help import examples
from abex.cli.output import can_be_written, console, table
from abex.support.errors import UserError, whole_number
from abex.support.extras import needed
from abex.support.figures import canvas, entitle, kind_of, save, style_of

BASES = ("tree", "product", "stump")
WARM = 2  # classifiers of a fit before the clock
POINTS = 100  # of a learning curve
MOST_ARMS_PER_SEARCH = 10**6  # in one search
MOST_SEED = 4 * 10**9  # below the 2**32 of NumPy's older generator, with room for further seeds
COMPARED = ("ABE", "ABE(eta=0.1)", "Thompson", "UCB1", "Uniform")


def shared(command: Any) -> Any:
    """Options of everything that trains."""
    for option in reversed((
        click.option("--target", default=None, help="Column with the classes in your own file; default the last."),
        click.option("--test", default=None, help="Second file, with test rows; default a quarter of your own file."),
        click.option("--base", type=click.Choice(BASES), default="tree", show_default=True, help="Base learner."),
        click.option("--iterations", default=1000, show_default=True, help="Number of base classifiers."),
        click.option("--leaves", default=None, type=int, help="Leaves of a tree."),
        click.option("--terms", default=None, type=int, help="Terms of a product."),
        click.option("--arms-per-search", "arms_per_search", default=None, type=int,
                     help="Features tried for each inner stump."),
        click.option("--seed", default=0, show_default=True, help="Names all random numbers."),
    )):  # fmt: skip
        command = option(command)
    return command


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
@shared
def train(
    data: str, policy: str, out: str, target: str | None, test: str | None, seed: int, **options: Any
) -> None:
    """Train on DATA; writes the model and its learning curve, prints errors and how the policy chose."""
    can_be_written(out)
    classifier = make(policy, seed, options)
    problem = read_data(data, target, test)
    began = time.process_time()
    fit(classifier, problem)
    seconds = time.process_time() - began
    classifier.save(f"{out}.abex")
    counts, curves = learning_curves(classifier, problem)
    error_curves(
        counts, list(curves.items()), title=f"{problem.name}: {policy}, {options['base']}",
        subtitle=f"{classifier.n_iter_} classifiers, {seconds:.1f} s of CPU", path=f"{out}.png",
    )  # fmt: skip
    rows = [[name, f"{errors[-1]:.2f} %", f"{errors.min():.2f} %"] for name, errors in curves.items()]
    title = f"{problem.name}, {classifier.n_iter_} classifiers, {seconds:.1f} s of CPU"
    console().print(table(title, ["rows", "error at the end", "smallest"], rows, (1, 2)))
    full = "full search: every feature was tried in each search"
    click.echo(full if classifier.policy is None else str(classifier.policy_report()))
    click.echo(f"wrote {out}.abex and {out}.png")


@command.command(
    short_help="Error, logarithmic loss and confusion of a model.",
    epilog=examples("abex boost evaluate letter.abex letter"),
)
@click.argument("model")
@click.argument("data")
@click.option("--out", default=None, help="Name of the figure of the confusion matrix, such as letter.png.")
@click.option("--target", default=None, help="Column with the classes in a file of your own.")
def evaluate(model: str, data: str, target: str | None, out: str | None) -> None:
    """Error, logarithmic loss and confusion of MODEL on the test rows of DATA, or on all rows of a file of yours."""
    from abex.boosting import load

    if out is not None:
        can_be_written(out)
        kind_of(out)
    classifier = load(model)
    if classifier.multilabel_:
        raise UserError(f"{model} has many labels for a row: evaluate it from Python")
    title, (X, labels) = rows_to_evaluate(classifier, model, data, target)
    truth = places_of(classifier.classes_, labels, model, data)
    probabilities = classifier.predict_proba(X)
    predicted = np.searchsorted(classifier.classes_, classifier.predict(X))
    counts = np.zeros((classifier.n_classes_,) * 2, dtype=int)
    np.add.at(counts, (truth, predicted), 1)
    loss = np.log(1 / np.maximum(probabilities[np.arange(truth.size), truth], 1e-15)).mean()
    click.echo(
        f"{truth.size:,} rows: error {100 * np.mean(predicted != truth):.2f} %, logarithmic loss {loss:.4f}"
    )
    names = [str(name) for name in classifier.classes_]
    rows = [
        [name, *(str(count) if count else "" for count in line)]
        for name, line in zip(names, counts, strict=True)
    ]
    console().print(
        table("true class (row), predicted (column)", ["", *names], rows, range(1, len(names) + 1))
    )
    if out is not None:
        confusion(counts, names, title=f"{title}: {Path(model).name}", path=out)
        click.echo(f"wrote {out}")


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
    X = read_rows(classifier, file, target, labelled=False).X
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


@command.command(
    short_help="Error, CPU seconds and choices of several policies.",
    epilog=examples(
        'abex boost compare digits --policy "ABE(eta=10)" --policy Uniform --base stump --iterations 2000'
    ),
)
@click.argument("data")
@click.option(
    "--policy", "policies", multiple=True, help="A policy, or none for full search; repeat for more."
)
@click.option("--seeds", default=3, show_default=True, help="Fits per policy.")
@click.option("--out", default="abex-boost-compare", show_default=True, help="Name of the figure (.png).")
@shared
def compare(
    data: str, policies: tuple[str, ...], seeds: int, out: str, target: str | None, test: str | None, seed: int,
    **options: Any,
) -> None:  # fmt: skip
    """Test error, CPU seconds and entropy of the choice for several policies on DATA."""
    from abex.support.progress import Progress

    can_be_written(out)
    whole_number("--seeds", seeds, least=1, most=10**6)
    chosen = policies or COMPARED
    options["calibrate"] = False
    for policy in chosen:
        make(policy, seed + seeds - 1, options)
    problem = read_data(data, target, test)
    rows, lines, counts = [], [], np.zeros(0)
    for policy in chosen:  # compiles or loads what the policy needs, before the clock runs
        fit(make(policy, seed, {**options, "iterations": WARM}), problem)
    with Progress("comparing", len(chosen) * seeds) as progress:
        for policy in chosen:
            curves, seconds, entropy = [], [], []
            for number in range(seeds):
                classifier = make(policy, seed + number, options)
                began = time.process_time()
                fit(classifier, problem)
                seconds.append(time.process_time() - began)
                counts, errors = learning_curves(classifier, problem)
                curves.append(errors["test"])
                entropy.append(classifier.policy_report().entropy)
                progress.advance()
            last = np.array([curve[-1] for curve in curves])
            spread = f"{last.std(ddof=1) / np.sqrt(seeds):.2f}" if seeds > 1 else ""
            rows.append(
                [
                    policy,
                    f"{last.mean():.2f} %",
                    spread,
                    f"{np.mean(seconds):.2f}",
                    "every feature" if classifier.policy is None else f"{np.mean(entropy):.3f}",
                ]
            )
            lines.append((policy, np.mean(curves, axis=0)))
    columns = ["policy", "test error", "std. error", "CPU s", "entropy of choice"]
    title = f"{problem.name}: {options['base']}, {options['iterations']} classifiers, {seeds} seeds"
    console().print(table(title, columns, rows, (1, 2, 3, 4)))
    error_curves(counts, lines, title=f"{problem.name}: test error", subtitle=title, path=f"{out}.png")
    click.echo(f"wrote {out}.png")


def make(policy: str, seed: int, options: dict[str, Any]) -> Any:
    """The classifier that the options describe, checked."""
    from abex.boosting import AdaBoostMHClassifier
    from abex.boosting.settings import MAX_ESTIMATORS, checked_settings

    whole_number("--seed", seed, most=MOST_SEED)
    whole_number("--iterations", options["iterations"], least=1, most=MAX_ESTIMATORS)
    if options["arms_per_search"] is not None:
        whole_number("--arms-per-search", options["arms_per_search"], least=1, most=MOST_ARMS_PER_SEARCH)
    for option, base in (("leaves", "tree"), ("terms", "product")):
        if options[option] is not None and options["base"] != base:
            raise UserError(f"--{option} is for --base {base}, not {options['base']}")
    names = {"leaves": "n_leaves", "terms": "n_terms", "iterations": "n_estimators"}
    given = {names.get(key, key): value for key, value in options.items() if value is not None}
    chosen = None if policy.lower() == "none" else policy
    classifier = AdaBoostMHClassifier(policy=chosen, random_state=seed, verbose=1, **given)
    checked_settings(classifier)
    return classifier


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


def confusion(
    counts: Any, names: Sequence[str], *, title: str = "Confusion", path: str | Path | None = None
) -> Any:
    """How often each class (row) was taken for each other (column); colours leave the diagonal out."""
    figure, axes = canvas(figsize=(6.4, 5.6))
    table = np.asarray(counts)
    wrong = table.astype(float)
    np.fill_diagonal(wrong, 0.0)
    axes.imshow(wrong, cmap="Blues")
    axes.grid(visible=False)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true class")
    for i in range(table.shape[0]) if len(names) <= 30 else ():
        for j in range(table.shape[1]):
            if table[i, j]:
                dark = i != j and wrong[i, j] > wrong.max() / 2
                axes.text(
                    j,
                    i,
                    str(table[i, j]),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else "black",
                )
    entitle(axes, title)
    return save(figure, path)
