r"""Covering linear programs, solved with a proof.

:math:`\min \sum_j c_j z_j` subject to :math:`Az \ge b`, :math:`z \ge 0`, with non-negative data. HiGHS solves it where it
can within the time limit; where it cannot (it is slow on large regular graphs) optimistic multiplicative weights
play the equivalent zero-sum game until the gap is small. Either way the answer is scaled to be exactly
feasible, as is the dual one, so that `lower` and `upper` are bounds whatever the solver did.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError

TIME_LIMIT = 20.0  # seconds for HiGHS, then for multiplicative weights
CLOSE = 0.002  # relative gap at which multiplicative weights stop; beyond ten times of it they have failed
FIRST_STEP = 50.0  # step size on payoffs scaled to [0, 1]; halved when the gap grows


class Cover(NamedTuple):
    """The value of a covering program lies in [lower, upper]; ``weights`` attain upper, ``packing`` proves lower."""

    lower: float
    upper: float
    weights: NDArray[np.float64]
    packing: NDArray[np.float64]
    method: str


def solve_covering(matrix: Any, demand: Any, cost: Any, time_limit: float = TIME_LIMIT) -> Cover:
    """The program with a sparse ``matrix``; a row without entry, or no answer in time, is a `UserError`."""
    demand, cost = np.asarray(demand, dtype=np.float64), np.asarray(cost, dtype=np.float64)
    matrix = matrix.tocsr()
    solution = _highs(matrix, demand, cost, time_limit)
    method = "HiGHS"
    if solution is None:
        solution = _weights(matrix, demand, cost, time_limit)
        method = "multiplicative weights"
    return certified(matrix, demand, cost, *solution, method)


def certified(matrix: Any, demand: Any, cost: Any, weights: Any, packing: Any, method: str) -> Cover:
    """Scale both solutions to feasibility: then weak duality proves the interval."""
    weights, packing = np.maximum(weights, 0.0), np.maximum(packing, 0.0)
    reached = matrix @ weights
    needed = demand > 0.0
    scale = np.max(demand[needed] / reached[needed], initial=0.0) if needed.any() else 0.0
    load = matrix.T @ packing
    priced = cost > 0.0
    packing = np.where(matrix @ (~priced * 1.0) > 0.0, 0.0, packing)  # a free arm covers these rows
    load = matrix.T @ packing
    shrink = np.max(load[priced] / cost[priced], initial=0.0)
    weights = weights * scale
    packing = packing / shrink if shrink > 0.0 else packing
    return Cover(float(demand @ packing), float(cost @ weights), weights, packing, method)


def _highs(matrix: Any, demand: Any, cost: Any, time_limit: float) -> tuple[Any, Any] | None:
    from scipy.optimize import linprog

    answer = linprog(
        cost, A_ub=-matrix, b_ub=-demand, bounds=(0, None), method="highs", options={"time_limit": time_limit}
    )
    if answer.status == 0:
        return answer.x, -answer.ineqlin.marginals
    if answer.status in (1, 4):  # out of time, or numerical trouble
        return None
    raise UserError(f"the linear program of the graph has no solution: {answer.message}")


def _weights(matrix: Any, demand: Any, cost: Any, time_limit: float) -> tuple[Any, Any]:
    """Both players of the game with payoff A_ij / (b_i c_j) run optimistic multiplicative weights."""
    from scipy.sparse import diags_array

    free, needed = cost <= 0.0, demand > 0.0
    needed &= ~((matrix @ (free * 1.0)) > 0.0)  # free arms cover the rest
    game = diags_array(1.0 / demand[needed]) @ matrix[needed][:, ~free] @ diags_array(1.0 / cost[~free])
    game = game.tocsr()
    game *= 1.0 / game.data.max()
    turned = game.T.tocsr()
    cover, pack = _play(game, turned, time_limit)
    weights, packing = np.zeros(cost.size), np.zeros(demand.size)
    weights[~free] = cover / cost[~free]
    packing[needed] = pack / demand[needed]
    weights[free] = demand.max() * np.max(weights, initial=1.0) * 1e6  # costs nothing
    return weights, packing


def _play(game: Any, turned: Any, time_limit: float) -> tuple[Any, Any]:
    rows, columns = game.shape
    step, deadline = FIRST_STEP, time.monotonic() + time_limit
    best_cover, best_pack = np.full(columns, 1.0 / columns), np.full(rows, 1.0 / rows)
    floor, ceiling = float((game @ best_cover).min()), float((turned @ best_pack).max())
    while True:
        log_cover, log_pack = np.zeros(columns), np.zeros(rows)
        last_cover, last_pack = np.zeros(columns), np.zeros(rows)
        sum_cover, sum_pack = np.zeros(columns), np.zeros(rows)
        before = ceiling / floor
        for count in range(1, 2001):
            cover, pack = _softmax(log_cover + step * last_cover), _softmax(log_pack - step * last_pack)
            last_cover, last_pack = turned @ pack, game @ cover
            log_cover += step * last_cover
            log_pack -= step * last_pack
            sum_cover += cover
            sum_pack += pack
            if count % 100 == 0:
                mean_cover, mean_pack = sum_cover / count, sum_pack / count
                value = float((game @ mean_cover).min())
                if value > floor:
                    floor, best_cover = value, mean_cover
                value = float((turned @ mean_pack).max())
                if value < ceiling:
                    ceiling, best_pack = value, mean_pack
                if ceiling <= (1.0 + CLOSE) * floor:
                    return best_cover, best_pack
                if time.monotonic() > deadline:
                    if ceiling <= (1.0 + 10.0 * CLOSE) * floor:
                        return best_cover, best_pack
                    raise UserError(
                        f"the linear program of the graph could not be solved within {time_limit:g} s: its value "
                        f"is only known up to a factor {ceiling / floor:.3g}; raise the time limit"
                    )
        step *= 2.0 if ceiling / floor < 1.0 + 0.7 * (before - 1.0) else 0.5


def _softmax(values: Any) -> Any:
    grown = np.exp(values - values.max())
    return grown / grown.sum()
