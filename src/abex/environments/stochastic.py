"""Arms that pay independent random rewards with a fixed mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.environments.base import Environment
from abex.errors import UserError
from abex.kernels import kernel
from abex.randomness import uniform_at


class MeansWorld(NamedTuple):
    """Means of the arms, the largest of them, and the key of the rewards."""

    key: np.uint64
    means: NDArray[np.float64]
    top: float


@kernel
def mean_gap(world: Any, t: int, arm: int) -> float:
    """Pseudo-regret: largest mean minus the mean of the pulled arm."""
    return world.top - world.means[arm]


@kernel
def mean_best(world: Any, t: int, arm: int) -> bool:
    """The arm's mean is the largest."""
    return world.means[arm] >= world.top


def as_means(name: str, values: Any) -> tuple[float, ...]:
    """A tuple of numbers in [0, 1], at least one."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise UserError(f"{name} must be a non-empty list of numbers, got shape {array.shape}")
    if not bool(np.all((array >= 0.0) & (array <= 1.0))):
        wrong = int(np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))[0])
        raise UserError(f"{name} must lie in [0, 1], got {array[wrong]} for arm {wrong}")
    return tuple(array.tolist())


@dataclass(frozen=True)
class Bernoulli(Environment):
    """Arm k pays 1 with probability ``means[k]`` and 0 otherwise.

    Examples
    --------
    >>> Bernoulli([0.75, 0.5]).n_arms
    2
    """

    means: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", as_means("means", self.means))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means)

    def open(self, key: np.uint64, horizon: int) -> MeansWorld:
        """The means and the key."""
        means = np.asarray(self.means)
        return MeansWorld(key, means, float(means.max()))

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """1 with the arm's probability."""
        return 1.0 if uniform_at(world.key, t, arm) < world.means[arm] else 0.0

    gap = staticmethod(mean_gap)
    best = staticmethod(mean_best)

    @classmethod
    def examples(cls) -> Iterator[Environment]:
        """Two arms, and one."""
        yield cls([0.1, 0.9])
        yield cls([0.3])
