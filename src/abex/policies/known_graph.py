"""What policies that know the graph take from it before the first step.

A run starts a policy once for each replication; what depends on the graph alone is worked out once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.covers import (
    greedy_acyclic_set,
    greedy_clique_cover,
    greedy_dominating_set,
    greedy_independent_set,
)
from abex.graphs.feedback import Edges
from abex.graphs.graph import Graph
from abex.graphs.programs import Cover
from abex.policies.policy import Policy, Setting
from abex.support.errors import UserError

KEPT = 64  # graphs whose solutions are remembered
TRIED = 3  # graphs drawn to estimate a quantity of random graphs


def known_graph(policy: Policy[Any], setting: Setting) -> Edges:
    """The feedback record of the graph of ``setting``, which graph policies hold."""
    record: Edges = policy.graph_of(setting).feedback(setting.graph_key)
    return record


def graphs_in_turn(policy: Policy[Any], setting: Setting) -> list[Graph]:
    """The graphs that take turns (one, if the graph is fixed); a graph drawn at each step is refused."""
    graph = policy.graph_of(setting)
    if graph.period is None:
        raise UserError(
            f"{policy} plans on the graph before it plays and cannot play one that is drawn at each step: "
            "use a policy that asks for the graph as it comes, such as Exp3SET, Exp3IXGraph or UCBMaxN"
        )
    return [graph.at(t) for t in range(1, graph.period + 1)]


def only_graph(policy: Policy[Any], setting: Setting) -> Graph:
    """The fixed graph; one that changes is refused."""
    graph = policy.graph_of(setting)
    if graph.period != 1:
        raise UserError(
            f"{policy} plans one exploration for one graph and cannot play a graph that changes: "
            "use ELP (graphs that repeat), Exp3SET, Exp3IXGraph or UCBMaxN"
        )
    return graph.at(1)


def typical_graphs(policy: Policy[Any], setting: Setting) -> list[Graph]:
    """The graphs that take turns, or the first few of those drawn at random."""
    graph = policy.graph_of(setting)
    return [graph.at(t, setting.graph_key) for t in range(1, (graph.period or TRIED) + 1)]


@lru_cache(maxsize=KEPT)
def fractional_dominating_set(graph: Graph) -> Cover:
    """The fractional dominating set."""
    from abex.graphs.numbers import fractional_domination  # needs SciPy and the theory: only where asked for

    return fractional_domination(graph)


def exploration_distribution(graph: Graph) -> tuple[NDArray[np.float64], float]:
    """ELP's exploration: the distribution under which the least seen arm is seen most often, and how often that is."""
    cover = fractional_dominating_set(graph)
    return cover.weights / cover.upper, 1.0 / cover.upper


@lru_cache(maxsize=KEPT)
def dominating_set(graph: Graph) -> NDArray[np.int64]:
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
