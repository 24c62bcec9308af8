"""Feedback graphs: the edge u -> v says that pulling u shows the reward of v.

Every arm shows itself, always. A graph is undirected if the reverse of every edge is an edge; nothing else distinguishes the two.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import NO_KEY as NO_KEY
from abex.graphs.feedback import Edges, Rows, edges_of, in_rows, out_rows, reveal_edges
from abex.support.errors import UserError, whole_number
from abex.support.extras import needed
from abex.support.parameters import MOST_ARMS
from abex.support.tables import html_table

MAKERS = "Graph.from_matrix, Graph.from_edges, Graph.read and Graph.from_networkx"


class FeedbackGraph(ABC):
    """A feedback graph, fixed or changing with time, as the simulator sees it."""

    reveal: ClassVar[Any]  # kernel (feedback, t, arm, seen) -> count: arms seen, the pulled arm last

    @property
    @abstractmethod
    def n_arms(self) -> int:
        """Number of arms K."""

    @property
    def max_observed(self) -> int:
        """The most arms that one pull can reveal: the size of the buffer that `reveal` needs."""
        return self.n_arms

    @property
    @abstractmethod
    def is_directed(self) -> bool:
        """Whether an edge may be present without its reverse."""

    @property
    def period(self) -> int | None:
        """Number of graphs that take turns, 1 if the graph never changes; None if one is drawn at each step."""
        return None

    @abstractmethod
    def feedback(self, key: np.uint64 = NO_KEY) -> Any:
        """The record that `reveal` reads; graphs drawn at random are named by ``key``."""

    def at(self, t: int, key: np.uint64 = NO_KEY) -> Graph:
        """The graph in force at step t = 1, 2, ... of the replication named by ``key``."""
        return self._revealed(self.reveal, whole_number("t", t, least=1), key)

    def _revealed(self, reveal: Any, t: int, key: np.uint64) -> Graph:
        """What the kernel says that every arm shows."""
        record, seen = self.feedback(key), np.zeros(self.max_observed, np.int64)
        shown = [seen[: reveal(record, t, arm, seen)].copy() for arm in range(self.n_arms)]
        sources = np.repeat(np.arange(self.n_arms), [arms.size for arms in shown])
        return Graph.from_edges((sources, np.concatenate(shown)), self.n_arms, directed=True)


@dataclass(frozen=True, eq=False, repr=False)
class Graph(FeedbackGraph):
    """A fixed feedback graph: closed neighbourhoods in compressed rows, both ways, read-only.

    Equal graphs have equal edges; ``labels`` only translate arms back to the ids of a file.

    Examples
    --------
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], n_arms=4)
    >>> graph
    <Graph: 4 arms, 2 undirected edges>
    >>> graph.out(1).tolist()
    [0, 2, 1]
    >>> Graph.from_edges([(0, 1), (1, 2)], directed=True).into(1).tolist()
    [0, 1]
    """

    links: Edges
    labels: NDArray[Any] | None = None

    reveal = staticmethod(reveal_edges)

    def __post_init__(self) -> None:
        if not isinstance(self.links, Edges):
            raise UserError(
                f"a Graph is made by {MAKERS}; it cannot be made from {type(self.links).__name__} as it is"
            )
        out, into = out_rows(self.links), in_rows(self.links)
        if out[1] is not into[1] and same_rows(out, into):  # undirected: keep one copy
            object.__setattr__(self, "links", edges_of(out, out))
        for array in (*out, *into, self.labels):
            if array is not None:
                array.setflags(write=False)

    # -- constructors ---------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls, edges: Any, n_arms: int | None = None, *, directed: bool = False, labels: Any = None
    ) -> Graph:
        """A graph from pairs ``(u, v)`` of arms 0..n_arms-1, an array (m, 2) or two arrays of length m.

        Repeated edges count once, self-loops are always present. An undirected edge may be listed in one
        direction or in both; ``directed=True`` takes each pair as "pulling u shows v" and nothing more.
        """
        sources, targets = _pair_of_arrays(edges)
        largest = int(max(sources.max(), targets.max())) if sources.size else -1
        if n_arms is None:
            n_arms = largest + 1
        n_arms = whole_number("n_arms", n_arms, least=1, most=MOST_ARMS)
        if sources.size and min(sources.min(), targets.min()) < 0:
            wrong = int(np.flatnonzero((sources < 0) | (targets < 0))[0])
            raise UserError(
                f"edges must join arms >= 0, got ({sources[wrong]}, {targets[wrong]}) as pair {wrong}"
            )
        if largest >= n_arms:
            raise UserError(
                f"edges must join two of the {n_arms} arms, which begin with 0, got arm {largest}"
            )
        if not directed:
            sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
        out = compress(sources, targets, n_arms)
        into = compress(targets, sources, n_arms) if directed else out
        return cls(edges_of(out, into), None if labels is None else np.asarray(labels))

    @classmethod
    def read(cls, path: str | Path, *, directed: bool = False, ids: str = "numbers") -> Graph:
        """A graph from a file of edges, one pair of ids a line (SNAP's format; ``.gz`` is unpacked).

        Lines starting with ``#`` or ``%`` are comments; blanks, tabs and commas separate. Ids are any
        non-negative whole numbers, or any words with ``ids="words"``; arms follow their order and `labels`
        keeps them. A damaged line is an error that names it.
        """
        from abex.graphs.edge_lists import read_edges

        labels, sources, targets = read_edges(Path(path), ids)
        return cls.from_edges((sources, targets), labels.size, directed=directed, labels=labels)

    @classmethod
    def from_matrix(cls, matrix: Any, *, directed: bool = True) -> Graph:
        """A graph from a square adjacency matrix of NumPy or SciPy: a non-zero in row u, column v is the edge u -> v.

        >>> Graph.from_matrix([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
        <Graph: 3 arms, 1 undirected edges>
        """
        shape: tuple[int, ...]
        edges: tuple[NDArray[Any], ...]
        if hasattr(matrix, "tocoo"):
            entries = matrix.tocoo()
            there = entries.data != 0
            shape, values, edges = entries.shape, entries.data, (entries.row[there], entries.col[there])
        else:
            table = np.atleast_1d(_numbers_of(matrix))
            shape, values, edges = table.shape, table, np.nonzero(table)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise UserError(f"matrix must be square, got shape {shape}")
        if np.isnan(values).any():
            raise UserError("matrix has entries that are not a number: write 0 where there is no edge")
        return cls.from_edges(edges, shape[0], directed=directed)

    @classmethod
    def from_networkx(cls, graph: Any) -> Graph:
        """A graph from one of NetworkX; arms follow the order of its nodes, which become the labels."""
        if not hasattr(graph, "is_directed") or not hasattr(graph, "nodes"):
            raise UserError(f"graph must be a NetworkX graph, got {type(graph).__name__}")
        arm_of = {node: arm for arm, node in enumerate(graph.nodes)}
        pairs = np.array([(arm_of[u], arm_of[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
        labels = np.empty(len(arm_of), dtype=object)
        labels[:] = list(arm_of)
        return cls.from_edges(pairs, len(arm_of), directed=graph.is_directed(), labels=labels)

    # -- feedback -------------------------------------------------------------------------------------

    period = 1

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return int(self.links.out_start.size - 1)

    @cached_property
    def max_observed(self) -> int:
        """Size of the largest closed out-neighbourhood."""
        return int(np.diff(self.links.out_start).max())

    @property
    def is_directed(self) -> bool:
        """Whether some edge has no reverse."""
        return self.links.out_arms is not self.links.in_arms

    def feedback(self, key: np.uint64 = NO_KEY) -> Edges:
        """The compressed rows."""
        return self.links

    def at(self, t: int, key: np.uint64 = NO_KEY) -> Graph:
        """The graph itself, at every step."""
        return self

    # -- arms and edges -------------------------------------------------------------------------------

    @property
    def n_edges(self) -> int:
        """Edges without self-loops; a pair u - v of an undirected graph counts once."""
        ordered = int(self.links.out_arms.size) - self.n_arms
        return ordered if self.is_directed else ordered // 2

    def out(self, arm: int) -> NDArray[np.int32]:
        """Arms seen when ``arm`` is pulled, itself last."""
        arm = whole_number("arm", arm, most=self.n_arms - 1)
        return self.links.out_arms[self.links.out_start[arm] : self.links.out_start[arm + 1]]

    def into(self, arm: int) -> NDArray[np.int32]:
        """Arms whose pull shows ``arm``, itself last."""
        arm = whole_number("arm", arm, most=self.n_arms - 1)
        return self.links.in_arms[self.links.in_start[arm] : self.links.in_start[arm + 1]]

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """All ordered pairs (u, v), u != v, such that pulling u shows v."""
        sources = np.repeat(np.arange(self.n_arms, dtype=np.int32), np.diff(self.links.out_start))
        proper = sources != self.links.out_arms
        return sources[proper], self.links.out_arms[proper]

    def reverse(self) -> Graph:
        """The graph with every edge reversed."""
        return Graph(edges_of(in_rows(self.links), out_rows(self.links)), self.labels)

    def undirected(self) -> Graph:
        """The graph with the reverse of every edge added."""
        if not self.is_directed:
            return self
        return Graph.from_edges(self.pairs(), self.n_arms, labels=self.labels)

    def mutual(self) -> Graph:
        """The undirected graph of the edges whose reverse is an edge too."""
        if not self.is_directed:
            return self
        sources, targets = (array.astype(np.int64) for array in self.pairs())
        answered = np.isin(sources * self.n_arms + targets, targets * self.n_arms + sources)
        return Graph.from_edges((sources[answered], targets[answered]), self.n_arms, labels=self.labels)

    def to_scipy(self) -> Any:
        """The closed neighbourhoods as a SciPy CSR array of ones: entry (u, v) if pulling u shows v."""
        with needed():
            from scipy.sparse import csr_array

        ones = np.ones(self.links.out_arms.size)
        return csr_array((ones, self.links.out_arms, self.links.out_start), shape=(self.n_arms, self.n_arms))

    def to_networkx(self) -> Any:
        """A NetworkX graph, or digraph if this one is directed; its nodes are the labels, or the arms where there are none.

        >>> sorted(Graph.from_edges([(0, 1), (1, 2)], 3).to_networkx().edges)
        [(0, 1), (1, 2)]
        """
        with needed():
            import networkx

        nodes = range(self.n_arms) if self.labels is None else self.labels.tolist()
        graph = networkx.DiGraph() if self.is_directed else networkx.Graph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(
            (nodes[u], nodes[v]) for u, v in zip(*map(np.ndarray.tolist, self.pairs()), strict=True)
        )
        return graph

    def summary(self, effort: float = 5.0) -> str:
        """Size, components, degrees, and the numbers that govern regret, as text.

        ``effort`` is the work in all, about as many seconds of CPU; the text depends on the graph and on it alone.
        """
        from abex.graphs.graph_summary import describe

        return describe(self, effort)

    # -- equality -------------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """A hash of the edges, 32 hex digits."""
        hashed = hashlib.blake2b(digest_size=16)
        for array in out_rows(self.links):
            hashed.update(np.ascontiguousarray(array).data)
        return hashed.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return same_rows(out_rows(self.links), out_rows(other.links))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self.links, self.labels)

    def __repr__(self) -> str:
        kind = "directed" if self.is_directed else "undirected"
        return f"<Graph: {self.n_arms} arms, {self.n_edges} {kind} edges>"

    def _repr_html_(self) -> str:
        others = np.diff(self.links.out_start) - 1
        shown = f"{others.min()} to {others.max()}, {others.mean():.1f} on average"
        rows = [
            ("arms", f"{self.n_arms:,}"),
            ("edges", f"{self.n_edges:,} {'directed' if self.is_directed else 'undirected'}"),
            ("arms that a pull shows besides", shown),
            ("more", "print(graph.summary())"),
        ]
        return html_table(("graph", ""), rows)


def as_graph(graph: Any) -> FeedbackGraph:
    """``graph`` if it is a `FeedbackGraph`, else an error."""
    return graph if isinstance(graph, FeedbackGraph) else as_fixed_graph(graph)


def as_fixed_graph(graph: Any, name: str = "graph") -> Graph:
    """``graph`` if it is a `Graph`, else an error."""
    if not isinstance(graph, Graph):
        raise UserError(f"{name} must be a Graph, got {type(graph).__name__}: see {MAKERS}")
    return graph


def compress(sources: NDArray[np.int64], targets: NDArray[np.int64], n_arms: int) -> Rows:
    """Rows of distinct targets in increasing order, each closed by its own arm: where they start, and the arms.

    Memory is linear: two sorts of 64-bit numbers and no hash table.

    >>> start, arms = compress(np.array([0, 2, 0, 0]), np.array([2, 1, 1, 0]), 3)
    >>> start.tolist(), arms.tolist()
    ([0, 3, 4, 6], [1, 2, 0, 1, 1, 2])
    """
    cells = (sources * n_arms + targets)[sources != targets]
    cells.sort()
    if cells.size:
        cells = cells[np.concatenate([[True], cells[1:] != cells[:-1]])]
    row = cells // n_arms
    start = np.zeros(n_arms + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=n_arms) + 1, out=start[1:])
    arms = np.empty(cells.size + n_arms, dtype=np.int32)
    arms[start[1:] - 1] = np.arange(n_arms, dtype=np.int32)
    arms[np.arange(cells.size) + row] = cells - row * n_arms  # the rows above are longer by one each
    return start, arms


def same_rows(first: Rows, second: Rows) -> bool:
    """Whether two pairs (start, arms) are equal."""
    return bool(np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1]))


def _numbers_of(matrix: Any) -> NDArray[Any]:
    """A dense matrix as an array of numbers or truth values."""
    try:
        table = np.asarray(matrix)
    except ValueError:
        raise UserError("matrix must be square, got rows of different lengths") from None
    if table.dtype.kind not in "biuf":
        raise UserError(f"matrix must be a square adjacency matrix of numbers, got {type(matrix).__name__}")
    return table


def _pair_of_arrays(edges: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two integer arrays of equal length."""
    if isinstance(edges, tuple) and len(edges) == 2 and all(isinstance(part, np.ndarray) for part in edges):
        columns = edges
    else:
        if not isinstance(edges, Iterable):
            raise UserError(f"edges must be pairs (u, v), got {type(edges).__name__}")
        table = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
        if table.size == 0:
            table = np.empty((0, 2), dtype=np.int64)
        if table.ndim != 2 or table.shape[1] != 2:
            raise UserError(
                f"edges must be pairs (u, v), an array of shape (m, 2), got shape {table.shape}; an adjacency matrix is for "
                "Graph.from_matrix"
            )
        columns = (table[:, 0], table[:, 1])
    for column in columns:
        if not np.issubdtype(column.dtype, np.integer):
            raise UserError(f"edges must be whole numbers, got {column.dtype}")
    if columns[0].shape != columns[1].shape or columns[0].ndim != 1:
        raise UserError(
            f"edges must be two arrays of one length, got shapes {columns[0].shape}, {columns[1].shape}"
        )
    return columns[0].astype(np.int64), columns[1].astype(np.int64)
