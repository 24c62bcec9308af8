"""Greedy policies: the arm of the largest mean, always or but for a share of uniform exploration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from abex.kernels import kernel
from abex.policies.base import Policy, Setting
from abex.policies.leader import LeaderMeans, leader, leader_means, learn_leader
from abex.support.parameters import HUGE, real
from abex.support.randomness import below, share_among_largest


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


@dataclass(frozen=True)
class EpsilonGreedy(Policy[LeaderMeans]):
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

    epsilon: float = real(0.1, least=0.0, most=1.0)
    decay: float | None = real(None, above=0.0, most=HUGE, or_none=True)
    variants: ClassVar = {name: {"decay": 20.0} for name in ("epsilon_n-greedy", "DecayingEpsilonGreedy")}

    def start(self, setting: Setting) -> LeaderMeans:
        """Record of means; unseen arms stand at +inf."""
        decays = self.decay is not None
        return leader_means(setting.n_arms, self.epsilon if self.decay is None else self.decay, decays)

    select = staticmethod(epsilon_select)
    update = staticmethod(learn_leader)
    draws_change = ("leader",)
    probabilities = staticmethod(epsilon_probabilities)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """A fixed chance, and one that falls."""
        yield cls()
        yield cls(decay=20.0)
