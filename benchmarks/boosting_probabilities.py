"""Logarithmic loss of `predict_proba` beside random forests and histogram gradient boosting, by cross-validation.

Four small data sets that come with scikit-learn, five folds (with ``--shuffle SEED`` shuffled ones), everything at its
defaults. About a minute of CPU time a split:

    python benchmarks/boosting_probabilities.py --shuffle 0
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from abex.boosting import AdaBoostMHClassifier

DATA = {"wine": load_wine, "iris": load_iris, "breast cancer": load_breast_cancer, "digits": load_digits}
CLASSIFIERS = {
    "abex": lambda seed: AdaBoostMHClassifier(random_state=seed),
    "abex, early stopping": lambda seed: AdaBoostMHClassifier(early_stopping=True, random_state=seed),
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--shuffle", type=int, default=None, help="seed of shuffled folds")
    parser.add_argument("--seed", type=int, default=0, help="of the classifiers")
    parser.add_argument("--only", default="", help="classifiers whose name begins so")
    options = parser.parse_args()
    shuffled = {} if options.shuffle is None else {"shuffle": True, "random_state": options.shuffle}
    for name in options.data:
        X, y = DATA[name](return_X_y=True)
        folds = list(StratifiedKFold(5, **shuffled).split(X, y))
        for who, make in CLASSIFIERS.items():
            if not who.startswith(options.only):
                continue
            losses, least, sizes = [], 1.0, []
            for train, test in folds:
                fitted = make(options.seed).fit(X[train], y[train])
                chances = fitted.predict_proba(X[test])
                losses.append(log_loss(y[test], chances, labels=fitted.classes_))
                least = min(least, chances.min())
                sizes.append(getattr(fitted, "n_iter_", 0))
            print(
                f"{name:14} {who:22} log loss {np.mean(losses):.4f}  smallest probability {least:.1e}  sizes {sizes}"
            )


if __name__ == "__main__":
    main()
