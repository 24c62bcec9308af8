"""Off-policy estimators over synthetic logs whose truth is known: bias, spread, coverage of both intervals.

    python -m benchmarks.evaluation [logs]

Four arms, a target far from the logging policy, a ring as feedback graph; 300 and 2,000 rows a log, Bernoulli rewards, and
again with rewards of a percent, like clicks.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from abex.evaluation import Log, Side
from abex.evaluation.estimators import ESTIMATORS
from abex.evaluation.uncertainty import bca, bernstein

LOGGED = np.array([0.4, 0.3, 0.2, 0.1])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])
RING = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]])
OBSERVED = LOGGED @ RING


def log_of(seed: int, rows: int, means: Any) -> Log:
    """A log with side observations."""
    rng = np.random.default_rng([9, seed, rows])
    arm = rng.choice(4, rows, p=LOGGED)
    rewards = (rng.random((rows, 4)) < means).astype(float)
    row, seen = np.nonzero(RING[arm] * (np.arange(4) != arm[:, None]))
    side = Side(np.searchsorted(row, np.arange(rows + 1)), seen, rewards[row, seen], OBSERVED[seen])
    return Log(range(4), arm, LOGGED[arm], rewards[np.arange(rows), arm], observed=OBSERVED[arm], side=side)


def study(logs: int, rows: int, means: Any) -> None:
    """A table of one setting."""
    truth = float(TARGET @ means)
    print(f"\n{logs:,} logs of {rows:,} rows, value {truth:g}")
    print(
        f"{'estimator':14} {'bias':>10} {'z':>6} {'deviation':>10} {'BCa':>7} {'Bernstein':>10} {'width ratio':>12}"
    )
    drawn = [log_of(seed, rows, means) for seed in range(logs)]
    estimators: dict[str, Any] = ESTIMATORS
    for name, estimator in estimators.items():
        # rows are kept by a seed of their own in each log: one seed would err in all logs alike
        seeds: Any = ((seed,) if name == "replay" else () for seed in range(logs))
        found: list[Any] = [estimator(log, TARGET, *seed) for log, seed in zip(drawn, seeds, strict=True)]
        values = np.array([one.value() for one in found])
        ends = np.array([(bca(one, (0.0, 1.0), 0.95), bernstein(one, (0.0, 1.0), 0.95)) for one in found])
        inside = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
        width = (ends[..., 1] - ends[..., 0]).mean(axis=0)
        bias, deviation = values.mean() - truth, values.std(ddof=1)
        print(
            f"{name:14} {bias:10.2e} {bias / deviation * math.sqrt(logs):6.2f} {deviation:10.2e} "
            f"{inside[0]:7.1%} {inside[1]:10.1%} {width[1] / width[0]:12.1f}",
            flush=True,
        )


if __name__ == "__main__":
    count = int(float(sys.argv[1])) if len(sys.argv) > 1 else 2_000
    study(count, 300, np.array([0.2, 0.5, 0.6, 0.7]))
    study(count, 2_000, np.array([0.2, 0.5, 0.6, 0.7]))
    study(count, 2_000, np.array([0.01, 0.02, 0.03, 0.04]))
