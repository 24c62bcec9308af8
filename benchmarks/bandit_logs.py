"""Logs that bandits collected, with the probability of every decision, at compiled speed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.evaluation import Log
from abex.kernels import compiled
from abex.policies.naming import as_policy
from abex.policies.policy import Setting
from abex.support.randomness import stream


class Drawn(NamedTuple):
    """Logs side by side: (logs, rows)."""

    arm: NDArray[np.int8]
    probability: NDArray[np.float64]
    reward: NDArray[np.int8]


def living(policy: Any) -> Any:
    """A loop that plays coins and notes arm, probability and reward of each step."""
    select, update = policy.kernels()
    tell = policy.probabilities

    @compiled(select, update, tell)
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


def batches_of(means: Any, logs: int, rows: int, seed: int = 0) -> list[Log]:
    """Logs of EXP3 that draws two different arms at once and learns each with its probability of being in the batch.

    All lives are played side by side. With two arms of K, arm a is in the batch with probability
    p(a) + sum over b of p(b) p(a) / (1 - p(b)).
    """
    means, n_arms = np.asarray(means, dtype=np.float64), len(means)
    rng, gains = stream(seed, "batches"), np.zeros((logs, n_arms))
    rate = np.sqrt(np.log(n_arms) / (rows * n_arms))
    each, columns = np.arange(logs), []
    for _ in range(rows // 2):
        p = np.exp(rate * (gains - gains.max(axis=1, keepdims=True)))
        p = 0.95 * p / p.sum(axis=1, keepdims=True) + 0.05 / n_arms
        odds = p / (1.0 - p)
        inclusion = p * (1.0 + odds.sum(axis=1, keepdims=True) - odds)
        first = (rng.random((logs, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, n_arms - 1)
        rest = p.copy()
        rest[each, first] = 0.0
        rest = rest.cumsum(axis=1)
        second = (rng.random((logs, 1)) * rest[:, -1:] >= rest).sum(axis=1).clip(0, n_arms - 1)
        for arm in (first, second):
            reward = (rng.random(logs) < means[arm]).astype(float)
            columns.append((arm, inclusion[each, arm], reward))
            gains[each, arm] += reward / inclusion[each, arm]
    arm, chance, reward = (np.array(column).T for column in zip(*columns, strict=True))
    batch = np.repeat(np.arange(rows // 2), 2)
    return [Log(range(n_arms), arm[one], chance[one], reward[one], batch=batch) for one in range(logs)]
