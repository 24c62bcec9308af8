"""Test error against CPU seconds of fit: abex and what a user would otherwise pick, one thread, one run.

    python benchmarks/boosting_front.py --sets pendigits,usps,letter --out front

Every contestant runs with its defaults and with a small tuning: a few settings, the best chosen by the error on a fifth
of the training rows (of 15,000 rows where there are more), then fitted on all of them. The seconds of a tuned contestant are
those of its final fit; the seconds spent on tuning are shown beside. Our own defaults see no tuning of any kind.
With ``--out`` results are kept as they come: what OUT.json holds is not run again unless ``--only`` names it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from abex.boosting import AdaBoostMHClassifier
from abex.datasets import load

SETS = ("pendigits", "usps", "letter", "isolet", "mnist")
TUNING_ROWS = 15_000
DEFAULT = "abex trees"


def ours(**parameters: Any) -> Any:
    return AdaBoostMHClassifier(random_state=0, **parameters)


def contestants() -> dict[str, list[Any]]:
    """Name -> makers of classifiers; the first is the default, the rest is the tuning."""
    from sklearn.ensemble import (
        AdaBoostClassifier,
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.tree import DecisionTreeClassifier

    makers: dict[str, list[Any]] = {
        DEFAULT: [
            lambda: ours(),
            lambda: ours(arms_per_search=2),
            lambda: ours(n_leaves=20, n_estimators=1000, arms_per_search=2, committee_size=None),
            lambda: ours(n_leaves=40, n_estimators=1000, arms_per_search=10, committee_size=None),
        ],
        "abex trees, no probabilities": [lambda: ours(calibrate=False)],
        "abex products": [
            lambda: ours(base="product", n_estimators=3000),
            lambda: ours(base="product", n_estimators=3000, n_terms=6),
        ],
        "abex stumps": [lambda: ours(base="stump", n_estimators=10_000, arms_per_search=1)],
        "AdaBoost (sklearn)": [
            lambda: AdaBoostClassifier(random_state=0),
            lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=8), n_estimators=50, random_state=0),
        ],
        "HistGradientBoosting": [
            lambda: HistGradientBoostingClassifier(random_state=0),
            lambda: HistGradientBoostingClassifier(max_iter=50, learning_rate=0.2, random_state=0),
        ],
        "random forest": [
            lambda: RandomForestClassifier(random_state=0),
            lambda: RandomForestClassifier(300, random_state=0),
            lambda: RandomForestClassifier(300, max_features=0.1, random_state=0),
        ],
        "extra trees": [
            lambda: ExtraTreesClassifier(random_state=0),
            lambda: ExtraTreesClassifier(300, random_state=0),
            lambda: ExtraTreesClassifier(300, max_features=0.1, random_state=0),
        ],
    }
    try:
        from lightgbm import LGBMClassifier

        quiet = {"n_jobs": 1, "verbose": -1, "random_state": 0}
        makers["LightGBM"] = [
            lambda: LGBMClassifier(**quiet),
            lambda: LGBMClassifier(n_estimators=30, learning_rate=0.3, **quiet),
            lambda: LGBMClassifier(n_estimators=300, colsample_bytree=0.3, **quiet),
        ]
    except ImportError:
        print("LightGBM is not installed: left out")
    try:
        from xgboost import XGBClassifier

        makers["XGBoost"] = [
            lambda: XGBClassifier(n_jobs=1, random_state=0),
            lambda: XGBClassifier(n_estimators=300, colsample_bynode=0.2, n_jobs=1, random_state=0),
        ]
    except ImportError:
        print("XGBoost is not installed: left out")
    return makers


def fitted(make: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float]:
    """CPU seconds of fit and error in per cent."""
    began = time.process_time()
    classifier = make().fit(X, y)
    seconds = time.process_time() - began
    return seconds, 100 * float(np.mean(classifier.predict(X_test) != y_test))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", default="", help="contestants whose name contains one of these words")
    parser.add_argument("--no-tuning", action="store_true")
    parser.add_argument("--out", default=None, help="write OUT.json and OUT.svg")
    arguments = parser.parse_args()
    words = [word for word in arguments.only.split(",") if word]
    chosen = {k: v for k, v in contestants().items() if not words or any(word in k for word in words)}
    warnings.filterwarnings("ignore")
    kept = Path(f"{arguments.out}.json")
    results: dict[str, Any] = json.loads(kept.read_text()) if arguments.out and kept.exists() else {}
    for name in arguments.sets.split(","):
        data = load(name)
        X, y = data.X_train, data.y_train
        order = np.random.default_rng(0).permutation(len(y))[:TUNING_ROWS]
        held, rest = order[: len(order) // 5], order[len(order) // 5 :]
        warm_up(X, y)
        rows = results.setdefault(name, {})
        for label, makers in chosen.items():
            if label in rows and not words:
                continue
            runs = [("default", *fitted(makers[0], X, y, data.X_test, data.y_test), 0.0)]
            if len(makers) > 1 and not arguments.no_tuning:
                trials = [fitted(make, X[rest], y[rest], X[held], y[held]) for make in makers]
                best = min(range(len(makers)), key=lambda k: trials[k][1])
                spent = sum(seconds for seconds, _ in trials)
                again = runs[0][1:3] if best == 0 else fitted(makers[best], X, y, data.X_test, data.y_test)
                runs.append((f"tuned ({best})", *again, spent))
            rows[label] = runs
            for kind, seconds, error, spent in runs:
                tuning = f"  (tuning {spent:.1f} s)" if spent else ""
                print(
                    f"{name:<10} {label:<30} {kind:<9} {error:6.2f} %  {seconds:8.2f} s{tuning}", flush=True
                )
            if arguments.out:
                kept.write_text(json.dumps(results, indent=1))
        verdict(name, rows)
    if arguments.out:
        draw(results, arguments.out)


def warm_up(X: Any, y: Any) -> None:
    """Compile (or load) our code for these shapes before any clock runs."""
    for base in ("tree", "product", "stump"):
        ours(base=base, n_estimators=4, precision="single").fit(X[:400], y[:400]).predict(X[:2])
        ours(base=base, n_estimators=4).fit(X, y).predict(X[:2])


def verdict(name: str, rows: dict[str, Any]) -> None:
    """For our default and for our best: who reaches its error in no more CPU time."""
    mine = {label: runs for label, runs in rows.items() if label.startswith("abex")}
    others = [(label, s, e) for label, runs in rows.items() if label not in mine for _, s, e, _ in runs]
    if not mine or not others:
        return
    ours = [(s, e) for runs in mine.values() for _, s, e, _ in runs]
    for title, (seconds, error) in (
        ("default", tuple(mine[DEFAULT][0][1:3])),
        ("best", min(ours, key=lambda run: run[1])),
    ):
        ahead = sorted({label for label, s, e in others if e <= error and s <= seconds})
        print(
            f"{name}: our {title} {error:.2f} % in {seconds:.1f} s; reached in less time by: {', '.join(ahead) or 'nobody'}"
        )


def draw(results: dict[str, Any], out: str) -> None:
    from abex import figures

    labels = [label for label in contestants() if all(label in rows for rows in results.values())]
    panels = {
        name: [(label, [r[1] for r in rows[label]], [r[2] for r in rows[label]]) for label in labels]
        for name, rows in results.items()
    }
    figures.error_against_time(panels, DEFAULT, subtitle="default filled, tuned hollow", path=f"{out}.svg")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
