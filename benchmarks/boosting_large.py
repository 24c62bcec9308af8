"""A million rows of two classes: error, CPU seconds and memory of a fit, abex and LightGBM in turn, one thread.

    python benchmarks/boosting_large.py [--rows 1e6] [--double]

The table is made: 28 columns of normal numbers, seven of them folded, and labels drawn with the probability of a score of
products, sines and steps of a dozen columns. *Bayes* is the error of whoever knows that score. Memory is the peak of the
process during our fit above what it was before, over the size of the table (floats, or doubles with ``--double``).
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from abex.boosting import AdaBoostMHClassifier
from abex.support.randomness import stream

COLUMNS = 28
TEST_ROWS = 200_000


def made(rows: int, part: str) -> tuple[Any, Any, float]:
    """Rows, labels, and the error of whoever knows the probabilities."""
    rng = stream(0, "large", part)
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    X[:, 21:] = np.abs(X[:, 21:])
    a = X.T
    score = 1.2 * a[0] * a[1] + np.sin(2 * a[2]) + 0.8 * (a[3] > 0.5) * a[4] + 0.6 * np.abs(a[5] - a[6])
    score += 0.7 * a[21] * a[22] - 0.6 * a[23] + 0.5 * np.tanh(3 * a[7] * a[24]) - 0.5
    chance = expit(1.1 * score)
    return X, (rng.random(rows) < chance).astype(np.int64), float(np.minimum(chance, 1 - chance).mean())


def memory(what: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at most since it was last reset."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split(f"{what}:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--double", action="store_true", help="give the table as doubles")
    arguments = parser.parse_args()
    X, y, _ = made(int(arguments.rows), "train")
    X_test, y_test, bayes = made(TEST_ROWS, "test")
    if arguments.double:
        X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    makers: dict[str, Any] = {"abex": lambda: AdaBoostMHClassifier(random_state=0)}
    try:
        from lightgbm import LGBMClassifier

        makers["LightGBM"] = lambda: LGBMClassifier(n_jobs=1, verbose=-1)
    except ImportError:
        print("LightGBM is not installed: left out")
    AdaBoostMHClassifier(4).fit(X[:3000], y[:3000]).predict(X[:10])  # compiled before any clock runs
    print(f"Bayes {100 * bayes:.2f} %, table {X.nbytes / 2**20:.0f} MB")
    for name, make in makers.items():
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, began = memory("VmRSS"), time.process_time()
        classifier = make().fit(X, y)
        seconds, peak = time.process_time() - began, memory("VmHWM") - before
        began = time.process_time()
        error = float(np.mean(classifier.predict(X_test) != y_test))
        answers = time.process_time() - began
        text = f"{name:<10} {100 * error:.2f} %  fit {seconds:.1f} s  {TEST_ROWS:,} answers {answers:.1f} s"
        # whoever comes later finds memory that the first one has left
        print(text + (f"  memory {peak / X.nbytes:.2f} of the table" if name == "abex" else ""), flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
