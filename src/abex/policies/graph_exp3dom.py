"""EXP3-DOM: exponential weights on feedback graphs that explore a dominating set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Feedback, graph_index, is_drawn, observers, probability_seen, reveal
from abex.kernels import kernel
from abex.parameters import real
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.drawn import DrawnPolicy
from abex.policies.graph_exp3 import LEAST_PROBABILITY_SEEN
from abex.policies.known_graph import dominating_set, graphs_in_turn, known_graph
from abex.samplers.softmax import softmax_weights
from abex.schema import FixedAtStart, Probabilities, Scratch, UpToArms, Within


class DominatingState(NamedTuple):
    """Log-weights for each class of dominating sets, the sets, and the distribution of the last decision."""

    scores: Annotated[
        NDArray[np.float64], Within()
    ]  # (classes, K), log-weights of the class of sets with 2^b <= size < 2^(b+1)
    probabilities: Annotated[PerArm, Probabilities()]  # float64 (K,), probabilities of the last select
    size: Annotated[
        NDArray[np.int64], UpToArms(least=1)
    ]  # (1,), size of the dominating set of the last select
    sets: Annotated[
        NDArray[np.int64], FixedAtStart()
    ]  # (period, K), a dominating set for each graph, or scratch for drawn graphs
    sizes: Annotated[NDArray[np.int64], FixedAtStart()]  # (period,)
    gains: Annotated[NDArray[np.int64], Scratch()]  # (K,)
    hidden: Annotated[NDArray[np.bool_], Scratch()]  # (K,)
    who: Annotated[NDArray[np.int32], Scratch()]  # (K,)
    others: Annotated[NDArray[np.int32], Scratch()]  # (K,)
    gamma: float  # nan: tuned to the horizon
    horizon: float
    graph: Feedback


@kernel
def drawn_dominating_set(
    graph: Any, t: int, gains: Any, hidden: Any, who: Any, others: Any, found: Any
) -> int:
    """Greedy dominating set of the graph of step t into ``found``; its size."""
    n_arms = gains.size
    for k in range(n_arms):
        gains[k] = reveal(graph, t, k, who)
        hidden[k] = True
    size = 0
    while True:
        best = 0
        for k in range(1, n_arms):
            if gains[k] > gains[best]:
                best = k
        if gains[best] <= 0:
            return size
        found[size] = best
        size += 1
        for i in range(reveal(graph, t, best, who)):
            shown = who[i]
            if hidden[shown]:
                hidden[shown] = False
                for j in range(observers(graph, t, shown, others)):
                    gains[others[j]] -= 1


@kernel
def current_set(state: DominatingState, t: int) -> int:
    """Make sure that the dominating set of step t stands in its row; its size."""
    turn = graph_index(state.graph, t)
    if is_drawn(state.graph):
        return drawn_dominating_set(
            state.graph, t, state.gains, state.hidden, state.who, state.others, state.sets[turn]
        )
    return int(state.sizes[turn])


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
    size = current_set(state, t)
    state.size[0] = size
    number = size_class(size)
    gamma = class_rate(state, number)
    total = softmax_weights(state.scores[number], 1.0, out)
    for k in range(out.size):
        out[k] = (1.0 - gamma) * out[k] / total
    turn = graph_index(state.graph, t)
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
    Cost O(K) per step and the in-degrees of the observed arms. On a graph drawn at each step a dominating set is found at
    each step: :math:`O(K|R|)` plus the edges, O(K^2) for `ErdosRenyiEachStep`.

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
    remembers = ("probabilities", "size")
    names_matter = True  # there may be several dominating sets
    also_known_as = ("EXP3-DOM",)
    horizon_sets = ("gamma",)

    def start(self, setting: Setting) -> DominatingState:
        """Equal weights in every class."""
        record, n = known_graph(self, setting), setting.n_arms
        period = self.graph_of(setting).period
        sets, sizes = np.zeros((period or 1, n), dtype=np.int64), np.zeros(period or 1, dtype=np.int64)
        if period is not None:
            for turn, graph in enumerate(graphs_in_turn(self, setting)):
                arms = dominating_set(graph)
                sets[turn, : arms.size] = arms
                sizes[turn] = arms.size
        tuned = self.gamma is None
        return DominatingState(
            scores=np.zeros((int(math.log2(n)) + 1, n)),
            probabilities=np.full(n, 1.0 / n),
            size=np.ones(1, dtype=np.int64),
            sets=sets,
            sizes=sizes,
            gains=np.zeros(n, dtype=np.int64),
            hidden=np.zeros(n, dtype=bool),
            who=np.zeros(n, dtype=np.int32),
            others=np.zeros(n, dtype=np.int32),
            gamma=math.nan if self.gamma is None else float(self.gamma),
            horizon=float(self.horizon_of(setting)) if tuned else math.nan,
            graph=record,
        )

    probabilities = staticmethod(dominating_probabilities)

    @staticmethod
    @kernel
    def update(state: DominatingState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Weighted loss of an observed arm, in the class of the decision."""
        number = size_class(state.size[0])
        probability = max(probability_seen(state.graph, t, seen, state.probabilities), LEAST_PROBABILITY_SEEN)
        state.scores[number, seen] -= class_rate(state, number) * (1.0 - reward) / (probability * 2.0**number)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned for the horizon, and with a given share."""
        yield cls()
        yield cls(gamma=0.1)
