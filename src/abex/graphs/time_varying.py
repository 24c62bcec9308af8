"""Feedback graphs that change with time: a list that repeats, or one drawn at each step.

A drawn graph is a function of the replication's key and the step alone: all policies face the same graphs, and a
policy that is shown the graph before its pull sees the very edges that will be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.graphs.feedback import ChangingEdges, FixedEdges, edges_of, reveal_changing
from abex.graphs.graph import NO_KEY, FeedbackGraph, Graph, as_fixed_graph
from abex.kernels import compile_alone, kernel
from abex.support.errors import UserError, real_number, whole_number
from abex.support.parameters import MOST_ARMS


class _ChangingGraph(FeedbackGraph):
    reveal = staticmethod(reveal_changing)

    def at(self, t: int, key: np.uint64 = NO_KEY) -> Graph:
        """The graph drawn at step t = 1, 2, ... of the replication named by ``key``."""
        return drawn_graph(self.feedback(key), whole_number("t", t, least=1))


def changing_edges(
    graph: FeedbackGraph,
    links: FixedEdges,
    *,
    keep: float = 1.0,
    key: np.uint64 = NO_KEY,
    dense: bool = False,
) -> ChangingEdges:
    """The record of a graph whose rows are ``links``."""
    return ChangingEdges(
        out_start=links.out_start, out_arms=links.out_arms, in_start=links.in_start, in_arms=links.in_arms,
        n_arms=graph.n_arms, period=graph.period or 1, keep=keep, key=np.uint64(key),
        symmetric=not graph.is_directed, dense=dense,
    )  # fmt: skip


def drawn_graph(record: ChangingEdges, t: int) -> Graph:
    """The graph that is drawn at step t."""
    seen = np.empty(record.n_arms, dtype=np.int32)
    count = compile_alone(collect)(record, t, seen, np.empty(0, np.int64), np.empty(0, np.int64))
    sources, targets = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    compile_alone(collect)(record, t, seen, sources, targets)
    return Graph.from_edges((sources, targets), record.n_arms, directed=True)


@kernel
def collect(feedback: ChangingEdges, t: int, seen: Any, sources: Any, targets: Any) -> int:
    """All edges of step t into the two arrays if they have room; returns their number."""
    total = 0
    for arm in range(feedback.n_arms):
        count = reveal_changing(feedback, t, arm, seen) - 1
        if sources.size > 0:
            for j in range(count):
                sources[total + j] = arm
                targets[total + j] = seen[j]
        total += count
    return total


@dataclass(frozen=True)
class GraphSequence(_ChangingGraph):
    """A list of graphs that repeats: step t = 1, 2, ... has the graph ``graphs[(t - 1) % len(graphs)]``.

    >>> GraphSequence([Graph.from_edges([(0, 1)]), Graph.from_edges([], n_arms=2)]).n_arms
    2
    """

    graphs: Sequence[Graph]

    def __post_init__(self) -> None:
        if not isinstance(self.graphs, Iterable):
            raise UserError(f"graphs must be a non-empty list of Graph, got {type(self.graphs).__name__}")
        object.__setattr__(
            self, "graphs", tuple(as_fixed_graph(graph, "each of graphs") for graph in self.graphs)
        )
        if not self.graphs:
            raise UserError("graphs must be a non-empty list of Graph")
        sizes = sorted({graph.n_arms for graph in self.graphs})
        if len(sizes) > 1:
            raise UserError(f"graphs must have the same number of arms, got {sizes[0]} and {sizes[-1]}")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.graphs[0].n_arms

    @property
    def max_observed(self) -> int:
        """Largest closed out-neighbourhood of all graphs."""
        return max(graph.max_observed for graph in self.graphs)

    @property
    def is_directed(self) -> bool:
        """Whether one of the graphs is directed."""
        return any(graph.is_directed for graph in self.graphs)

    @property
    def period(self) -> int:
        """Number of graphs."""
        return len(self.graphs)

    def at(self, t: int, key: np.uint64 = NO_KEY) -> Graph:
        """The graph whose turn is step t = 1, 2, ..."""
        return self.graphs[(whole_number("t", t, least=1) - 1) % len(self.graphs)]

    def feedback(self, key: np.uint64 = NO_KEY) -> ChangingEdges:
        """The rows of all graphs, one after the other."""
        links = [graph.links for graph in self.graphs]
        ends = np.cumsum([0] + [one.out_arms.size for one in links])[:-1]
        rows = FixedEdges(
            out_start=np.concatenate([one.out_start + end for one, end in zip(links, ends, strict=True)]),
            out_arms=np.concatenate([one.out_arms for one in links]),
            in_start=np.concatenate([one.in_start + end for one, end in zip(links, ends, strict=True)]),
            in_arms=np.concatenate([one.in_arms for one in links]),
        )
        return changing_edges(self, rows)


@dataclass(frozen=True)
class DropOut(_ChangingGraph):
    """A fixed graph whose edges are present with probability ``keep`` at a step, independently.

    An edge of an undirected graph is present in both directions or in none.

    >>> DropOut(Graph.from_edges([(0, 1), (1, 2)]), keep=0.9).max_observed
    3
    """

    base: Graph
    keep: float

    def __post_init__(self) -> None:
        as_fixed_graph(self.base, "base")
        object.__setattr__(self, "keep", real_number("keep", self.keep, least=0.0, most=1.0))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.base.n_arms

    @property
    def max_observed(self) -> int:
        """That of the base, nothing dropped."""
        return self.base.max_observed

    @property
    def is_directed(self) -> bool:
        """As the base."""
        return self.base.is_directed

    @property
    def period(self) -> int | None:
        """None: drawn at each step, unless every edge is kept."""
        return 1 if self.keep >= 1.0 else None

    def feedback(self, key: np.uint64 = NO_KEY) -> ChangingEdges:
        """The rows of the base and the key of the draws."""
        return changing_edges(self, self.base.links, keep=self.keep, key=key)


@dataclass(frozen=True)
class ErdosRenyiEachStep(_ChangingGraph):
    """A fresh random graph at each step: each pair is joined with probability ``q``, independently.

    No edge is stored; a pull costs O(K), as does the question who would have revealed an arm.

    >>> ErdosRenyiEachStep(100, q=0.1).max_observed
    100
    """

    n: int
    q: float
    directed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole_number("n", self.n, least=1, most=MOST_ARMS))
        object.__setattr__(self, "q", real_number("q", self.q, least=0.0, most=1.0))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.n

    @property
    def is_directed(self) -> bool:
        """Whether the two directions of a pair are drawn apart."""
        return self.directed

    @property
    def period(self) -> int | None:
        """None: drawn at each step, unless every pair is always joined."""
        return 1 if self.q >= 1.0 else None

    def feedback(self, key: np.uint64 = NO_KEY) -> ChangingEdges:
        """No rows, and the key of the draws."""
        none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
        return changing_edges(self, edges_of(none, none), keep=self.q, key=key, dense=True)
