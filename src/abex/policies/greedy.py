"""Greedy policies: the arm of the largest mean, always or but for a share of uniform exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abex.kernels import kernel
from abex.parameters import HUGE, TINY, real
from abex.policies.base import Policy, Setting
from abex.policies.leader import LeaderMeans, leader, leader_means, learn_leader
from abex.randomness import below, share_among_largest


@dataclass(frozen=True)
class FollowTheLeader(Policy[LeaderMeans]):
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

    def start(self, setting: Setting) -> LeaderMeans:
        """Record of means; unseen arms stand at +inf."""
        return leader_means(setting.n_arms, 0.0, False)

    @staticmethod
    @kernel
    def select(state: LeaderMeans, t: int, rng: Any) -> int:
        """The leader."""
        return leader(state, rng)

    @staticmethod
    @kernel
    def probabilities(state: LeaderMeans, t: int, out: Any) -> None:
        """1 over the leaders."""
        for k in range(out.size):
            out[k] = 0.0
        share_among_largest(state.means, 1.0, out)

    update = staticmethod(learn_leader)
    draws_change = ("leader",)


@kernel
def exploration_probability(state: LeaderMeans, t: int) -> float:
    """Probability of a uniform pull at step t."""
    if state.decays:
        return float(min(1.0, state.rate * state.means.size / t))
    return float(state.rate)


@kernel
def epsilon_select(state: LeaderMeans, t: int, rng: Any) -> int:
    """A uniform arm with the probability of the step, else the remembered leader."""
    if rng.random() < exploration_probability(state, t):
        return below(state.means.size, rng)
    return leader(state, rng)


@kernel
def epsilon_probabilities(state: LeaderMeans, t: int, out: Any) -> None:
    """The probability spread over all arms, the rest over the leaders."""
    probability = exploration_probability(state, t)
    for k in range(out.size):
        out[k] = probability / out.size
    share_among_largest(state.means, 1.0 - probability, out)


class _EpsilonGreedy(Policy[LeaderMeans]):
    """What the two rates have in common."""

    select = staticmethod(epsilon_select)
    update = staticmethod(learn_leader)
    draws_change = ("leader",)
    probabilities = staticmethod(epsilon_probabilities)


@dataclass(frozen=True)
class EpsilonGreedy(_EpsilonGreedy):
    r"""The leader, but for a fixed probability of any arm.

    With probability :math:`\epsilon` a uniform arm, else :math:`\arg\max_k \hat\mu_k`.

    Parameters
    ----------
    epsilon : float
        Chance of exploring, the same at every step; 0.1 is the customary value. The regret grows
        linearly, at :math:`\epsilon\,\frac1K\sum_k\Delta_k` a step; see `DecayingEpsilonGreedy`.

    Notes
    -----
    Cost O(1) per step while the leader is clear, O(K) when it is not.

    References
    ----------
    Sutton and Barto 2018, Section 2.2; Auer, Cesa-Bianchi, Fischer 2002, Section 2.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(EpsilonGreedy(epsilon=0.2), n_arms=2, seed=0)
    >>> player.update(0, 0.0), player.update(1, 1.0)
    (True, True)
    >>> player.probabilities().tolist()
    [0.1, 0.9]
    """

    epsilon: float = real(0.1, least=0.0, most=1.0)

    def start(self, setting: Setting) -> LeaderMeans:
        """Record of means; unseen arms stand at +inf."""
        return leader_means(setting.n_arms, self.epsilon, False)


@dataclass(frozen=True)
class DecayingEpsilonGreedy(_EpsilonGreedy):
    r"""The leader, but for a probability of any arm that falls like 1/t.

    Epsilon-greedy with :math:`\epsilon_t = \min\{1, cK/(d^2 t)\}`.

    Parameters
    ----------
    c : float
        Factor of the rate; the theorem asks for c > 5, the default stands at its edge.
    d : float
        A lower bound on the smallest gap :math:`\min_k\Delta_k`, in (0, 1]. Too large a value
        explores too little; 0.5 is for easy problems.

    Notes
    -----
    Cost O(1) per step while the leader is clear, O(K) when it is not.

    References
    ----------
    Auer, Cesa-Bianchi, Fischer 2002, Figure 3 and Theorem 3: regret :math:`O(cK\ln T/d^2)`.

    Examples
    --------
    >>> from abex import Player
    >>> Player(DecayingEpsilonGreedy(), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    c: float = real(5.0, above=0.0, most=HUGE)
    d: float = real(0.5, least=TINY, most=1.0)

    def start(self, setting: Setting) -> LeaderMeans:
        """Record of means; unseen arms stand at +inf."""
        return leader_means(setting.n_arms, self.c / self.d**2, True)
