"""Exponential weights on feedback graphs: every observed arm counts, weighed by the probability of observing it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Feedback, graph_index, probability_seen
from abex.kernels import kernel
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.drawn import DrawnPolicy
from abex.policies.known_graph import (
    clique_cover_estimate,
    exploration_distribution,
    graphs_in_turn,
    independence_estimate,
    known_graph,
    typical_graphs,
)
from abex.samplers.scan import softmax_weights
from abex.schema import Distribution, Probabilities, Within
from abex.support.parameters import HUGE, TINY, real

LEAST_PROBABILITY_SEEN = (
    1e-12  # an arm is seen at least as often as it is pulled, which underflows only where it does not matter
)


class CoverState(NamedTuple):
    """Log-weights mixed with an exploration distribution, one for each of the graphs that take turns."""

    scores: Annotated[PerArm, Within()]  # float64 (K,), log-weights
    probabilities: Annotated[PerArm, Probabilities()]  # float64 (K,), probabilities of the last select
    exploration: Annotated[NDArray[np.float64], Distribution()]  # (period, K) or (1, K), where to explore
    mixing: Annotated[NDArray[np.float64], Within(0.0, 1.0)]  # (period,) or (1,), how much
    step: float
    graph: Feedback


@kernel
def mixture_probabilities(state: CoverState, t: int, out: Any) -> None:
    """Normalised weights, mixed with the exploration distribution of the graph in force."""
    turn = graph_index(state.graph, t) % state.mixing.size
    mixing = state.mixing[turn]
    share = (1.0 - mixing) / softmax_weights(state.scores, 1.0, out)
    for k in range(out.size):
        out[k] = share * out[k] + mixing * state.exploration[turn, k]


@kernel
def weighted_gain(state: CoverState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """The observed reward over the probability of observing it."""
    probability = probability_seen(state.graph, t, seen, state.probabilities)
    state.scores[seen] += state.step * reward / max(probability, LEAST_PROBABILITY_SEEN)


@kernel
def weighted_loss(state: CoverState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """The observed loss over the probability of observing it."""
    probability = probability_seen(state.graph, t, seen, state.probabilities)
    state.scores[seen] -= state.step * (1.0 - reward) / max(probability, LEAST_PROBABILITY_SEEN)


class _GraphWeights(DrawnPolicy[CoverState]):
    """What the policies of this file share: they know the graph, and their weights belong to a decision."""

    needs_graph = True
    resizable = False
    probabilities = staticmethod(mixture_probabilities)

    def _independence(self, given: float | None, setting: Setting) -> float:
        """The estimate given, or the mean over the graphs of a greedy set's size."""
        if given is not None:
            return given
        return float(np.mean([independence_estimate(graph) for graph in typical_graphs(self, setting)]))


def _even(n_arms: int, record: Feedback, mixing: float, step: float) -> CoverState:
    """Equal weights, exploration over all arms alike."""
    exploration = np.full((1, n_arms), 1.0 / n_arms)
    return CoverState(np.zeros(n_arms), exploration[0].copy(), exploration, np.array([mixing]), step, record)


@dataclass(frozen=True)
class ELP(_GraphWeights):
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
        record, n = known_graph(self, setting), setting.n_arms
        graphs = graphs_in_turn(self, setting)
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
        return CoverState(np.zeros(n), np.full(n, 1.0 / n), exploration, mixing, beta, record)

    update = staticmethod(weighted_gain)

    def report(self, state: CoverState) -> dict[str, float]:
        """Share of exploration and step size."""
        return {"gamma": float(state.mixing.mean()), "beta": float(state.step)}

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned for the horizon, with an estimate, and with a given step."""
        yield cls()
        yield cls(independence=2.0)
        yield cls(beta=0.05)


@dataclass(frozen=True)
class Exp3SET(_GraphWeights):
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
        record, n = known_graph(self, setting), setting.n_arms
        eta = self.eta
        if eta is None:
            alpha = self._independence(self.independence, setting)
            eta = math.sqrt(2.0 * math.log(n) / (alpha * self.horizon_of(setting)))
        return _even(n, record, 0.0, eta)

    update = staticmethod(weighted_loss)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned for the horizon, and with a given step."""
        yield cls()
        yield cls(eta=0.1)
