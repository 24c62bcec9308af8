"""Upper confidence bounds by divergence whose level falls with the observations of the arm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from abex.kernels import kernel
from abex.policies.index import IndexPolicy, IndexState
from abex.policies.klucb import contending_bound, largest_mean, same_divergences
from abex.policies.policy import Setting
from abex.samplers.interface import (
    NEVER,
    contending_index,
    first_contender,
    index_of,
    level_at,
    reaching_level,
    same_forever,
)
from abex.support.divergence import kl_upper_bound
from abex.support.parameters import MOST_STEPS, whole


class SharedDivergenceState(IndexState):
    r"""Index :math:`\max\{q: N_k\,\mathrm{kl}(\hat\mu_k,q)\le g(\ell/N_k)\}` at the fixed level :math:`\ell=H/K`."""

    horizon: float


@kernel
def exploration_level(share: float) -> float:
    r""":math:`\ln_+\!\big(x(1+\ln_+^2x)\big)`."""
    if share <= 1.0:
        return 0.0
    log = math.log(share)
    return log + math.log1p(log * log)


first_contender.register(SharedDivergenceState)(largest_mean)
same_forever.register(SharedDivergenceState)(same_divergences)


@level_at.register(SharedDivergenceState)
@kernel
def shared_level(state: SharedDivergenceState, t: float) -> float:
    """The fair share of the horizon."""
    return state.horizon / state.means.size


@index_of.register(SharedDivergenceState)
@kernel
def shared_index(state: SharedDivergenceState, arm: int, level: float) -> float:
    """The largest mean that the observations do not refute."""
    n = state.observations[arm]
    return kl_upper_bound(state.means[arm], exploration_level(level / n) / n)


@contending_index.register(SharedDivergenceState)
@kernel
def shared_contending(state: SharedDivergenceState, arm: int, level: float, best: float) -> float:
    """The index, unless Pinsker's bound tells that it is smaller than the best."""
    n = state.observations[arm]
    if n == 0.0:
        return math.inf
    return contending_bound(state.means[arm], exploration_level(level / n) / n, best)


@reaching_level.register(SharedDivergenceState)
@kernel
def shared_reaching(state: SharedDivergenceState, arm: int, value: float) -> float:
    """The level is fixed: only an observation moves an index."""
    return NEVER


@dataclass(frozen=True)
class KLUCBPlusPlus(IndexPolicy):
    r"""KL-UCB++: upper confidence bounds by divergence that are both minimax and asymptotically optimal.

    Play the largest :math:`\max\{q: N_k\,\mathrm{kl}(\hat\mu_k,q)\le g(N_k)\}` with
    :math:`g(n)=\ln_+\!\big(\frac{H}{Kn}\big(1+\ln_+^2\frac{H}{Kn}\big)\big)`.

    Parameters
    ----------
    horizon : int or None
        The number of steps H to tune for; None takes the horizon of the run. Beyond H the bounds keep vanishing at H / K
        observations, and `report` counts the observations past H.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.tournament`). For a few arms O(K) plus some Newton steps for each
    arm whose Pinsker bound beats the best bound found so far.

    References
    ----------
    Ménard and Garivier 2017, "A minimax and asymptotically optimal algorithm for stochastic bandits", eq. (3) and
    Theorems 1 and 2.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(KLUCBPlusPlus(horizon=100), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 9 + [(1, 1.0)] * 9), player.select()
    (18, 1)
    """

    horizon: int | None = whole(None, least=1, most=MOST_STEPS, or_none=True)
    law = "KL-UCB++"
    also_known_as = ("KL-UCB++",)
    horizon_sets = ("horizon",)

    record = SharedDivergenceState

    def numbers(self, setting: Setting) -> dict[str, float]:
        """Its horizon, or that of the run."""
        return {"horizon": float(self.horizon or self.horizon_of(setting))}

    def report(self, state: IndexState) -> dict[str, float]:
        """How many observations came after the horizon that the policy names, if it names one."""
        if self.horizon is None:
            return {}
        return {"observations past horizon": max(0.0, float(state.observations.sum()) - self.horizon)}
