r"""Covering linear programs with certified bounds.

:math:`\min \sum_j c_j z_j` subject to :math:`Az \ge b`, :math:`z \ge 0`, with non-negative data. HiGHS solves it where it
can within its share of the effort; where it cannot (it is slow on large regular graphs) the primal-dual hybrid gradient
with restarts (Chambolle and Pock 2011; Applegate et al. 2021) closes the gap to 0.05 %. Either way the answer is scaled
to be exactly feasible, as is the dual one, so that `lower` and `upper` are bounds whatever the solver did.

Effort is work, not time: it is counted in steps of the solvers, so that the same program has the same answer on a
busy machine. A unit takes about a second of CPU on a common processor of 2023.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError
from abex.support.extras import needed

EFFORT = 20.0  # about seconds of CPU
UNIT = 2e8  # entries that the steps of a solver look at in a unit of effort
FILL = (
    16.0  # shares of a full basis that a step looks at, from measurements on sparse, dense and regular graphs
)
HIGHS_SHARE = 0.25  # of the effort for HiGHS; where it needs more, the gradients are faster
CLOSE = 0.0005  # relative gap at which the gradients stop
ROUGH = 0.01  # relative gap with which they may run out of steps; beyond it they have failed
LOOK_EVERY = 64  # steps between two looks at the gap


class Cover(NamedTuple):
    """The value of a covering program lies in [lower, upper]; ``weights`` attain upper, ``packing`` proves lower."""

    lower: float
    upper: float
    weights: NDArray[np.float64]
    packing: NDArray[np.float64]
    method: str


def gradient_steps(matrix: Any, effort: float) -> int:
    """Steps of the gradients on ``matrix`` that ``effort`` pays for; each looks at every entry."""
    return int(min(effort * UNIT / (matrix.nnz + sum(matrix.shape)), 2**31 - 1))


def simplex_steps(matrix: Any, effort: float) -> int:
    """Steps of the simplex method that ``effort`` pays for; each looks at a factored basis as well, which fills up."""
    filled = min(matrix.nnz**2 / matrix.shape[0], matrix.shape[0] ** 2) / FILL
    return int(min(effort * UNIT / (matrix.nnz + sum(matrix.shape) + filled), 2**31 - 1))


def solve_covering(
    matrix: Any, demand: Any, cost: Any, effort: float = EFFORT, rough: float = ROUGH
) -> Cover:
    """The program with a sparse ``matrix``; a row without entry, or a relative gap above ``rough``, is a `UserError`."""
    demand, cost = np.asarray(demand, dtype=np.float64), np.asarray(cost, dtype=np.float64)
    matrix = matrix.tocsr()
    solution = _highs(matrix, demand, cost, simplex_steps(matrix, HIGHS_SHARE * effort))
    method = "HiGHS"
    if solution is None:
        solution = _gradients(matrix, demand, cost, gradient_steps(matrix, effort))
        method = "gradients"
    cover = certified(matrix, demand, cost, *solution, method)
    if cover.upper > (1.0 + rough) * cover.lower + 1e-9:
        raise UserError(
            f"the linear program of the graph could not be solved with effort {effort:g}: its value is known "
            f"only to lie in [{cover.lower:.4g}, {cover.upper:.4g}]; raise the effort"
        )
    return cover


def certified(matrix: Any, demand: Any, cost: Any, weights: Any, packing: Any, method: str) -> Cover:
    """Scale both solutions to feasibility: then weak duality proves the interval."""
    weights, packing = np.maximum(weights, 0.0), np.maximum(packing, 0.0)
    reached = matrix @ weights
    demanded = demand > 0.0
    scale = np.max(demand[demanded] / reached[demanded], initial=0.0) if demanded.any() else 0.0
    load = matrix.T @ packing
    priced = cost > 0.0
    packing = np.where(matrix @ (~priced * 1.0) > 0.0, 0.0, packing)  # a free arm covers these rows
    load = matrix.T @ packing
    shrink = np.max(load[priced] / cost[priced], initial=0.0)
    weights = weights * scale
    packing = packing / shrink if shrink > 0.0 else packing
    return Cover(float(demand @ packing), float(cost @ weights), weights, packing, method)


def _highs(matrix: Any, demand: Any, cost: Any, steps: int) -> tuple[Any, Any] | None:
    with needed():
        from scipy.optimize import linprog

    if steps < 1:
        return None
    answer = linprog(
        cost, A_ub=-matrix, b_ub=-demand, bounds=(0, None), method="highs", options={"maxiter": steps}
    )
    if answer.status == 0:
        return answer.x, -answer.ineqlin.marginals
    if answer.status in (1, 4):  # out of steps, or numerical trouble
        return None
    raise UserError(f"the linear program of the graph has no solution: {answer.message}")


def _gradients(matrix: Any, demand: Any, cost: Any, steps: int) -> tuple[Any, Any]:
    """The program in the variables cost * z and demand * y, without what costs nothing or is covered for nothing."""
    with needed():
        from scipy.sparse import diags_array

    free, demanded = cost <= 0.0, demand > 0.0
    demanded &= ~((matrix @ (free * 1.0)) > 0.0)
    scaled = diags_array(1.0 / demand[demanded]) @ matrix[demanded][:, ~free] @ diags_array(1.0 / cost[~free])
    cover, pack = _saddle_point(scaled.tocsr(), steps)
    weights, packing = np.zeros(cost.size), np.zeros(demand.size)
    weights[~free] = cover / cost[~free]
    packing[demanded] = pack / demand[demanded]
    weights[free] = demand.max() / matrix.data.min()  # enough for every row, and it costs nothing
    return weights, packing


def _saddle_point(matrix: Any, steps: int) -> tuple[Any, Any]:
    """Least sum of z >= 0 with Az >= 1, largest sum of y >= 0 with A'y <= 1, by gradients that restart at their average."""
    turned = matrix.T.tocsr()
    norm = _largest_singular_value(matrix, turned)
    z, y = np.full(matrix.shape[1], 1.0 / matrix.sum(axis=1).min()), np.zeros(matrix.shape[0])
    best_z, best_y, upper, lower = z, y, float(z.sum()), 0.0
    sum_z, sum_y, count, total, balance = np.zeros_like(z), np.zeros_like(y), 0, 0, 1.0
    start_z, start_y, start_gap = z, y, np.inf
    reached = matrix @ z
    while True:
        z = np.maximum(0.0, z - balance / norm * (1.0 - turned @ y))
        before, reached = reached, matrix @ z
        y = np.maximum(0.0, y + 1.0 / (balance * norm) * (1.0 - 2.0 * reached + before))
        sum_z, sum_y, count, total = sum_z + z, sum_y + y, count + 1, total + 1
        if total % LOOK_EVERY:
            continue
        now = _gap(matrix, turned, z, y)
        mean = _gap(matrix, turned, sum_z / count, sum_y / count)
        for (above, below), (one, other) in ((now, (z, y)), (mean, (sum_z / count, sum_y / count))):
            if above < upper:
                upper, best_z = above, one
            if below > lower:
                lower, best_y = below, other
        if upper <= (1.0 + CLOSE) * lower or total >= steps:
            return best_z, best_y
        gap = min(now[0] - now[1], mean[0] - mean[1])
        if gap < 0.3 * start_gap or count >= 0.4 * total:  # restart where the gap is smaller
            if mean[0] - mean[1] < now[0] - now[1]:
                z, y = sum_z / count, sum_y / count
            moved_z, moved_y = np.linalg.norm(z - start_z), np.linalg.norm(y - start_y)
            if moved_z > 0.0 and moved_y > 0.0:
                balance = float(np.sqrt(balance * moved_z / moved_y))
            start_z, start_y, start_gap, reached = z, y, gap, matrix @ z
            sum_z, sum_y, count = np.zeros_like(z), np.zeros_like(y), 0


def _gap(matrix: Any, turned: Any, z: Any, y: Any) -> tuple[float, float]:
    """Bounds on the value, from both sides scaled to feasibility."""
    least, most = float((matrix @ z).min()), float((turned @ y).max())
    return (float(z.sum()) / least if least > 0.0 else np.inf), (float(y.sum()) / most if most > 0.0 else 0.0)


def _largest_singular_value(matrix: Any, turned: Any) -> float:
    vector = np.ones(matrix.shape[1])
    size = 0.0
    for _ in range(40):
        vector = turned @ (matrix @ vector)
        size = float(np.linalg.norm(vector))
        vector /= size
    return 1.01 * float(np.sqrt(size))  # power iteration ends slightly below
