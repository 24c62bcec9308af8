"""Arms that come half way to a player that has settled: regret of the second half beside that of Thompson sampling.

    python benchmarks/new_arms.py --half test --runs 200

Small worlds of coins, dealt by a seed; half of them, *train*, may be used to choose by, the others, *test*, to report from. In
each, 2 to 20 arms are played for 10,000 steps, then 1 to 20 come at once, of which one is *better* than all by the gap, or all
are *equal* to the best, or *worse* by the gap or more, and 10,000 steps follow. The table has the geometric mean, its standard
error, and the worst over the worlds of a group of the regret over Thompson sampling's.
"""

from __future__ import annotations

import argparse
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex import Bernoulli, Evidence, Policy, Thompson
from abex.graphs.feedback import BanditFeedback, reveal_bandit
from abex.kinds import saved
from abex.policies.policy import Setting
from abex.simulation.loop import Run, compiled_loop
from abex.support.randomness import counter_key, stream

BEFORE, AFTER = 10_000, 10_000
GROUPS = "better", "equal", "worse"
NEW = 1, 2, 5, 10, 20
FLOOR = 1.0  # of a regret that others are compared with
POLICIES = {"Evidence": Evidence(), "Evidence(forget=False)": Evidence(forget=False), "Thompson": Thompson()}


class World(NamedTuple):
    """The coins that are there from the start, and those that come."""

    group: str
    old: NDArray[np.float64]
    new: NDArray[np.float64]


def worlds(half: str) -> list[World]:
    """The worlds of a half: four for each group and number of arms that come."""
    rng = np.random.default_rng({"train": 3, "test": 4}[half])
    found = []
    for n_new in NEW:
        for group in GROUPS:
            for _ in range(4):
                gap = math.exp(rng.uniform(math.log(0.02), math.log(0.2)))
                best = rng.uniform(0.1, 0.75) if gap > 0.05 else rng.uniform(0.05, 0.75)
                old = best - gap * rng.uniform(0.5, 2.0, rng.integers(2, 21))
                old[rng.integers(old.size)] = best
                new = best - gap * rng.uniform(1.0, 2.0, n_new) * (group != "equal")
                if group == "better":
                    new[rng.integers(n_new)] = best + gap
                found.append(World(group, np.clip(old, 0.0, 1.0), np.clip(new, 0.0, 1.0)))
    return found


def played(
    policy: Policy[Any], state: Any, means: NDArray[np.float64], steps: range, rng: Any, seed: int
) -> float:
    """The regret of these steps, of a state that goes on."""
    environment = Bernoulli(means)
    run = Run(
        state=state, world=environment.open(counter_key(seed, steps.start, "environment"), steps.stop),
        feedback=BanditFeedback(n_arms=means.size), pending=None, memory=None, checkpoints=np.array([steps.stop]),
        regret=np.zeros(1), optimal_pulls=np.zeros(1), seen=np.zeros(1, np.int64), rng=rng, n_arms=means.size,
    )  # fmt: skip
    play = compiled_loop(policy.kernels(), environment.rules(), reveal_bandit)
    with np.errstate(over="ignore"):  # words wrap around
        play(run, steps.start, steps.stop - 1)
    return float(run.lost)


def second_half(policy: Policy[Any], world: World, seed: int) -> float:
    """The regret after the arms have come."""
    rng = stream(seed, "policy", repr(policy))
    state = policy.start(Setting(world.old.size))
    played(policy, state, world.old, range(1, BEFORE + 1), rng, seed)
    means = np.concatenate([world.old, world.new])
    state = policy.resume(Setting(means.size), saved(state), np.arange(world.old.size))
    return played(policy, state, means, range(BEFORE + 1, BEFORE + AFTER + 1), rng, seed)


def table(title: str, rows: dict[str, NDArray[np.float64]]) -> None:
    """Of regrets (worlds, policies, runs) by group: typical ratio to the last policy's, its error, and the worst."""
    print(f"| {title} | " + " | ".join(POLICIES) + " |\n|---" + "|---" * len(POLICIES) + "|")
    for name, regrets in rows.items():
        means = np.maximum(regrets.mean(axis=2), FLOOR)
        errors = regrets.std(axis=2, ddof=1) / math.sqrt(regrets.shape[2])
        ratios = means / means[:, -1:]
        typical = np.exp(np.log(ratios).mean(axis=0))
        error = typical * np.sqrt(((errors / means) ** 2).sum(axis=0)) / len(regrets)
        cells = [
            f"{a:.2f} ± {e:.2f} / {w:.1f}" for a, e, w in zip(typical, error, ratios.max(axis=0), strict=True)
        ]
        print(f"| {name} ({len(regrets)}) | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--half", choices=("train", "test"), default="train")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--worlds", action="store_true", help="print every world")
    options = parser.parse_args()
    dealt = worlds(options.half)
    found = []
    for world in dealt:
        found.append(
            [
                [second_half(policy, world, seed) for seed in range(options.runs)]
                for policy in POLICIES.values()
            ]
        )
        if options.worlds:
            regret, old, new = np.mean(found[-1], axis=1).round(1).tolist(), world.old.size, world.new.size
            print(
                f"{world.group} {old} + {new}, best {world.old.max():.2f}, new {world.new.max():.2f}: {regret}",
                flush=True,
            )
    regrets = np.array(found)
    by_group = {group: regrets[[world.group == group for world in dealt]] for group in GROUPS}
    table("regret of the second half", by_group)
    table("by arms that come", {str(n): regrets[[world.new.size == n for world in dealt]] for n in NEW})


if __name__ == "__main__":
    main()
