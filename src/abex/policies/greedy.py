"""Greed, and greed with a little chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.parameters import HUGE, TINY, real
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.leader import leader, learn_leader, share_among_leaders
from abex.randomness import below
from abex.schema import HAIR, Arms, Count, MeanOf, Within


class LeaderMeans(NamedTuple):
    """Means with a remembered leader (see `leader`), and the exploration rate with whether it decays."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,), +inf before the first observation
    lead: Annotated[NDArray[np.int64], Arms(least=-1)]  # (1,)
    runner_up: Annotated[NDArray[np.float64], Within(-1.0, 1.0 + HAIR)]  # (1,)
    rate: float
    decays: bool

    def restored(self, fresh: LeaderMeans) -> LeaderMeans:
        """A leader that does not lead is looked for again."""
        lead = int(self.lead[0])
        others = np.delete(self.means, lead) if lead >= 0 else self.means
        if lead >= 0 and not self.means[lead] > self.runner_up[0] >= others.max(initial=-1.0):
            self.lead[0] = -1
        return self


def leader_means(n_arms: int, rate: float, decays: bool) -> LeaderMeans:
    """A fresh record."""
    return LeaderMeans(np.zeros(n_arms), np.full(n_arms, np.inf), np.array([-1]), np.zeros(1), rate, decays)


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
    def select(state: Any, t: int, rng: Any) -> int:
        """The leader."""
        return leader(state, rng)

    update = staticmethod(learn_leader)


@kernel
def exploration_chance(state: Any, t: int) -> float:
    """Probability of a uniform pull at step t."""
    if state.decays:
        return float(min(1.0, state.rate * state.means.size / t))
    return float(state.rate)


@kernel
def epsilon_select(state: Any, t: int, rng: Any) -> int:
    """A uniform arm with the chance of the step, else the remembered leader."""
    if rng.random() < exploration_chance(state, t):
        return below(state.means.size, rng)
    return leader(state, rng)


@kernel
def epsilon_probabilities(state: Any, t: int, out: Any) -> None:
    """The chance spread over all arms, the rest over the leaders."""
    chance = exploration_chance(state, t)
    for k in range(out.size):
        out[k] = chance / out.size
    share_among_leaders(state.means, 1.0 - chance, out)


class _EpsilonGreedy(Policy[LeaderMeans]):
    """What the two rates have in common."""

    select = staticmethod(epsilon_select)
    update = staticmethod(learn_leader)
    probabilities = staticmethod(epsilon_probabilities)


@dataclass(frozen=True)
class EpsilonGreedy(_EpsilonGreedy):
    r"""The leader, but for a fixed chance of any arm.

    With probability :math:`\epsilon` a uniform arm, else :math:`\arg\max_k \hat\mu_k`.

    Parameters
    ----------
    epsilon : float
        Chance of exploring, the same at every step; 0.1 is the customary value. The regret grows
        linearly, at :math:`\epsilon\,\frac1K\sum_k\Delta_k` a step; see `DecayingEpsilonGreedy`.

    References
    ----------
    Sutton and Barto 2018, Section 2.2; Auer, Cesa-Bianchi, Fischer 2002, Section 2.

    Notes
    -----
    Cost O(1) per step while the leader is clear, O(K) when it is not.

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
    r"""The leader, but for a chance of any arm that falls like 1/t.

    Epsilon-greedy with :math:`\epsilon_t = \min\{1, cK/(d^2 t)\}`.

    Parameters
    ----------
    c : float
        Factor of the rate; the theorem asks for c > 5, the default stands at its edge.
    d : float
        A lower bound on the smallest gap :math:`\min_k\Delta_k`, in (0, 1]. Too large a value
        explores too little; 0.5 is for easy problems.

    References
    ----------
    Auer, Cesa-Bianchi, Fischer 2002, Figure 3 and Theorem 3: regret :math:`O(cK\ln T/d^2)`.

    Notes
    -----
    Cost O(1) per step while the leader is clear, O(K) when it is not.

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
