"""Off-policy estimators over synthetic logs whose truth is known: bias, spread, coverage of the intervals.

    python -m benchmarks.evaluation steady [logs]      logs of a fixed distribution: intervals for one look
    python -m benchmarks.evaluation bandits [logs]     logs that bandits collected: the interval that holds at every moment

Four arms. Steady: a target far from the logging policy, a ring as feedback graph; 300 and 2,000 rows a log, Bernoulli rewards,
and again with rewards of a percent, like clicks. Bandits: six policies, two worlds, four targets; a line says how many logs leave
the h-weighted interval at any of their steps, and how wide it is after 200, 1,000 and 5,000 rows over the normal interval of IPS
for one look, in the median of 100 logs; then how wide the one is that knows the probability of the chosen arm alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmarks.bandit_logs import logs_of

from abex.evaluation import Log, Side
from abex.evaluation.estimators import ESTIMATORS, ips
from abex.evaluation.sequence import ValueSums, add_decision, growth_of_value, value_of
from abex.evaluation.uncertainty import at_every_moment, for_one_look
from abex.kernels import compile_alone, kernel

LOGGED = np.array([0.4, 0.3, 0.2, 0.1])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])
RING = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]])
OBSERVED = LOGGED @ RING
WORLDS = {"coins": np.array([0.2, 0.4, 0.5, 0.6]), "clicks": np.array([0.05, 0.07, 0.09, 0.11])}
TARGETS = {"uniform": [0.25] * 4, "best": [0, 0, 0, 1], "worst": [1, 0, 0, 0], "mixed": [0.4, 0.3, 0.2, 0.1]}
POLICIES = ("Uniform", "EpsilonGreedy(epsilon=0.1)", "Exp3", "ABE(eta=1.0)", "Evidence", "Thompson")
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
        f"{'estimator':14} {'bias':>10} {'z':>6} {'deviation':>10} {'one look':>8} {'every moment':>12} {'wider':>6}"
    )
    drawn = [log_of(seed, rows, means) for seed in range(logs)]
    estimators: dict[str, Any] = ESTIMATORS
    for name, estimator in estimators.items():
        # rows are kept by a seed of their own in each log: one seed would err in all logs alike
        seeds: Any = ((seed,) if name == "replay" else () for seed in range(logs))
        found: list[Any] = [estimator(log, TARGET, *seed) for log, seed in zip(drawn, seeds, strict=True)]
        values = np.array([one.value() for one in found])
        span = (0.0, 1.0)
        ends = np.array([(for_one_look(one, span, 0.95), at_every_moment(one, span, 0.95)) for one in found])
        inside = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
        width = (ends[..., 1] - ends[..., 0]).mean(axis=0)
        bias, deviation = values.mean() - truth, values.std(ddof=1)
        print(
            f"{name:14} {bias:10.2e} {bias / deviation * math.sqrt(logs):6.2f} {deviation:10.2e} "
            f"{inside[0]:8.1%} {inside[1]:12.1%} {width[1] / width[0]:6.1f}",
            flush=True,
        )


@kernel
def leaves(arms: Any, rewards: Any, target: Any, laws: Any, sums: Any, truth: float, level: float) -> bool:
    """Whether a log leaves the h-weighted interval at any step."""
    for i in range(arms.size):
        add_decision(sums, arms[i], rewards[i], target, laws[i])
        numbers = sums.weight, sums.gain, sums.spread
        if max(growth_of_value(numbers, truth, 1.0), growth_of_value(numbers, truth, -1.0)) >= level:
            return True
    return False


def bandits(logs: int, policies: Sequence[str] = POLICIES) -> None:
    """Logs of policies that learn."""
    print("policy world target left; width over that of IPS, and so without laws, by rows")
    left, level = compile_alone(leaves), math.log(40.0)
    for policy in policies:
        for world, means in WORLDS.items():
            longest = SLOW.get(policy, SIZES[-1])
            lives = list(zip(*logs_of(policy, means, logs, longest), strict=True))
            for name, target in ((name, np.array(target, float)) for name, target in TARGETS.items()):
                truth = float(target @ means)
                gone = np.mean(
                    [left(arm, paid, target, law, ValueSums(), truth, level) for arm, law, paid in lives]
                )
                cells = []
                for rows in (size for size in SIZES if size <= longest):
                    ratios = []
                    for arm, law, paid in (tuple(column[:rows] for column in life) for life in lives[:100]):
                        _, low, high = value_of(arm, paid, target, law, 0.05)
                        given = ips(Log(range(4), arm, law[np.arange(rows), arm], paid), target)
                        blind = at_every_moment(given, (0.0, 1.0), 0.95)
                        normal = max(2 * 1.96 * given.gains.std() / math.sqrt(rows), 1e-9)
                        ratios.append(((high - low) / normal, (blind[1] - blind[0]) / normal))
                    cells.append("{:.2f} {:.2f}".format(*np.median(ratios, axis=0)))
                print(
                    f"{policy.split('(')[0]:13} {world:6} {name:7} {gone:5.1%}; {', '.join(cells)}",
                    flush=True,
                )


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "steady"
    count = int(float(sys.argv[2])) if len(sys.argv) > 2 else 1_000
    if what == "bandits":
        bandits(count, sys.argv[3:] or POLICIES)
    else:
        steady(count, 300, np.array([0.2, 0.5, 0.6, 0.7]))
        steady(count, 2_000, np.array([0.2, 0.5, 0.6, 0.7]))
        steady(count, 2_000, np.array([0.01, 0.02, 0.03, 0.04]))
