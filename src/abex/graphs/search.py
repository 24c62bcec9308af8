r"""The smallest cover or the largest packing of a 0-1 matrix, by branch and bound within a budget of work.

A *cover* is a set of columns that meets every row, a *packing* one that meets no row twice. Each subproblem is
bounded by its linear program (HiGHS), an arm is fixed where its reduced cost proves that the best set known cannot
be beaten otherwise, and the subproblem is split at an arm of which the program takes about a half.

The budget is counted in steps of the simplex method, each as dear as the matrix is large: the answer depends on the
matrix and the budget alone, never on the clock or on what else the machine does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.extras import needed
from abex.graphs.programs import simplex_steps

HAIR = 1e-6  # how far a linear program may be from the number that it means
EACH = 100  # steps that setting up a linear program is worth


class Found(NamedTuple):
    """The best set found (None: none better than the one known) and the size that no set can beat."""

    arms: NDArray[np.int64] | None
    bound: float


class _Subproblem(NamedTuple):
    """Sets that hold the arms with ``least`` 1 and none with ``most`` 0; their cost is at least ``bound``."""

    bound: float
    least: NDArray[np.float64]
    most: NDArray[np.float64]


def smallest_cover(rows: Any, known: int, effort: float) -> Found:
    """A set of fewer than ``known`` columns that meets every row, and a bound below (0 if there was no budget for any)."""
    found, bound = _search(rows, 1.0, known, effort)
    return Found(found, max(bound, 0.0))


def largest_packing(rows: Any, known: int, effort: float) -> Found:
    """A set of more than ``known`` columns no two of which share a row, and a bound above (inf if there is none)."""
    found, bound = _search(rows, -1.0, -known, effort)
    return Found(found, -bound)


def _search(rows: Any, sign: float, best: float, effort: float) -> tuple[NDArray[np.int64] | None, float]:
    """Least ``sign`` times the size; ``best`` is the value of a set that is known already."""
    rows, columns = rows.tocsr(), rows.tocsc()
    n_arms = rows.shape[1]
    left, found = simplex_steps(rows, effort), None
    open_problems = [_Subproblem(-math.inf, np.zeros(n_arms), np.ones(n_arms))]
    while open_problems and left > 0:
        problem = open_problems.pop()
        if problem.bound >= best:
            continue
        answer = _relaxed(rows, sign, problem, left)
        left -= answer.nit + EACH
        if answer.status == 2:  # no such set
            continue
        if answer.status != 0:
            open_problems.append(problem)
            break
        candidate = (_rounded_cover if sign > 0.0 else _rounded_packing)(rows, columns, answer.x)
        if sign * candidate.size < best:
            found, best = candidate, sign * candidate.size
        bound = math.ceil(answer.fun - HAIR)
        if bound >= best:
            continue
        slack = best - 1.0 + HAIR - answer.fun  # what a better set may cost more than the program
        most = np.where(answer.lower.marginals > slack, problem.least, problem.most)
        least = np.where(answer.upper.marginals < -slack, problem.most, problem.least)
        halves = np.where(most > least, np.abs(answer.x - 0.5), np.inf)
        arm = int(np.argmin(halves))
        if halves[arm] >= 0.5 - HAIR:
            continue  # the program's own solution is a set, and has been taken
        for value in (0.0, 1.0):  # the second is searched first
            child = _Subproblem(bound, least.copy(), most.copy())
            child.least[arm] = child.most[arm] = value
            open_problems.append(child)
    return found, min((problem.bound for problem in open_problems), default=best)


def _relaxed(rows: Any, sign: float, problem: _Subproblem, steps: int) -> Any:
    with needed():
        from scipy.optimize import linprog

    ones = np.ones(rows.shape[0])
    return linprog(
        np.full(rows.shape[1], sign),
        A_ub=-sign * rows,
        b_ub=-sign * ones,
        bounds=np.column_stack([problem.least, problem.most]),
        method="highs",
        options={"maxiter": max(1, steps)},
    )


def _rounded_packing(rows: Any, columns: Any, x: Any) -> NDArray[np.int64]:
    """Arms in falling order of ``x``, each that shares no row with those before."""
    taken, chosen = np.zeros(rows.shape[0], dtype=bool), []
    for arm in np.argsort(-x, kind="stable").tolist():
        members = columns.indices[columns.indptr[arm] : columns.indptr[arm + 1]]
        if not taken[members].any():
            taken[members] = True
            chosen.append(arm)
    return np.sort(np.array(chosen, dtype=np.int64))


def _rounded_cover(rows: Any, columns: Any, x: Any) -> NDArray[np.int64]:
    """Arms in falling order of ``x`` until every row is met, without those that the others make superfluous."""
    met, chosen = np.zeros(rows.shape[0], dtype=np.int64), []
    for arm in np.argsort(-x, kind="stable").tolist():
        members = columns.indices[columns.indptr[arm] : columns.indptr[arm + 1]]
        if (met[members] == 0).any():
            met[members] += 1
            chosen.append(arm)
            if met.all():
                break
    for arm in reversed(chosen.copy()):
        members = columns.indices[columns.indptr[arm] : columns.indptr[arm + 1]]
        if (met[members] > 1).all():
            met[members] -= 1
            chosen.remove(arm)
    return np.sort(np.array(chosen, dtype=np.int64))
