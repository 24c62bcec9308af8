"""Feedback graphs: who is seen when an arm is pulled."""

from abex.graphs.changing import DropOut, ErdosRenyiEachStep, GraphSequence
from abex.graphs.generators import (
    bandit,
    cliques,
    complete,
    erdos_renyi,
    planted_partition,
    power_law_cluster,
    random_geometric,
    star,
)
from abex.graphs.graph import FeedbackGraph, Graph

__all__ = [
    "DropOut",
    "ErdosRenyiEachStep",
    "FeedbackGraph",
    "Graph",
    "GraphSequence",
    "bandit",
    "cliques",
    "complete",
    "erdos_renyi",
    "planted_partition",
    "power_law_cluster",
    "random_geometric",
    "star",
]
