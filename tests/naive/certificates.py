"""What a set of arms, or a numbering of cliques, must be: the checkers are simpler than what finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs import Graph


def is_independent(graph: Graph, arms: Any) -> bool:
    """Whether no two of ``arms`` are joined, in either direction."""
    inside = _members(graph, arms)
    sources, targets = graph.pairs()
    return not bool(np.any(inside[sources] & inside[targets]))


def is_dominating(graph: Graph, arms: Any) -> bool:
    """Whether pulling each of ``arms`` once shows every arm."""
    inside = _members(graph, arms)
    seen = inside.copy()
    sources, targets = graph.pairs()
    seen[targets[inside[sources]]] = True
    return bool(seen.all())


def is_clique_cover(graph: Graph, clique: Any) -> bool:
    """Whether arms with the same number are pairwise joined in both directions."""
    numbers = np.asarray(clique)
    sources, targets = graph.pairs()
    within = int(np.count_nonzero(numbers[sources] == numbers[targets]))
    sizes = np.unique(numbers, return_counts=True)[1]
    return numbers.size == graph.n_arms and within == int((sizes * (sizes - 1)).sum())


def is_acyclic(graph: Graph, arms: Any) -> bool:
    """Whether every edge among ``arms`` leads forward in their order, which proves that there is no cycle."""
    arms = np.asarray(arms, dtype=np.int64)
    place = np.full(graph.n_arms, -1, dtype=np.int64)
    place[arms] = np.arange(arms.size)
    sources, targets = graph.pairs()
    inner = (place[sources] >= 0) & (place[targets] >= 0)
    return bool(np.all(place[sources[inner]] < place[targets[inner]]))


def _members(graph: Graph, arms: Any) -> NDArray[np.bool_]:
    inside = np.zeros(graph.n_arms, dtype=bool)
    inside[np.asarray(arms, dtype=np.int64)] = True
    return inside
