"""Small graphs as pictures within a page, without any other package."""

from __future__ import annotations

import html

import numpy as np
from numpy.typing import NDArray

from abex.graphs.graph import Graph
from abex.tables import html_table

MOST_DRAWN = 60  # arms, and
MOST_EDGES = 400
SIZE, MARGIN, RADIUS = 320, 16, 5  # pixels
ROUNDS = 200


def page_of(graph: Graph) -> str:
    """What a notebook shows of a graph: its size, and a drawing if it is small."""
    degrees = np.diff(graph.links.out_start) - 1
    rows = [
        ("arms", f"{graph.n_arms:,}"),
        ("edges", f"{graph.n_edges:,} {'directed' if graph.is_directed else 'undirected'}"),
        (
            "arms shown beside the pulled one",
            f"{degrees.min()} to {degrees.max()}, {degrees.mean():.1f} on average",
        ),
        ("more", "print(graph.summary())"),
    ]
    small = graph.n_arms <= MOST_DRAWN and graph.n_edges <= MOST_EDGES
    return (picture_of(graph) if small else "") + html_table(("graph", ""), rows)


def picture_of(graph: Graph) -> str:
    """An SVG picture; an edge of a directed graph has an arrow from the pulled arm to the one it shows."""
    places = MARGIN + (SIZE - 2 * MARGIN) * layout(graph)
    arrow = ' marker-end="url(#abex-arrow)"' if graph.is_directed else ""
    lines = []
    for u, v in zip(*(arms.tolist() for arms in graph.pairs()), strict=True):
        if u < v or graph.is_directed:
            a, b = places[u], places[v]
            end = b - (b - a) / max(float(np.hypot(*(b - a))), 1.0) * RADIUS
            lines.append(
                f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"{arrow}/>'
            )
    labels = range(graph.n_arms) if graph.labels is None else graph.labels.tolist()
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"><title>{html.escape(str(label))}</title></circle>'
        for (x, y), label in zip(places, labels, strict=True)
    ]
    head = (
        '<defs><marker id="abex-arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L6 3L0 6z" fill="#999999"/></marker></defs>'
    )
    return (
        f'<svg width="{SIZE}" height="{SIZE}" role="img" aria-label="{html.escape(repr(graph))}">{head}'
        f'<g stroke="#999999">{"".join(lines)}</g><g fill="#0072B2">{"".join(dots)}</g></svg>'
    )


def layout(graph: Graph) -> NDArray[np.float64]:
    """Places in the unit square: springs along edges, and everything repels (Fruchterman and Reingold 1991), from a circle.

    >>> from abex.graphs import star
    >>> bool((layout(star(8)) >= 0.0).all() and (layout(star(8)) <= 1.0).all())
    True
    """
    n = graph.n_arms
    angle = 2.0 * np.pi * np.arange(n) / n
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    joined = np.zeros((n, n))
    joined[graph.pairs()] = 1.0
    joined = np.maximum(joined, joined.T)
    ideal = 1.5 / np.sqrt(n)
    for heat in np.linspace(0.2, 0.002, ROUNDS):
        apart = places[:, None] - places[None]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        force = (ideal / distance) ** 2 - joined * distance / ideal
        push = (apart * force[..., None]).sum(axis=1) - 0.3 * places  # the middle holds parts together
        length = np.maximum(np.sqrt((push**2).sum(axis=1, keepdims=True)), 1e-9)
        places = places + push / length * np.minimum(length, heat)
    low = places.min(axis=0)
    return np.asarray((places - low) / np.maximum((places - low).max(), 1e-9))
