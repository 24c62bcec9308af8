"""What a policy loses where conversions come late and silence later, and what it loses to a plain delay.

python benchmarks/conversions.py learned --runs 40        each way to learn, windows of 10 to 1,000 mean delays (grid train)
python benchmarks/conversions.py learned --grid test      other rates, windows and seeds
python benchmarks/conversions.py staleness --runs 20      regret by how old what a decision knows is
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from abex import Bernoulli, simulate
from abex.policies.naming import parse_policy
from abex.simulation.delays import LEARNED, Conversions, Geometric

HORIZON = 30_000
TOLD = "told after the mean delay"
#: rates of the arms, mean delay, window
GRIDS = {
    "train": [
        ([0.05, 0.08, 0.12], 20, 1_800),
        ([0.05, 0.08, 0.12], 180, 1_800),
        ([0.01, 0.012, 0.015, 0.02], 20, 7_200),
        ([0.1] * 5 + [0.12] * 5, 7, 7_000),
        ([0.1, 0.2], 50, 2_000),
        ([0.02 + 0.005 * k for k in range(20)], 20, 3_000),
    ],
    "test": [
        ([0.04, 0.06, 0.1], 30, 2_400),
        ([0.03, 0.05, 0.06], 200, 2_000),
        ([0.01, 0.02], 10, 5_000),
        ([0.12] * 6 + [0.15] * 2, 8, 8_000),
        ([0.15, 0.17, 0.2], 60, 3_600),
        ([0.01 + 0.006 * k for k in range(15)], 40, 4_000),
    ],
}
SEEDS = {"train": 1, "test": 2}
STALENESS = {
    "0.75 and nine of 0.5": [0.75] + [0.5] * 9,
    "ten of 0.05 to 0.12": np.linspace(0.05, 0.12, 10).tolist(),
}
LATE = {"at once": 1, "0.1 s": 100, "1 s": 1_000, "10 s": 10_000, "60 s": 60_000}
A_SECOND, MANY = 1_000, 1_000_000  # decisions


def figure(values: np.ndarray) -> str:
    """Mean and standard error."""
    return f"{values.mean():,.0f} ± {values.std(ddof=1) / math.sqrt(values.size):,.0f}"


def learned(grid: str, policies: list[str], runs: int) -> None:
    """Regret of each policy by the way it learns, and by what it would be, were it told every outcome after the mean delay."""
    print(f"Regret after {HORIZON:,} decisions, {runs} runs; grid {grid}")
    print("| rates | mean delay, window | policy | " + " | ".join([*LEARNED, TOLD]) + " | weighed / told |")
    print("|---" * (len(LEARNED) + 5) + "|")
    ratios: dict[str, list[float]] = {name: [] for name in policies}
    for rates, mean, window in GRIDS[grid]:
        delays = [*(Conversions(Geometric(mean), window, way) for way in LEARNED), Geometric(mean)]
        columns = [
            simulate(
                policies, Bernoulli(rates), delay=delay, horizon=HORIZON, replications=runs, seed=SEEDS[grid],
                workers=1, checkpoints=1, progress=False,
            ).regret[:, :, -1]
            for delay in delays
        ]  # fmt: skip
        shown = ", ".join(f"{rate:g}" for rate in rates[:4]) + " ..." * (len(rates) > 4)
        for i, name in enumerate(policies):
            values = [column[i] for column in columns]
            ratios[name].append(values[0].mean() / values[-1].mean())
            cells = " | ".join(figure(value) for value in values)
            print(f"| {shown} | {mean}, {window:,} | {name} | {cells} | {ratios[name][-1]:.2f} |", flush=True)
    for name, found in ratios.items():
        print(f"{name}: geometric mean {np.exp(np.mean(np.log(found))):.2f}, worst {max(found):.2f}")


def staleness(runs: int) -> None:
    """Regret of Evidence by how late every reward comes, at a thousand decisions a second."""
    print(f"Regret of Evidence after {MANY:,} decisions, {A_SECOND:,} a second, {runs} runs")
    print("| arms | " + " | ".join(LATE) + " |\n|---" + "|---:" * len(LATE) + "|")
    for name, means in STALENESS.items():
        cells = [
            simulate(
                "Evidence", Bernoulli(means), delay=steps, horizon=MANY, replications=runs, seed=1, workers=1,
                checkpoints=1, progress=False,
            ).regret[0, :, -1]
            for steps in LATE.values()
        ]  # fmt: skip
        print(f"| {name} | {' | '.join(map(figure, cells))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("learned", "staleness"))
    parser.add_argument("--grid", choices=tuple(GRIDS), default="train")
    parser.add_argument("--policies", default="Evidence Thompson KLUCB")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    if options.what == "learned":
        learned(options.grid, [str(parse_policy(one)) for one in options.policies.split()], options.runs)
    else:
        staleness(options.runs)


if __name__ == "__main__":
    main()
