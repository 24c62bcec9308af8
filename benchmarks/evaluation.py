"""Off-policy estimators over synthetic logs whose truth is known: bias, spread, coverage of both intervals.

    python -m benchmarks.evaluation steady [logs]      logs of a fixed distribution
    python -m benchmarks.evaluation bandits [logs]     logs that bandits collected
    python -m benchmarks.evaluation batches [logs]     of decisions made two at once

Four arms. Steady: a target far from the logging policy, a ring as feedback graph; 300 and 2,000 rows a log, Bernoulli rewards,
and again with rewards of a percent, like clicks. Bandits: five policies, two worlds, the first 200, 1,000 and 5,000 rows of each
life, four targets; a line says how many logs answer, how often the likely interval covers in all logs and in
those that answer, how often it lies below and above, how often the guaranteed one covers, and both median widths.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmarks.bandit_logs import batches_of, logs_of

from abex.evaluation import Log, Side, evaluate
from abex.evaluation.batches import chances_of
from abex.evaluation.estimators import ESTIMATORS
from abex.evaluation.uncertainty import guaranteed, likely

LOGGED = np.array([0.4, 0.3, 0.2, 0.1])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])
RING = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]])
OBSERVED = LOGGED @ RING
WORLDS = {"coins": np.array([0.2, 0.4, 0.5, 0.6]), "clicks": np.array([0.05, 0.07, 0.09, 0.11])}
TARGETS = {"uniform": [0.25] * 4, "best": [0, 0, 0, 1], "worst": [1, 0, 0, 0], "mixed": [0.4, 0.3, 0.2, 0.1]}
POLICIES = ("EpsilonGreedy(epsilon=0.1)", "Exp3", "ABE(eta=1.0)", "Evidence", "Thompson")
SIZES = (200, 1_000, 5_000)
SLOW = {"Thompson": 1_000}  # its probabilities are integrals


def log_of(seed: int, rows: int, means: Any) -> Log:
    """A log with side observations."""
    rng = np.random.default_rng([9, seed, rows])
    arm = rng.choice(4, rows, p=LOGGED)
    rewards = (rng.random((rows, 4)) < means).astype(float)
    row, seen = np.nonzero(RING[arm] * (np.arange(4) != arm[:, None]))
    side = Side(np.searchsorted(row, np.arange(rows + 1)), seen, rewards[row, seen], OBSERVED[seen])
    return Log(range(4), arm, LOGGED[arm], rewards[np.arange(rows), arm], observed=OBSERVED[arm], side=side)


def steady(logs: int, rows: int, means: Any) -> None:
    """A table of one setting."""
    truth = float(TARGET @ means)
    print(f"\n{logs:,} logs of {rows:,} rows, value {truth:g}")
    print(
        f"{'estimator':14} {'bias':>10} {'z':>6} {'deviation':>10} {'likely':>7} {'guaranteed':>10} {'wider':>6}"
    )
    drawn = [log_of(seed, rows, means) for seed in range(logs)]
    estimators: dict[str, Any] = ESTIMATORS
    for name, estimator in estimators.items():
        # rows are kept by a seed of their own in each log: one seed would err in all logs alike
        seeds: Any = ((seed,) if name == "replay" else () for seed in range(logs))
        found: list[Any] = [estimator(log, TARGET, *seed) for log, seed in zip(drawn, seeds, strict=True)]
        values = np.array([one.value() for one in found])
        span = (0.0, 1.0)
        ends = np.array([(likely(one, span, 0.95, True), guaranteed(one, span, 0.95)) for one in found])
        inside = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
        width = (ends[..., 1] - ends[..., 0]).mean(axis=0)
        bias, deviation = values.mean() - truth, values.std(ddof=1)
        print(
            f"{name:14} {bias:10.2e} {bias / deviation * math.sqrt(logs):6.2f} {deviation:10.2e} "
            f"{inside[0]:7.1%} {inside[1]:10.1%} {width[1] / width[0]:6.1f}",
            flush=True,
        )


def lines_of(prefix: str, logs: Sequence[Log], target: Any, truth: float) -> None:
    """Lines of IPS and replay.

    Where probabilities change SNIPS, direct and doubly robust have the interval of IPS, which reaches to their value: it
    covers as often at least.
    """
    for name in ("IPS", "replay"):
        found = [evaluate(log, target, estimators=[name], seed=seed)[name] for seed, log in enumerate(logs)]
        told = np.array([not one.reason for one in found])
        ends, sure = (
            np.array([getattr(one, which) for one in found]) for which in ("interval", "guaranteed")
        )
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        among = float(inside[told].mean()) if told.any() else math.nan
        widths = [float(np.median(np.diff(some))) for some in (ends, sure)]
        print(
            f"{prefix} {name:6} {told.mean():6.1%} {inside.mean():6.1%} {among:6.1%} "
            f"{(ends[:, 1] < truth).mean():6.1%} {(ends[:, 0] > truth).mean():6.1%} "
            f"{((sure[:, 0] <= truth) & (truth <= sure[:, 1])).mean():6.1%} {widths[0]:6.3f} {widths[1]:6.3f}",
            flush=True,
        )


HEADINGS = "estimator answer all answered below above sure width sure-width"


def bandits(logs: int, policies: Sequence[str] = POLICIES) -> None:
    """Logs of policies that learn."""
    print(f"policy world rows target {HEADINGS}")
    for policy in policies:
        for world, means in WORLDS.items():
            longest = SLOW.get(policy, SIZES[-1])
            drawn = logs_of(policy, means, logs, longest)
            for rows in (size for size in SIZES if size <= longest):
                lives = [
                    Log(range(4), *(column[:rows] for column in life)) for life in zip(*drawn, strict=True)
                ]
                for name, target in TARGETS.items():
                    prefix = f"{policy.split('(')[0]:13} {world:6} {rows:5} {name:7}"
                    lines_of(prefix, lives, target, float(np.dot(target, means)))


def batches(logs: int) -> None:
    """Logs of policies that learn from batches of two different arms."""
    print(f"rows target {HEADINGS}")
    for world, means in WORLDS.items():
        for rows in (400, 2_000):
            lives = batches_of(means, logs, rows)
            for name in ("uniform", "mixed"):
                target = np.array(TARGETS[name])
                lines_of(
                    f"{world:6} {rows:5} {name:7}", lives, target, float(chances_of(target, 2) @ means) / 2.0
                )


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "steady"
    count = int(float(sys.argv[2])) if len(sys.argv) > 2 else 1_000
    if what == "bandits":
        bandits(count, sys.argv[3:] or POLICIES)
    elif what == "batches":
        batches(count)
    else:
        steady(count, 300, np.array([0.2, 0.5, 0.6, 0.7]))
        steady(count, 2_000, np.array([0.2, 0.5, 0.6, 0.7]))
        steady(count, 2_000, np.array([0.01, 0.02, 0.03, 0.04]))
