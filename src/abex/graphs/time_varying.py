"""Feedback graphs that change with time: a list that repeats, or one drawn at each step.

A drawn graph is a function of the replication's key and the step alone: all policies face the same graphs, and a
policy that is shown the graph before its pull sees the very edges that will be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from abex.graphs.feedback import Edges, Rows, edges_of, in_rows, out_rows, reveal_edges
from abex.graphs.graph import NO_KEY, FeedbackGraph, Graph, as_fixed_graph
from abex.kernels import compile_alone
from abex.support.errors import UserError, real_number, whole_number
from abex.support.parameters import MOST_ARMS


class _ChangingGraph(FeedbackGraph):
    reveal = staticmethod(reveal_edges)

    def at(self, t: int, key: np.uint64 = NO_KEY) -> Graph:
        """The graph drawn at step t = 1, 2, ... of the replication named by ``key``."""
        return self._revealed(compile_alone(self.reveal), whole_number("t", t, least=1), key)


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

    def feedback(self, key: np.uint64 = NO_KEY) -> Edges:
        """The rows of all graphs, one after the other."""
        links = [graph.links for graph in self.graphs]
        out, into = joined([out_rows(one) for one in links]), joined([in_rows(one) for one in links])
        return edges_of(out, into, n_arms=self.n_arms, period=len(links))


def joined(rows: Sequence[Rows]) -> Rows:
    """The rows of several graphs, one after the other."""
    ends = np.cumsum([0] + [arms.size for _, arms in rows])
    starts = [start + end for (start, _), end in zip(rows, ends, strict=False)]
    return np.concatenate(starts), np.concatenate([arms for _, arms in rows])


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

    def feedback(self, key: np.uint64 = NO_KEY) -> Edges:
        """The rows of the base and the key of the draws."""
        links = self.base.links
        return edges_of(
            out_rows(links), in_rows(links), keep=self.keep, key=key, symmetric=not self.is_directed
        )


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

    def feedback(self, key: np.uint64 = NO_KEY) -> Edges:
        """No rows, and the key of the draws."""
        none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
        return edges_of(
            none, none, n_arms=self.n, keep=self.q, key=key, symmetric=not self.directed, dense=True
        )
