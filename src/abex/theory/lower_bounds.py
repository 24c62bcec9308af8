"""Asymptotic lower bounds of regret: Lai and Robbins, and its linear program on graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.divergence import bernoulli_kl
from abex.support.errors import UserError


def lai_robbins(means: Iterable[float]) -> float:
    r"""The constant C of :math:`\liminf R(T)/\ln T \ge C = \sum_k\Delta_k/\mathrm{kl}(\mu_k,\mu^*)`.

    Lai and Robbins 1985, for Bernoulli arms under bandit feedback; asymptotic, not a floor at finite T.

    >>> round(lai_robbins([0.75] + [0.5] * 332))
    577
    """
    mu = _means(means)
    top = float(mu.max())
    return math.fsum((top - m) / bernoulli_kl(m, top) for m in mu[mu < top].tolist())


def graph_lower_bound(means: Iterable[float], graph: Any) -> float:
    r"""The constant of the lower bound with side observations, a linear program.

    .. math:: \min_{c\ge0}\sum_j c_j\Delta_j\quad\text{such that}\quad
              \sum_{j\in\mathrm{in}(i)}c_j \ge \frac{1}{\mathrm{kl}(\mu_i,\mu^*)}\ \text{for every sub-optimal } i

    Arms that a best arm reveals are free. Buccapatnam, Eryilmaz, Shroff 2014. ``graph`` is an `abex.Graph`, or
    a (K, K) matrix whose entry (j, i) says that pulling j reveals i (self-loops are always there).

    >>> import numpy as np
    >>> means = [0.75] + [0.5] * 9
    >>> round(graph_lower_bound(means, np.eye(10)), 6) == round(lai_robbins(means), 6)
    True
    >>> graph_lower_bound(means, np.ones((10, 10)))
    0.0
    """
    from abex.graphs import Graph
    from abex.graphs.numbers import regret_lower_bound

    mu = _means(means)
    known = graph if isinstance(graph, Graph) else Graph.from_matrix(graph)
    if known.n_arms != mu.size:
        raise UserError(f"the graph has {known.n_arms} arms but there are {mu.size} means")
    return float(regret_lower_bound(known, mu).upper)


def _means(means: Iterable[float]) -> NDArray[np.float64]:
    mu = np.asarray(list(means), dtype=np.float64)
    if mu.ndim != 1 or mu.size == 0 or not bool(np.all((mu >= 0.0) & (mu <= 1.0))):
        raise UserError("means must be a non-empty list of numbers in [0, 1]")
    return mu
