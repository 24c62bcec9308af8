"""Test error and CPU seconds of fit: abex and what a user would otherwise pick, on thirteen tables, one thread.

    python benchmarks/boosting_front.py --seeds 5 --out front [--tables vowel,adult] [--only abex,LightGBM] [--tuned]

Every contestant runs with its defaults. The five sets of the paper have official test rows, and a seed is that of the
classifier; of the other tables (folder ``tabular`` of ``ABEX_DATA``) each seed has another stratified 30 % as test rows.
Columns of categories are given as numbers to all. A contestant without random numbers runs once on a set with official rows,
and so does one whose first fit took more than `SLOW` seconds. CatBoost is left out where its thousand iterations would take
many minutes (`CATBOOST_WORK`).

Shown are means over seeds, then mean ranks of the errors with Friedman's test and the critical difference of Nemenyi's
(Demsar 2006, "Statistical comparisons of classifiers over multiple data sets", JMLR 7: 1-30): over all tables without
CatBoost, and over those that CatBoost played.

``--tuned`` adds a small tuning on the five sets: a few settings, the best by the error on a fifth of the training rows (of 15,000
rows where there are more), then fitted to all of them. With ``--out`` results are kept as they come, in OUT.json: what it
holds is not run again unless ``--only`` names it; OUT.svg is the front, OUT_ranks.svg the diagram of ranks.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from abex.boosting import AdaBoostMHClassifier
from boosting_figures import critical_differences, error_against_time
from boosting_robust import OFFICIAL, SPLIT, table

SLOW = 60.0
TUNING_ROWS = 15_000
CATBOOST_WORK = 1e7  # rows times columns times classes
DEFAULT = "abex trees"
CATBOOST = "CatBoost"
FIXED = ("LightGBM", "XGBoost")  # no random numbers at their defaults
TABLES = (*SPLIT, "pendigits", "letter", "usps", "isolet", "mnist")
Make = Callable[[int], Any]
Results = dict[str, dict[str, list[dict[str, Any]]]]


def contestants() -> dict[str, list[Make]]:
    """Name -> makers of classifiers from a seed; the first is the default, the rest is the tuning."""
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

    def ours(**parameters: Any) -> Make:
        return lambda seed: AdaBoostMHClassifier(random_state=seed, **parameters)

    def theirs(kind: Any, **parameters: Any) -> Make:
        return lambda seed: kind(random_state=seed, **parameters)

    makers: dict[str, list[Make]] = {
        DEFAULT: [
            ours(),
            ours(arms_per_search=2),
            ours(n_leaves=20, n_estimators=1000, arms_per_search=2, committee_size=None),
            ours(n_leaves=40, n_estimators=1000, arms_per_search=10, committee_size=None),
        ],
        "HistGradientBoosting": [
            theirs(HistGradientBoostingClassifier),
            theirs(HistGradientBoostingClassifier, max_iter=50, learning_rate=0.2),
        ],
        "random forest": [
            theirs(RandomForestClassifier),
            theirs(RandomForestClassifier, n_estimators=300),
            theirs(RandomForestClassifier, n_estimators=300, max_features=0.1),
        ],
        "extra trees": [
            theirs(ExtraTreesClassifier),
            theirs(ExtraTreesClassifier, n_estimators=300),
            theirs(ExtraTreesClassifier, n_estimators=300, max_features=0.1),
        ],
    }
    try:
        from lightgbm import LGBMClassifier

        quiet = {"n_jobs": 1, "verbose": -1}
        makers["LightGBM"] = [
            theirs(LGBMClassifier, **quiet),
            theirs(LGBMClassifier, n_estimators=30, learning_rate=0.3, **quiet),
            theirs(LGBMClassifier, n_estimators=300, colsample_bytree=0.3, **quiet),
        ]
    except ImportError:
        print("LightGBM is not installed: left out")
    try:
        from xgboost import XGBClassifier

        makers["XGBoost"] = [
            theirs(XGBClassifier, n_jobs=1),
            theirs(XGBClassifier, n_estimators=300, colsample_bynode=0.2, n_jobs=1),
        ]
    except ImportError:
        print("XGBoost is not installed: left out")
    try:
        from catboost import CatBoostClassifier

        makers[CATBOOST] = [theirs(CatBoostClassifier, thread_count=1, verbose=0, allow_writing_files=False)]
    except ImportError:
        print("CatBoost is not installed: left out")
    return makers


def fitted(make: Make, seed: int, X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float]:
    """CPU seconds of fit and error in per cent."""
    began = time.process_time()
    classifier = make(seed).fit(X, y)
    seconds = time.process_time() - began
    return seconds, 100 * float(np.mean(np.ravel(classifier.predict(X_test)) != y_test))


def tuned(makers: list[Make], X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float, int]:
    """CPU seconds of fit and error of the best setting, and which it is."""
    order = np.random.default_rng(0).permutation(len(y))[:TUNING_ROWS]
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    errors = [fitted(make, 0, X[rest], y[rest], X[held], y[held])[1] for make in makers]
    best = int(np.argmin(errors))
    return *fitted(makers[best], 0, X, y, X_test, y_test), best


def plays(label: str, X: Any, y: Any) -> bool:
    """Whether a contestant is fitted to a table of this size."""
    return label != CATBOOST or X.size * np.unique(y).size <= CATBOOST_WORK


def run(names: list[str], seeds: int, words: list[str], tune: bool, kept: Path | None) -> Results:
    """All results, those of a former run included."""
    results: Results = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    chosen = {k: v for k, v in contestants().items() if not words or any(word in k for word in words)}
    fresh: set[tuple[str, str]] = set()
    for name in names:
        for seed in range(seeds):
            X, y, X_test, y_test = table(name, seed)
            y, y_test = np.unique(y, return_inverse=True)[1], np.searchsorted(np.unique(y), y_test)
            if seed == 0 and DEFAULT in chosen:
                warm_up(X, y)
            for label, makers in chosen.items():
                runs = results.setdefault(name, {}).setdefault(label, [])
                if words and (name, label) not in fresh:
                    runs.clear()
                    fresh.add((name, label))
                once = (name in OFFICIAL and label in FIXED) or (
                    bool(runs) and max(r["seconds"] for r in runs) > SLOW
                )
                if not plays(label, X, y) or any(r["seed"] == seed for r in runs) or (once and runs):
                    continue
                seconds, error = fitted(makers[0], seed, X, y, X_test, y_test)
                runs.append({"seed": seed, "seconds": seconds, "error": error})
                print(f"{name:<10} {label:<22} seed {seed} {error:6.2f} %  {seconds:8.2f} s", flush=True)
                if tune and seed == 0 and name in OFFICIAL and len(makers) > 1:
                    seconds, error, best = tuned(makers, X, y, X_test, y_test)
                    runs.append({"seed": -1, "seconds": seconds, "error": error, "tuned": best})
                    print(f"{name:<10} {label:<22} tuned  {error:6.2f} %  {seconds:8.2f} s", flush=True)
                if kept is not None:
                    kept.write_text(json.dumps(results, indent=1))
    return results


def warm_up(X: Any, y: Any) -> None:
    """Compile (or load) our code for these shapes before any clock runs."""
    for rows in (slice(400), slice(None)):
        AdaBoostMHClassifier(4).fit(X[rows], y[rows]).predict(X[:2])


def means(results: Results, label: str, what: str) -> dict[str, float]:
    """Table -> mean over seeds at the defaults."""
    return {
        name: float(np.mean([r[what] for r in rows[label] if r["seed"] >= 0]))
        for name, rows in results.items()
        if rows.get(label)
    }


def ranks(results: Results, labels: list[str]) -> tuple[list[str], dict[str, float], float, float]:
    """The tables that all played, mean ranks of the errors, the p-value of Friedman's test, and Nemenyi's critical difference."""
    errors = {label: means(results, label, "error") for label in labels}
    names = [name for name in results if all(name in errors[label] for label in labels)]
    matrix = np.array([[errors[label][name] for label in labels] for name in names])
    placed = stats.rankdata(np.round(matrix, 9), axis=1)
    found = dict(zip(labels, placed.mean(axis=0).tolist(), strict=True))
    p_value = float(stats.friedmanchisquare(*matrix.T).pvalue)
    k = len(labels)
    quantile = float(stats.studentized_range.ppf(0.95, k, np.inf)) / np.sqrt(2.0)
    return names, found, p_value, quantile * float(np.sqrt(k * (k + 1) / (6.0 * len(names))))


def report(results: Results, out: str | None) -> None:
    """Tables of means, ranks and ratios; with ``out`` the figures too."""
    labels = [label for label in contestants() if any(rows.get(label) for rows in results.values())]
    print(f"\nerror, % / CPU s\n\n| | {' | '.join(labels)} |\n|---|{'---|' * len(labels)}")
    for name, rows in results.items():
        cells = []
        for label in labels:
            runs = [r for r in rows.get(label, []) if r["seed"] >= 0]
            error = [r["error"] for r in runs]
            spread = f" ± {np.std(error, ddof=1):.2f}" if len(error) > 1 else ""
            seconds = np.mean([r["seconds"] for r in runs]) if runs else 0.0
            cells.append(f"{np.mean(error):.2f}{spread} / {seconds:.1f}" if runs else "")
        print(f"| {name} | {' | '.join(cells)} |")
    groups = {"all tables": [label for label in labels if label != CATBOOST], "those of CatBoost": labels}
    diagrams = {}
    for title, group in groups.items():
        if DEFAULT not in group or len(group) < 3 or (CATBOOST not in labels and group is labels):
            continue
        names, found, p_value, critical = ranks(results, group)
        if len(names) < 2:
            continue
        print(f"\n{title} ({len(names)}): Friedman p = {p_value:.2g}, critical difference {critical:.2f}")
        ours = {what: means(results, DEFAULT, what) for what in ("error", "seconds")}
        for label, rank in sorted(found.items(), key=lambda item: item[1]):
            theirs = {what: means(results, label, what) for what in ("error", "seconds")}
            ratio = {
                what: np.exp(
                    np.mean([np.log((ours[what][n] + least) / (theirs[what][n] + least)) for n in names])
                )
                for what, least in (("error", 0.01), ("seconds", 0.0))
            }
            print(
                f"  {label:<22} {rank:5.2f}   ours over it: error {ratio['error']:.2f}, CPU {ratio['seconds']:.2f}"
            )
        diagrams[f"{title}: {len(names)}"] = (found, critical)
    if out:
        draw(results, labels, diagrams, out)


def draw(results: Results, labels: list[str], diagrams: dict[str, Any], out: str) -> None:
    panels = {}
    for name, rows in results.items():
        panels[name] = []
        for label in (label for label in labels if rows.get(label)):
            points = [(means(results, label, "seconds")[name], means(results, label, "error")[name])]
            points += [(r["seconds"], r["error"]) for r in rows[label] if r["seed"] < 0]
            panels[name].append((label, [p[0] for p in points], [max(p[1], 1e-3) for p in points]))
    error_against_time(panels, DEFAULT, path=f"{out}.svg")
    if diagrams:
        critical_differences(diagrams, DEFAULT, path=f"{out}_ranks.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="contestants whose name contains one of these words")
    parser.add_argument("--tuned", action="store_true", help="tune on the five sets, too")
    parser.add_argument("--out", default=None, help="write OUT.json, OUT.svg and OUT_ranks.svg")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    words = [word for word in arguments.only.split(",") if word]
    kept = Path(f"{arguments.out}.json") if arguments.out else None
    results = run(arguments.tables.split(","), arguments.seeds, words, arguments.tuned, kept)
    report(results, arguments.out)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
