"""Greedy policies: the arm of the largest mean, always or but for a share of uniform exploration."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from abex.kernels import kernel
from abex.kinds import Count, Mean
from abex.policies.learner import Learned
from abex.policies.means import learn_mean, new_means
from abex.policies.policy import Policy, Setting
from abex.support.parameters import HUGE, real
from abex.support.randomness import argmax, below, share_among_largest


class LeaderMeans(Learned):
    """Means, who leads, and the exploration rate with whether it decays.

    The leader is remembered while it is certain: it is looked for again only when it falls to the bound on all others or is tied.
    """

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    initial: float  # the mean of an arm without observations
    leader: int  # the arm of the largest mean, -1: not known
    runner_up: float  # an upper bound on all other means
    rate: float
    decays: bool


@kernel
def leader(state: LeaderMeans, rng: Any) -> int:
    """The arm with the largest mean; ties are broken uniformly at random, anew at each call."""
    if state.leader >= 0:
        return int(state.leader)
    best = argmax(state.means, rng)
    second = -1.0
    for k in range(state.means.size):
        if k != best and state.means[k] > second:
            second = state.means[k]
    if state.means[best] > second:
        state.leader = best
        state.runner_up = second
    return best


@kernel
def exploration_probability(state: LeaderMeans, t: int) -> float:
    """Probability of a uniform pull at step t."""
    if state.decays:
        return float(min(1.0, state.rate * state.means.size / t))
    return float(state.rate)


class LeaderPolicy(Policy[LeaderMeans]):
    """A policy that plays the arm of the largest mean, but for a probability of any arm."""

    def start(self, setting: Setting) -> LeaderMeans:
        """Nothing observed; unseen arms stand at +inf."""
        rate, decays = self.exploration()
        return self.prepare(new_means(LeaderMeans, setting.n_arms, rate=rate, decays=decays))

    @abstractmethod
    def exploration(self) -> tuple[float, bool]:
        """The rate, and whether it decays."""

    def prepare(self, state: LeaderMeans) -> LeaderMeans:
        """Look for the leader at the next decision."""
        state.leader = -1
        return state

    @staticmethod
    @kernel
    def select(state: LeaderMeans, t: int, rng: Any) -> int:
        """A uniform arm with the probability of the step, else the leader."""
        probability = exploration_probability(state, t)
        if probability > 0.0 and rng.random() < probability:
            return below(state.means.size, rng)
        return leader(state, rng)

    @staticmethod
    @kernel
    def probabilities(state: LeaderMeans, t: int, out: Any) -> None:
        """The probability spread over all arms, the rest over the leaders."""
        probability = exploration_probability(state, t)
        for k in range(out.size):
            out[k] = probability / out.size
        share_among_largest(state.means, 1.0 - probability, out)

    @staticmethod
    @kernel
    def update(state: LeaderMeans, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean and whether the leader still leads."""
        learn_mean(state, seen, reward, 1.0)
        if state.leader < 0:
            return
        if seen != state.leader and state.means[seen] > state.runner_up:
            state.runner_up = state.means[seen]
        if state.means[state.leader] <= state.runner_up:
            state.leader = -1


@dataclass(frozen=True)
class FollowTheLeader(LeaderPolicy):
    r"""Every arm once, then always the arm with the largest mean.

    Play :math:`\arg\max_k \hat\mu_k`.

    Notes
    -----
    Cost O(1) per step while the leader is clear, O(K) when it is not. Linear regret in general: one bad first reward
    can end an arm for ever.

    References
    ----------
    Lattimore and Szepesvári 2020, Section 4.3, exercise 4.11.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(FollowTheLeader(), n_arms=2, seed=0)
    >>> player.update(0, 0.4), player.update(1, 0.6), player.select()
    (True, True, 1)
    """

    also_known_as = ("FTL", "Greedy")

    def exploration(self) -> tuple[float, bool]:
        """None."""
        return 0.0, False


@dataclass(frozen=True)
class EpsilonGreedy(LeaderPolicy):
    r"""The leader, but for a probability of any arm, fixed or falling like 1/t.

    With probability :math:`\epsilon_t` a uniform arm, else :math:`\arg\max_k \hat\mu_k`: :math:`\epsilon_t=\epsilon`, or
    :math:`\epsilon_t=\min\{1,\rho K/t\}` with a decay :math:`\rho`.

    Parameters
    ----------
    epsilon : float
        Chance of exploring, the same at every step; 0.1 is the customary value. The regret grows
        linearly, at :math:`\epsilon\,\frac1K\sum_k\Delta_k` a step.
    decay : float or None
        Where given, the :math:`\rho` of a chance that falls, and ``epsilon`` is not used. The theorem has :math:`\rho=c/d^2` with
        c > 5 and d in (0, 1] at most the smallest gap :math:`\min_k\Delta_k`; 20 (c = 5, d = 1/2) is for easy problems.

    Notes
    -----
    Cost O(1) per step while the leader is clear, O(K) when it is not.

    References
    ----------
    Sutton and Barto 2018, Section 2.2; Auer, Cesa-Bianchi, Fischer 2002, Section 2, Figure 3 and Theorem 3: with a decay
    regret :math:`O(cK\ln T/d^2)`.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(EpsilonGreedy(epsilon=0.2), n_arms=2, seed=0)
    >>> player.update(0, 0.0), player.update(1, 1.0)
    (True, True)
    >>> player.probabilities().tolist()
    [0.1, 0.9]
    >>> Player(EpsilonGreedy(decay=20.0), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    cheap_probabilities: ClassVar[bool] = True

    epsilon: float = real(0.1, least=0.0, most=1.0)
    decay: float | None = real(None, above=0.0, most=HUGE, or_none=True)
    variants: ClassVar = {name: {"decay": 20.0} for name in ("epsilon_n-greedy", "DecayingEpsilonGreedy")}

    def exploration(self) -> tuple[float, bool]:
        """The probability, or its decay."""
        return (self.epsilon, False) if self.decay is None else (self.decay, True)
