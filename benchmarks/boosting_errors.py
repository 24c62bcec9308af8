"""Test errors on the paper's five data sets beside the published ones (Busa-Fekete and Kégl 2010, Table 1).

    python benchmarks/boosting_errors.py --sets pendigits,letter --bases stump,tree,product --seeds 5

Sizes of trees and products are the published ones; features are chosen by a policy (uniform choice unless given).
The error of a fit is its mean over the last fifth of its iterations. Nothing is chosen by the test error.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from abex.boosting import AdaBoostMHClassifier
from abex.datasets import load

SETS = ("pendigits", "usps", "letter", "isolet", "mnist")
#: learner -> data set -> (parameters, published error with full search, with random choice)
PUBLISHED = {
    "stump": {
        "mnist": ({"n_estimators": 30_000}, 7.56, 6.94),
        "usps": ({"n_estimators": 20_000}, 6.28, 6.13),
        "pendigits": ({"n_estimators": 20_000}, 4.96, 4.57),
        "isolet": ({"n_estimators": 30_000}, 4.52, 4.43),
        "letter": ({"n_estimators": 50_000}, 14.57, 14.60),
    },
    "product": {
        "mnist": ({"n_terms": 3, "n_estimators": 10_000}, 1.26, 1.73),
        "usps": ({"n_terms": 3, "n_estimators": 10_000}, 4.37, 4.58),
        "pendigits": ({"n_terms": 2, "n_estimators": 10_000}, 1.89, 1.83),
        "isolet": ({"n_terms": 6, "n_estimators": 4_000}, 3.86, 3.59),
        "letter": ({"n_terms": 10, "n_estimators": 5_000}, 2.31, 2.25),
    },
    "tree": {
        "mnist": ({"n_leaves": 17, "n_estimators": 2_000}, 1.52, 1.82),
        "usps": ({"n_leaves": 15, "n_estimators": 3_000}, 4.87, 5.13),
        "pendigits": ({"n_leaves": 19, "n_estimators": 3_000}, 2.12, 2.06),
        "isolet": ({"n_leaves": 8, "n_estimators": 3_000}, 3.85, 3.78),
        "letter": ({"n_leaves": 38, "n_estimators": 2_000}, 2.48, 3.08),
    },
}
ARMS = {"stump": 1, "product": 4, "tree": 4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--bases", default="stump,product,tree")
    parser.add_argument("--policy", default="Uniform")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    print(
        f"{'data':<10} {'learner':<8} {'error':>6} {'spread':>7} {'full':>6} {'random':>7} {'difference':>11} {'CPU s':>7}"
    )
    for name in arguments.sets.split(","):
        data = load(name)
        for base in arguments.bases.split(","):
            parameters, full, random = PUBLISHED[base][name]
            errors, seconds = [], []
            for seed in range(arguments.seeds):
                classifier = AdaBoostMHClassifier(
                    policy=arguments.policy, base=base, arms_per_round=ARMS[base], calibrate=False,
                    random_state=seed, **parameters,
                )  # fmt: skip
                began = time.process_time()
                classifier.fit(data.X_train, data.y_train)
                seconds.append(time.process_time() - began)
                curve = classifier.staged_score(data.X_test, data.y_test, every=classifier.n_iter_ // 100)
                errors.append(100 * (1 - curve[-20:].mean()))
            nearest = min((full, random), key=lambda p: abs(p - np.mean(errors)))
            print(
                f"{name:<10} {base:<8} {np.mean(errors):6.2f} {np.ptp(errors) / 2:7.2f} {full:6.2f} {random:7.2f} "
                f"{np.mean(errors) - nearest:+11.2f} {np.mean(seconds):7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
