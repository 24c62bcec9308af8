"""What policies that play the largest index share: their records, the plain loop for few arms, a tree for many."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.policies import crossover
from abex.policies.base import Kernels, PerArm, Policy, Setting
from abex.policies.means import learn_mean
from abex.policies.schema import MOST_COUNT, Count, MeanOf, Rebuilt, Scratch, Within
from abex.policies.tournament import (
    VARIANCE,
    IndexState,
    learn_index,
    new_index_state,
    resume_index_state,
    select_index,
)

_NONE = np.zeros(0)


def widths(pulls: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/sqrt(pulls), and 0 where there were none."""
    return np.where(pulls > 0.0, 1.0 / np.sqrt(np.maximum(pulls, 1.0)), 0.0)


class WidthMeans(NamedTuple):
    r"""Means with :math:`1/\sqrt{N_k}` at hand: multiplying is eight times cheaper than dividing by a root."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,), +inf before the first observation
    narrow: Annotated[PerArm, Rebuilt()]  # float64 (K,), 1/sqrt(pulls)
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    scale: float

    def restored(self, fresh: WidthMeans) -> WidthMeans:
        """The widths follow from the observations."""
        return self._replace(narrow=widths(self.pulls))


@kernel
def learn_width(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Mean and width of an observed arm."""
    learn_mean(state, t, arm, seen, reward, rng)
    state.narrow[seen] = 1.0 / math.sqrt(state.pulls[seen])


class VarianceMeans(NamedTuple):
    """Means and sums of squared deviations (Welford)."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,), +inf before the first observation
    spread: Annotated[PerArm, Within(0.0, MOST_COUNT)]  # float64 (K,), sum of (x - mean)^2
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    zeta: float
    c: float


@kernel
def learn_spread(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Mean and squared deviations (Welford)."""
    before = state.means[seen] if state.pulls[seen] > 0.0 else reward
    learn_mean(state, t, arm, seen, reward, rng)
    state.spread[seen] += (reward - before) * (reward - state.means[seen])


@kernel
def update_tree(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """What an index policy learns where its bounds stand in a tree."""
    if len(state.rule) == VARIANCE:
        learn_spread(state, t, arm, seen, reward, rng)
    else:
        learn_width(state, t, arm, seen, reward, rng)
    learn_index(state, seen)


class IndexPolicy(Policy[Any]):
    """What policies that play the largest index share: the plain loop for few arms, a tree of bounds for many.

    Both have the same law: the arm of the largest index, ties broken uniformly.
    """

    def start(self, setting: Setting) -> Any:
        """Nothing observed; unseen arms stand at +inf."""
        if self._many(setting):
            return new_index_state(setting.n_arms, *self._rule(setting))
        return self._plain(setting)

    @abstractmethod
    def _plain(self, setting: Setting) -> Any:
        """The record of the plain loop."""

    @abstractmethod
    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        """The rule of the tree and its parameters."""

    def kernels(self, setting: Setting) -> Kernels:
        """With many arms, a search that does not look at each of them."""
        return Kernels(select_index, update_tree) if self._many(setting) else super().kernels(setting)

    def _many(self, setting: Setting) -> bool:
        return setting.n_arms > crossover.INDEX

    def with_arms(self, state: Any, setting: Setting, keep: NDArray[np.int64]) -> Any:
        """Observations go along."""
        fresh = self.start(setting)
        for name in ("pulls", "means", "narrow", "spread"):
            old, new = getattr(state, name, _NONE), getattr(fresh, name, _NONE)
            if (old.size, new.size) == (state.means.size, fresh.means.size):  # not a placeholder
                new[: keep.size] = old[keep]
        if isinstance(fresh, IndexState):
            fresh.narrow[:] = 1.0 / np.sqrt(np.maximum(fresh.pulls, 1.0))
            return resume_index_state(fresh)
        return fresh
