"""Environments that change at every step: a table of rewards, drifting means."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.environments.piecewise import AGAINST
from abex.environments.stochastic import HasMeans
from abex.kernels import Record, kernel
from abex.support.errors import UserError, shown
from abex.support.parameters import HUGE, choice, real
from abex.support.randomness import uniform_at
from abex.support.reading import reader_errors, short_path

BLOCK = 65_536  # steps whose means are looked at together


class TableWorld(Record):
    """The rewards, what the best fixed arm has gained by each step, and which arm it is in the end."""

    rewards: NDArray[Any]  # (rows, K)
    best_total: NDArray[np.float64]  # (rows + 1,)
    best_arm: int


@dataclass(frozen=True, eq=False)
class Table(Environment):
    r"""Rewards fixed in advance: row t - 1 holds the rewards of step t.

    The regret of T steps is against the best fixed arm in hindsight,
    :math:`\max_k\sum_{t\le T}x_k(t)-\sum_{t\le T}x_{k_t}(t)`; it may be negative.

    Parameters
    ----------
    rewards : array (rows, K), or path
        Numbers in [0, 1] of any float or integer type. A path names a ``.npy`` file, which is mapped into memory, not read.

    Examples
    --------
    >>> table = Table([[0.0, 1.0], [0.5, 0.5]])
    >>> table.n_arms, table.longest_horizon
    (2, 2)
    """

    rewards: Any = field(repr=False)

    def __post_init__(self) -> None:
        rewards = self.rewards
        if isinstance(rewards, str | Path):
            rewards = _mapped(Path(rewards))
        rewards = np.asarray(rewards) if not isinstance(rewards, np.memmap) else rewards
        if rewards.ndim != 2 or rewards.size == 0:
            raise UserError(f"a reward table must have rows and arms, got shape {shown(rewards.shape)}")
        if rewards.dtype.kind not in "fiub":
            raise UserError(f"a reward table must hold numbers, got {rewards.dtype}")
        for start in range(0, len(rewards), BLOCK):
            part = rewards[start : start + BLOCK]
            wrong = ~((part >= 0) & (part <= 1))
            if wrong.any():
                row, arm = np.argwhere(wrong)[0]
                raise UserError(
                    f"rewards must lie in [0, 1], got {part[row, arm]} at step {start + row + 1}, arm {arm}"
                )
        object.__setattr__(self, "rewards", rewards)

    @property
    def n_arms(self) -> int:
        """Number of columns."""
        return int(self.rewards.shape[1])

    @property
    def longest_horizon(self) -> int | None:
        """Number of rows."""
        return int(self.rewards.shape[0])

    @cached_property
    def _best(self) -> tuple[NDArray[np.float64], int]:
        best = np.zeros(len(self.rewards) + 1)
        gained = np.zeros(self.n_arms)
        for start in range(0, len(self.rewards), BLOCK):
            part = gained + np.cumsum(self.rewards[start : start + BLOCK], axis=0, dtype=np.float64)
            best[start + 1 : start + 1 + len(part)] = part.max(axis=1)
            gained = part[-1]
        return best, int(gained.argmax())

    def open(self, key: np.uint64, horizon: int) -> TableWorld:
        """The table itself: every replication faces the same rewards."""
        best_total, best_arm = self._best
        return TableWorld(rewards=np.asarray(self.rewards), best_total=best_total, best_arm=best_arm)

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """The entry of the table."""
        return float(world.rewards[t - 1, arm])

    @staticmethod
    @kernel
    def gap(world: Any, t: int, arm: int) -> float:
        """What the best fixed arm gained more: sums up to the regret in hindsight at every step."""
        return float(world.best_total[t] - world.best_total[t - 1] - world.rewards[t - 1, arm])

    @staticmethod
    @kernel
    def best(world: Any, t: int, arm: int) -> bool:
        """The arm that has gained most at the end of the table."""
        return bool(arm == world.best_arm)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and np.array_equal(self.rewards, other.rewards)

    def __hash__(self) -> int:
        return hash((self.rewards.shape, bytes(np.ascontiguousarray(self.rewards[:1]))))

    def __repr__(self) -> str:
        return f"Table(<{self.rewards.shape[0]} steps x {self.rewards.shape[1]} arms>)"


def _mapped(path: Path) -> NDArray[Any]:
    with reader_errors(
        f"read the reward table {short_path(path)}"
    ):  # a header that promises too much cannot be mapped
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise UserError(f"the reward table {short_path(path)} must be a .npy file of one array")
        return array


class DriftWorld(Record):
    """Centre, phase and size of each swing, their speed, and the arm that the regret is against, -1: the best of each step."""

    key: np.uint64
    means: NDArray[np.float64]
    phases: NDArray[np.float64]
    swing: float
    speed: float
    benchmark_arm: int


@kernel
def mean_at(world: DriftWorld, t: int, arm: int) -> float:
    """Mean of ``arm`` at step t: a sine wave around its centre, clipped to [0, 1]."""
    value = world.means[arm] + world.swing * math.sin(world.speed * t + world.phases[arm])
    return float(min(max(value, 0.0), 1.0))


@kernel
def benchmark_mean(world: DriftWorld, t: int) -> float:
    """Mean at step t of the fixed arm that the regret is against, else the largest one."""
    if world.benchmark_arm >= 0:
        return mean_at(world, t, world.benchmark_arm)
    top = 0.0
    for arm in range(world.means.size):
        top = max(top, mean_at(world, t, arm))
    return top


@dataclass(frozen=True)
class Drifting(HasMeans):
    r"""Bernoulli arms whose means swing up and down, each with its own phase.

    The mean is :math:`\mu_k(t)=\mu_k+A\sin(2\pi t/P+\phi_k)`, clipped to [0, 1].

    The phases :math:`\phi_k` are drawn anew in every replication. Cost O(K) per step, for the best mean.

    Parameters
    ----------
    means : sequence of float
        The centres.
    swing : float
        The amplitude A.
    period : float
        The steps P of a full swing.
    against : {"each step", "fixed arm"}
        The regret counts the mean of the best arm of each step (dynamic regret), or that of the arm with the largest sum of means
        in the replication, which may be negative and costs O(1) per step.

    Examples
    --------
    >>> Drifting([0.4, 0.6], swing=0.3).n_arms
    2
    """

    means: Any
    swing: float = real(0.2, least=0.0, most=1.0)
    period: float = real(10_000.0, least=1e-6, most=HUGE)
    against: str = choice("each step", AGAINST)

    def open(self, key: np.uint64, horizon: int) -> DriftWorld:
        """The centres with random phases."""
        rng = np.random.Generator(np.random.PCG64(int(key)))
        phases = rng.uniform(0.0, 2.0 * math.pi, self.n_arms)
        world = DriftWorld(
            key=key,
            means=np.asarray(self.means),
            phases=phases,
            swing=self.swing,
            speed=2.0 * math.pi / self.period,
            benchmark_arm=-1,
        )
        if self.against == "fixed arm":
            world.benchmark_arm = int(self._totals(world, horizon).argmax())
        return world

    def _totals(self, world: DriftWorld, horizon: int) -> NDArray[np.float64]:
        """The sum of each arm's means up to the horizon."""
        totals = np.zeros(self.n_arms)
        for arm in range(self.n_arms):
            for first in range(1, horizon + 1, BLOCK):
                steps = np.arange(first, min(first + BLOCK, horizon + 1))
                swings = world.swing * np.sin(world.speed * steps + world.phases[arm])
                totals[arm] += np.clip(world.means[arm] + swings, 0.0, 1.0).sum()
        return totals

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """1 with the arm's present probability."""
        return 1.0 if uniform_at(world.key, t, arm) < mean_at(world, t, arm) else 0.0

    @staticmethod
    @kernel
    def gap(world: Any, t: int, arm: int) -> float:
        """What the arm that the regret is against earns more."""
        return benchmark_mean(world, t) - mean_at(world, t, arm)

    @staticmethod
    @kernel
    def best(world: Any, t: int, arm: int) -> bool:
        """The arm earns as much as that which the regret is against."""
        return mean_at(world, t, arm) >= benchmark_mean(world, t)
