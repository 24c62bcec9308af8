"""Exponential weights on feedback graphs: every observed arm counts, weighed by the probability of observing it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import graph_index, probability_seen
from abex.kernels import Record, kernel
from abex.kinds import Chance, Number, Score, agree
from abex.policies.known_graph import (
    clique_cover_estimate,
    exploration_distribution,
    graphs_in_turn,
    independence_estimate,
    known_graph,
    typical_graphs,
)
from abex.policies.learner import DrawnPolicy
from abex.policies.policy import Setting
from abex.samplers.scan import loss_probabilities, softmax_weights
from abex.support.parameters import HUGE, TINY, real

#: an arm is seen at least as often as it is pulled, which underflows only where it does not matter
MIN_PROBABILITY_SEEN = 1e-12


class CoverState(Record):
    """Log-weights mixed with an exploration distribution, one for each of the graphs that take turns."""

    scores: Score  # float64 (K,), log-weights
    probabilities: Chance  # float64 (K,), of the last decision
    exploration: NDArray[np.float64]  # (period, K) or (1, K), where to explore
    mixing: NDArray[np.float64]  # (period,) or (1,), how much
    step: float
    graph: Any


@kernel
def mixture_probabilities(state: CoverState, t: int, out: Any) -> None:
    """Normalised weights, mixed with the exploration distribution of the graph in force."""
    turn = graph_index(state.graph, t) % state.mixing.size
    mixing = state.mixing[turn]
    share = (1.0 - mixing) / softmax_weights(state.scores, 1.0, out)
    for k in range(out.size):
        out[k] = share * out[k] + mixing * state.exploration[turn, k]


class _Mixture(DrawnPolicy[CoverState]):
    """Exponential weights that are mixed with an exploration distribution."""

    needs_graph = True
    resizable = False
    probabilities = staticmethod(mixture_probabilities)

    def _state(self, setting: Setting, step: float, exploration: Any, mixing: Any) -> CoverState:
        """Equal weights."""
        n = setting.n_arms
        return CoverState.of_arms(
            n,
            probabilities=np.full(n, 1.0 / n),
            exploration=exploration,
            mixing=mixing,
            step=step,
            graph=known_graph(self, setting),
        )


@dataclass(frozen=True)
class ELP(_Mixture):
    r"""Exponential weights explored by a linear program: the arms from which every arm is seen most often.

    :math:`s=\arg\max_s\min_j\sum_{l\in in(j)}s_l` with value v, :math:`\gamma=\beta/v`,
    :math:`p=(1-\gamma)w/\sum_j w_j+\gamma s`; every observed arm j gains
    :math:`\ln w_j\mathrel{+}=\beta\,x_j/\sum_{l\in in(j)}p_l`.

    Parameters
    ----------
    beta : float or None
        Step size. None takes :math:`\min\{\sqrt{\ln K/(3\alpha T)},\,1/(2K)\}`, which needs the horizon.
    independence : float or None
        The estimate of :math:`\alpha(G)` in it. None takes the size of a greedy independent set, of a greedy clique
        cover where the graph is directed. The paper tried several and kept the best.

    Notes
    -----
    Cost O(K) per step and the in-degrees of the observed arms. Before, the program is solved once for each graph: by
    HiGHS, or up to 0.05 % with a proof where that takes too many steps. Plays graphs that repeat, not graphs drawn
    at each step.

    References
    ----------
    Mannor and Shamir 2011, Algorithm 1 and Theorem 2 (the constant 3 re-derived, not verified against the
    publication): regret at most :math:`2\sqrt{3\ln K\sum_t\alpha(G_t)}`.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> Player(ELP(beta=0.1), n_arms=4, graph=star, seed=0).probabilities().round(3).tolist()
    [0.325, 0.225, 0.225, 0.225]
    """

    beta: float | None = real(None, above=0.0, most=0.5, or_none=True)
    independence: float | None = real(None, least=TINY, most=HUGE, or_none=True)
    horizon_sets = ("beta",)

    def start(self, setting: Setting) -> CoverState:
        """Equal weights, the program solved."""
        n, graphs = setting.n_arms, graphs_in_turn(self, setting)
        beta = self.beta
        if beta is None:
            alpha = self.independence or float(
                np.mean(
                    [clique_cover_estimate(g) if g.is_directed else independence_estimate(g) for g in graphs]
                )
            )
            beta = min(math.sqrt(math.log(n) / (3.0 * alpha * self.horizon_of(setting))), 0.5 / n)
        distributions = [exploration_distribution(graph) for graph in graphs]
        exploration = np.array([distribution for distribution, _ in distributions])
        mixing = np.array([min(1.0, beta / value) for _, value in distributions])
        return self._state(setting, beta, exploration, mixing)

    @staticmethod
    @kernel
    def update(state: CoverState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """The observed reward over the probability of observing it."""
        probability = probability_seen(state.graph, t, seen, state.probabilities)
        state.scores[seen] += state.step * reward / max(probability, MIN_PROBABILITY_SEEN)

    def report(self, state: CoverState) -> dict[str, float]:
        """Share of exploration and step size."""
        return {"gamma": float(state.mixing.mean()), "beta": float(state.step)}


@dataclass(frozen=True)
class Exp3SET(_Mixture):
    r"""Exponential weights on observed losses without exploration; the graph is needed after the pull only.

    :math:`p=\mathrm{softmax}(-\eta\hat L)`, :math:`\hat L_j\mathrel{+}=l_j/\sum_{l\in in(j)}p_l` for every observed j.

    Parameters
    ----------
    eta : float or None
        Step size. None takes :math:`\sqrt{2\ln K/(\alpha T)}`, which needs the horizon.
    independence : float or None
        The estimate of :math:`\alpha(G)` in it (of the largest acyclic set where the graph is directed); None takes
        the size of a greedy one.

    Notes
    -----
    Cost O(K) per step and the in-degrees of the observed arms. Plays every graph.

    References
    ----------
    Alon, Cesa-Bianchi, Gentile, Mansour 2013, Algorithm 1 and Theorem 2 (from memory, re-derived): regret at most
    :math:`\sqrt{2\alpha T\ln K}`.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> player = Player(Exp3SET(eta=0.1), n_arms=3, graph=path, seed=0)
    >>> player.update(1, 0.0, also={0: 1.0, 2: 1.0})
    True
    >>> player.probabilities().round(3).tolist()
    [0.344, 0.311, 0.344]
    """

    eta: float | None = real(None, above=0.0, most=HUGE, or_none=True)
    independence: float | None = real(None, least=TINY, most=HUGE, or_none=True)
    also_known_as = ("EXP3-SET",)
    horizon_sets = ("eta",)

    def start(self, setting: Setting) -> CoverState:
        """Equal weights."""
        n, eta = setting.n_arms, self.eta
        if eta is None:
            graphs = typical_graphs(self, setting)
            alpha = self.independence or float(np.mean([independence_estimate(graph) for graph in graphs]))
            eta = math.sqrt(2.0 * math.log(n) / (alpha * self.horizon_of(setting)))
        return self._state(setting, eta, np.full((1, n), 1.0 / n), np.zeros(1))

    @staticmethod
    @kernel
    def update(state: CoverState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """The observed loss over the probability of observing it."""
        probability = probability_seen(state.graph, t, seen, state.probabilities)
        state.scores[seen] -= state.step * (1.0 - reward) / max(probability, MIN_PROBABILITY_SEEN)


class ImplicitState(Record):
    """Estimated losses, the distribution of the last decision, and the sum that sets the rate."""

    losses: Score  # float64 (K,)
    probabilities: Chance  # float64 (K,), of the last decision
    spent: Number  # the sum of Q_s over the steps so far
    graph: Any


@kernel
def spent_rate(state: ImplicitState) -> float:
    """Learning rate and implicit exploration of the next step."""
    n_arms = state.losses.size
    return math.sqrt(math.log(max(n_arms, 2)) / (n_arms + state.spent))


@dataclass(frozen=True)
class Exp3IXGraph(DrawnPolicy[ImplicitState]):
    r"""EXP3-IX with side observations: tempered loss estimates, a rate that finds the graph's difficulty itself.

    :math:`p=\mathrm{softmax}(-\eta_t\hat L)`, :math:`o_j=\sum_{l\in in(j)}p_l`,
    :math:`\hat L_j\mathrel{+}=l_j/(o_j+\gamma_t)` for every observed j, and
    :math:`\eta_t=\gamma_t=\sqrt{\ln K/(K+\sum_{s<t}Q_s)}`, :math:`Q_t=\sum_j p_j/(o_j+\gamma_t)`.

    Notes
    -----
    Cost O(K + edges) per step, for Q. Plays every graph; the graph is needed after the pull only.

    References
    ----------
    Kocák, Neu, Valko, Munos 2014, Algorithm 1 and Theorem 2 (from memory, re-derived): regret
    :math:`O(\sqrt{\ln K(K+\sum_t\alpha_t\ln(KT))})`, without knowing :math:`\alpha` or the horizon.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> Player(Exp3IXGraph(), n_arms=2, graph=Graph.from_edges([(0, 1)]), seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    needs_graph = True
    resizable = False
    also_known_as = ("EXP3-IX on graphs",)

    def start(self, setting: Setting) -> ImplicitState:
        """No loss yet."""
        n = setting.n_arms
        even = np.full(n, 1.0 / n)
        return ImplicitState.of_arms(n, probabilities=even, graph=known_graph(self, setting))

    def prepare(self, state: ImplicitState) -> ImplicitState:
        """The rate's sum never falls."""
        agree(state.spent >= 0.0, "spent must not be below 0")
        return state

    @staticmethod
    @kernel
    def probabilities(state: ImplicitState, t: int, out: Any) -> None:
        """The softmax of the estimated losses."""
        loss_probabilities(state.losses, spent_rate(state), out)

    @staticmethod
    @kernel
    def update(state: ImplicitState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Tempered loss of an observed arm; at the end of the step, what it adds to the rate's sum."""
        gamma = spent_rate(state)
        probability = probability_seen(state.graph, t, seen, state.probabilities)
        state.losses[seen] += (1.0 - reward) / (probability + gamma)
        if seen == arm:
            total = 0.0
            for j in range(state.losses.size):
                total += state.probabilities[j] / (
                    probability_seen(state.graph, t, j, state.probabilities) + gamma
                )
            state.spent += total
