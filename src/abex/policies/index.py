"""The arm of the largest index: what policies of optimism share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from abex.kernels import fields_of
from abex.kinds import Count, Mean
from abex.policies.learner import Learned, Learner
from abex.policies.means import learn_arm
from abex.policies.policy import Setting
from abex.samplers import sampler_for


class IndexState(Learned):
    """Means, and what finds the largest index; each index has a class of its own, with the numbers of its formula."""

    observations: Count
    means: Mean  # +inf before the first observation
    initial: float  # the mean of an arm without observations


class IndexPolicy(Learner[Any]):
    """A policy that plays the arm of the largest index, ties broken uniformly; see `abex.samplers.interface` for its formulas."""

    record: ClassVar[
        Any
    ]  # the class of its state, for which its formulas are registered; arrays begin with zeros
    law: ClassVar[str]  # the name of its index in `abex.samplers.sampler_for`
    learn = staticmethod(learn_arm)

    @abstractmethod
    def numbers(self, setting: Setting) -> dict[str, float]:
        """The numbers of its formula."""

    def start(self, setting: Setting) -> Any:
        """Nothing observed; unseen arms stand at +inf."""
        n, numbers = setting.n_arms, self.numbers(setting)
        known = {*fields_of(IndexState), *numbers}
        state = self.record(
            observations=np.zeros(n),
            means=np.full(n, np.inf),
            initial=np.inf,
            **numbers,
            **{name: np.zeros(n) for name in fields_of(self.record) if name not in known},
        )
        return self.prepare(state)

    def prepare(self, state: Any) -> Any:
        """Find the largest index."""
        state.sampler = sampler_for(self.law, state)
        return state
