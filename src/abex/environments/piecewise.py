"""Bernoulli arms whose means stay for a while and then change: what all such environments have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.kernels import kernel
from abex.randomness import uniform_at

AGAINST = ("each step", "fixed arm")
Path = tuple[NDArray[np.int64], NDArray[np.float64]]  # the steps before each piece, the means in it


class PathWorld(NamedTuple):
    """Where each piece of the path begins, the means in it, and what the arm of the comparison earns."""

    key: np.uint64
    begins: NDArray[np.int64]  # (pieces,), the steps before a piece
    means: NDArray[np.float64]  # (pieces, K)
    goal: NDArray[np.float64]  # (pieces,)


@kernel
def piece_at(world: Any, t: int) -> int:
    """The piece of step t, by bisection; the last one stays for ever."""
    low, high = 0, world.begins.size
    while high - low > 1:
        middle = (low + high) // 2
        if world.begins[middle] < t:
            low = middle
        else:
            high = middle
    return low


class Piecewise(Environment):
    """Bernoulli arms along a path of means, with regret against the best arm of each step or the best fixed one."""

    against: str

    @abstractmethod
    def path(self, key: np.uint64, horizon: int) -> Path:
        """Pieces of the path, for a horizon."""

    def open(self, key: np.uint64, horizon: int) -> PathWorld:
        """The path, and what is earned by the arm of the comparison."""
        begins, means = self.path(key, horizon)
        goal = means.max(axis=1)
        if self.against == "fixed arm":
            ends = np.minimum(np.append(begins[1:], horizon), horizon)
            steps = np.maximum(ends - begins, 0)
            goal = means[:, int((steps[:, None] * means).sum(axis=0).argmax())].copy()
        return PathWorld(key, begins, means, goal)

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """1 with the arm's present probability."""
        return 1.0 if uniform_at(world.key, t, arm) < world.means[piece_at(world, t), arm] else 0.0

    @staticmethod
    @kernel
    def gap(world: Any, t: int, arm: int) -> float:
        """What the arm of the comparison earns more."""
        piece = piece_at(world, t)
        return float(world.goal[piece] - world.means[piece, arm])

    @staticmethod
    @kernel
    def best(world: Any, t: int, arm: int) -> bool:
        """The arm earns as much as that of the comparison."""
        piece = piece_at(world, t)
        return bool(world.means[piece, arm] >= world.goal[piece])
