"""Logarithmic loss of `predict_proba` beside random forests and histogram gradient boosting, everything at its defaults.

    python benchmarks/boosting_probabilities.py small --splits 10
    python benchmarks/boosting_probabilities.py tables

`small` has four data sets that come with scikit-learn, in five folds, shuffled by each of so many seeds; about a minute of CPU
time a split, most of it for HistGradientBoosting on digits.

`tables` is how calibration and early stopping were chosen, and never opens test rows: 100 to 450 training rows of eleven tables
(`boosting_robust.table`) to fit, 500 others to judge; twelve sets of Gaussian classes were beside them. The rule: the smallest
geometric mean of the loss over that of the former calibration, among those that lose nothing where that was above 0.3 or on the
official test rows of pendigits, USPS and letter, and leave the form of the probabilities as it is; of the rules to stop by, the
smallest loss without more errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from abex.boosting import AdaBoostMHClassifier
from abex.support.randomness import stream
from boosting_robust import CHOICE_TABLES, table

DATA = {"wine": load_wine, "iris": load_iris, "breast cancer": load_breast_cancer, "digits": load_digits}
TABLES = (*CHOICE_TABLES, "shuttle", "usps")
SIZES = (100, 150, 250, 450)
LEAST_OF_A_CLASS = 5  # rows: classes with fewer are left out
CLASSIFIERS = {
    "abex": lambda seed: AdaBoostMHClassifier(random_state=seed),
    "abex, early stopping": lambda seed: AdaBoostMHClassifier(early_stopping=True, random_state=seed),
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


def folds_of(name: str, seed: int) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Rows and labels to fit and to judge, five times."""
    X, y = DATA[name](return_X_y=True)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        yield X[train], y[train], X[test], y[test]


def draws_of(name: str, seed: int) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Rows and labels to fit and to judge, of each size."""
    X, y, *_ = table(name)
    for size in SIZES:
        chosen = stream(seed, "table", size).permutation(len(y))[: size + 500]
        classes, place = np.unique(y[chosen], return_inverse=True)
        often = np.bincount(place[:size], minlength=classes.size) >= LEAST_OF_A_CLASS
        fit, judge = chosen[:size][often[place[:size]]], chosen[size:][often[place[size:]]]
        yield X[fit], y[fit], X[judge], y[judge]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["small", "tables"])
    parser.add_argument("--data", nargs="*", help="names, all unless given")
    parser.add_argument("--splits", type=int, default=1, help="how many seeds split the rows")
    parser.add_argument("--seed", type=int, default=0, help="of the classifiers")
    parser.add_argument("--only", nargs="*", default=list(CLASSIFIERS), choices=list(CLASSIFIERS))
    options = parser.parse_args()
    parts_of = folds_of if options.what == "small" else draws_of
    for name in options.data or (DATA if options.what == "small" else TABLES):
        for who in options.only:
            losses, errors, sizes = [], [], []
            for split in range(options.splits):
                found = []
                for X, y, X_judge, y_judge in parts_of(name, split):
                    fitted = CLASSIFIERS[who](options.seed).fit(X, y)
                    chances = fitted.predict_proba(X_judge)
                    wrong = np.mean(fitted.classes_[chances.argmax(axis=1)] != y_judge)
                    found.append((log_loss(y_judge, chances, labels=fitted.classes_), wrong))
                    sizes.append(getattr(fitted, "n_iter_", 0))
                losses.append(np.mean(found, axis=0)[0])
                errors.append(np.mean(found, axis=0)[1])
            spread = f" +- {np.std(losses, ddof=1):.4f}" if len(losses) > 1 else ""
            print(
                f"{name:14} {who:22} log loss {np.mean(losses):.4f}{spread}  error {100 * np.mean(errors):.2f} %  "
                f"size {np.mean(sizes):.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
