"""The arm of the largest index: what policies of optimism share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from abex.kernels import fields_of
from abex.kinds import Count, Mean
from abex.policies.base import Setting
from abex.policies.learner import Learned, Learner, learn_arm
from abex.samplers import crossover
from abex.samplers.contenders import new_contenders
from abex.samplers.indices import IndexScan
from abex.samplers.tournament import new_index_sampler


class IndexState(Learned):
    """Means, the rule of the index with its parameters, and what finds the largest one."""

    observations: Count
    means: Mean  # +inf before the first observation
    rule: Any
    initial: float  # the mean of an arm without observations


class IndexPolicy(Learner[Any]):
    """A policy that plays the arm of the largest index, ties broken uniformly; see `abex.samplers.indices` for its rule."""

    record: ClassVar[Any] = IndexState  # or one with more arrays, which begin with zeros
    crossover: ClassVar[str]  # the name of its constant in `abex.samplers.crossover`
    contenders: ClassVar[str | None] = None  # and where it has a cheap bound on an index
    arms_per_leaf: ClassVar[int] = 1  # of the tournament: the cheaper an index, the more
    learn = staticmethod(learn_arm)

    @abstractmethod
    def rule(self, setting: Setting) -> Any:
        """The record of parameters whose class names the formulas."""

    def start(self, setting: Setting) -> Any:
        """Nothing observed; unseen arms stand at +inf."""
        n = setting.n_arms
        others = {name: np.zeros(n) for name in fields_of(self.record) if name not in fields_of(IndexState)}
        state = self.record(
            observations=np.zeros(n),
            means=np.full(n, np.inf),
            rule=self.rule(setting),
            initial=np.inf,
            **others,
        )
        return self.prepare(state)

    def prepare(self, state: Any) -> Any:
        """Find the largest index."""
        few, memory = getattr(crossover, self.crossover), state.memory
        fading = getattr(crossover, f"{self.crossover}_FADING", few)
        if memory is not None and memory.scans(self.crossover, fading):
            state.sampler = IndexScan(np.zeros(state.means.size))
            return state
        if self.contenders and few < state.observations.size <= getattr(crossover, self.contenders):
            state.sampler = new_contenders(state.observations)
        else:
            state.sampler = new_index_sampler(state.observations, few, self.arms_per_leaf)
        return state
