"""Logs that bandits collected, with the probability of every decision, at compiled speed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import compiled
from abex.policies.naming import as_policy
from abex.policies.policy import Setting
from abex.support.randomness import stream


class Drawn(NamedTuple):
    """Logs side by side: (logs, rows)."""

    arm: NDArray[np.int64]
    law: NDArray[np.float64]  # (logs, rows, arms), the probabilities of all arms
    reward: NDArray[np.float64]


def living(policy: Any) -> Any:
    """A loop that plays coins and notes arm, probabilities and reward of each step."""
    select, update = policy.kernels()
    tell = policy.probabilities

    @compiled(select, update, tell)
    def live(state: Any, means: Any, arms: Any, laws: Any, paid: Any, rng: Any) -> None:
        for step in range(arms.size):
            tell(state, step + 1, laws[step])
            arm = select(state, step + 1, rng)
            reward = 1.0 if rng.random() < means[arm] else 0.0
            arms[step], paid[step] = arm, reward
            update(state, step + 1, arm, arm, reward, rng)

    return live


def logs_of(text: str, means: Any, logs: int, rows: int, seed: int = 0) -> Drawn:
    """``logs`` lives of a policy on arms that are coins."""
    policy, means = as_policy(text), np.asarray(means, dtype=np.float64)
    live = living(policy)
    drawn = Drawn(
        np.zeros((logs, rows), np.int64), np.zeros((logs, rows, means.size)), np.zeros((logs, rows))
    )
    for log in range(logs):
        state = policy.start(Setting(means.size, rows, None))
        live(state, means, *(column[log] for column in drawn), stream(seed, "log", log))
    return drawn
