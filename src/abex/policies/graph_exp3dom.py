"""EXP3-DOM: exponential weights on feedback graphs that explore a dominating set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import graph_index, probability_seen
from abex.kernels import Record, kernel
from abex.kinds import Chance, Score
from abex.policies.graph_exp3 import MIN_PROBABILITY_SEEN
from abex.policies.known_graph import dominating_set, graphs_in_turn, known_graph
from abex.policies.learner import DrawnPolicy
from abex.policies.policy import Setting
from abex.samplers.scan import softmax_weights
from abex.support.parameters import real


class DominatingState(Record):
    """Log-weights for each class of dominating sets, the sets, and the distribution of the last decision."""

    scores: Score  # float64 (classes, K), log-weights of the class of sets with 2^b <= size < 2^(b+1)
    probabilities: Chance  # float64 (K,), of the last decision
    sets: NDArray[np.int64]  # (period, K), a dominating set for each graph
    sizes: NDArray[np.int64]  # (period,)
    gamma: float  # nan: tuned to the horizon
    horizon: float
    graph: Any


@kernel
def size_class(size: int) -> int:
    """floor(log2(size))."""
    number = 0
    while size >= 2:
        size //= 2
        number += 1
    return number


@kernel
def class_rate(state: DominatingState, number: int) -> float:
    """Exploration share and step size of a class."""
    if math.isnan(state.gamma):
        return min(0.5, math.sqrt(2.0**number * math.log(max(state.probabilities.size, 2)) / state.horizon))
    return float(state.gamma)


@kernel
def dominating_probabilities(state: DominatingState, t: int, out: Any) -> None:
    """The class's weights mixed with uniform exploration of the dominating set."""
    turn = graph_index(state.graph, t)
    size = int(state.sizes[turn])
    number = size_class(size)
    gamma = class_rate(state, number)
    total = softmax_weights(state.scores[number], 1.0, out)
    for k in range(out.size):
        out[k] = (1.0 - gamma) * out[k] / total
    for j in range(size):
        out[state.sets[turn, j]] += gamma / size


@dataclass(frozen=True)
class Exp3DOM(DrawnPolicy[DominatingState]):
    r"""Exponential weights that explore a small dominating set of the graph, shown before the pull.

    R is a greedy dominating set of the step's graph and :math:`b=\lfloor\log_2|R|\rfloor`; each class b has weights of its own:
    :math:`p=(1-\gamma_b)w^{(b)}/W^{(b)}+\gamma_b/|R|` on R; every observed arm j loses
    :math:`\ln w^{(b)}_j\mathrel{-}=\gamma_b\,\hat l_j/2^b`, :math:`\hat l_j=l_j/\sum_{l\in in(j)}p_l`.

    Parameters
    ----------
    gamma : float or None
        None takes :math:`\gamma_b=\min\{1/2,\sqrt{2^b\ln K/T}\}`, which needs the horizon (the publication doubles instead;
        its constants are not verified).

    Notes
    -----
    Cost O(K) per step and the in-degrees of the observed arms. Before, a set is found for each graph. Plays graphs that
    repeat, not graphs drawn at each step.

    References
    ----------
    Alon, Cesa-Bianchi, Gentile, Mansour 2013, Algorithm 2 and Theorem 6 (from memory).

    Examples
    --------
    >>> from abex import Graph, Player
    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> Player(Exp3DOM(gamma=0.2), n_arms=4, graph=star, seed=0).probabilities().round(2).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """

    gamma: float | None = real(None, above=0.0, most=1.0, or_none=True)
    needs_graph = True
    resizable = False
    also_known_as = ("EXP3-DOM",)
    horizon_sets = ("gamma",)

    def start(self, setting: Setting) -> DominatingState:
        """Equal weights in every class."""
        record, n = known_graph(self, setting), setting.n_arms
        graphs = graphs_in_turn(self, setting)
        sets, sizes = np.zeros((len(graphs), n), dtype=np.int64), np.zeros(len(graphs), dtype=np.int64)
        for turn, graph in enumerate(graphs):
            arms = dominating_set(graph)
            sets[turn, : arms.size] = arms
            sizes[turn] = arms.size
        tuned = self.gamma is None
        return DominatingState(
            scores=np.zeros((int(math.log2(n)) + 1, n)),
            probabilities=np.full(n, 1.0 / n),
            sets=sets,
            sizes=sizes,
            gamma=math.nan if self.gamma is None else float(self.gamma),
            horizon=float(self.horizon_of(setting)) if tuned else math.nan,
            graph=record,
        )

    probabilities = staticmethod(dominating_probabilities)

    @staticmethod
    @kernel
    def update(state: DominatingState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Weighted loss of an observed arm, in the class of the decision."""
        number = size_class(int(state.sizes[graph_index(state.graph, t)]))
        probability = max(probability_seen(state.graph, t, seen, state.probabilities), MIN_PROBABILITY_SEEN)
        state.scores[number, seen] -= class_rate(state, number) * (1.0 - reward) / (probability * 2.0**number)
