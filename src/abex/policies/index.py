"""The arm of the largest index: what policies of optimism share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from abex.kernels import fields_of
from abex.kinds import Count, Mean
from abex.policies.learner import Learned, Learner, learn_arm
from abex.policies.policy import Setting
from abex.samplers import sampler_for


class IndexState(Learned):
    """Means, the rule of the index with its parameters, and what finds the largest one."""

    observations: Count
    means: Mean  # +inf before the first observation
    rule: Any
    initial: float  # the mean of an arm without observations


class IndexPolicy(Learner[Any]):
    """A policy that plays the arm of the largest index, ties broken uniformly; see `abex.samplers.indices` for its rule."""

    record: ClassVar[Any] = IndexState  # or one with more arrays, which begin with zeros
    law: ClassVar[str]  # the name of its index in `abex.samplers.sampler_for`
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
        state.sampler = sampler_for(self.law, state)
        return state
