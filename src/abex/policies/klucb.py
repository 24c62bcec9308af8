"""Upper confidence bounds by divergence, at one level for all arms or at one that falls with their observations."""

from __future__ import annotations

import math
from dataclasses import dataclass

from abex.kernels import kernel
from abex.policies.index import IndexPolicy, IndexState
from abex.policies.policy import Setting
from abex.samplers.interface import (
    NEVER,
    SAFETY,
    contending_index,
    first_contender,
    index_of,
    level_at,
    reaching_level,
    same_forever,
)
from abex.support.divergence import bernoulli_kl, kl_upper_bound
from abex.support.parameters import HUGE, MOST_STEPS, real, whole

IN_ORDER = 5  # arms


class DivergenceState(IndexState):
    r"""Index :math:`\max\{q: N_k\,\mathrm{kl}(\hat\mu_k,q)\le\ell\}` at the level :math:`\ell=\ln t+c\ln\ln t`.

    Where the horizon H is shared, :math:`g(\ell/N_k)` stands in the place of the level, which is fixed at :math:`\ell=H/K`.
    """

    c: float
    horizon: float
    shared: bool


@level_at.register(DivergenceState)
@kernel
def divergence_level(state: DivergenceState, t: float) -> float:
    """Ln t + c ln ln t, at least 0, or the fair share of the horizon."""
    if state.shared:
        return state.horizon / state.means.size
    level = math.log(t)
    if t >= 3.0:
        level += state.c * math.log(level)
    return max(level, 0.0)


@kernel
def exploration_level(share: float) -> float:
    r"""The function :math:`g(x)=\ln_+\!\big(x(1+\ln_+^2x)\big)`."""
    if share <= 1.0:
        return 0.0
    log = math.log(share)
    return log + math.log1p(log * log)


@kernel
def divergence_allowed(state: DivergenceState, count: float, level: float) -> float:
    """How far from the mean of so many observations a bound may be."""
    share = level / count
    return exploration_level(share) / count if state.shared else share


@index_of.register(DivergenceState)
@kernel
def divergence_index(state: DivergenceState, arm: int, level: float) -> float:
    """The largest mean that the observations do not refute."""
    return kl_upper_bound(state.means[arm], divergence_allowed(state, state.observations[arm], level))


@first_contender.register(DivergenceState)
@kernel
def largest_mean(state: DivergenceState) -> int:
    """The first arm of the largest mean, which nearly always has the largest index; of a few arms no order is a gain."""
    if state.means.size <= IN_ORDER:
        return -1
    best = 0
    for k in range(1, state.means.size):
        if state.means[k] > state.means[best]:
            best = k
    return best


@contending_index.register(DivergenceState)
@kernel
def divergence_contending(state: DivergenceState, arm: int, level: float, best: float) -> float:
    """The index, or -1 if Pinsker's bound, or the divergence to the best, tells that it is smaller."""
    count, mean = state.observations[arm], state.means[arm]
    if count == 0.0:
        return math.inf
    allowed = divergence_allowed(state, count, level)
    goal = best - SAFETY  # arms that have seen the same in another order tie
    if mean < goal:
        if 2.0 * (goal - mean) * (goal - mean) > allowed:
            return -1.0
        if best < 1.0 and bernoulli_kl(mean, goal) > allowed:
            return -1.0
    return kl_upper_bound(mean, allowed)


@reaching_level.register(DivergenceState)
@kernel
def divergence_reaching(state: DivergenceState, arm: int, value: float) -> float:
    """N times the divergence to the value; at a fixed level only an observation moves an index."""
    if state.shared:
        return NEVER
    return state.observations[arm] * bernoulli_kl(state.means[arm], value) if value < 1.0 else NEVER


@same_forever.register(DivergenceState)
@kernel
def same_divergences(state: DivergenceState, one: int, two: int) -> bool:
    """As many observations, or a mean of 1, which is its own bound."""
    if state.means[one] >= 1.0 and state.means[two] >= 1.0:
        return True
    return bool(state.observations[one] == state.observations[two])


@dataclass(frozen=True)
class KLUCB(IndexPolicy):
    r"""Upper confidence bounds by the Kullback-Leibler divergence.

    Play the largest :math:`\max\{q: N_k\,\mathrm{kl}(\hat\mu_k,q)\le \ln t + c\ln\ln t\}`.

    Parameters
    ----------
    c : float
        0 is the practice and the authors' own advice, 3 the theorem's. The right side is at least 0.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.tournament`). For a few arms O(K) plus some Newton steps (to 1e-13)
    for each arm whose Pinsker bound
    :math:`\hat\mu_k+\sqrt{\ln t/(2N_k)}` beats the best bound found so far: the others cannot win.

    References
    ----------
    Garivier and Cappé 2011, Algorithm 1 and Theorem 1; on feedback graphs KL-UCB-N.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(KLUCB(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0)] * 9 + [(1, 1.0)] * 9)
    18
    >>> [player.select() for _ in range(3)]
    [1, 1, 1]
    """

    c: float = real(0.0, least=0.0, most=HUGE)
    law = "KL-UCB"
    relative = True
    also_known_as = ("KL-UCB", "KL-UCB-N")

    record = DivergenceState


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

    record = DivergenceState

    def numbers(self, setting: Setting) -> dict[str, float]:
        """Its horizon, or that of the run."""
        return {"horizon": float(self.horizon or self.horizon_of(setting)), "shared": True}
