"""What policies that know the graph take from it before the first step.

A run starts a policy once for each replication; what depends on the graph alone is worked out once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError
from abex.graphs.changing import graph_at
from abex.graphs.covers import (
    greedy_acyclic_set,
    greedy_clique_cover,
    greedy_dominating_set,
    greedy_independent_set,
)
from abex.graphs.feedback import Changing, as_changing, changes
from abex.graphs.graph import Graph
from abex.graphs.programs import Cover

KEPT = 64  # graphs whose solutions are remembered
TRIED = 3  # graphs drawn to estimate a quantity of random graphs


def known_graph(policy: Any, setting: Any) -> Changing:
    """The feedback graph of ``setting`` as the record that graph policies hold."""
    record = as_changing(policy.graph_of(setting))
    if record.n_arms != setting.n_arms:
        raise UserError(
            f"the graph has {record.n_arms} arms and the setting {setting.n_arms}: they must agree"
        )
    return record


def graphs_in_turn(policy: Any, record: Changing) -> list[Graph]:
    """The graphs that take turns (one, if the graph is fixed); a graph drawn at each step is refused."""
    if record.keep < 1.0 or record.dense:
        raise UserError(
            f"{policy} plans on the graph before it plays and cannot play one that is drawn at each step: "
            "use a policy that asks for the graph as it comes, such as Exp3SET, Exp3IXGraph or UCBMaxN"
        )
    return [graph_at(record, t) for t in range(1, record.period + 1)]


def only_graph(policy: Any, record: Changing) -> Graph:
    """The fixed graph; one that changes is refused."""
    if changes(record) or record.dense:
        raise UserError(
            f"{policy} plans one exploration for one graph and cannot play a graph that changes: "
            "use ELP (graphs that repeat), Exp3SET, Exp3IXGraph or UCBMaxN"
        )
    return graph_at(record, 1)


def typical_graphs(record: Changing) -> list[Graph]:
    """The graphs that take turns, or the first few of those drawn at random."""
    drawn = record.keep < 1.0 or record.dense
    return [graph_at(record, t) for t in range(1, (TRIED if drawn else record.period) + 1)]


@lru_cache(maxsize=KEPT)
def best_cover(graph: Graph) -> Cover:
    """The fractional dominating set."""
    from abex.graphs.exact import fractional_domination  # needs SciPy and the theory: only where asked for

    return fractional_domination(graph)


def best_spread(graph: Graph) -> tuple[NDArray[np.float64], float]:
    """ELP's exploration: the law under which the least seen arm is seen most often, and how often that is."""
    cover = best_cover(graph)
    return cover.weights / cover.upper, 1.0 / cover.upper


@lru_cache(maxsize=KEPT)
def dominating_arms(graph: Graph) -> NDArray[np.int64]:
    """A greedy dominating set."""
    return greedy_dominating_set(graph)


@lru_cache(maxsize=KEPT)
def independence_estimate(graph: Graph) -> int:
    """Size of a greedy independent set, or acyclic set if the graph is directed: a lower bound, close in practice."""
    return int((greedy_acyclic_set(graph) if graph.is_directed else greedy_independent_set(graph)).size)


@lru_cache(maxsize=KEPT)
def clique_cover_estimate(graph: Graph) -> int:
    """Number of cliques that cover the graph, found greedily: an upper bound."""
    return int(greedy_clique_cover(graph).max()) + 1
