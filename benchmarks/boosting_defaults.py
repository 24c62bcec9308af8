"""How the defaults of AdaBoost.MH in one committee were chosen: on rows of the training sets alone.

    python benchmarks/boosting_defaults.py --sets pendigits,usps --splits 2 --out defaults.json

Trees of several sizes with several features per cut are fitted to four fifths of each training set and judged on the fifth
left out, after 250, 500, 1,000 and 2,000 trees. The table shows, for each setting, the error and the CPU seconds
relative to the geometric mean over all settings of the set, averaged (geometrically) over sets and splits. The rule, fixed
before the first run: among the settings whose CPU seconds are at most the mean of all, the one with the smallest error.
Test sets are never opened. ``benchmarks/boosting_robust.py`` chose the defaults of committees.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from abex.boosting import AdaBoostMHClassifier
from abex.lab.datasets import load
from abex.support.randomness import stream

SETS = ("pendigits", "usps", "letter", "isolet", "mnist")
LEAVES = (10, 20, 40)
ARMS = (2, 4, 8)
SIZES = (250, 500, 1000, 2000)
Setting = tuple[int, int, int]


def judged(X: Any, y: Any, held: Any, rest: Any, leaves: int, arms: int, seed: int) -> dict[Setting, Any]:
    """Setting -> (errors in per cent, CPU seconds of fit), for each number of trees."""
    clock: dict[int, float] = {}
    began = time.process_time()
    classifier = AdaBoostMHClassifier(
        SIZES[-1], base="tree", n_leaves=leaves, arms_per_search=arms, committee_size=None, calibrate=False,
        random_state=seed,
        callbacks=[lambda done, _: clock.update({done: time.process_time() - began})],
    ).fit(X[rest], y[rest])  # fmt: skip
    step = SIZES[0] // 10
    curve = 100 * (1 - classifier.staged_score(X[held], y[held], every=step))
    seconds = np.interp(SIZES, list(clock), list(clock.values()))
    places = [n // step for n in SIZES]
    return {
        (leaves, arms, n): (float(curve[at - 3 : at].mean()), float(s))
        for n, at, s in zip(SIZES, places, seconds, strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--out", default=None)
    arguments = parser.parse_args()
    logs: dict[Setting, list[tuple[float, float]]] = {}
    record: list[Any] = []
    for name in arguments.sets.split(","):
        data = load(name)
        X, y = data.X_train, data.y_train
        AdaBoostMHClassifier(2, calibrate=False).fit(X, y)  # compiled before any clock runs
        for split in range(arguments.splits):
            order = stream(split, "defaults").permutation(len(y))
            held, rest = order[: len(y) // 5], order[len(y) // 5 :]
            found: dict[Setting, Any] = {}
            for leaves in LEAVES:
                for arms in ARMS:
                    found |= judged(X, y, held, rest, leaves, arms, split)
            floor = 100 / len(held)  # one row: an error of nothing has no logarithm
            table = np.log([(max(e, floor), s) for e, s in found.values()])
            for setting, row in zip(found, table - table.mean(axis=0), strict=True):
                logs.setdefault(setting, []).append(tuple(row))
            record += [
                {"set": name, "split": split, "setting": k, "error": v[0], "seconds": v[1]}
                for k, v in found.items()
            ]
            best = min(found, key=lambda k: found[k][0])
            print(f"{name} split {split}: best {best} {found[best][0]:.2f} %", flush=True)
    means = {setting: np.exp(np.mean(rows, axis=0)) for setting, rows in logs.items()}
    print(f"\n{'leaves':>6} {'arms':>5} {'trees':>6} {'error':>7} {'CPU':>6}   (1 = mean of all settings)")
    for (leaves, arms, n), (error, seconds) in sorted(means.items(), key=lambda item: item[1][0]):
        print(f"{leaves:6d} {arms:5d} {n:6d} {error:7.3f} {seconds:6.2f}")
    affordable = {k: v for k, v in means.items() if v[1] <= 1.0}
    for budget, allowed in (("CPU at most the mean", affordable), ("any CPU", means)):
        chosen = min(allowed, key=lambda k: allowed[k][0])
        print(f"{budget}: leaves {chosen[0]}, arms {chosen[1]}, trees {chosen[2]}")
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
