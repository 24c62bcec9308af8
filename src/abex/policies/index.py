"""What policies that play the largest index share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from abex.kernels import kernel
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.means import learn_mean
from abex.samplers import changed, crossover, draw
from abex.samplers.tournament import new_index_sampler
from abex.schema import Count, Fixed, MeanOf


class IndexState(NamedTuple):
    """Means, the rule of the index with its parameters, and what finds the largest one."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,), +inf before the first observation
    rule: Annotated[Any, Fixed()]
    sampler: Any  # of the largest index


class IndexPolicy(Policy[Any]):
    """A policy that plays the arm of the largest index, ties broken uniformly; see `abex.samplers.indices` for its rule."""

    crossover: ClassVar[str]  # the name of its constant in `abex.samplers.crossover`
    arms_per_leaf: ClassVar[int] = 1  # of the tournament: the cheaper an index, the more

    @abstractmethod
    def rule(self, setting: Setting) -> Any:
        """The record of parameters whose class names the formulas."""

    def start(self, setting: Setting) -> Any:
        """Nothing observed; unseen arms stand at +inf."""
        n = setting.n_arms
        return self.with_sampler(IndexState(np.zeros(n), np.full(n, np.inf), self.rule(setting), None))

    def with_sampler(self, state: Any) -> Any:
        """Find the largest index."""
        few = getattr(crossover, self.crossover)
        return state._replace(sampler=new_index_sampler(state.pulls, few, self.arms_per_leaf))

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest index."""
        return draw(state.sampler, state, t, rng)

    @staticmethod
    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean."""
        learn_mean(state, t, arm, seen, reward, rng)
        changed(state.sampler, state, seen)
