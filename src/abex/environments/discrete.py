"""Discrete rewards: any distribution on finitely many values in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.environments.stochastic import as_means, mean_best, mean_gap
from abex.kernels import Record, kernel
from abex.support.errors import UserError, shown
from abex.support.randomness import uniform_at


class DiscreteWorld(Record):
    """The values of all arms in a row with their cumulative probabilities, where each arm's begin, means and key."""

    key: np.uint64
    first: NDArray[np.int64]  # (K + 1,)
    values: NDArray[np.float64]
    upto: NDArray[np.float64]  # cumulative probabilities; an arm's last is 1
    means: NDArray[np.float64]
    top: float


@dataclass(frozen=True)
class Discrete(Environment):
    r"""Arm k pays ``values[k][j]`` with probability ``probabilities[k][j]``.

    Parameters
    ----------
    values : list of lists of float
        What each arm may pay, numbers in [0, 1]; arms may have lists of different lengths.
    probabilities : list of lists of float, optional
        How likely each value is; every arm's sum to 1. None: all values of an arm are equally likely.

    Examples
    --------
    >>> rare = Discrete([[0.05], [0.0, 1.0]], [[1.0], [0.9, 0.1]])
    >>> rare.n_arms, rare.true_means.tolist()
    (2, [0.05, 0.1])
    """

    values: Sequence[Sequence[float]]
    probabilities: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.values, Sequence | np.ndarray) or len(self.values) == 0:
            raise UserError(f"values must be a list of the values of each arm, got {shown(self.values)}")
        values = tuple(tuple(as_means("values", one).tolist()) for one in self.values)
        object.__setattr__(self, "values", values)
        if self.probabilities is None:
            return
        if (
            not isinstance(self.probabilities, Sequence | np.ndarray)
            or len(self.probabilities) != self.n_arms
        ):
            raise UserError(f"probabilities must be a list for each of the {self.n_arms} arms")
        chances = tuple(tuple(as_means("probabilities", one).tolist()) for one in self.probabilities)
        for arm, (row, chance) in enumerate(zip(values, chances, strict=True)):
            if len(row) != len(chance) or abs(sum(chance) - 1.0) > 1e-9:
                raise UserError(
                    f"arm {arm} needs a probability for each of its {len(row)} values, and they must sum to 1"
                )
        object.__setattr__(self, "probabilities", chances)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.values)

    def _chances(self, arm: int) -> NDArray[np.float64]:
        count = len(self.values[arm])
        return (
            np.full(count, 1.0 / count) if self.probabilities is None else np.array(self.probabilities[arm])
        )

    @cached_property
    def true_means(self) -> NDArray[np.float64]:
        """Expected reward of each arm."""
        return np.array([float(np.dot(row, self._chances(arm))) for arm, row in enumerate(self.values)])

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        first = np.cumsum([0, *(len(row) for row in self.values)])
        upto = np.concatenate([np.append(np.cumsum(self._chances(k))[:-1], 1.0) for k in range(self.n_arms)])
        return first, np.concatenate([np.array(row) for row in self.values]), upto

    def open(self, key: np.uint64, horizon: int) -> DiscreteWorld:
        """The tables and the key."""
        first, values, upto = self._rows
        means = self.true_means
        return DiscreteWorld(key=key, first=first, values=values, upto=upto, means=means, top=means.max())

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """The quantile of a uniform number."""
        at = world.first[arm]
        u = uniform_at(world.key, t, arm)
        while u >= world.upto[at]:
            at += 1
        return float(world.values[at])

    gap = staticmethod(mean_gap)
    best = staticmethod(mean_best)
