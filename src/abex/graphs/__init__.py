"""Feedback graphs: which arms' rewards a pull shows."""

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
from abex.graphs.time_varying import DropOut, ErdosRenyiEachStep, GraphSequence

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
