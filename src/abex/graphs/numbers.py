r"""Independence, domination and acyclic numbers of a graph: an interval each, with a set of arms that proves one end.

:math:`\alpha` (independence), :math:`\gamma` (domination) and its fractional relaxation :math:`\gamma^*`, the clique-cover
number :math:`\bar\chi` and the largest acyclic set. Undirected: :math:`\gamma^* \le \gamma \le \alpha \le \bar\chi`;
directed: :math:`\alpha \le \text{acyclic} \le \bar\chi`. Searches end with their effort and return the interval
proved so far; effort is work and not time (`abex.graphs.programs`), so that a graph has the same numbers on a busy machine.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.covers import (
    greedy_acyclic_set,
    greedy_clique_cover,
    greedy_dominating_set,
    greedy_independent_set,
)
from abex.graphs.graph import Graph, as_fixed_graph
from abex.graphs.programs import EFFORT, Cover, simplex_steps, solve_covering
from abex.support.divergence import bernoulli_kl
from abex.support.errors import UserError, real_number
from abex.support.extras import needed

MAX_SEARCHED_EDGES = 2_000_000  # edges of a graph of which cliques are listed
TOLERANCE = 1e-6  # distance of a solver's number from the whole number that it stands for


class Bounds(NamedTuple):
    """The number lies in [lower, upper]; ``witness`` is a set of arms of the size it attains."""

    lower: int
    upper: int
    witness: NDArray[np.int64]

    @property
    def is_exact(self) -> bool:
        """Whether the interval is a single number."""
        return self.lower == self.upper

    def __str__(self) -> str:
        return str(self.lower) if self.is_exact else f"{self.lower}..{self.upper}"


def independence_number(graph: Graph, effort: float = EFFORT) -> Bounds:
    """Size of the largest set of arms no two of which are joined (in either direction).

    A largest packing of cliques that together hold every edge; ``effort=0`` gives the greedy bounds.

    >>> from abex.graphs import star
    >>> str(independence_number(star(10)))
    '9'
    """
    effort = real_number("effort", effort, least=0.0)
    plain = as_fixed_graph(graph).undirected()
    witness = greedy_independent_set(plain)
    lower, upper = witness.size, int(greedy_clique_cover(plain).max()) + 1
    if lower < upper and effort > 0.0 and plain.links.out_arms.size <= MAX_SEARCHED_EDGES:
        rows = _clique_rows(plain)
        if nodes := nodes_paid(rows, effort):
            found, bound = best_set(rows, -1.0, nodes)
            if found.size > lower:
                witness, lower = found, found.size
            upper = min(upper, -bound)
    return Bounds(lower, upper, witness)


def domination_number(graph: Graph, effort: float = EFFORT) -> Bounds:
    """Size of the smallest set of arms whose pulls show every arm.

    >>> from abex.graphs import cliques
    >>> str(domination_number(cliques(4, 3)))
    '4'
    """
    effort = real_number("effort", effort, least=0.0)
    witness = greedy_dominating_set(as_fixed_graph(graph))
    lower, upper = math.ceil(graph.n_arms / graph.max_observed), witness.size
    if lower < upper and effort > 0.0:
        rows = graph.to_scipy().T.tocsr()
        if nodes := nodes_paid(rows, effort):
            found, bound = best_set(rows, 1.0, nodes)
            if 0 < found.size < upper:
                witness, upper = found, found.size
        else:  # too large for a single node: its relaxation bounds it
            ones = np.ones(graph.n_arms)
            bound = math.ceil(solve_covering(rows, ones, ones, effort, math.inf).lower - TOLERANCE)
        lower = max(lower, bound)
    return Bounds(lower, upper, witness)


def acyclic_number(graph: Graph) -> Bounds:
    """Size of the largest set of arms that induces no directed cycle: greedy set below, clique cover above."""
    witness = greedy_acyclic_set(as_fixed_graph(graph))
    upper = int(greedy_clique_cover(graph).max()) + 1
    if graph.is_directed and witness.size < graph.n_arms:
        upper = min(upper, graph.n_arms - 1 if _has_cycle(graph) else graph.n_arms)
    return Bounds(witness.size, max(upper, witness.size), witness)


def fractional_domination(graph: Graph, effort: float = EFFORT) -> Cover:
    r"""The least :math:`\sum_k z_k` with :math:`\sum_{l \in in(j)} z_l \ge 1` for every arm j.

    Its reciprocal is ELP's value :math:`v = \max_s \min_j \sum_{l \in in(j)} s_l` over distributions s.

    >>> from abex.graphs import cliques
    >>> round(fractional_domination(cliques(4, 3)).upper, 6)
    4.0
    """
    ones = np.ones(as_fixed_graph(graph).n_arms)
    return solve_covering(graph.to_scipy().T, ones, ones, effort)


def regret_lower_bound(graph: Graph, means: Any, effort: float = EFFORT) -> Cover:
    r"""The coefficient of ln T that no uniformly good policy can beat for Bernoulli arms with these means.

    :math:`\min \sum_j c_j \Delta_j` subject to :math:`\sum_{j \in in(i)} c_j \ge 1 / \mathrm{kl}(\mu_i, \mu^*)` for every
    suboptimal arm i. Arms that a best arm shows ask for nothing, since pulling it is free.

    >>> from abex.graphs import bandit
    >>> round(regret_lower_bound(bandit(2), [0.75, 0.5]).upper, 3)
    1.738
    """
    values = np.asarray(means, dtype=np.float64)
    if values.shape != (as_fixed_graph(graph).n_arms,):
        raise UserError(
            f"means must have one entry for each of the {graph.n_arms} arms, got shape {values.shape}"
        )
    if not bool(np.all((values >= 0.0) & (values <= 1.0))):
        raise UserError("means must lie in [0, 1]")
    top = float(values.max())
    demand = np.array([0.0 if mean >= top else 1.0 / bernoulli_kl(mean, top) for mean in values.tolist()])
    return solve_covering(graph.to_scipy().T, demand, top - values, effort)


def nodes_paid(rows: Any, effort: float) -> int:
    """Nodes of a branch and bound that ``effort`` pays for, each with a linear program of as many steps as it has sides."""
    return simplex_steps(rows, effort) // int(sum(rows.shape))


def best_set(rows: Any, sign: float, nodes: int) -> tuple[NDArray[np.int64], int]:
    """The smallest set of columns that meets every row (``sign`` 1), or the largest that meets none twice (-1).

    By HiGHS, which stops after a number of nodes: the best set that it found, and the least ``sign`` times its size can be.
    """
    with needed():
        from scipy.optimize import LinearConstraint, milp
        from scipy.sparse import csc_array

    columns = rows.tocsc()
    indices = (
        columns.indices.astype(np.int32),
        columns.indptr.astype(np.int32),
    )  # SciPy 1.13 takes no others
    rows = csc_array((columns.data, *indices), shape=rows.shape)
    ends = (1.0, np.inf) if sign > 0.0 else (-np.inf, 1.0)
    answer = milp(
        np.full(rows.shape[1], sign),
        constraints=LinearConstraint(rows, *ends),
        integrality=np.ones(rows.shape[1]),
        bounds=(0.0, 1.0),
        options={"node_limit": nodes},
    )
    chosen = np.zeros(rows.shape[1]) if answer.x is None else np.round(answer.x)
    met = rows @ chosen
    if met.min() < ends[0] or met.max() > ends[1]:
        chosen[:] = 0.0
    bound = answer.mip_dual_bound
    least = -rows.shape[1] if bound is None or not math.isfinite(bound) else math.ceil(bound - TOLERANCE)
    return np.flatnonzero(chosen), least


def _clique_rows(graph: Graph) -> Any:
    """A sparse 0-1 matrix whose rows are cliques that together hold every edge; each is grown greedily."""
    with needed():
        from scipy.sparse import csr_array

    known = [set(graph.out(arm)[:-1].tolist()) for arm in range(graph.n_arms)]
    open_edges = [{other for other in near if other > arm} for arm, near in enumerate(known)]
    rows: list[list[int]] = []
    for arm in range(graph.n_arms):
        while open_edges[arm]:
            other = min(open_edges[arm])
            clique = [arm, other]
            common = known[arm] & known[other]
            while common:
                most = max(common, key=lambda one: (len(known[one] & common), -one))
                clique.append(most)
                common &= known[most]
            for one in clique:
                open_edges[one].difference_update(clique)
            rows.append(clique)
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)])
    members = np.concatenate([np.array(row) for row in rows]) if rows else np.empty(0, dtype=np.int64)
    return csr_array((np.ones(members.size), members, start), shape=(len(rows), graph.n_arms))


def _has_cycle(graph: Graph) -> bool:
    with needed():
        from scipy.sparse.csgraph import connected_components

    count, _ = connected_components(graph.to_scipy(), directed=True, connection="strong")
    return bool(count < graph.n_arms)
