"""The text of `Graph.summary`."""

from __future__ import annotations

import numpy as np

from abex.graphs.covers import greedy_clique_cover
from abex.graphs.graph import Graph
from abex.graphs.numbers import acyclic_number, domination_number, fractional_domination, independence_number
from abex.support.errors import UserError, real_number
from abex.support.extras import needed

LARGE = 20_000  # arms beyond which only linear-time bounds are shown


def describe(graph: Graph, effort: float) -> str:
    """Size, components, degrees and bounds, a line each."""
    with needed():
        from scipy.sparse.csgraph import connected_components

    answered = graph.mutual().n_edges
    ordered = int(graph.links.out_arms.size) - graph.n_arms
    edges = f"{answered:,} undirected ({ordered:,} directed)"
    if graph.is_directed:
        edges = f"{ordered:,} directed, of which {answered:,} pairs answer each other"
    count, part = connected_components(graph.to_scipy(), directed=True, connection="weak")
    sizes = np.sort(np.bincount(part))[::-1]
    shown = ", ".join(str(size) for size in sizes[:5]) + (", ..." if sizes.size > 5 else "")
    lines = [
        ("arms", f"{graph.n_arms:,}"),
        ("edges", edges),
        ("components", f"{count:,} of {shown} arms"),
        ("arms a pull shows", _spread(np.diff(graph.links.out_start))),
    ]
    if graph.is_directed:
        lines.append(("arms that show an arm", _spread(np.diff(graph.links.in_start))))
    large = graph.n_arms > LARGE
    effort = 0.0 if large else real_number("effort", effort, least=0.0)
    share = effort / 3.0  # for each of three programs
    lines += [
        ("independence number", str(independence_number(graph, share))),
        ("domination number", str(domination_number(graph, share))),
    ]
    if not large:
        try:
            cover = fractional_domination(graph, share)
            lines.append(("fractional domination", f"{cover.lower:.4g}" if cover.upper - cover.lower < 1e-6 * cover.upper
                          else f"{cover.lower:.4g}..{cover.upper:.4g}"))  # fmt: skip
        except UserError:
            lines.append(("fractional domination", f"not found with effort {effort:g}"))
        if graph.is_directed:
            lines.append(("largest acyclic set", str(acyclic_number(graph))))
    lines.append(("clique cover", f"at most {int(greedy_clique_cover(graph).max()) + 1:,}"))
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join(f"{name:<{width}}{value}" for name, value in lines)


def _spread(sizes: np.ndarray) -> str:
    low, quarter, middle, upper, high = np.percentile(sizes, [0, 25, 50, 75, 100])
    return (
        f"mean {sizes.mean():.1f}, least {low:.0f}, quartiles {quarter:.0f} {middle:.0f} {upper:.0f}, "
        f"most {high:.0f} (itself included)"
    )
