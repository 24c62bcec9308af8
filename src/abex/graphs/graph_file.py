"""Feedback graphs as JSON: the name of the class and its parts, edges or other graphs.

A file is not trusted: a graph is made from its parts by the public constructors, which refuse what is invalid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abex.graphs.graph import FeedbackGraph, Graph
from abex.graphs.time_varying import DropOut, ErdosRenyiEachStep, GraphSequence
from abex.support.errors import UserError, shown
from abex.support.files import decode_array, encode_array
from abex.support.reading import check_size


def write_graph(graph: FeedbackGraph) -> dict[str, Any]:
    """``graph`` as JSON for `read_graph`; labels are not kept."""
    kind = {"kind": type(graph).__name__}
    if isinstance(graph, Graph):
        edges = np.column_stack(graph.pairs())
        edges = edges if graph.is_directed else edges[edges[:, 0] < edges[:, 1]]
        return kind | {"edges": encode_array(edges), "directed": graph.is_directed}
    if isinstance(graph, GraphSequence):
        return kind | {"graphs": [write_graph(one) for one in graph.graphs]}
    if isinstance(graph, DropOut):
        return kind | {"base": write_graph(graph.base), "keep": graph.keep}
    if isinstance(graph, ErdosRenyiEachStep):
        return kind | {"q": graph.q, "directed": graph.directed}
    raise UserError(f"a graph of kind {type(graph).__name__} cannot be saved")


def read_graph(saved: Any, n_arms: int) -> FeedbackGraph:
    """The graph of ``n_arms`` arms that `write_graph` wrote; ValueError, KeyError or TypeError where it is damaged."""
    kind = saved["kind"]
    if kind == "Graph":
        return _fixed(saved, n_arms)
    if kind == "GraphSequence":
        check_size(32 * len(saved["graphs"]) * n_arms, "the graphs that take turns")
        return GraphSequence([_fixed(one, n_arms) for one in saved["graphs"]])
    if kind == "DropOut":
        return DropOut(_fixed(saved["base"], n_arms), saved["keep"])
    if kind == "ErdosRenyiEachStep":
        return ErdosRenyiEachStep(n_arms, saved["q"], directed=_flag(saved["directed"]))
    raise ValueError(f"there is no feedback graph of kind {shown(kind)[:60]}")


def _fixed(saved: Any, n_arms: int) -> Graph:
    return Graph.from_edges(decode_array(saved["edges"]), n_arms, directed=_flag(saved["directed"]))


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"directed must be true or false, got {shown(value)[:60]}")
    return value
