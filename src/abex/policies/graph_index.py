"""Index policies that know the graph: aim at the most promising arm, pull the best arm that shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import observers
from abex.kernels import kernel, single_dispatch
from abex.policies.known_graph import known_graph
from abex.policies.means import new_means
from abex.policies.policy import Policy, Setting
from abex.policies.thompson import MAX_PRIOR, BetaState, coin, learn_posterior, prior
from abex.policies.ucb import UcbState, inv_sqrt_counts, learn_width
from abex.samplers.largest_beta import largest_beta
from abex.support.parameters import HUGE, real, truth
from abex.support.randomness import argmax, share_among_largest


@single_dispatch
def promise(state: Any, arm: int) -> float:
    """How good the policy takes an arm to be that may show the one it aims at (kernel)."""
    return 0.0


@kernel
def best_observer(state: Any, t: int, aim: int, rng: Any) -> int:
    """The most promising of the arms that show ``aim``, ties broken uniformly."""
    count = observers(state.graph, t, aim, state.who)
    top = -2.0
    best = aim
    ties = 0
    for j in range(count):
        other = state.who[j]
        value = promise(state, other)
        if value > top:
            top = value
            best = other
            ties = 1
        elif value == top:
            ties += 1
            if rng.random() * ties < 1.0:
                best = other
    return int(best)


@kernel
def share_among_observers(state: Any, t: int, aim: int, share: float, out: Any) -> None:
    """Add ``share``, in equal parts, to the most promising of the arms that show ``aim``."""
    count = observers(state.graph, t, aim, state.who)
    top = -2.0
    ties = 0
    for j in range(count):
        value = promise(state, state.who[j])
        if value > top:
            top = value
            ties = 0
        if value == top:
            ties += 1
    for j in range(count):
        if promise(state, state.who[j]) == top:
            out[state.who[j]] += share / ties


@kernel
def hand_on(state: Any, t: int, aims: Any, out: Any) -> None:
    """What is shown by an arm when another, to which it leads, is aimed at with these probabilities."""
    for k in range(out.size):
        out[k] = 0.0
    for k in range(out.size):
        if aims[k] > 0.0:
            share_among_observers(state, t, k, aims[k], out)


class AimedMeans(UcbState):
    """Means with their widths, the graph, and room for the arms that show another."""

    score: NDArray[np.float64]  # (K,)
    who: NDArray[np.int32]  # (K,)
    graph: Any


@promise.register(AimedMeans)
@kernel
def observed_mean(state: AimedMeans, arm: int) -> float:
    """The mean; an arm never observed comes last."""
    return state.means[arm] if state.observations[arm] > 0.0 else -1.0


@kernel
def write_bounds(state: AimedMeans, t: int) -> None:
    """The upper confidence bounds of all arms."""
    width = math.sqrt(state.scale * math.log(t))
    for k in range(state.means.size):
        state.score[k] = state.means[k] + width * state.inv_sqrt_count[k]


@dataclass(frozen=True)
class UCBMaxN(Policy[AimedMeans]):
    r"""Find the largest upper confidence bound, play the best mean among the arms that reveal it.

    :math:`j=\arg\max_k\hat\mu_k+\sqrt{a\ln t/N_k}`, then :math:`\arg\max_{i\in in(j)}\hat\mu_i`; an arm never observed comes
    first as j and last as i.

    Parameters
    ----------
    scale : float
        The factor a, as in `UCB1`.

    Notes
    -----
    Cost O(K) per step. Plays every graph, shown before the pull.

    References
    ----------
    Caron, Kveton, Lelarge, Bhagat 2012, Algorithm 2 (UCB-MaxN) and Theorem 2.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> player = Player(UCBMaxN(), n_arms=3, graph=Graph.from_edges([(0, 1), (1, 2)]), seed=0)
    >>> player.update(1, 0.9, also={0: 0.5, 2: 0.5}), player.select()
    (True, 1)
    """

    scale: float = real(2.0, least=0.0, most=HUGE)
    needs_graph = True
    resizable = False
    also_known_as = ("UCB-MaxN",)

    def start(self, setting: Setting) -> AimedMeans:
        """Nothing observed; unseen arms stand at +inf."""
        graph = known_graph(self, setting)
        return new_means(AimedMeans, setting.n_arms, scale=self.scale, graph=graph)

    def prepare(self, state: AimedMeans) -> AimedMeans:
        """The widths follow from the observations."""
        state.inv_sqrt_count[:] = inv_sqrt_counts(state.observations)
        return state

    @staticmethod
    @kernel
    def select(state: AimedMeans, t: int, rng: Any) -> int:
        """The best arm that shows the arm with the largest bound."""
        write_bounds(state, t)
        aim = argmax(state.score, rng)
        return best_observer(state, t, aim, rng)

    @staticmethod
    @kernel
    def probabilities(state: AimedMeans, t: int, out: Any) -> None:
        """The largest bounds share, and so do the best arms that show one of them."""
        write_bounds(state, t)
        aims = np.zeros(out.size)
        share_among_largest(state.score, 1.0, aims)
        hand_on(state, t, aims, out)

    @staticmethod
    @kernel
    def update(state: AimedMeans, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Mean and width of an observed arm."""
        learn_width(state, seen, reward, 1.0)


class AimedBeta(BetaState):
    """Beta posteriors, the graph, and room for the arms that show another."""

    score: NDArray[np.float64]  # (K,)
    who: NDArray[np.int32]  # (K,)
    graph: Any


@promise.register(AimedBeta)
@kernel
def posterior_mean(state: AimedBeta, arm: int) -> float:
    """The mean of the posterior."""
    return state.successes[arm] / (state.successes[arm] + state.failures[arm])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TSMaxN(Policy[AimedBeta]):
    r"""Find the largest posterior draw, play the best posterior mean among the arms that reveal it.

    :math:`\theta_k\sim\mathrm{Beta}(a+S_k,b+F_k)`, :math:`j=\arg\max\theta`, then the largest posterior mean over
    :math:`in(j)`.

    Parameters
    ----------
    successes, failures, resample : float, float, bool
        As in `Thompson`.

    Notes
    -----
    Cost O(K) Beta draws per step. Plays every graph, shown before the pull.

    References
    ----------
    Tossou, Dimitrakakis, Dubhashi 2017, Section 3 (TS-MaxN).

    Examples
    --------
    >>> from abex import Graph, Player
    >>> player = Player(TSMaxN(), n_arms=2, graph=Graph.from_edges([(0, 1)]), seed=0)
    >>> player.update(1, 1.0, also={0: 0.0}), player.select()
    (True, 1)
    """

    successes: float = real(1.0, above=0.0, most=MAX_PRIOR)
    failures: float = real(1.0, above=0.0, most=MAX_PRIOR)
    resample: bool = truth(True)
    needs_graph = True
    resizable = False
    also_known_as = ("TS-MaxN",)

    def start(self, setting: Setting) -> AimedBeta:
        """The prior, for every arm."""
        n, known = setting.n_arms, prior(setting.n_arms, self.successes, self.failures)
        return AimedBeta.of_arms(n, **known, resample=self.resample, graph=known_graph(self, setting))

    @staticmethod
    @kernel
    def select(state: AimedBeta, t: int, rng: Any) -> int:
        """The best arm that shows the arm with the largest draw."""
        for k in range(state.score.size):
            state.score[k] = rng.beta(state.successes[k], state.failures[k])
        aim = argmax(state.score, rng)
        return best_observer(state, t, aim, rng)

    @staticmethod
    @kernel
    def probabilities(state: AimedBeta, t: int, out: Any) -> None:
        """What is shown by an arm when the draw of another, to which it leads, is the largest."""
        largest_beta(state.successes, state.failures, state.score)
        hand_on(state, t, state.score, out)

    @staticmethod
    @kernel
    def update(state: AimedBeta, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Count a success or a failure."""
        learn_posterior(state, seen, coin(state, reward, rng), 1.0)
