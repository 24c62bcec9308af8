"""Slow oracles for feedback graphs: subsets by enumeration, information by samples."""

import itertools

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


def out_sets(graph):
    """For each arm the set of arms that its pull shows."""
    return [set(graph.out(arm).tolist()) for arm in range(graph.n_arms)]


def subsets(n):
    return (set(c) for size in range(n + 1) for c in itertools.combinations(range(n), size))


def independence_number(graph):
    out = out_sets(graph)
    joined = [
        {j for j in range(graph.n_arms) if j != k and (j in out[k] or k in out[j])}
        for k in range(graph.n_arms)
    ]
    return max(len(s) for s in subsets(graph.n_arms) if not any(joined[k] & s for k in s))


def domination_number(graph):
    out = out_sets(graph)
    everyone = set(range(graph.n_arms))
    return min(len(s) for s in subsets(graph.n_arms) if set().union(*(out[k] for k in s)) == everyone)


def has_cycle(out, inside):
    """Peel off arms that show nobody inside; what is left holds a cycle."""
    left = set(inside)
    while left:
        ends = {k for k in left if not (out[k] - {k}) & left}
        if not ends:
            return True
        left -= ends
    return False


def acyclic_number(graph):
    out = out_sets(graph)
    return max(len(s) for s in subsets(graph.n_arms) if not has_cycle(out, s))


def matrix(graph):
    """Dense: entry (u, v) if pulling u shows v."""
    table = np.zeros((graph.n_arms, graph.n_arms))
    for arm in range(graph.n_arms):
        table[arm, graph.out(arm)] = 1.0
    return table


def independence_by_highs(graph):
    """An integer program with a row for each edge, solved by HiGHS."""
    joined = matrix(graph) + matrix(graph).T > 0
    low, high = np.nonzero(np.triu(joined, 1))
    rows = np.zeros((low.size, graph.n_arms))
    rows[np.arange(low.size), low] = rows[np.arange(low.size), high] = 1.0
    answer = milp(-np.ones(graph.n_arms), integrality=np.ones(graph.n_arms), bounds=Bounds(0, 1),
                  constraints=LinearConstraint(rows, -np.inf, 1.0))  # fmt: skip
    return round(-answer.fun)


def domination_by_highs(graph):
    """An integer program with a row for each arm that must be shown, solved by HiGHS."""
    answer = milp(np.ones(graph.n_arms), integrality=np.ones(graph.n_arms), bounds=Bounds(0, 1),
                  constraints=LinearConstraint(matrix(graph).T, 1.0, np.inf))  # fmt: skip
    return round(answer.fun)
