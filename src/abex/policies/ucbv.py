"""Upper confidence bounds that use the empirical variance of each arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from abex.kernels import kernel
from abex.kinds import Total
from abex.policies.index import IndexPolicy, IndexState
from abex.policies.means import learn_mean
from abex.samplers import changed
from abex.samplers.interface import NEVER, SAFETY, index_of, level_at, reaching_level, same_forever
from abex.support.parameters import HUGE, real


class VarianceState(IndexState):
    r"""Index :math:`\hat\mu_k+\sqrt{2\ell V_k/N_k}+3c\,\ell/N_k` at the level :math:`\ell=\zeta\ln t`."""

    squares: Total  # float64 (K,), sum of (x - mean)^2 (Welford)
    zeta: float
    c: float


@level_at.register(VarianceState)
@kernel
def variance_level(state: VarianceState, t: float) -> float:
    """Zeta ln t."""
    return state.zeta * math.log(t)


@index_of.register(VarianceState)
@kernel
def variance_index(state: VarianceState, arm: int, level: float) -> float:
    """The mean, a width by the empirical variance, and one by the range of rewards."""
    n = state.observations[arm] if state.observations[arm] > 0.0 else 1.0
    return state.means[arm] + math.sqrt(2.0 * level * state.squares[arm]) / n + 3.0 * state.c * level / n  # type: ignore[no-any-return]


@reaching_level.register(VarianceState)
@kernel
def variance_reaching(state: VarianceState, arm: int, value: float) -> float:
    """A quadratic equation in the root of the level."""
    count, above = state.observations[arm], value - state.means[arm]
    line = math.sqrt(2.0 * state.squares[arm]) / count
    root = line + math.sqrt(line * line + 12.0 * state.c * above / count)
    return 4.0 * above * above / (root * root) if root > 0.0 else NEVER


@same_forever.register(VarianceState)
@kernel
def same_spread(state: VarianceState, one: int, two: int) -> bool:
    """As many observations of the same spread."""
    apart = math.sqrt(state.squares[one]) - math.sqrt(state.squares[two])
    if abs(apart) > SAFETY * state.observations[one]:
        return False
    return bool(state.observations[one] == state.observations[two])


@kernel
def learn_squares(state: Any, arm: int, reward: float, weight: float) -> None:
    """The weighted mean and the sum of squared deviations (Welford), and tell the sampler."""
    before = state.means[arm]
    learn_mean(state, arm, reward, weight)
    if state.observations[arm] > max(weight, 0.0):
        apart = weight * (reward - before) * (reward - state.means[arm])
        state.squares[arm] = max(state.squares[arm] + apart, 0.0)
    else:  # the first one, or none
        state.squares[arm] = 0.0
    changed(state.sampler, state, arm)


@dataclass(frozen=True)
class UCBV(IndexPolicy):
    r"""Upper confidence bounds that use the empirical variance.

    Play the largest :math:`\hat\mu_k + \sqrt{2 V_k \zeta\ln t/N_k} + 3c\,\zeta\ln t/N_k`, where
    :math:`V_k` is the empirical variance :math:`\frac1{N_k}\sum (x-\hat\mu_k)^2`; rewards are in [0, 1].

    Parameters
    ----------
    zeta, c : float
        1.2 and 1 are the theorem's: regret at most :math:`10\sum_k(\sigma_k^2/\Delta_k+2)\ln T`. Practice
        (and the boosting literature) takes 1 and 1/3.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.tournament`), O(K) for a few arms.

    References
    ----------
    Audibert, Munos, Szepesvári 2009, eq. (2) and Theorem 4.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(UCBV(), n_arms=2, seed=0)
    >>> player.update_many([(arm, float(arm)) for arm in (0, 1)] * 99)
    198
    >>> player.probabilities().tolist()
    [0.0, 1.0]
    """

    zeta: float = real(1.2, above=0.0, most=HUGE)
    c: float = real(1.0, least=0.0, most=HUGE)
    law = "UCB-V"
    relative = True
    also_known_as = ("UCB-V",)

    record = VarianceState
    learn = staticmethod(learn_squares)
