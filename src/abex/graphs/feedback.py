"""Feedback records, and the kernels that say which arms a pull reveals.

The simulator asks ``reveal(feedback, t, arm, seen) -> count``: the arms observed at step t, the pulled arm last, and how many.
A policy that must know the graph holds the same record and also asks who would have revealed an arm (`observers`)
and with what probability it is observed (`probability_seen`). There are two records of edges, `FixedEdges` and `ChangingEdges`;
each kernel has a variant for both, and a policy does not know which it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, single_dispatch
from abex.support.randomness import GOLDEN, mix, uniform_at

Floats = NDArray[np.float64]


class BanditFeedback(Record):
    """Bandit feedback: only the pulled arm is seen."""

    n_arms: int


class FixedEdges(Record):
    """A fixed graph in compressed rows: closed neighbourhoods, each row ending with its own arm."""

    out_start: NDArray[np.int64]  # (K + 1,)
    out_arms: NDArray[np.int32]  # (edges + K,): the arms that a pull of k reveals
    in_start: NDArray[np.int64]  # (K + 1,)
    in_arms: NDArray[np.int32]  # (edges + K,): the arms whose pull reveals k


Rows = tuple[NDArray[np.int64], NDArray[np.int32]]  # where each begins, and all arms one after the other


def edges_of(out: Rows, into: Rows) -> FixedEdges:
    """The record of closed out- and in-neighbourhoods."""
    return FixedEdges(out_start=out[0], out_arms=out[1], in_start=into[0], in_arms=into[1])


class ChangingEdges(Record):
    """Graphs that take turns, or a graph whose edges are drawn at each step."""

    out_start: NDArray[np.int64]  # (period * (K + 1),): the rows of step t begin at graph_index(t) * (K + 1)
    out_arms: NDArray[np.int32]
    in_start: NDArray[np.int64]
    in_arms: NDArray[np.int32]
    n_arms: int
    period: int  # number of graphs
    keep: float  # probability that an edge is present at a step
    key: np.uint64  # names the draws
    symmetric: bool  # u -> v and v -> u come and go together
    dense: bool  # every pair is an edge: no rows are stored


Feedback = FixedEdges | ChangingEdges


@single_dispatch
def reveal(feedback: Any, t: int, arm: int, seen: Any) -> int:
    """The arms that a pull of ``arm`` reveals at step t into ``seen``, itself last; returns their number (kernel)."""
    raise TypeError


@single_dispatch
def observers(graph: Any, t: int, arm: int, who: Any) -> int:
    """The arms that would reveal ``arm`` at step t into ``who``, itself last; returns their number (kernel)."""
    raise TypeError


@single_dispatch
def probability_seen(graph: Any, t: int, arm: int, probabilities: Any) -> float:
    """Probability that ``arm`` is observed at step t when the pull has the distribution ``probabilities`` (kernel)."""
    raise TypeError


@single_dispatch
def graph_index(graph: Any, t: int) -> int:
    """Number of the graph in force at step t = 1, 2, ..., among those that take turns (kernel)."""
    raise TypeError


# -- bandit feedback -------------------------------------------------------------------------------


@reveal.register(BanditFeedback)
@kernel
def reveal_bandit(feedback: BanditFeedback, t: int, arm: int, seen: Any) -> int:
    """The pulled arm."""
    seen[0] = arm
    return 1


# -- a fixed graph ---------------------------------------------------------------------------------


@kernel
def copy_list(start: Any, arms: Any, which: int, out: Any) -> int:
    """A row of the compressed rows ``start`` and ``arms``, into ``out``; returns its length."""
    first = start[which]
    count = int(start[which + 1] - first)
    for j in range(count):
        out[j] = arms[first + j]
    return count


@reveal.register(FixedEdges)
@kernel
def reveal_fixed(feedback: FixedEdges, t: int, arm: int, seen: Any) -> int:
    """The closed out-neighbourhood of the pulled arm."""
    return copy_list(feedback.out_start, feedback.out_arms, arm, seen)


@observers.register(FixedEdges)
@kernel
def observers_in_fixed(graph: FixedEdges, t: int, arm: int, who: Any) -> int:
    """The closed in-neighbourhood."""
    return copy_list(graph.in_start, graph.in_arms, arm, who)


@probability_seen.register(FixedEdges)
@kernel
def probability_seen_in_fixed(graph: FixedEdges, t: int, arm: int, probabilities: Floats) -> float:
    """The probabilities of the closed in-neighbourhood."""
    total = 0.0
    for j in range(graph.in_start[arm], graph.in_start[arm + 1]):
        total += probabilities[graph.in_arms[j]]
    return total


@graph_index.register(FixedEdges)
@kernel
def graph_index_of_fixed(graph: FixedEdges, t: int) -> int:
    """Always the one graph."""
    return 0


# -- graphs that change ----------------------------------------------------------------------------


@graph_index.register(ChangingEdges)
@kernel
def graph_index_of_changing(graph: ChangingEdges, t: int) -> int:
    """The graphs in turn, then again from the first."""
    return 0 if graph.period == 1 else int((t - 1) % graph.period)  # a division costs as much as ten sums


@kernel
def edge_present(graph: ChangingEdges, t: int, source: int, target: int) -> bool:
    """Whether an edge of the graph is present at step t; the same answer whoever asks."""
    if graph.keep >= 1.0 or source == target:
        return True
    if graph.symmetric and source > target:
        source, target = target, source
    return bool(uniform_at(mix(graph.key + np.uint64(source + 1) * GOLDEN), t, target) < graph.keep)


@kernel
def neighbours(
    graph: ChangingEdges,
    start: NDArray[np.int64],
    arms: NDArray[np.int32],
    t: int,
    arm: int,
    out: bool,
    who: Any,
) -> int:
    """The closed out- or in-neighbourhood of ``arm`` at step t, of which ``start`` and ``arms`` are the rows."""
    count = 0
    if graph.dense:
        for other in range(graph.n_arms):
            if other != arm and (
                edge_present(graph, t, arm, other) if out else edge_present(graph, t, other, arm)
            ):
                who[count] = other
                count += 1
        who[count] = arm
        return count + 1
    row = graph_index_of_changing(graph, t) * (graph.n_arms + 1) + arm
    for j in range(start[row], start[row + 1]):
        other = arms[j]
        if edge_present(graph, t, arm, other) if out else edge_present(graph, t, other, arm):
            who[count] = other
            count += 1
    return count


@reveal.register(ChangingEdges)
@kernel
def reveal_changing(feedback: ChangingEdges, t: int, arm: int, seen: Any) -> int:
    """The closed out-neighbourhood of the pulled arm at step t."""
    return neighbours(feedback, feedback.out_start, feedback.out_arms, t, arm, True, seen)


@observers.register(ChangingEdges)
@kernel
def observers_in_changing(graph: ChangingEdges, t: int, arm: int, who: Any) -> int:
    """The closed in-neighbourhood at step t."""
    return neighbours(graph, graph.in_start, graph.in_arms, t, arm, False, who)


@probability_seen.register(ChangingEdges)
@kernel
def probability_seen_in_changing(graph: ChangingEdges, t: int, arm: int, probabilities: Floats) -> float:
    """The probabilities of the closed in-neighbourhood at step t."""
    total = 0.0
    if graph.dense:
        for other in range(graph.n_arms):
            if edge_present(graph, t, other, arm):
                total += probabilities[other]
        return total
    row = graph_index_of_changing(graph, t) * (graph.n_arms + 1) + arm
    if graph.keep >= 1.0:
        for j in range(graph.in_start[row], graph.in_start[row + 1]):
            total += probabilities[graph.in_arms[j]]
        return total
    for j in range(graph.in_start[row], graph.in_start[row + 1]):
        other = graph.in_arms[j]
        if edge_present(graph, t, other, arm):
            total += probabilities[other]
    return total
