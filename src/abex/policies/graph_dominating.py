"""Exponential weights on feedback graphs that explore a dominating set: EXP3-DOM and EXP3.G++."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.errors import real_number
from abex.graphs.feedback import Changing, chance_seen, observers, reveal_changing, turn_of
from abex.kernels import kernel
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.exp3 import loss_chances
from abex.policies.graph_exp3 import LEAST_CHANCE
from abex.policies.known_graph import dominating_arms, graphs_in_turn, known_graph
from abex.policies.softmax import boltzmann_weights, pick


class DominatingState(NamedTuple):
    """Log-weights for each class of dominating sets, the sets, and the law of the last decision."""

    scores: NDArray[np.float64]  # (classes, K), log-weights of the class of sets with 2^b <= size < 2^(b+1)
    chances: PerArm  # float64 (K,), probabilities of the last select
    size: NDArray[np.int64]  # (1,), size of the dominating set of the last select
    sets: NDArray[np.int64]  # (period, K), a dominating set for each graph, or scratch for drawn graphs
    sizes: NDArray[np.int64]  # (period,)
    gains: NDArray[np.int64]  # (K,), scratch
    hidden: NDArray[np.bool_]  # (K,), scratch
    who: NDArray[np.int32]  # (K,), scratch
    others: NDArray[np.int32]  # (K,), scratch
    gamma: float  # nan: tuned to the horizon
    horizon: float
    graph: Changing


@kernel
def drawn_dominating_set(
    graph: Any, t: int, gains: Any, hidden: Any, who: Any, others: Any, found: Any
) -> int:
    """Greedy dominating set of the graph of step t into ``found``; its size."""
    n_arms = gains.size
    for k in range(n_arms):
        gains[k] = reveal_changing(graph, t, k, who)
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
        for i in range(reveal_changing(graph, t, best, who)):
            shown = who[i]
            if hidden[shown]:
                hidden[shown] = False
                for j in range(observers(graph, t, shown, others)):
                    gains[others[j]] -= 1


@kernel
def current_set(state: Any, t: int) -> int:
    """Make sure that the dominating set of step t stands in its row; its size."""
    turn = turn_of(state.graph, t)
    if state.graph.keep < 1.0:
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
def class_rate(state: Any, number: int) -> float:
    """Exploration share and step size of a class."""
    if math.isnan(state.gamma):
        return min(0.5, math.sqrt(2.0**number * math.log(max(state.chances.size, 2)) / state.horizon))
    return float(state.gamma)


@kernel
def dominating_chances(state: Any, t: int, out: Any) -> None:
    """The class's weights mixed with uniform exploration of the dominating set."""
    size = current_set(state, t)
    state.size[0] = size
    number = size_class(size)
    gamma = class_rate(state, number)
    total = boltzmann_weights(state.scores[number], 1.0, out)
    for k in range(out.size):
        out[k] = (1.0 - gamma) * out[k] / total
    turn = turn_of(state.graph, t)
    for j in range(size):
        out[state.sets[turn, j]] += gamma / size


@dataclass(frozen=True)
class Exp3DOM(Policy[DominatingState]):
    r"""Exponential weights that explore a small dominating set of the graph, shown before the pull.

    R is a greedy dominating set of the step's graph and :math:`b=\lfloor\log_2|R|\rfloor`; each class b has weights of its own:
    :math:`p=(1-\gamma_b)w^{(b)}/W^{(b)}+\gamma_b/|R|` on R; every observed arm j loses
    :math:`\ln w^{(b)}_j\mathrel{-}=\gamma_b\,\hat l_j/2^b`, :math:`\hat l_j=l_j/\sum_{l\in in(j)}p_l`.

    Parameters
    ----------
    gamma : float or None
        None takes :math:`\gamma_b=\min\{1/2,\sqrt{2^b\ln K/T}\}`, which needs the horizon (the publication doubles instead;
        its constants are not verified).

    References
    ----------
    Alon, Cesa-Bianchi, Gentile, Mansour 2013, Algorithm 2 and Theorem 6 (from memory).

    Notes
    -----
    Cost O(K) per step and the in-degrees of the observed arms. On a graph drawn at each step a dominating set is found at
    each step: O(K |R| + edges), O(K^2) for `ErdosRenyiEachStep`.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> Player(Exp3DOM(gamma=0.2), n_arms=4, graph=star, seed=0).probabilities().round(2).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """

    gamma: float | None = None
    needs_graph = True
    resizable = False
    remembers = ("chances", "size")
    names_matter = True  # there may be several dominating sets
    also_known_as = ("EXP3-DOM",)

    def __post_init__(self) -> None:
        if self.gamma is not None:
            real_number("gamma", self.gamma, above=0.0, most=1.0)

    @property
    def needs_horizon(self) -> bool:
        """Only where ``gamma`` is left open."""
        return self.gamma is None

    def start(self, setting: Setting) -> DominatingState:
        """Equal weights in every class."""
        record, n = known_graph(self, setting), setting.n_arms
        sets, sizes = np.zeros((record.period, n), dtype=np.int64), np.zeros(record.period, dtype=np.int64)
        if record.keep >= 1.0 and not record.dense:
            for turn, graph in enumerate(graphs_in_turn(self, record)):
                arms = dominating_arms(graph)
                sets[turn, : arms.size] = arms
                sizes[turn] = arms.size
        tuned = self.gamma is None
        return DominatingState(
            scores=np.zeros((int(math.log2(n)) + 1, n)),
            chances=np.full(n, 1.0 / n),
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

    probabilities = staticmethod(dominating_chances)

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw."""
        dominating_chances(state, t, state.chances)
        return pick(state.chances, 1.0, rng)

    @staticmethod
    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Weighted loss of an observed arm, in the class of the decision."""
        number = size_class(state.size[0])
        chance = max(chance_seen(state.graph, t, seen, state.chances), LEAST_CHANCE)
        state.scores[number, seen] -= class_rate(state, number) * (1.0 - reward) / (chance * 2.0**number)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned for the horizon, and with a given share."""
        yield cls()
        yield cls(gamma=0.1)


class GapGraphState(NamedTuple):
    """Estimated losses, plain means of the losses, the exploration set, and the law of the last decision."""

    losses: PerArm  # float64 (K,), importance-weighted sums
    pulls: PerArm  # float64 (K,), observations
    mean_losses: PerArm  # float64 (K,), unweighted
    chances: PerArm  # float64 (K,)
    gaps: NDArray[np.float64]  # (K,), scratch
    order: NDArray[np.int64]  # (K,), scratch: arms by gap
    hidden: NDArray[np.bool_]  # (K,), scratch
    who: NDArray[np.int32]  # (K,), scratch
    size: NDArray[np.float64]  # (1,), size of the exploration set of the last select
    spent: NDArray[np.float64]  # (1,), sum of these sizes
    unseen: NDArray[np.int64]  # (1,), arms never observed before this step
    a: float
    b: float
    graph: Changing


@kernel
def sort_by_gap(gaps: Any, order: Any) -> None:
    """Insertion sort by (gap, arm): nearly linear, since the order changes little from step to step."""
    for i in range(1, order.size):
        arm = order[i]
        j = i - 1
        while j >= 0 and (gaps[order[j]] > gaps[arm] or (gaps[order[j]] == gaps[arm] and order[j] > arm)):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = arm


@kernel
def gap_graph_chances(state: Any, t: int, out: Any) -> None:
    """Uniform over unobserved arms while there are any, then softmax with floors on the exploration set."""
    n_arms = out.size
    untried = 0
    for k in range(n_arms):
        if state.pulls[k] == 0.0:
            untried += 1
    if untried > 0:
        for k in range(n_arms):
            out[k] = 1.0 / untried if state.pulls[k] == 0.0 else 0.0
        return
    level = 0.5 * (state.a * math.log(t) + math.log(n_arms))
    lowest = 1.0
    for k in range(n_arms):
        lowest = min(lowest, state.mean_losses[k] + math.sqrt(level / state.pulls[k]))
    for k in range(n_arms):
        state.gaps[k] = max(0.0, max(0.0, state.mean_losses[k] - math.sqrt(level / state.pulls[k])) - lowest)
        state.hidden[k] = True
    sort_by_gap(state.gaps, state.order)
    size = 0
    for i in range(n_arms):
        arm = state.order[i]
        if state.hidden[arm]:
            size += 1
            for j in range(reveal_changing(state.graph, t, arm, state.who)):
                state.hidden[state.who[j]] = False
            state.order[i] = -1 - arm  # marks a member until the floors are known
    state.size[0] = size
    log_arms = math.log(max(n_arms, 2))
    loss_chances(state.losses, 0.5 * math.sqrt(log_arms / (state.spent[0] + size)), out)
    cap = min(0.5 / n_arms, 0.5 * math.sqrt(log_arms / (t * size)))
    given = 0.0
    for i in range(n_arms):
        if state.order[i] < 0:
            given += gap_floor(state, t, -1 - state.order[i], cap)
    for k in range(n_arms):
        out[k] *= 1.0 - given
    for i in range(n_arms):
        if state.order[i] < 0:
            arm = -1 - state.order[i]
            state.order[i] = arm
            out[arm] += gap_floor(state, t, arm, cap)


@kernel
def gap_floor(state: Any, t: int, arm: int, cap: float) -> float:
    """Exploration rate of a member of the exploration set."""
    gap = state.gaps[arm]
    return cap if gap <= 0.0 else min(cap, state.b * math.log(t) / (t * gap * gap))


@dataclass(frozen=True)
class Exp3GPlusPlus(Policy[GapGraphState]):
    r"""EXP3.G++: exponential weights for graphs that explore a set of arms by which all are seen, bad arms less.

    :math:`p=(1-\sum_{k\in S}\epsilon_k)\,\mathrm{softmax}(-\eta_t\hat L)+\epsilon`. S is built by scanning the arms by increasing
    gap estimate :math:`\hat\Delta_k` (confidence bounds as in `Exp3PlusPlus`, with observations for pulls), taking
    those not yet seen by S; :math:`\epsilon_k=\min\{\frac1{2K},\frac12\sqrt{\ln K/(t|S|)},b\ln t/(t\hat\Delta_k^2)\}` on S.
    Losses are weighted by the chance of observation. Arms never observed come first.

    Parameters
    ----------
    a, b : float
        Constants of the gap estimate, 3 and 256 as in `Exp3PlusPlus`. These, the learning rate
        :math:`\eta_t=\frac12\sqrt{\ln K/\sum_{s\le t}|S_s|}` and the start are our reading: not verified against the publication.

    References
    ----------
    Rouyer, van der Hoeven, Cesa-Bianchi, Seldin 2022, Algorithm 1 (abstract and outline only).

    Notes
    -----
    Cost O(K + edges shown by S) per step, more while the order of the gaps changes. Plays every graph.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> player = Player(Exp3GPlusPlus(), n_arms=2, graph=Graph.from_edges([(0, 1)]), seed=0)
    >>> player.update(0, 0.0, also={1: 1.0})
    True
    >>> player.probabilities().round(2).tolist()
    [0.5, 0.5]
    """

    a: float = 3.0
    b: float = 256.0
    needs_graph = True
    resizable = False
    remembers = ("chances", "size", "unseen")
    names_matter = True  # arms with equal gap estimates are scanned by number
    also_known_as = ("EXP3.G++",)

    def __post_init__(self) -> None:
        real_number("a", self.a, above=0.0)
        real_number("b", self.b, above=0.0)

    def start(self, setting: Setting) -> GapGraphState:
        """Nothing observed."""
        record, n = known_graph(self, setting), setting.n_arms
        return GapGraphState(
            losses=np.zeros(n),
            pulls=np.zeros(n),
            mean_losses=np.zeros(n),
            chances=np.full(n, 1.0 / n),
            gaps=np.zeros(n),
            order=np.arange(n),
            hidden=np.zeros(n, dtype=bool),
            who=np.zeros(n, dtype=np.int32),
            size=np.zeros(1),
            spent=np.zeros(1),
            unseen=np.full(1, n, dtype=np.int64),
            a=float(self.a),
            b=float(self.b),
            graph=record,
        )

    probabilities = staticmethod(gap_graph_chances)

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw."""
        gap_graph_chances(state, t, state.chances)
        state.unseen[0] = 0
        for k in range(state.pulls.size):
            if state.pulls[k] == 0.0:
                state.unseen[0] += 1
        return pick(state.chances, 1.0, rng)

    @staticmethod
    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Plain mean of the losses; weighted sum once every arm has been observed."""
        loss = 1.0 - reward
        state.pulls[seen] += 1.0
        state.mean_losses[seen] += (loss - state.mean_losses[seen]) / state.pulls[seen]
        if state.unseen[0] == 0:
            chance = chance_seen(state.graph, t, seen, state.chances)
            state.losses[seen] += loss / max(chance, LEAST_CHANCE)
            if seen == arm:
                state.spent[0] += state.size[0]
