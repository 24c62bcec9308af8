"""Models of boosting, by the scores that they give to rows: on the published data sets and on tables of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.boosting_errors import PUBLISHED
from benchmarks.subjects import Absent, Part, exact

from abex.support.errors import UserError

#: data set -> the (c, alpha) of the paper
PAPER = {
    "pendigits": (0.1, 0.7), "letter": (0.1, 0.7), "usps": (0.1, 0.7), "isolet": (0.2, 0.5), "mnist": (0.2, 0.5)
}  # fmt: skip
#: iterations, so few that a change shows and nobody waits
ITERATIONS = {"stump": 300, "tree": 12, "product": 12}
SEEDS = (1, 2, 3)
ROWS = 6_000  # of training, at most
SCORED = 500  # rows


def published_models() -> Iterator[Part]:
    """ABE as in the paper, with stumps, and with trees and products of the published sizes."""
    from abex.boosting import AdaBoostMHClassifier
    from abex.lab.datasets import load

    for name, (c, alpha) in PAPER.items():
        try:
            data = load(name)
        except UserError as error:
            raise Absent(f"the data set {name} (ABEX_DATA names a folder of data sets)") from error
        for base, iterations in ITERATIONS.items():
            size = PUBLISHED[base][1][name][0]
            for seed in SEEDS:
                model = AdaBoostMHClassifier(
                    iterations, f"ABE(eta=0.4, c={c}, alpha={alpha})", base=base, arms_per_search=1, committee_size=None,
                    calibrate=False, random_state=seed, **size,
                )  # fmt: skip
                model.fit(data.X_train[:ROWS], data.y_train[:ROWS])
                yield f"{base} on {name}, seed {seed}", answers(model, data.X_test[:SCORED])


def default_models() -> Iterator[Part]:
    """The classifier at its defaults."""
    from abex.boosting import AdaBoostMHClassifier

    for name, (X, y) in tables().items():
        model = AdaBoostMHClassifier(random_state=1).fit(X, y)
        yield name, answers(model, X[:SCORED])


def answers(model: Any, X: Any) -> str:
    """Scores, probabilities and importances to the last bit."""
    parts = (model.decision_function(X), model.predict_proba(X), model.feature_importances_)
    return f"{model.n_iter_}; " + "; ".join(map(exact, parts))


def tables() -> dict[str, tuple[Any, Any]]:
    """Ten tables that scikit-learn brings or makes."""
    from sklearn import datasets

    digits = datasets.load_digits(return_X_y=True)
    return {
        "iris": datasets.load_iris(return_X_y=True),
        "wine": datasets.load_wine(return_X_y=True),
        "breast cancer": datasets.load_breast_cancer(return_X_y=True),
        "digits": (digits[0][:400], digits[1][:400]),
        "moons": datasets.make_moons(200, noise=0.3, random_state=1),
        "circles": datasets.make_circles(200, noise=0.2, factor=0.5, random_state=1),
        "blobs": datasets.make_blobs(200, centers=4, cluster_std=3.0, random_state=1),
        "hastie": datasets.make_hastie_10_2(300, random_state=1),
        "quantiles": datasets.make_gaussian_quantiles(n_samples=200, n_classes=3, random_state=1),
        "classification": datasets.make_classification(300, 30, n_informative=5, flip_y=0.1, random_state=1),
    }
