"""Fractional dominating sets of small graphs by the simplex method, with NumPy alone.

For a `Player` where SciPy is not installed; `abex.graphs.programs` solves all else. Either answer carries its proof.
Where several fractional dominating sets are equally good the two may find different ones.
"""

from __future__ import annotations

import numpy as np

from abex.errors import UserError
from abex.extras import how_to_install
from abex.graphs.graph import Graph
from abex.graphs.programs import Cover, certified

MOST_ARMS_HERE = 200  # beyond, the dense tableau takes seconds
HAIR = 1e-9


def small_fractional_domination(graph: Graph) -> Cover:
    r"""The least :math:`\sum_k z_k` with :math:`\sum_{l \in in(j)} z_l \ge 1`, from the largest packing :math:`A'y \le 1`.

    The packing program begins at y = 0, a vertex; the prices of its rows at the end are z.

    >>> from abex.graphs import cliques
    >>> round(small_fractional_domination(cliques(4, 3)).upper, 6)
    4.0
    """
    n = graph.n_arms
    if n > MOST_ARMS_HERE:
        raise UserError(f"the linear program of a graph with {n:,} arms: {how_to_install('scipy')}")
    shown = np.zeros((n, n))  # shown[u, v]: pulling u shows v
    for arm in range(n):
        shown[arm, graph.out(arm)] = 1.0
    tableau = np.block([[shown, np.eye(n), np.ones((n, 1))], [-np.ones((1, n)), np.zeros((1, n + 1))]])
    basis = np.arange(n, 2 * n)
    for step in range(100 * n):
        prices = tableau[-1, :-1]
        improving = np.flatnonzero(prices < -HAIR)
        if improving.size == 0:
            break
        # the steepest column; after many steps the first one, which cannot go round in circles (Bland 1977)
        entering = int(improving[0] if step > 10 * n else np.argmin(prices))
        column = tableau[:-1, entering]
        ratios = np.full(n, np.inf)
        np.divide(tableau[:-1, -1], column, out=ratios, where=column > HAIR)
        tied = np.flatnonzero(ratios <= ratios.min() + HAIR)
        leaving = int(tied[np.argmin(basis[tied])])
        tableau[leaving] /= tableau[leaving, entering]
        others = np.arange(n + 1) != leaving
        tableau[others] -= np.outer(tableau[others, entering], tableau[leaving])
        basis[leaving] = entering
    packing = np.zeros(2 * n)
    packing[basis] = tableau[:-1, -1]
    return certified(shown.T, np.ones(n), np.ones(n), tableau[-1, n : 2 * n], packing[:n], "simplex")
