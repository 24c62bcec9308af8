r"""Gauss-Legendre quadrature on panels: the rule, and the antiderivative at its own nodes.

A function on a panel is known by its values at `NODES` points. `WEIGHTS` integrate it over the panel, exactly up to
polynomials of degree 2 n - 1; row j of `RUNNING` holds :math:`\int_{-1}^{x_i}\ell_j`, so that
:math:`\sum_j f(x_j)\,\mathrm{RUNNING}_{ji}` is the integral up to node i, exactly up to degree n - 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

N_NODES = 16


def running_integrals(nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The integral of each Lagrange polynomial of these nodes from -1 to each of them, (polynomial, node)."""
    from numpy.polynomial import legendre

    n = nodes.size
    values = legendre.legvander(nodes, n)  # P_0..P_n at the nodes
    antiderivatives = np.empty((n, n))  # of P_m, from -1: (P_(m+1) - P_(m-1)) / (2 m + 1)
    antiderivatives[0] = nodes + 1.0
    for m in range(1, n):
        antiderivatives[m] = (values[:, m + 1] - values[:, m - 1]) / (2 * m + 1)
    return np.asarray(np.linalg.solve(values[:, :n].T, antiderivatives), np.float64)


def rule(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on [-1, 1], and the running integrals.

    >>> nodes, weights, running = rule(3)
    >>> bool(abs((nodes**4) @ weights - 2 / 5) < 1e-15), bool(abs((nodes @ running)[1] + 0.5) < 1e-15)
    (True, True)
    """
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return nodes, weights, running_integrals(nodes)


NODES, WEIGHTS, RUNNING = rule(N_NODES)
