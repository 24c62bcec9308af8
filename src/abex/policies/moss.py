"""MOSS: upper confidence bounds that vanish at an arm's fair share of the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.kernels import kernel
from abex.parameters import HUGE, MOST_STEPS, real, whole
from abex.policies import crossover
from abex.policies.base import PerArm, Setting
from abex.policies.index_policy import IndexPolicy
from abex.policies.indices import moss_bound
from abex.policies.means import learn_mean
from abex.policies.schema import Count, MeanOf, Scratch
from abex.policies.tournament import MINIMAX
from abex.randomness import argmax


class MossState(NamedTuple):
    """Means, and what the logarithm of MOSS compares the observations with."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,), +inf before the first observation
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    horizon: float  # nan: the current step
    factor: float


@kernel
def moss_select(state: Any, t: int, rng: Any) -> int:
    """The largest MOSS index."""
    rounds = t if math.isnan(state.horizon) else state.horizon
    share = rounds / state.means.size
    for k in range(state.means.size):
        state.score[k] = moss_bound(state.means[k], state.pulls[k], share, state.factor)
    return argmax(state.score, rng)


@dataclass(frozen=True)
class MOSS(IndexPolicy):
    r"""Upper confidence bounds that shrink to zero at the fair share of the horizon.

    Play the largest :math:`\hat\mu_k+\sqrt{\ln_+\!\big(H/(K N_k)\big)/N_k}`.

    Parameters
    ----------
    horizon : int or None
        The number of steps H to tune for; None takes the horizon of the run. Beyond H the bounds keep vanishing at
        H / K observations: a run that is longer is warned about, and `report` counts the observations past H.

    References
    ----------
    Audibert and Bubeck 2009, Figure 1 and Theorem 5: regret at most :math:`49\sqrt{KT}`.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.tournament`), O(K) for a few arms.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(MOSS(horizon=100), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 9 + [(1, 1.0)] * 9), player.select()
    (18, 1)
    """

    horizon: int | None = whole(None, least=1, most=MOST_STEPS, or_none=True)

    @property
    def needs_horizon(self) -> bool:
        """Only where ``horizon`` is left open."""
        return self.horizon is None

    def _plain(self, setting: Setting) -> MossState:
        """Record of means; unseen arms stand at +inf."""
        n = setting.n_arms
        horizon = float(self.horizon or self.horizon_of(setting))
        return MossState(np.zeros(n), np.full(n, np.inf), np.zeros(n), horizon, 1.0)

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return MINIMAX, self.horizon or self.horizon_of(setting), 1.0

    def _many(self, setting: Setting) -> bool:
        return setting.n_arms > crossover.MINIMAX

    def report(self, state: Any) -> dict[str, float]:
        """How many observations came after the horizon that the policy names, if it names one."""
        if self.horizon is None:
            return {}
        return {"observations past horizon": max(0.0, float(state.pulls.sum()) - self.horizon)}

    select = staticmethod(moss_select)
    update = staticmethod(learn_mean)


@dataclass(frozen=True)
class AnytimeMOSS(IndexPolicy):
    r"""MOSS without a horizon.

    Play the largest :math:`\hat\mu_k+\sqrt{\frac{1+a}{2}\ln_+\!\big(t/(K N_k)\big)/N_k}`.

    Parameters
    ----------
    a : float
        1.35 is the authors' choice.

    References
    ----------
    Degenne and Perchet 2016, Section 2 (MOSS-anytime), Theorem 3.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.tournament`), O(K) for a few arms. Needs no horizon.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(AnytimeMOSS(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 9 + [(1, 1.0)] * 9), player.select()
    (18, 1)
    """

    a: float = real(1.35, above=-1.0, most=HUGE)
    also_known_as = ("MOSS-anytime",)

    def _plain(self, setting: Setting) -> MossState:
        """Record of means; unseen arms stand at +inf."""
        n = setting.n_arms
        return MossState(np.zeros(n), np.full(n, np.inf), np.zeros(n), math.nan, 0.5 * (1.0 + self.a))

    def _rule(self, setting: Setting) -> tuple[Any, ...]:
        return MINIMAX, math.nan, 0.5 * (1.0 + self.a)

    def _many(self, setting: Setting) -> bool:
        return setting.n_arms > crossover.MINIMAX

    select = staticmethod(moss_select)
    update = staticmethod(learn_mean)
