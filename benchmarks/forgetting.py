"""What forgetting costs: nanoseconds of CPU a step beside the plain policy, on one core.

    python -m benchmarks.forgetting                    the tables of docs/changing_worlds.md
    python -m benchmarks.forgetting --only Thompson    one policy

Runs are interleaved, medians of ``--rounds`` are shown. A policy that forgets goes on exploring as a plain one does in the
beginning, and a step that explores takes longer whoever takes it: so beside the plain policy over the whole run stands the plain
one over its first 1 / (1 - gamma) steps, when it has seen as much as the other one remembers.
"""

from __future__ import annotations

import argparse

import numpy as np

from abex import (
    ABE,
    CUSUM,
    GLR,
    KLUCB,
    UCB1,
    Bernoulli,
    Boltzmann,
    BoltzmannGumbel,
    Discounted,
    Evidence,
    PageHinkley,
    Restarting,
    Thompson,
    Windowed,
)
from abex.delays import Fixed, Geometric
from abex.simulation import as_checkpoints, play_replication

POLICIES = {
    "UCB1": UCB1(scale=0.5), "KLUCB": KLUCB(), "Boltzmann": Boltzmann(eta=1.0), "ABE": ABE(eta=1.0), "Thompson": Thompson(),
    "Evidence": Evidence(), "BoltzmannGumbel": BoltzmannGumbel(),
}  # fmt: skip
GAMMAS = (1.0 - 1e-9, 0.999, 0.99)
STEPS = 200_000


def nanoseconds(policy, n_arms: int, steps: int, seed: int, **late) -> float:
    """CPU a step of one replication."""
    arms = Bernoulli([0.75] + [0.5] * (n_arms - 1))
    return play_replication(policy, arms, None, as_checkpoints(10, steps), seed, 0, **late).nanoseconds


def beginning(policy, n_arms: int, seed: int) -> float:
    """CPU a step of the first thousand steps: the median of short runs, of which one is too short for a clock."""
    return float(np.median([nanoseconds(policy, n_arms, 1000, 20 * seed + i) for i in range(20)]))


def medians(runs, rounds: int) -> list[float]:
    """Of several functions of a seed, interleaved; the first call compiles."""
    for run in runs:
        run(0)
    return [float(x) for x in np.median([[run(seed) for run in runs] for seed in range(rounds)], axis=0)]


def discounting(names: list[str], rounds: int) -> None:
    """Plain and discounted policies of ten and a hundred arms."""
    print(
        "| policy | arms | plain | "
        + " | ".join(f"gamma {gamma:.9g}" for gamma in GAMMAS)
        + " | plain, first 1000 steps |"
    )
    print("|---|---:|---:|" + "---:|" * (len(GAMMAS) + 1))
    for name in names:
        plain = POLICIES[name]
        for n_arms in (10, 100):
            runs = [
                lambda seed, policy=policy, n=n_arms: nanoseconds(policy, n, STEPS, seed)
                for policy in [plain, *(Discounted(plain, gamma=gamma) for gamma in GAMMAS)]
            ]
            runs.append(lambda seed, plain=plain, n=n_arms: beginning(plain, n, seed))
            base, *others, first = medians(runs, rounds)
            cells = [f"{x:.0f} ({x / base:.2f})" for x in others]
            print(
                f"| {name} | {n_arms} | {base:.0f} | " + " | ".join(cells) + f" | {first:.0f} |", flush=True
            )


def windows(rounds: int) -> None:
    """A window of any width; detectors."""
    plain = UCB1(scale=0.5)
    widths = (100, 1000, 10_000, 100_000, 1_000_000)
    found = medians(
        [
            lambda seed, p=p: nanoseconds(p, 10, 3 * STEPS, seed)
            for p in (plain, *(Windowed(plain, width=w) for w in widths))
        ],
        rounds,
    )
    print("\n| plain | " + " | ".join(f"width {w:,}" for w in widths) + " |\n|" + "---:|" * (len(widths) + 1))
    print("| " + " | ".join(f"{x:.0f}" for x in found) + " |")
    detectors = (GLR(window=100), GLR(window=1000), GLR(window=10_000), CUSUM(), PageHinkley())
    found = medians(
        [lambda seed, d=d: nanoseconds(Restarting(plain, detector=d), 10, STEPS, seed) for d in detectors],
        rounds,
    )
    print("\n| " + " | ".join(str(d) for d in detectors) + " |\n|" + "---:|" * len(detectors))
    print("| " + " | ".join(f"{x:.0f}" for x in found) + " |")


def delays(rounds: int) -> None:
    """What late rewards cost a step."""
    kinds = {
        "at once": {},
        "Fixed(50)": {"delay": Fixed(50)},
        "Geometric(200)": {"delay": Geometric(200)},
        "batch 32": {"batch": 32},
    }
    print("\n| policy | " + " | ".join(kinds) + " |\n|---|" + "---:|" * len(kinds))
    for name in ("UCB1", "ABE"):
        runs = [
            lambda seed, policy=POLICIES[name], late=late: nanoseconds(policy, 10, STEPS, seed, **late)
            for late in kinds.values()
        ]
        print(f"| {name} | " + " | ".join(f"{x:.0f}" for x in medians(runs, rounds)) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    discounting(given.only, given.rounds)
    if given.only == list(POLICIES):
        windows(given.rounds)
        delays(given.rounds)
