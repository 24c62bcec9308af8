"""What a player costs: CPU of a decision with its reward, of probabilities, and of replaying a journal.

    python -m benchmarks.players

CPU microseconds, the smallest of several rounds that take turns; ids and once-only rewards included.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from abex import Player
from abex.players.events import decode

ROUNDS = 7
LARGE = (3, 100, 1_000, 5_000)


def smallest(work: dict[str, Callable[[int], None]], count: int) -> dict[str, float]:
    """CPU microseconds a time of each piece of work, by turns."""
    best = dict.fromkeys(work, np.inf)
    for piece in work.values():
        piece(count // 4)  # the first calls make what is made once
    for _ in range(ROUNDS):
        for name, piece in work.items():
            began = time.process_time()
            piece(count)
            best[name] = min(best[name], (time.process_time() - began) / count)
    return {name: 1e6 * seconds for name, seconds in best.items()}


def played(player: Player, uniform: list[float]) -> Callable[[int], None]:
    """Decide and reward so often."""
    means = np.linspace(0.2, 0.6, player.n_arms).tolist()

    def work(count: int) -> None:
        for number in range(count):
            decision = player.decide()
            player.update(decision, 1.0 if uniform[number] < means[decision.arm] else 0.0)

    return work


def probabilities(player: Player) -> Callable[[int], None]:
    """One probability of a decision."""

    def work(count: int) -> None:
        for _ in range(count):
            player._state.version += 1  # as if something had been learned
            player._state.probability(player._state.steps + 1, 0)

    return work


def replayed(policy: str, compiled: bool, folder: str) -> Callable[[int], None]:
    """Read, check and apply the events of a journal, as another process does."""
    with Player.open(
        f"sqlite:///{folder}/{policy}{compiled}.db?synchronous=normal", "x", policy, n_arms=3
    ) as player:
        for _ in range(1_000):
            player.update_many([(player.decide(), 1.0) for _ in range(5)])
        bodies = [body for _, body in player.events()]
        fresh, template = player.definition.replica(compiled), player._template
        learning = player._learning

    def work(count: int) -> None:
        state = fresh.copy()
        for body in bodies[:count]:
            event = decode(body)
            state.check(event, template)
            state.apply(event, learning.resting)

    return work


def show(title: str, found: dict[str, float]) -> None:
    """A table."""
    print(f"{title}:", ", ".join(f"{name} {cost:.1f}" for name, cost in found.items()), flush=True)


def main() -> None:
    """All of them."""
    uniform = np.random.default_rng(1).random(10_000).tolist()
    for compiled in (None, False, True):
        players: dict[str, Any] = {
            name: played(Player(name, n_arms=3, seed=1, compiled=compiled), uniform)
            for name in ("Thompson", "Evidence", "UCB1")
        }
        show(f"decide and update, 3 arms, compiled={compiled}, us", smallest(players, 2_000))
    seen = {
        f"{n:,} arms": played(Player("Evidence", n_arms=n, seed=1, propensities=True), uniform) for n in LARGE
    }
    show("the same with propensities, Evidence, us", smallest(seen, 1_000))
    laws = {}
    for n in (3, 100):
        player = Player("Thompson", n_arms=n, seed=1, compiled=True)
        played(player, uniform)(2_000)
        laws[f"{n} arms"] = probabilities(player)
    show("one Thompson propensity, us", smallest(laws, 200))
    with tempfile.TemporaryDirectory() as folder:
        replays = {
            f"{name}{' compiled' if compiled else ''}": replayed(name, compiled, folder)
            for name in ("UCB1", "Evidence", "Thompson")
            for compiled in (False, True)
        }
        show("an event replayed, us", smallest(replays, 10_000))


if __name__ == "__main__":
    main()
