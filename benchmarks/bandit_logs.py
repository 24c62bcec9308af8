"""Logs that bandits collected, with the probability of every decision, at compiled speed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import compiled
from abex.policies.base import Setting, as_policy
from abex.randomness import stream


class Drawn(NamedTuple):
    """Logs side by side: (logs, rows)."""

    arm: NDArray[np.int8]
    probability: NDArray[np.float64]
    reward: NDArray[np.int8]


def living(policy: Any) -> Any:
    """A loop that plays coins and notes arm, probability and reward of each step."""
    select, update = policy.kernels()
    tell = policy.probabilities

    @compiled(select, update, tell, allocates=True)
    def live(state: Any, means: Any, out: Any, arms: Any, chances: Any, paid: Any, rng: Any) -> None:
        for step in range(arms.size):
            out[:] = 0.0
            tell(state, step + 1, out)
            arm = select(state, step + 1, rng)
            reward = 1.0 if rng.random() < means[arm] else 0.0
            arms[step], chances[step], paid[step] = arm, out[arm], int(reward)
            update(state, step + 1, arm, arm, reward, rng)

    return live


def logs_of(text: str, means: Any, logs: int, rows: int, seed: int = 0) -> Drawn:
    """``logs`` lives of a policy on arms that are coins."""
    policy, means = as_policy(text), np.asarray(means, dtype=np.float64)
    live = living(policy)
    drawn = Drawn(np.zeros((logs, rows), np.int8), np.zeros((logs, rows)), np.zeros((logs, rows), np.int8))
    for log in range(logs):
        state = policy.start(Setting(means.size, rows, None))
        live(state, means, np.zeros(means.size), *(column[log] for column in drawn), stream(seed, "log", log))
    return drawn
