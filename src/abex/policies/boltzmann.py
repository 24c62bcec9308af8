"""Boltzmann exploration, and its repair by Gumbel noise of a width that shrinks with the observations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from abex.kernels import kernel
from abex.kinds import Count, Mean
from abex.policies.learner import Learned, Learner
from abex.policies.means import learn_arm, learn_mean, new_means
from abex.policies.policy import Setting
from abex.samplers import changed, draw
from abex.samplers.scan import softmax
from abex.support.parameters import HUGE, choice, real, truth

MAX_RATE = 1e14  # beyond, what tells two means apart is how they were rounded
MAX_INITIAL = 1000.0  # rewards lie in [0, 1]: beyond, rounding tells arms apart
SCHEDULES = ("sqrt", "log", "constant")


class BoltzmannState(Learned):
    """Means, what draws from their softmax, and the rate with the number of its schedule."""

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    initial: float  # the mean of an arm without observations
    eta: float
    schedule: int


@kernel
def learn_softmax(state: Any, arm: int, reward: float, weight: float) -> None:
    """The mean; the softmax is that of the means."""
    learn_mean(state, arm, reward, weight)
    changed(state.sampler, state.means, arm)


@kernel
def root_rate(eta: float, t: int) -> float:
    """Eta sqrt(t - 1), the inverse temperature of step t."""
    return min(eta * math.sqrt(t - 1.0), MAX_RATE)


@kernel
def boltzmann_rate(eta: float, schedule: int, t: int) -> float:
    """Inverse temperature of step t."""
    if schedule == 0:
        return root_rate(eta, t)
    return min(eta * math.log(1.0 + t) if schedule == 1 else eta, MAX_RATE)


def initial_mean(initial: float | None) -> float:
    """What an unseen arm counts as; None means: before all others."""
    return math.inf if initial is None else float(initial)


@dataclass(frozen=True)
class Boltzmann(Learner[BoltzmannState]):
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

    Notes
    -----
    Cost per step independent of K (`abex.samplers.buckets`), O(K) for a few arms.

    References
    ----------
    Cesa-Bianchi, Gentile, Lugosi, Neu 2017, eq. (1); Gupta et al. 2019, eq. (1).

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Boltzmann(eta=1.0, schedule="constant"), n_arms=2, seed=0)
    >>> player.update(1, reward=1.0)
    True
    >>> player.probabilities().round(3).tolist()
    [0.269, 0.731]
    """

    cheap_probabilities: ClassVar[bool] = True

    eta: float = real(0.4, above=0.0)
    schedule: str = choice("sqrt", SCHEDULES)
    initial: float | None = real(0.0, least=-MAX_INITIAL, most=MAX_INITIAL, or_none=True)
    also_known_as = ("BE", "Softmax")
    relative = True
    law = "softmax"
    learn = staticmethod(learn_softmax)

    def start(self, setting: Setting) -> BoltzmannState:
        """Means at their initial value."""
        initial, number = initial_mean(self.initial), SCHEDULES.index(self.schedule)
        state = new_means(BoltzmannState, setting.n_arms, initial, eta=self.eta, schedule=number)
        return self.prepare(state)

    @staticmethod
    @kernel
    def select(state: BoltzmannState, t: int, rng: Any) -> int:
        """A draw from the Boltzmann distribution."""
        return draw(state.sampler, state.means, boltzmann_rate(state.eta, state.schedule, t), rng)

    @staticmethod
    @kernel
    def probabilities(state: BoltzmannState, t: int, out: Any) -> None:
        """The Boltzmann distribution."""
        softmax(state.means, boltzmann_rate(state.eta, state.schedule, t), out)


class GumbelState(Learned):
    """Means, what finds the largest perturbed one, the width C, and whether one noise serves all arms."""

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    initial: float  # the mean of an arm without observations: +inf, with shared noise 0
    scale: float
    shared_noise: bool


@dataclass(frozen=True)
class BoltzmannGumbel(Learner[GumbelState]):
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

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.exceedance`), O(K) for few arms. On graphs, with N_k the observations: BGE-N.

    References
    ----------
    Cesa-Bianchi, Gentile, Lugosi, Neu 2017, Algorithm 1 and Theorem 3 (constants not verified against
    the publication). "Almost Boltzmann Exploration" prints :math:`C\sqrt{Z/N}`, a slip: Z is negative
    with probability 1/e.

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
    law = "Gumbel"
    learn = staticmethod(learn_arm)

    def start(self, setting: Setting) -> GumbelState:
        """Nothing observed."""
        initial, numbers = 0.0 if self.shared_noise else math.inf, {"shared_noise": self.shared_noise}
        return self.prepare(new_means(GumbelState, setting.n_arms, initial, scale=self.scale, **numbers))
