"""The arm of the largest index: what policies of optimism share."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from abex.kinds import Count, Mean
from abex.policies.learner import Learned, Learner
from abex.policies.means import learn_arm, new_means
from abex.policies.policy import Setting


class IndexState(Learned):
    """Means, and what finds the largest index; each index has a class of its own, with the numbers of its formula."""

    observations: Count
    means: Mean  # +inf before the first observation
    initial: float  # the mean of an arm without observations


class IndexPolicy(Learner[Any]):
    """A policy that plays the arm of the largest index, ties broken uniformly; see `abex.samplers.interface` for its formulas."""

    record: ClassVar[Any]  # the class of its state, for which its formulas are registered
    learn = staticmethod(learn_arm)

    def numbers(self, setting: Setting) -> dict[str, float]:
        """The numbers of its formula: its parameters."""
        return {field.name: float(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def report(self, state: Any) -> dict[str, float]:
        """How many observations came after the horizon that the policy names, if it names one."""
        horizon = getattr(self, "horizon", None)
        if horizon is None or math.isnan(state.horizon):
            return {}
        return {"observations past horizon": max(0.0, float(state.observations.sum()) - horizon)}

    def start(self, setting: Setting) -> Any:
        """Nothing observed; unseen arms stand at +inf."""
        return self.prepare(new_means(self.record, setting.n_arms, **self.numbers(setting)))
