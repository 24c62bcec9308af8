"""The compiled loop."""

from __future__ import annotations

from functools import cache
from typing import Any

from abex.environments.base import Rules
from abex.kernels import compiled
from abex.policies.base import Kernels


def loop(kernels: Kernels, rules: Rules, reveal: Any) -> Any:
    """The loop of one replication as a plain function; `compiled_loop` compiles it."""
    select, update = kernels
    draw, gap, best = rules

    def play(
        state: Any, world: Any, feedback: Any, first: int, last: int,
        checkpoints: Any, regret: Any, hits: Any, cursor: Any, totals: Any, seen: Any, rng: Any,
    ) -> None:  # fmt: skip
        """Play steps first..last; ``cursor`` and ``totals`` carry over to the next call."""
        where = cursor[0]
        lost = totals[0]
        right = totals[1]
        for t in range(first, last + 1):
            arm = select(state, t, rng)
            lost += gap(world, t, arm)
            if best(world, t, arm):
                right += 1.0
            for j in range(reveal(feedback, t, arm, seen)):
                update(state, t, arm, seen[j], draw(world, t, seen[j]), rng)
            if t == checkpoints[where]:
                regret[where] = lost
                hits[where] = right
                where += 1
        cursor[0] = where
        totals[0] = lost
        totals[1] = right

    return play


@cache
def compiled_loop(kernels: Kernels, rules: Rules, reveal: Any) -> Any:
    """`loop`, compiled once per combination."""
    return compiled(*kernels, *rules, reveal)(loop(kernels, rules, reveal))
