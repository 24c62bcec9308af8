"""What policies that play the largest index share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from abex.policies.base import PerArm, Setting
from abex.policies.drawn import SampledPolicy
from abex.policies.means import learn_mean
from abex.samplers import crossover
from abex.samplers.contenders import new_contenders
from abex.samplers.tournament import new_index_sampler
from abex.schema import Count, FixedAtStart, MeanOf


class IndexState(NamedTuple):
    """Means, the rule of the index with its parameters, and what finds the largest one."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,), +inf before the first observation
    rule: Annotated[Any, FixedAtStart()]
    sampler: Any  # of the largest index


class IndexPolicy(SampledPolicy[Any]):
    """A policy that plays the arm of the largest index, ties broken uniformly; see `abex.samplers.indices` for its rule."""

    record: ClassVar[Any] = IndexState  # or one with more arrays between the means and the rule
    crossover: ClassVar[str]  # the name of its constant in `abex.samplers.crossover`
    contenders: ClassVar[str | None] = None  # and where it has a cheap bound on an index
    arms_per_leaf: ClassVar[int] = 1  # of the tournament: the cheaper an index, the more
    learn = staticmethod(learn_mean)

    @abstractmethod
    def rule(self, setting: Setting) -> Any:
        """The record of parameters whose class names the formulas."""

    def start(self, setting: Setting) -> Any:
        """Nothing observed; unseen arms stand at +inf."""
        n = setting.n_arms
        others = (
            np.zeros(n) for _ in range(len(self.record._fields) - 4)
        )  # what else its index needs, per arm
        return self.with_sampler(
            self.record(np.zeros(n), np.full(n, np.inf), *others, self.rule(setting), None)
        )

    def new_sampler(self, state: Any) -> Any:
        """Find the largest index."""
        few = getattr(crossover, self.crossover)
        if self.contenders and few < state.observations.size <= getattr(crossover, self.contenders):
            return new_contenders(state.observations)
        return new_index_sampler(state.observations, few, self.arms_per_leaf)
