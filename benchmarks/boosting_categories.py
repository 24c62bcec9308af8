"""Categorical columns natively, one-hot coded and as plain numbers: test error, logarithmic loss, CPU seconds of fit.

The census table "adult" (30,162 rows, eight of its fourteen columns categories), and the same with a column of 3,000 categories
that say nothing; 20,000 rows to fit, the rest to test. Needs the file ``tabular/adult.npz`` below ABEX_DATA with the arrays X, y
and cat:

    python benchmarks/boosting_categories.py --splits 5
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss
from sklearn.preprocessing import OneHotEncoder

from abex.boosting import AdaBoostMHClassifier

ROWS = 20_000
NOISE = 3_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--iterations", type=int, default=1000)
    options = parser.parse_args()
    stored = np.load(Path(os.environ["ABEX_DATA"]) / "tabular" / "adult.npz")
    X, y, columns = stored["X"], stored["y"], stored["cat"].tolist()
    AdaBoostMHClassifier(n_estimators=2).fit(X[:100], y[:100])  # compiles
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(options.first, options.first + options.splits):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train, test = order[:ROWS], order[ROWS:]
        noisy = np.column_stack([X, rng.integers(0, NOISE, len(y))])
        for title, rows, named in (
            ("adult", X, columns),
            (f"adult and {NOISE} names", noisy, [*columns, X.shape[1]]),
        ):
            coder = OneHotEncoder(handle_unknown="ignore").fit(rows[train][:, named])
            one_hot = np.hstack([np.delete(rows, named, axis=1), coder.transform(rows[:, named]).toarray()])
            ways = {"as numbers": (rows, None), "one-hot": (one_hot, None), "categories": (rows, named)}
            for way, (given, categories) in ways.items():
                began = time.process_time()
                fitted = AdaBoostMHClassifier(
                    options.iterations, random_state=seed, categorical_features=categories
                ).fit(given[train], y[train])
                seconds = time.process_time() - began
                wrong = 100 * np.mean(fitted.predict(given[test]) != y[test])
                loss = log_loss(y[test], fitted.predict_proba(given[test]))
                found.setdefault(f"{title}: {way}", []).append((wrong, loss, seconds))
    for name, results in found.items():
        mean, spread = np.mean(results, axis=0), np.std(results, axis=0, ddof=1) / np.sqrt(len(results))
        print(
            f"{name:32} error {mean[0]:.2f} (se {spread[0]:.2f})  log loss {mean[1]:.4f} ({spread[1]:.4f})  CPU s {mean[2]:.2f}"
        )


if __name__ == "__main__":
    main()
