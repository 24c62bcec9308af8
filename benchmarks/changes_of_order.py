"""Levels that move and orders that change: `Evidence` beside the same without its test, and Thompson sampling.

    python benchmarks/changes_of_order.py --half test --runs 20
    python benchmarks/changes_of_order.py --half test --runs 10 --rewards revenue

Small worlds of coins, dealt by a seed; half of them, *train*, may be used to choose by, the others, *test*, to report from. The
table has the geometric mean, its standard error, and the worst over the worlds of a group of the regret over that of the best of
the three. With ``--rewards`` arms pay something else whose mean is that of the coin, or a fixed part of it: Beta
numbers of strength 5, coins that pay a hundredth or a 100,000th, or, with the coin's probability, a log-normal amount; regret
counts the coins' means.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray

from abex import Evidence, Thompson, simulate
from abex.environments.piecewise import Path, PathWorld, Piecewise, piece_at
from abex.kernels import kernel
from abex.support.randomness import gamma_from, next_word, normal_from, unit, word_at

STEPS, PIECE = 60_000, 20
DAY = 2_000
ARMS = (2, 3, 5, 10, 30)
POLICIES = {"Evidence": Evidence(), "Evidence(forget=False)": Evidence(forget=False), "Thompson": Thompson()}


class World(Piecewise):
    """Means that are given step by step, constant for 20 steps."""

    against = "each step"

    def __init__(self, group: str, means: NDArray[np.float64]) -> None:
        self.group, self.means = group, np.clip(means, 0.0, 1.0)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.means.shape[1]

    def path(self, key: np.uint64, horizon: int) -> Path:
        """The table of means."""
        return np.arange(0, STEPS, PIECE, dtype=np.int64), self.means


class PaidWorld(PathWorld):
    """What its arms pay."""

    rewards: int  # which of `REWARDS`


class Paid(World):
    """The same means, other rewards."""

    def __init__(self, group: str, means: NDArray[np.float64], rewards: str) -> None:
        super().__init__(group, means)
        self.rewards = REWARDS.index(rewards)

    def open(self, key: np.uint64, horizon: int) -> PaidWorld:
        """The path, and what is paid."""
        world = super().open(key, horizon)
        parts = {name: getattr(world, name) for name in ("key", "begins", "means", "benchmark_mean")}
        return PaidWorld(**parts, rewards=self.rewards)

    @staticmethod
    @kernel
    def draw(world: PaidWorld, t: int, arm: int) -> float:
        """A reward by the arm's present mean."""
        mean = world.means[piece_at(world, t), arm]
        word = word_at(world.key, t, arm)
        if world.rewards == 1:
            x = gamma_from(word, 5.0 * mean)
            return float(x / max(x + gamma_from(next_word(~word), 5.0 * (1.0 - mean)), 1e-300))
        if unit(word) >= mean:
            return 0.0
        if world.rewards == 2:
            return 0.01
        if world.rewards == 3:
            return 1e-5
        return min(1.0, 0.05 * math.exp(normal_from(next_word(word))))


REWARDS = ("coins", "Beta", "hundredth", "tiny", "revenue")


def worlds(half: str) -> list[World]:
    """The worlds of a half."""
    rng = np.random.default_rng({"train": 1, "test": 2}[half])
    t = np.arange(0, STEPS, PIECE)
    found = []

    def rates(n_arms: int) -> NDArray[np.float64]:
        return rng.choice([0.04, 0.15, 0.55]) * rng.uniform(0.3, 1.0, n_arms)

    def swing() -> NDArray[np.float64]:
        period = math.exp(rng.uniform(math.log(1_000), math.log(100_000)))
        return 1.0 + rng.uniform(0.15, 0.6) * np.sin(2.0 * math.pi * (t / period + rng.random()))

    def other_order(means: NDArray[np.float64]) -> NDArray[np.float64]:
        while True:
            other = rng.permutation(means)
            if other.argmax() != means.argmax():
                return other

    for n_arms in ARMS:
        for _ in range(4):
            found.append(World("season", rates(n_arms) * swing()[:, None]))
        half_way = rng.uniform(0.2, 0.8) * STEPS
        steps = np.where((t // rng.integers(5_000, 20_000)) % 2, 1.4, 0.7)
        found.append(World("season", rates(n_arms) * steps[:, None]))
        found.append(World("season", rates(n_arms) * np.linspace(0.7, 1.3, t.size)[:, None]))
        base = rates(n_arms)
        weekend = ((t // DAY) % 7 >= 5)[:, None]
        daily = 1.0 + 0.3 * np.sin(2.0 * math.pi * t / DAY)[:, None]
        found.append(World("weekend", np.where(weekend, other_order(base), base) * daily))
        found.append(
            World("season and change", np.where((t > half_way)[:, None], other_order(base), base) * daily)
        )
        for period in (5_000, 20_000):
            found.append(
                World("dealt anew", rng.uniform(0.05, 0.6, (STEPS // period + 1, n_arms))[t // period])
            )
        base = rates(n_arms)
        after = base.copy()
        after[base.argmax()] = 0.7 * base.min()
        for later in (after, other_order(base), other_order(base) * 0.4):
            found.append(World("one change", np.where((t > half_way)[:, None], later, base)))
        found.append(World("nothing changes", np.tile(rates(n_arms), (t.size, 1))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--half", choices=("train", "test"), default="train")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--worlds", action="store_true", help="print every world")
    parser.add_argument("--rewards", choices=REWARDS, default="coins")
    options = parser.parse_args()
    rows: dict[str, list[NDArray[np.float64]]] = {}
    for world in worlds(options.half):
        if options.rewards != "coins":
            world = Paid(world.group, world.means, options.rewards)
        curves = simulate(
            list(POLICIES.values()), world, horizon=STEPS, replications=options.runs, seed=1, checkpoints=[STEPS],
            progress=False,
        )  # fmt: skip
        regret = np.maximum(curves.regret[:, :, -1], 1.0)
        rows.setdefault(world.group, []).append(regret)
        if options.worlds:
            print(world.group, world.n_arms, np.round(regret.mean(axis=1)).astype(int).tolist(), flush=True)
    print("| regret over the best | " + " | ".join(POLICIES) + " |")
    print("|---" * (len(POLICIES) + 1) + "|")
    for group, regrets in rows.items():
        means = np.array([regret.mean(axis=1) for regret in regrets])  # (worlds, policies)
        errors = np.array([regret.std(axis=1, ddof=1) for regret in regrets]) / math.sqrt(options.runs)
        ratios = means / means.min(axis=1, keepdims=True)
        typical = np.exp(np.log(ratios).mean(axis=0))
        error = typical * np.sqrt(((errors / means) ** 2).sum(axis=0)) / len(regrets)
        cells = [
            f"{a:.2f} ± {e:.2f} / {w:.1f}" for a, e, w in zip(typical, error, ratios.max(axis=0), strict=True)
        ]
        print(f"| {group} ({len(regrets)}) | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
