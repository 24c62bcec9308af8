"""Policies that choose the features of AdaBoost.MH, side by side: test error, CPU seconds, entropy of the choice.

    python -m benchmarks.boosting_policies digits --policy "ABE(eta=10)" Uniform none --base stump --iterations 2000

``none`` is full search. Each policy has one short fit before the clock, which compiles.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from abex.boosting import AdaBoostMHClassifier
from abex.lab.datasets import Dataset, load
from abex.support.tables import text_table

WARM = 2  # classifiers of a fit before the clock


def fitted(policy: str, data: Dataset, seed: int, iterations: int, base: str) -> Any:
    """A classifier of so many learners."""
    chosen = None if policy == "none" else policy
    classifier = AdaBoostMHClassifier(iterations, chosen, base=base, calibrate=False, random_state=seed)
    return classifier.fit(data.X_train, data.y_train)


def row(policy: str, data: Dataset, seeds: int, iterations: int, base: str) -> list[str]:
    """A policy's line of the table."""
    fitted(policy, data, 0, WARM, base)
    errors, seconds, entropy = [], [], []
    for seed in range(seeds):
        began = time.process_time()
        classifier = fitted(policy, data, seed, iterations, base)
        seconds.append(time.process_time() - began)
        errors.append(100 * (1 - classifier.score(data.X_test, data.y_test)))
        entropy.append(np.nan if policy == "none" else classifier.policy_report().entropy)
    spread = f"{np.std(errors, ddof=1) / np.sqrt(seeds):.2f}" if seeds > 1 else ""
    return [policy, f"{np.mean(errors):.2f} %", spread, f"{np.mean(seconds):.2f}", f"{np.mean(entropy):.3f}"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="a data set by name (abex data), or a file")
    parser.add_argument("--policy", nargs="*", default=["ABE", "ABE(eta=0.1)", "Thompson", "UCB1", "Uniform"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--base", default="tree", choices=("tree", "product", "stump"))
    given = parser.parse_args()
    problem = load(given.data)
    rows = [row(policy, problem, given.seeds, given.iterations, given.base) for policy in given.policy]
    print(text_table(["policy", "test error", "std. error", "CPU s", "entropy of choice"], rows))
