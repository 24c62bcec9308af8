r"""Replay: a policy that learns along the log, and a log as an environment.

**Rejection replay** (Li, Chu, Langford, Wang 2011). Row by row the policy says which arm it would choose; where that is
the logged one the row is kept with probability :math:`\min_jp_j/p_i`, and the policy learns its reward; all else is
skipped. Given that, the kept rows are as if the logged arms had been uniform: the policy lives through its first m
steps, m the number of rows kept, exactly as in the world of the log, and the mean reward is an unbiased estimate of its
own over m steps. About n over K rows are kept of a uniform log.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.environments.stochastic import mean_best, mean_gap
from abex.evaluation.log import Log, as_log
from abex.kernels import Record, kernel
from abex.policies.naming import as_policy
from abex.support.errors import UserError
from abex.support.intervals import LEVEL, mean_of
from abex.support.randomness import stream, uniform_at

MIN_KEPT = 30


class Replayed(NamedTuple):
    """What came of rejection replay: the mean reward over the steps lived through, or why there is none."""

    value: float
    interval: tuple[float, float]
    steps: int
    rewards: NDArray[np.float64]
    reason: str


def replay(log: Log, policy: Any, *, seed: int = 0, level: float = LEVEL, graph: Any = None) -> Replayed:
    """Let ``policy`` learn along the log; its mean reward over the steps that it lives through.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.integers(0, 2, 4000)
    >>> log = Log(["a", "b"], arm, np.full(4000, 0.5), rng.random(4000) < np.array([0.2, 0.8])[arm])
    >>> found = replay(log, "Thompson")
    >>> found.steps > 1900, found.value > 0.7
    (True, True)
    """
    from abex.players import Player

    as_log(log)
    chosen = as_policy(policy)
    if log.reward.min() < 0.0 or log.reward.max() > 1.0:
        raise UserError("replay needs rewards from 0 to 1: scale them")
    if log.has_batches:
        reason = "the log has decisions that were made at once; replay lives through those made one by one"
        return Replayed(np.nan, (np.nan, np.nan), 0, np.zeros(0), reason)
    player = Player(chosen, log.n_arms, graph=graph, horizon=len(log), seed=seed)
    keep = stream(seed, "rejection").random(len(log)) * log.probability < log.probability.min()
    rewards: list[float] = []
    waiting = None
    for row in np.flatnonzero(keep):
        if waiting is None:
            waiting = player.decide()
        if waiting.arm == log.arm[row]:
            player.update(waiting, float(log.reward[row]))
            rewards.append(float(log.reward[row]))
            waiting = None
    kept = np.array(rewards)
    if kept.size < MIN_KEPT:
        reason = f"{len(log):,} rows let {chosen} live through {kept.size} steps, fewer than {MIN_KEPT}"
        return Replayed(np.nan, (np.nan, np.nan), kept.size, kept, reason)
    estimate = mean_of(kept)
    low, high = estimate.interval(level)
    return Replayed(float(estimate.mean), (max(float(low), 0.0), min(float(high), 1.0)), kept.size, kept, "")


class LoggedWorld(Record):
    """The rewards of all arms one after the other, where each arm's begin, their means, and the key."""

    key: np.uint64
    start: NDArray[np.int64]  # (K + 1,)
    rewards: NDArray[np.float64]
    means: NDArray[np.float64]
    top: float


@dataclass(frozen=True, eq=False)
class LogReplay(Environment):
    """A log as an environment: an arm pays one of its logged rewards, drawn uniformly at every step.

    The means are those of the log; every arm must have been tried. Rewards must lie in [0, 1].

    Examples
    --------
    >>> from abex import simulate
    >>> world = LogReplay(Log(["a", "b"], [0, 0, 1], [0.5, 0.5, 0.5], [0.0, 1.0, 1.0]))
    >>> world.n_arms, world.true_means.tolist()
    (2, [0.5, 1.0])
    >>> curves = simulate("Thompson", world, horizon=200, replications=2, seed=1)
    """

    log: Log

    def __post_init__(self) -> None:
        as_log(self.log)
        never = np.flatnonzero(self.log.counts() == 0)
        if never.size:
            raise UserError(
                f"arm {self.log.arms[int(never[0])]!r} was never tried in the log: leave it out of the arms"
            )
        if self.log.reward.min() < 0.0 or self.log.reward.max() > 1.0:
            raise UserError("an environment pays rewards from 0 to 1: scale those of the log")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.log.n_arms

    @cached_property
    def true_means(self) -> NDArray[np.float64]:
        """Mean reward of each arm in the log."""
        return self.log.means()

    @cached_property
    def _rewards(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        order = np.argsort(self.log.arm, kind="stable")
        return np.append(0, np.cumsum(self.log.counts())), np.ascontiguousarray(self.log.reward[order])

    def open(self, key: np.uint64, horizon: int) -> LoggedWorld:
        """The same rewards; only the key differs between replications."""
        means = self.true_means
        start, rewards = self._rewards
        return LoggedWorld(key=key, start=start, rewards=rewards, means=means, top=means.max())

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """One of the arm's logged rewards."""
        first = world.start[arm]
        return float(
            world.rewards[first + int(uniform_at(world.key, t, arm) * (world.start[arm + 1] - first))]
        )

    gap = staticmethod(mean_gap)
    best = staticmethod(mean_best)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogReplay):
            return NotImplemented
        return self.log.arms == other.log.arms and all(
            np.array_equal(one, two) for one, two in zip(self._rewards, other._rewards, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.log.arms, self._rewards[0].tobytes(), self._rewards[1].tobytes()))

    def __repr__(self) -> str:
        return f"LogReplay({self.log!r})"
