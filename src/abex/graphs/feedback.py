"""Feedback records, and the kernels that say which arms a pull reveals.

The simulator asks ``reveal(feedback, t, arm, seen) -> count``: the arms observed at step t, the pulled arm last, and how many.
A policy that must know the graph holds the same record and also asks who would have revealed an arm (`observers`)
and with what probability it is observed (`probability_seen`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, single_dispatch
from abex.support.randomness import GOLDEN, mix, uniform_at

Floats = NDArray[np.float64]
NO_KEY = np.uint64(0)


class BanditFeedback(Record):
    """Bandit feedback: only the pulled arm is seen."""

    n_arms: int


Rows = tuple[NDArray[np.int64], NDArray[np.int32]]  # where each begins, and all arms one after the other


class Edges(Record):
    """A graph in compressed rows: closed neighbourhoods, each row ending with its own arm.

    Graphs that take turns stand one after the other; edges may be drawn at each step.
    """

    out_start: NDArray[np.int64]  # (period * (K + 1),): the rows of step t begin at graph_index(t) * (K + 1)
    out_arms: NDArray[np.int32]  # the arms that a pull reveals
    in_start: NDArray[np.int64]
    in_arms: NDArray[np.int32]  # the arms whose pull reveals an arm
    n_arms: int
    period: int  # number of graphs
    keep: float  # probability that an edge is present at a step
    key: np.uint64  # names the draws
    symmetric: bool  # u -> v and v -> u come and go together
    dense: bool  # every pair is an edge: no rows are stored


def edges_of(
    out: Rows, into: Rows, *,
    n_arms: int | None = None, period: int = 1, keep: float = 1.0, key: np.uint64 = NO_KEY,
    symmetric: bool = False, dense: bool = False,
) -> Edges:  # fmt: skip
    """The record of closed out- and in-neighbourhoods; ``n_arms`` is as many as there are rows unless given."""
    n_arms = out[0].size - 1 if n_arms is None else n_arms
    return Edges(
        out_start=out[0], out_arms=out[1], in_start=into[0], in_arms=into[1],
        n_arms=n_arms, period=period, keep=keep, key=np.uint64(key), symmetric=symmetric, dense=dense,
    )  # fmt: skip


def out_rows(links: Edges) -> Rows:
    """The closed out-neighbourhoods."""
    return links.out_start, links.out_arms


def in_rows(links: Edges) -> Rows:
    """The closed in-neighbourhoods."""
    return links.in_start, links.in_arms


@single_dispatch
def reveal(feedback: Any, t: int, arm: int, seen: Any) -> int:
    """The arms that a pull of ``arm`` reveals at step t into ``seen``, itself last; returns their number (kernel)."""
    raise TypeError


@reveal.register(BanditFeedback)
@kernel
def reveal_bandit(feedback: BanditFeedback, t: int, arm: int, seen: Any) -> int:
    """The pulled arm."""
    seen[0] = arm
    return 1


@kernel
def graph_index(graph: Edges, t: int) -> int:
    """Number of the graph in force at step t = 1, 2, ..., among those that take turns."""
    return 0 if graph.period == 1 else int((t - 1) % graph.period)  # a division costs as much as ten sums


@kernel
def edge_present(graph: Edges, t: int, source: int, target: int) -> bool:
    """Whether an edge of the graph is present at step t; the same answer whoever asks."""
    if graph.keep >= 1.0 or source == target:
        return True
    if graph.symmetric and source > target:
        source, target = target, source
    return bool(uniform_at(mix(graph.key + np.uint64(source + 1) * GOLDEN), t, target) < graph.keep)


@kernel
def neighbours(
    graph: Edges,
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
    row = graph_index(graph, t) * (graph.n_arms + 1) + arm
    if graph.keep >= 1.0:
        first = start[row]
        count = int(start[row + 1] - first)
        for j in range(count):
            who[j] = arms[first + j]
        return count
    for j in range(start[row], start[row + 1]):
        other = arms[j]
        if edge_present(graph, t, arm, other) if out else edge_present(graph, t, other, arm):
            who[count] = other
            count += 1
    return count


@reveal.register(Edges)
@kernel
def reveal_edges(feedback: Edges, t: int, arm: int, seen: Any) -> int:
    """The closed out-neighbourhood of the pulled arm at step t."""
    return neighbours(feedback, feedback.out_start, feedback.out_arms, t, arm, True, seen)


@kernel
def observers(graph: Edges, t: int, arm: int, who: Any) -> int:
    """The arms that would reveal ``arm`` at step t into ``who``, itself last; returns their number."""
    return neighbours(graph, graph.in_start, graph.in_arms, t, arm, False, who)


@kernel
def probability_seen(graph: Edges, t: int, arm: int, probabilities: Floats) -> float:
    """Probability that ``arm`` is observed at step t when the pull has the distribution ``probabilities``."""
    total = 0.0
    if graph.dense:
        for other in range(graph.n_arms):
            if edge_present(graph, t, other, arm):
                total += probabilities[other]
        return total
    row = graph_index(graph, t) * (graph.n_arms + 1) + arm
    if graph.keep >= 1.0:
        for j in range(graph.in_start[row], graph.in_start[row + 1]):
            total += probabilities[graph.in_arms[j]]
        return total
    for j in range(graph.in_start[row], graph.in_start[row + 1]):
        other = graph.in_arms[j]
        if edge_present(graph, t, other, arm):
            total += probabilities[other]
    return total
