"""When choosing features pays: the default of `AdaBoostMHClassifier` against uniform choice, full search and LightGBM.

    python benchmarks/boosting_bandit.py --out bandit
    python benchmarks/boosting_bandit.py --tables useful,noise --seeds 3 --out bandit

Training rows alone: up to 2,500 to fit and as many others to judge, of the tables of `boosting_robust`; beside them

``useful``
    20 useful features among 500 (scikit-learn's make_classification, four classes, 2,500 rows).
``noise``
    The table of image segments, and 10,000 columns of normal numbers.
``haar``
    MNIST by 20,000 Haar-like features: sums of a random rectangle of pixels less those of its neighbour.

All have 256 trees and no calibration. What the policy's parameters are was decided on seeds 0 to 2; these are 10, 11, ... The
rule, fixed before: the default must not be worse than uniform choice by more than two standard errors of the paired differences
on any table, must be better in the geometric mean, and on the three wide tables reach the error of uniform choice in half of its
CPU time. Results are kept in OUT.json: what it holds is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from abex.boosting import AdaBoostMHClassifier
from abex.support.randomness import stream
from boosting_robust import table

WIDE = ("useful", "noise", "haar")
ORDINARY = (
    "covertype",
    "spambase",
    "waveform",
    "usps",
    "isolet",
    "mnist",
)  # with fewer than 20 features both are one
TREES = 256
ROWS = 2500
FIRST_SEED = 10
BANDIT, UNIFORM = "default", "uniform"


def drawn(name: str, seed: int, rows: int = ROWS) -> tuple[Any, Any, Any, Any]:
    """Training rows to fit and their labels, training rows to judge and theirs."""
    X, y, _, _ = table(name)
    order = stream(seed, "bandit", name).permutation(len(y))
    count = min(2 * len(y) // 3, rows)
    fit, judge = order[:count], order[count : count + rows]
    return X[fit], y[fit], X[judge], y[judge]


def wide_table(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """One of the three tables with many features."""
    rng = stream(seed, "bandit", name)
    if name == "useful":
        X, y = make_classification(
            2 * ROWS,
            500,
            n_informative=20,
            n_redundant=0,
            n_classes=4,
            n_clusters_per_class=2,
            random_state=seed,
        )
        return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]
    if name == "noise":
        X, y, X_judge, y_judge = drawn("segment", seed)
        noise = rng.normal(size=(len(y) + len(y_judge), 10_000))
        return np.hstack([X, noise[: len(y)]]), y, np.hstack([X_judge, noise[len(y) :]]), y_judge
    X, y, X_judge, y_judge = drawn("mnist", seed, 1500)
    corners = [rectangle(rng) for _ in range(20_000)]
    return haar(X, corners), y, haar(X_judge, corners), y_judge


def rectangle(rng: np.random.Generator) -> tuple[int, int, int, int, bool]:
    """Top, left, height and width of a rectangle of pixels, and whether its neighbour is on the right or below."""
    beside = bool(rng.integers(2))
    height, width = (int(k) for k in rng.integers(2, 11, 2))
    top = int(rng.integers(0, 28 - height * (1 if beside else 2) + 1))
    left = int(rng.integers(0, 28 - width * (2 if beside else 1) + 1))
    return top, left, height, width, beside


def haar(X: Any, corners: list[tuple[int, int, int, int, bool]]) -> Any:
    """The sums of rectangles less those of their neighbours."""
    sums = np.zeros((len(X), 29, 29))
    sums[:, 1:, 1:] = np.asarray(X, np.float64).reshape(-1, 28, 28).cumsum(axis=1).cumsum(axis=2)

    def inside(top: int, left: int, height: int, width: int) -> Any:
        bottom, right = top + height, left + width
        return sums[:, bottom, right] - sums[:, top, right] - sums[:, bottom, left] + sums[:, top, left]

    columns = np.empty((len(X), len(corners)), np.float32)
    for k, (top, left, height, width, beside) in enumerate(corners):
        other = (top, left + width) if beside else (top + height, left)
        columns[:, k] = inside(top, left, height, width) - inside(*other, height, width)
    return columns


def contestants(name: str, seed: int) -> dict[str, Callable[[], Any]]:
    """Name -> maker of a classifier."""

    def ours(trees: int = TREES, **parameters: Any) -> Any:
        return AdaBoostMHClassifier(trees, calibrate=False, random_state=seed, **parameters)

    makers: dict[str, Callable[[], Any]] = {BANDIT: ours, UNIFORM: lambda: ours(policy="Uniform")}
    if name not in WIDE:
        return makers
    makers["uniform, 80 features"] = lambda: ours(policy="Uniform", arms_per_search=80)
    if seed == FIRST_SEED:
        makers["full search, 16 trees"] = lambda: ours(16, policy=None)
        try:
            from lightgbm import LGBMClassifier

            makers["LightGBM"] = lambda: LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed)
        except ImportError:
            pass
    return makers


def measured(make: Callable[[], Any], X: Any, y: Any, X_judge: Any, y_judge: Any) -> dict[str, Any]:
    """Error in per cent and CPU seconds of fit; of ours, errors on the way, who chose, and among how many."""
    began = time.process_time()
    fitted = make().fit(X, y)
    seconds = time.process_time() - began
    found = {"error": 100 * float(np.mean(fitted.predict(X_judge) != y_judge)), "seconds": seconds}
    if isinstance(fitted, AdaBoostMHClassifier):
        accuracy = fitted.staged_score(X_judge, y_judge, every=max(1, fitted.n_iter_ // 16))
        found |= {"errors": (100 * (1 - accuracy)).tolist(), "arms": fitted.arms_per_search_}
        found |= {"policy": str(fitted.policy_), "entropy": fitted.policy_report().entropy}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", default=",".join((*WIDE, *ORDINARY)))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default=None, help="keep results in OUT.json")
    arguments = parser.parse_args()
    kept = Path(f"{arguments.out}.json")
    results: dict[str, Any] = json.loads(kept.read_text()) if arguments.out and kept.exists() else {}
    warm = np.random.default_rng(0).normal(size=(200, 30))
    AdaBoostMHClassifier(4, random_state=0).fit(warm, warm[:, 0] > 0)  # compiles before any clock runs
    AdaBoostMHClassifier(4, policy="Screening", random_state=0).fit(warm, warm[:, 0] > 0)
    for seed in range(FIRST_SEED, FIRST_SEED + arguments.seeds):
        for name in arguments.tables.split(","):
            data: Any = None
            for label, make in contestants(name, seed).items():
                key = f"{name}/{label}/{seed}"
                if key not in results:
                    data = data or (wide_table if name in WIDE else drawn)(name, seed)
                    results[key] = measured(make, *data)
                    if arguments.out:
                        kept.write_text(json.dumps(results, indent=1))
                one = results[key]
                how = f"{one['policy']}, {one['arms']} a search" if "arms" in one else ""
                print(f"{key:40} {one['error']:6.2f} %  {one['seconds']:7.2f} s  {how}", flush=True)
    verdict(results)


def verdict(results: dict[str, Any]) -> None:
    """Means over the seeds, and paired differences from uniform choice."""
    print()
    ratios = []
    for name in dict.fromkeys(key.split("/")[0] for key in results):
        found: dict[str, list[tuple[float, float]]] = {}
        for key, one in results.items():
            if key.startswith(f"{name}/"):
                found.setdefault(key.split("/")[1], []).append((one["error"], one["seconds"]))
        base = np.array(found[UNIFORM])
        for label, values in found.items():
            ours = np.array(values)
            text = f"{name:10} {label:24} {ours[:, 0].mean():6.2f} % {ours[:, 1].mean():7.2f} s"
            if label == BANDIT and len(ours) == len(base):
                apart = ours[:, 0] - base[:, 0]
                error = apart.std(ddof=1) / np.sqrt(apart.size) if apart.size > 1 else np.nan
                text += f"   {apart.mean():+.2f} ({error:.2f}) from uniform"
                ratios.append(float(np.log((ours[:, 0] + 0.1) / (base[:, 0] + 0.1)).mean()))
            print(text)
    print(f"geometric mean of the error over that of uniform choice: {np.exp(np.mean(ratios)):.3f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
