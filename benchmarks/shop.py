"""What a shop has and a coin has not: silence that closes late.

python benchmarks/shop.py silence --runs 8     clicks after 20 s, silence that counts as no click after 30 min
python benchmarks/shop.py newcomer --runs 8    the same, and a banner of 2 % that comes in half way
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Callable
from datetime import timedelta

import numpy as np

from abex import Evidence, Player, Policy, Thompson

RATES = {"red": 0.05, "green": 0.08, "blue": 0.12}
VISITORS = 30_000  # one a second
CLICK = 20.0  # seconds on average
WINDOW = 1800.0  # seconds after which silence is no click
SOON = 60.0  # seconds after which a shop may say so itself
WAYS = {
    "expire": "`expire` of 30 min",
    "window": "`window` of 30 min",
    "told": "the shop reports it after 60 s",
}
NEWCOMER = 0.02  # clicks a visitor of a banner that is added


def visits(policy: Policy, way: str, seed: int, newcomer: bool = False) -> list[tuple[str, bool]]:
    """Banner and click of each visitor; `WAYS` says what becomes of silence."""
    now, told = 0.0, way == "told"
    silence = "window" if way == "window" else "expire"
    options = {silence: timedelta(seconds=WINDOW)}
    player = Player(policy, arms=list(RATES), seed=seed, clock=lambda: now, **options)
    rng = random.Random(seed)
    reports: list[tuple[float, str, bool]] = []
    seen = []
    for second in range(VISITORS):
        now = float(second)
        while reports and reports[0][0] <= now:
            _, decision, clicked = heapq.heappop(reports)
            player.update(decision, clicked)
        if newcomer and second == VISITORS // 2:
            player.add_arm("new")
        shown = player.decide()
        clicked = rng.random() < RATES.get(shown.arm, NEWCOMER)
        late = rng.expovariate(1.0 / CLICK)
        seen.append((shown.arm, clicked))
        if clicked and not (told and late > SOON):
            heapq.heappush(reports, (now + late, shown.id, True))
        elif told:
            heapq.heappush(reports, (now + SOON, shown.id, False))
    return seen


def table(what: str, measured: Callable[[Policy, str, int], float], runs: int) -> None:
    """Mean and standard error of what is measured, by policy and by what the shop reports."""
    print(f"{what}, {runs} runs\n| policy | {' | '.join(WAYS.values())} |\n|---|---|---|---|")
    for policy in (Evidence(), Evidence(forget=False), Thompson()):
        cells = []
        for way in WAYS:
            values = np.array([measured(policy, way, seed) for seed in range(runs)])
            cells.append(f"{values.mean():.4f} ± {values.std(ddof=1) / math.sqrt(runs):.4f}")
        print(f"| {policy} | {' | '.join(cells)} |", flush=True)


def silence(runs: int) -> None:
    """Clicks a visitor of each policy, by what the shop reports."""

    def earned(policy: Policy, way: str, seed: int) -> float:
        return sum(clicked for _, clicked in visits(policy, way, seed)) / VISITORS

    best, chance = max(RATES.values()), sum(RATES.values()) / len(RATES)
    table(
        f"Clicks a visitor (always the best banner: {best:.4f}, uniform choice: {chance:.4f})", earned, runs
    )


def newcomer(runs: int) -> None:
    """What a bad banner gets in the first window of its own."""
    window = int(WINDOW)

    def share(policy: Policy, way: str, seed: int) -> float:
        seen = visits(policy, way, seed, newcomer=True)[VISITORS // 2 :][:window]
        return sum(arm == "new" for arm, _ in seen) / window

    table("Share of visitors of a new banner of 2 % in its first half hour", share, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("silence", "newcomer"))
    parser.add_argument("--runs", type=int, default=8)
    options = parser.parse_args()
    {"silence": silence, "newcomer": newcomer}[options.what](options.runs)


if __name__ == "__main__":
    main()
