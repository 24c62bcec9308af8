"""`abex boost`: train, evaluate, compare and use boosted classifiers on a data set or a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from abex.cli.output import console, table
from abex.errors import UserError, whole_number

HELP = {"help_option_names": ["-h", "--help"]}
BASES = ("tree", "product", "stump")
POINTS = 100  # of a learning curve
COMPARED = ("ABE", "ABE(eta=10)", "Thompson", "UCB1", "Uniform")


def shared(command: Any) -> Any:
    """Options of everything that trains."""
    for option in (
        click.option("--target", default=None, help="Column with the classes in your own file; default the last."),
        click.option("--base", type=click.Choice(BASES), default="tree", show_default=True, help="Base learner."),
        click.option("--iterations", default=1000, show_default=True, help="Number of base classifiers."),
        click.option("--leaves", default=None, type=int, help="Leaves of a tree."),
        click.option("--terms", default=None, type=int, help="Terms of a product."),
        click.option("--arms-per-round", default=None, type=int, help="Features tried for each inner stump."),
        click.option("--seed", default=0, show_default=True, help="Names all random numbers."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.group(context_settings=HELP, epilog="Example:  abex boost train letter --out letter")
def command() -> None:
    """AdaBoost.MH whose features are chosen by a policy, on a data set (`abex data`) or a file of your own."""


@command.command(
    context_settings=HELP,
    epilog='Example:  abex boost train letter --policy "ABE(eta=10)" --base tree --iterations 500 --out letter',
)
@click.argument("data")
@click.option(
    "--policy", default="Uniform", show_default=True, help='Such as "ABE(eta=10)"; none: full search.'
)
@click.option(
    "--out", default="abex-boost", show_default=True, help="Name of the files: model (.abex), curve (.png)."
)
@shared
def train(data: str, policy: str, out: str, target: str | None, seed: int, **options: Any) -> None:
    """Train on DATA; writes the model and its learning curve, prints errors and how the policy chose."""
    folder_of(out)
    problem = read_data(data, target)
    classifier = make(policy, seed, options)
    began = time.process_time()
    classifier.fit(as_frame(problem, problem.X_train), labels_of(problem, problem.y_train))
    seconds = time.process_time() - began
    classifier.save(f"{out}.abex")
    counts, curves = learning_curves(classifier, problem)
    from abex import figures

    figures.error_curves(
        counts, list(curves.items()), title=f"{problem.name}: {policy}, {options['base']}",
        subtitle=f"{classifier.n_iter_} classifiers, {seconds:.1f} s of CPU", path=f"{out}.png",
    )  # fmt: skip
    rows = [[name, f"{errors[-1]:.2f} %", f"{errors.min():.2f} %"] for name, errors in curves.items()]
    title = f"{problem.name}, {classifier.n_iter_} classifiers, {seconds:.1f} s of CPU"
    console().print(table(title, ["rows", "error at the end", "smallest"], rows, (1, 2)))
    click.echo(str(classifier.policy_report()))
    click.echo(f"wrote {out}.abex and {out}.png")


@command.command(context_settings=HELP, epilog="Example:  abex boost evaluate letter.abex letter")
@click.argument("model")
@click.argument("data")
@click.option("--target", default=None, help="Column with the classes in a file of your own.")
@click.option("--out", default=None, help="Name of the figure of the confusion matrix, such as letter.png.")
def evaluate(model: str, data: str, target: str | None, out: str | None) -> None:
    """Error, logarithmic loss and confusion of MODEL on the test rows of DATA."""
    from abex.boosting import load

    if out is not None:
        folder_of(out)
    classifier = load(model)
    problem = read_data(data, target)
    X, truth = as_frame(problem, problem.X_test), labels_of(problem, problem.y_test)
    check_fits(classifier, problem, model)
    predicted = classifier.predict(X)
    place = np.searchsorted(classifier.classes_, truth)
    chances = classifier.predict_proba(X)[np.arange(len(truth)), place]
    counts = np.zeros((classifier.n_classes_,) * 2, dtype=int)
    np.add.at(counts, (place, np.searchsorted(classifier.classes_, predicted)), 1)
    loss = -np.log(np.maximum(chances, 1e-15)).mean()
    click.echo(
        f"{len(truth):,} rows: error {100 * np.mean(predicted != truth):.2f} %, logarithmic loss {loss:.4f}"
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
        from abex import figures

        figures.confusion(counts, names, title=f"{problem.name}: {Path(model).name}", path=out)
        click.echo(f"wrote {out}")


@command.command(
    context_settings=HELP, epilog="Example:  abex boost predict fruit.abex new-fruit.csv --out answers.csv"
)
@click.argument("model")
@click.argument("file")
@click.option(
    "--out", default="predictions.csv", show_default=True, help="Table with a row for each row of FILE."
)
def predict(model: str, file: str, out: str) -> None:
    """Classes and probabilities for the rows of FILE (CSV, Parquet or ARFF); columns are found by name."""
    import pandas as pd

    from abex.boosting import load
    from abex.datasets.own_files import read_columns
    from abex.files import write_atomically

    folder_of(out)
    classifier = load(model)
    frame = features_by_name(classifier, read_columns(Path(file)), file)
    answer = pd.DataFrame({"class": classifier.predict(frame)})
    for name, chances in zip(classifier.classes_, classifier.predict_proba(frame).T, strict=True):
        answer[f"probability {name}"] = chances
    write_atomically(out, answer.to_csv(index=False).encode())
    click.echo(f"wrote {out}: {len(answer):,} rows")


@command.command(
    context_settings=HELP,
    epilog='Example:  abex boost compare digits --policy "ABE(eta=10)" --policy Uniform --base stump --iterations 2000',
)
@click.argument("data")
@click.option(
    "--policy", "policies", multiple=True, help="A policy, or none for full search; repeat for more."
)
@click.option("--seeds", default=3, show_default=True, help="Fits per policy.")
@click.option("--out", default="abex-boost-compare", show_default=True, help="Name of the figure (.png).")
@shared
def compare(
    data: str, policies: tuple[str, ...], seeds: int, out: str, target: str | None, seed: int, **options: Any
) -> None:
    """Test error, CPU seconds and entropy of the choice for several policies on DATA."""
    from abex import figures
    from abex.progress import Progress

    folder_of(out)
    whole_number("--seeds", seeds, least=1)
    problem = read_data(data, target)
    X, y = as_frame(problem, problem.X_train), labels_of(problem, problem.y_train)
    rows, lines, counts = [], [], np.zeros(0)
    chosen = policies or COMPARED
    with Progress("comparing", len(chosen) * seeds) as progress:
        for policy in chosen:
            curves, seconds, entropy = [], [], []
            for number in range(seeds):
                began = time.process_time()
                classifier = make(policy, seed + number, {**options, "calibrate": False}).fit(X, y)
                seconds.append(time.process_time() - began)
                counts, errors = learning_curves(classifier, problem)
                curves.append(errors["test"])
                entropy.append(classifier.policy_report().entropy)
                progress.advance()
            last = np.array([curve[-1] for curve in curves])
            spread = last.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
            rows.append(
                [
                    policy,
                    f"{last.mean():.2f} %",
                    f"{spread:.2f}",
                    f"{np.mean(seconds):.2f}",
                    f"{np.mean(entropy):.3f}",
                ]
            )
            lines.append((policy, np.mean(curves, axis=0)))
    columns = ["policy", "test error", "std. error", "CPU s", "entropy of choice"]
    title = f"{problem.name}: {options['base']}, {options['iterations']} classifiers, {seeds} seeds"
    console().print(table(title, columns, rows, (1, 2, 3, 4)))
    figures.error_curves(
        counts, lines, title=f"{problem.name}: test error", subtitle=title, path=f"{out}.png"
    )
    click.echo(f"wrote {out}.png")


def make(policy: str, seed: int, options: dict[str, Any]) -> Any:
    """The classifier that the options describe."""
    from abex.boosting import AdaBoostMHClassifier

    names = {"leaves": "n_leaves", "terms": "n_terms", "iterations": "n_estimators"}
    given = {names.get(key, key): value for key, value in options.items() if value is not None}
    chosen = None if policy.lower() == "none" else policy
    return AdaBoostMHClassifier(policy=chosen, random_state=seed, verbose=1, **given)


def read_data(name: str, target: str | None) -> Any:
    """A classification problem: a data set by name or a file."""
    from abex.datasets import load

    options = {} if target is None else {"target": int(target) if target.lstrip("-").isdigit() else target}
    problem = load(name, **options)
    if not hasattr(problem, "X_train"):
        raise UserError(f"{name} is not a classification problem")
    return problem


def as_frame(problem: Any, X: Any) -> Any:
    """Features with their names."""
    import pandas as pd

    return pd.DataFrame(X, columns=list(problem.feature_names))


def labels_of(problem: Any, y: Any) -> Any:
    """Labels by name."""
    return np.array(problem.class_names)[y]


def learning_curves(classifier: Any, problem: Any) -> tuple[Any, dict[str, Any]]:
    """Errors in per cent on training and test rows at about a hundred sizes."""
    every = max(1, classifier.n_iter_ // POINTS)
    halves = {"training": (problem.X_train, problem.y_train), "test": (problem.X_test, problem.y_test)}
    errors = {
        name: 100 * (1 - classifier.staged_score(as_frame(problem, X), labels_of(problem, y), every))
        for name, (X, y) in halves.items()
    }
    return every * np.arange(1, len(errors["test"]) + 1), errors


def check_fits(classifier: Any, problem: Any, model: str) -> None:
    """Say which column or class a model lacks."""
    names = list(getattr(classifier, "feature_names_in_", problem.feature_names))
    if names != list(problem.feature_names):
        raise UserError(
            f"{problem.name} does not have the columns {model} was trained on ({', '.join(names[:5])}, ...)"
        )
    unknown = sorted(set(problem.class_names) - {str(name) for name in classifier.classes_})
    if unknown:
        raise UserError(f"{model} does not know the class {unknown[0]!r} of {problem.name}")


def features_by_name(classifier: Any, columns: dict[str, Any], file: str) -> Any:
    """The model's features from the columns of a table; 'colour=red' is 1 where colour is red."""
    import pandas as pd

    names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        raise UserError("the model was trained without names of columns: use it from Python")
    found = {}
    for name in names:
        column, mark, word = name.rpartition("=")
        if name in columns:
            found[name] = columns[name]
        elif mark and column in columns:
            found[name] = (columns[column].astype(str) == word).astype(float)
        else:
            raise UserError(f"{file} has no column {name!r}, which the model needs")
    return pd.DataFrame(found)


def folder_of(out: str) -> None:
    """Complain before the work, not after, when the result cannot be written."""
    if not Path(out).parent.is_dir():
        raise UserError(f"cannot write {out!r}: there is no folder {str(Path(out).parent)!r}")
