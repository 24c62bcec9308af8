"""Boltzmann exploration, and its repair by Gumbel noise of a width that shrinks with the observations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.parameters import HUGE, choice, real, truth
from abex.policies import crossover
from abex.policies.base import Kernels, PerArm, Policy, Setting
from abex.policies.exceedance import new_gumbel_levels, select_gumbel, update_gumbel
from abex.policies.levels import Levels, draw_arm, new_levels, refile_arm
from abex.policies.means import learn_mean
from abex.policies.schema import Count, MeanOf, Scratch
from abex.policies.softmax import MOST_RATE, boltzmann_weights, normalised, pick, root_rate
from abex.policies.sound_levels import sound_levels
from abex.randomness import argmax

SCHEDULES = ("sqrt", "log", "constant")
MOST_INITIAL = 1000.0  # rewards lie in [0, 1]: beyond, rounding tells arms apart


class BoltzmannState(NamedTuple):
    """Means, scratch for the weights, and the rate with the number of its schedule."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,)
    weights: Annotated[Any, Scratch()]  # float64 (K,); Levels where there are many arms
    eta: float
    schedule: int

    def restored(self, fresh: BoltzmannState) -> BoltzmannState:
        """Levels that do not file these means are made anew."""
        return self._replace(weights=restored_weights(self, fresh))


@kernel
def boltzmann_rate(eta: float, schedule: int, t: int) -> float:
    """Inverse temperature of step t."""
    if schedule == 0:
        return root_rate(eta, t)
    return min(eta * math.log(1.0 + t) if schedule == 1 else eta, MOST_RATE)


def initial_mean(initial: float | None) -> float:
    """What an unseen arm counts as; None means: before all others."""
    return math.inf if initial is None else float(initial)


def boltzmann_sampler(pulls: NDArray[np.float64], initial: float) -> Any:
    """What draws need beside the means: scratch for the weights of few arms, `Levels` of many."""
    return new_levels(pulls, initial) if pulls.size > crossover.BOLTZMANN else np.zeros(pulls.size)


def restored_weights(state: Any, fresh: Any) -> Any:
    """The weights of a state from a file; levels, where there are many arms, are those of its means."""
    if not isinstance(state.weights, Levels):
        return state.weights
    return sound_levels(state.weights, state.means, state.pulls > 0.0, float(fresh.means[0]))


@kernel
def select_of_many(state: Any, t: int, rng: Any) -> int:
    """`Boltzmann.select` where the weights are levels."""
    return draw_arm(state.weights, state.means, boltzmann_rate(state.eta, state.schedule, t), rng)


@kernel
def update_of_many(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """`Boltzmann.update` where the weights are levels."""
    learn_mean(state, t, arm, seen, reward, rng)
    refile_arm(state.weights, seen, state.means[seen])


@dataclass(frozen=True)
class Boltzmann(Policy[BoltzmannState]):
    r"""Softmax of the means at a falling temperature.

    Play arm k with probability :math:`p_k \propto \exp(\eta_t\hat\mu_k)`.

    Parameters
    ----------
    eta : float
        Scale of the rate. 0.4 is what the code behind "Almost Boltzmann Exploration" used.
    schedule : {"sqrt", "log", "constant"}
        :math:`\eta_t = \eta\sqrt{t-1}` (the paper's), :math:`\eta\ln(1+t)` or :math:`\eta`. No monotone
        schedule is optimal without knowing the gaps (Cesa-Bianchi et al. 2017, Theorem 1): sqrt locks
        in too early, constant never does.
    initial : float or None
        Mean of an arm before its first observation; None plays every arm once first.

    References
    ----------
    Cesa-Bianchi, Gentile, Lugosi, Neu 2017, eq. (1); Gupta et al. 2019, eq. (1).

    Notes
    -----
    Cost per step independent of K (`abex.policies.levels`), O(K) for a few arms.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Boltzmann(eta=1.0, schedule="constant"), n_arms=2, seed=0)
    >>> player.update(1, reward=1.0)
    True
    >>> player.probabilities().round(3).tolist()
    [0.269, 0.731]
    """

    eta: float = real(0.4, above=0.0)
    schedule: str = choice("sqrt", SCHEDULES)
    initial: float | None = real(0.0, least=-MOST_INITIAL, most=MOST_INITIAL, or_none=True)
    also_known_as = ("BE", "Softmax")

    def start(self, setting: Setting) -> BoltzmannState:
        """Record of means at their initial value."""
        n = setting.n_arms
        initial, pulls = initial_mean(self.initial), np.zeros(n)
        sampler = boltzmann_sampler(pulls, initial)
        return BoltzmannState(pulls, np.full(n, initial), sampler, self.eta, SCHEDULES.index(self.schedule))

    def kernels(self, setting: Setting) -> Kernels:
        """With many arms, a draw that does not look at each of them."""
        many = setting.n_arms > crossover.BOLTZMANN
        return Kernels(select_of_many, update_of_many) if many else super().kernels(setting)

    def with_arms(self, state: BoltzmannState, setting: Setting, keep: NDArray[np.int64]) -> BoltzmannState:
        """Means go along; the arms are filed anew."""
        fresh = self.start(setting)
        fresh.pulls[: keep.size] = state.pulls[keep]
        fresh.means[: keep.size] = state.means[keep]
        return fresh._replace(weights=boltzmann_sampler(fresh.pulls, initial_mean(self.initial)))

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw from the Boltzmann distribution."""
        rate = boltzmann_rate(state.eta, state.schedule, t)
        return pick(state.weights, boltzmann_weights(state.means, rate, state.weights), rng)

    update = staticmethod(learn_mean)

    @staticmethod
    @kernel
    def probabilities(state: Any, t: int, out: Any) -> None:
        """The Boltzmann distribution."""
        rate = boltzmann_rate(state.eta, state.schedule, t)
        normalised(out, boltzmann_weights(state.means, rate, out))

    @classmethod
    def examples(cls) -> Any:
        """One of each schedule."""
        yield cls(eta=1.0)
        yield cls(eta=2.0, schedule="log", initial=None)
        yield cls(eta=8.0, schedule="constant", initial=1.0)


class GumbelState(NamedTuple):
    """Means, scratch, the width C, and whether one noise serves all arms."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,)
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    scale: float
    shared_noise: bool


@dataclass(frozen=True)
class BoltzmannGumbel(Policy[GumbelState]):
    r"""Means with Gumbel noise that shrinks as an arm is observed.

    Play :math:`\arg\max_k\{\hat\mu_k + C Z_k/\sqrt{N_k}\}` with independent standard Gumbel :math:`Z_k`.

    Parameters
    ----------
    scale : float
        The width C. The theorem's choice is the sub-Gaussian parameter, 1/2 for rewards in [0, 1]
        (the paper took its square, 1/4).
    shared_noise : bool
        One :math:`Z` for all arms of a step, as in the code behind "Almost Boltzmann Exploration": a
        different rule, kept to reproduce its figures. There an unseen arm counts as
        :math:`\pm\infty` with the sign of :math:`Z`.

    References
    ----------
    Cesa-Bianchi, Gentile, Lugosi, Neu 2017, Algorithm 1 and Theorem 3 (constants not verified against
    the publication). "Almost Boltzmann Exploration" prints :math:`C\sqrt{Z/N}`, a slip: Z is negative
    with probability 1/e.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.policies.exceedance`), O(K) for few arms. On graphs, with N_k the observations: BGE-N.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(BoltzmannGumbel(), n_arms=3, seed=1)
    >>> sorted(player.select(3))
    [0, 1, 2]
    """

    scale: float = real(0.5, least=0.0, most=HUGE)
    shared_noise: bool = truth(False)
    also_known_as = ("BGE", "BGE-N")

    def _many(self, setting: Setting) -> bool:
        return setting.n_arms > crossover.GUMBEL and not self.shared_noise and self.scale > 0.0

    def kernels(self, setting: Setting) -> Kernels:
        """With many arms, noise only for those that can win."""
        return Kernels(select_gumbel, update_gumbel) if self._many(setting) else super().kernels(setting)

    def with_arms(self, state: Any, setting: Setting, keep: NDArray[np.int64]) -> Any:
        """Means go along."""
        fresh = self.start(setting)
        fresh.pulls[: keep.size] = state.pulls[keep]
        fresh.means[: keep.size] = state.means[keep]
        many = self._many(setting)
        return new_gumbel_levels(fresh.pulls, fresh.means, self.scale) if many else fresh

    def start(self, setting: Setting) -> Any:
        """Record of means; unseen arms stand at +inf, with shared noise at 0."""
        n = setting.n_arms
        if self._many(setting):
            return new_gumbel_levels(np.zeros(n), np.full(n, math.inf), self.scale)
        initial = 0.0 if self.shared_noise else math.inf
        return GumbelState(np.zeros(n), np.full(n, initial), np.zeros(n), self.scale, self.shared_noise)

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The largest perturbed mean."""
        noise = 0.0
        if state.shared_noise:
            noise = -state.scale * math.log(rng.standard_exponential())
        for k in range(state.means.size):
            if not state.shared_noise and state.pulls[k] > 0.0:
                noise = -state.scale * math.log(rng.standard_exponential())
            if state.pulls[k] > 0.0:
                state.score[k] = state.means[k] + noise / math.sqrt(state.pulls[k])
            elif state.shared_noise:
                state.score[k] = math.copysign(math.inf, noise)
            else:
                state.score[k] = math.inf
        return argmax(state.score, rng)

    update = staticmethod(learn_mean)

    @classmethod
    def examples(cls) -> Any:
        """The rule and the variant of the authors' code."""
        yield cls()
        yield cls(scale=0.25, shared_noise=True)
