"""Exponential weights for rewards whose best arm changes: EXP3.S shares weight among the arms, Rexp3 starts anew."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.kernels import Scalars, kernel
from abex.parameters import HUGE, MOST_STEPS, real, whole
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.drawn import DrawnPolicy
from abex.schema import Count, Distribution, Probabilities


class BatchClock(Scalars):
    """Where Rexp3 stands."""

    batch: Annotated[int, Count()]  # the number of the batch, from 0 on


class SharedState(NamedTuple):
    """Weights, the distribution of the last decision, and the rates."""

    weights: Annotated[PerArm, Distribution()]  # float64 (K,)
    probabilities: Annotated[PerArm, Probabilities(floor="mixing")]  # float64 (K,), of the last select
    clock: BatchClock
    mixing: float  # gamma
    share: float  # of all weight that is handed out evenly at every step
    length: int  # steps of a batch; 0: there is one


def shared_state(n_arms: int, mixing: float, share: float, length: int) -> SharedState:
    """Equal weights."""
    even = np.full(n_arms, 1.0 / n_arms)
    return SharedState(even, even.copy(), BatchClock(), float(mixing), float(share), length)


@kernel
def enter_batch(state: SharedState, t: int) -> None:
    """With a new batch all weights are equal again."""
    if state.length > 0:
        batch = (t - 1) // state.length
        if batch > state.clock.batch:
            state.clock.batch = batch
            for k in range(state.weights.size):
                state.weights[k] = 1.0 / state.weights.size


@kernel
def shared_probabilities(state: SharedState, t: int, out: Any) -> None:
    """The weights, mixed with the uniform distribution."""
    enter_batch(state, t)
    n_arms = out.size
    for k in range(n_arms):
        out[k] = (1.0 - state.mixing) * state.weights[k] + state.mixing / n_arms


@kernel
def shared_update(state: SharedState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """The pulled arm's weight grows by its importance-weighted reward, then every arm has its share of all."""
    if seen != arm:
        return
    enter_batch(state, t)
    if state.length > 0 and (t - 1) // state.length < state.clock.batch:
        return  # a late reward of an earlier batch
    n_arms = state.weights.size
    growth = math.exp(min(state.mixing / n_arms * reward / state.probabilities[arm], 700.0))
    total = 1.0 + state.weights[arm] * (growth - 1.0)
    state.weights[arm] *= growth
    even = state.share / n_arms  # of the weight before it grew, which was 1
    for k in range(n_arms):
        state.weights[k] = (state.weights[k] + even) / (total + state.share)


class _SharedWeights(DrawnPolicy[SharedState]):
    """What the policies of this file share."""

    update = staticmethod(shared_update)
    probabilities = staticmethod(shared_probabilities)


@dataclass(frozen=True)
class Exp3S(_SharedWeights):
    r"""EXP3.S: exponential weights, a part of which is shared among all arms at every step.

    :math:`p_k=(1-\gamma)w_k/W+\gamma/K`; the pulled arm's weight is multiplied by :math:`\exp(\gamma x/(Kp_k))`, then
    :math:`w_k \mathrel{+}= \frac{e\alpha}{K}W`, with the sum W of the weights before: no arm is ever lost.

    Parameters
    ----------
    gamma : float or None
        Share of uniform exploration. None takes :math:`\min\{1,\sqrt{K(S\ln(KT)+e)/((e-1)T)}\}`, which needs the horizon.
    alpha : float or None
        The sharing; None takes 1/T, which needs the horizon.
    changes : int
        How often the best arm changes: the hardness S less 1, for ``gamma=None``.

    References
    ----------
    Auer, Cesa-Bianchi, Freund, Schapire 2002, Figure 3 and Corollary 8.2: regret against any sequence of arms with S - 1
    changes at most :math:`2\sqrt{e-1}\sqrt{KT(S\ln(KT)+e)}`.

    Notes
    -----
    Cost O(K) per step. Uses the pulled arm's reward alone, also on feedback graphs.

    Examples
    --------
    >>> from abex import Player
    >>> Player(Exp3S(gamma=0.1, alpha=0.001), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    gamma: float | None = real(None, above=0.0, most=1.0, or_none=True)
    alpha: float | None = real(None, least=0.0, most=1.0, or_none=True)
    changes: int = whole(0, least=0, most=MOST_STEPS)
    resizable = False
    also_known_as = ("EXP3.S",)

    @property
    def needs_horizon(self) -> bool:
        """Only where a rate is left open."""
        return self.gamma is None or self.alpha is None

    def start(self, setting: Setting) -> SharedState:
        """Equal weights."""
        n, gamma, alpha = setting.n_arms, self.gamma, self.alpha
        if gamma is None:
            horizon = self.horizon_of(setting)
            hardness = (self.changes + 1) * math.log(n * horizon) + math.e
            gamma = min(1.0, math.sqrt(n * hardness / ((math.e - 1.0) * horizon)))
        if alpha is None:
            alpha = 1.0 / self.horizon_of(setting)
        return shared_state(n, gamma, math.e * alpha, 0)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned, and with given rates."""
        yield cls()
        yield cls(gamma=0.2, alpha=0.001)


@dataclass(frozen=True)
class Rexp3(_SharedWeights):
    r"""Rexp3: Exp3 that starts anew after every batch of steps.

    In each batch of :math:`\Delta` steps :math:`p_k=(1-\gamma)w_k/W+\gamma/K`, and the pulled arm's weight is multiplied by
    :math:`\exp(\gamma x/(Kp_k))`; a new batch begins with equal weights.

    Parameters
    ----------
    batch : int or None
        The length :math:`\Delta`. None takes :math:`\lceil(K\ln K)^{1/3}(T/V)^{2/3}\rceil`, which needs the horizon.
    gamma : float or None
        Share of uniform exploration; None takes :math:`\min\{1,\sqrt{K\ln K/((e-1)\Delta)}\}`.
    variation : float
        How much the means change in all, V, for ``batch=None``.

    References
    ----------
    Besbes, Gur, Zeevi 2014, Section 3 and Theorem 2: regret against the best arm of each step of order
    :math:`(KV\ln K)^{1/3}T^{2/3}` (constants not verified against the publication).

    Notes
    -----
    Cost O(K) per step. Uses the pulled arm's reward alone, also on feedback graphs. A reward that comes after the batch of its
    decision is not learned.

    Examples
    --------
    >>> from abex import Player
    >>> Player(Rexp3(batch=100), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    batch: int | None = whole(None, least=1, most=MOST_STEPS, or_none=True)
    gamma: float | None = real(None, above=0.0, most=1.0, or_none=True)
    variation: float = real(1.0, above=0.0, most=HUGE)
    resizable = False
    also_known_as = ("REXP3",)

    @property
    def needs_horizon(self) -> bool:
        """Only where the batch is left open."""
        return self.batch is None

    def start(self, setting: Setting) -> SharedState:
        """Equal weights."""
        n, length, gamma = setting.n_arms, self.batch, self.gamma
        cost = n * math.log(max(n, 2))
        if length is None:
            horizon = self.horizon_of(setting)
            length = math.ceil(min(cost ** (1.0 / 3.0) * (horizon / self.variation) ** (2.0 / 3.0), horizon))
        length = max(length, 1)
        if gamma is None:
            gamma = min(1.0, math.sqrt(cost / ((math.e - 1.0) * length)))
        return shared_state(n, gamma, 0.0, length)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned, and with a given batch."""
        yield cls()
        yield cls(batch=200, gamma=0.1)
