r"""The probability of each arm to have the largest of perturbed means :math:`\hat\mu_k+Z_k/s_k` with Gumbel noise.

Of arm k :math:`\lambda_k(x)=e^{-s_k(x-\hat\mu_k)}` points lie above x on average (`abex.samplers.exceedance`), so that with
:math:`\Lambda=\sum_j\lambda_j`

.. math:: p_k=\int s_k\lambda_k(x)\,e^{-\Lambda(x)}\,dx,

by Gauss-Legendre quadrature on panels over which neither :math:`\Lambda` nor any :math:`\ln\lambda_k` changes much, from
:math:`\Lambda=39` to where the last :math:`\lambda_k` is negligible. The sum over the arms, 1, measures the error. Cost O(K)
a panel.

Where one Z serves all arms, :math:`\hat\mu_k+Z/s_k` are lines in Z, and p_k is the probability that Z falls where line k is the
upper envelope: exact, O(K) a line of the envelope.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.kernels import kernel, rare_kernel
from abex.samplers.largest_beta import N_NODES, NODES, WEIGHTS, make_total_one

MAX_POINTS = 39.0  # e^-39 may be left out
FIRST_BRACKET = 60  # halvings


@kernel
def points_above(offset: Any, rate: Any, active: Any, count: int, v: float) -> tuple[float, float]:
    """Lambda at v, and how fast it falls there."""
    total, fall = 0.0, 0.0
    for j in range(count):
        points = math.exp(min(-offset[active[j]] - rate[active[j]] * v, 300.0))
        total += points
        fall += rate[active[j]] * points
    return total, fall


@rare_kernel
def largest_gumbel(means: Any, steep: Any, out: Any) -> float:
    """The probability of each arm into ``out``, all observed; returns their sum before it was made 1.

    In v = S (x - m) with the largest mean m and the largest s_k = S, an arm has exp(-offset - rate v) points above: no
    scale is too small.
    """
    n_arms = out.size
    top, steepest = -math.inf, 0.0
    for k in range(n_arms):
        top = max(top, means[k])
        steepest = max(steepest, steep[k])
    offset, rate = np.empty(n_arms), np.empty(n_arms)
    active, weights = np.empty(n_arms, np.int64), np.empty(N_NODES)
    low, high = -math.inf, -math.inf
    for k in range(n_arms):
        out[k] = 0.0
        active[k] = k
        offset[k] = steep[k] * (top - means[k])
        rate[k] = steep[k] / steepest
        low = max(low, -(math.log(MAX_POINTS) + offset[k]) / rate[k])  # so many for one arm alone
        high = max(high, -(math.log(MAX_POINTS / n_arms) + offset[k]) / rate[k])  # no arm does its share
    for _ in range(FIRST_BRACKET):
        if points_above(offset, rate, active, n_arms, 0.5 * (low + high))[0] > MAX_POINTS:
            low = 0.5 * (low + high)
        else:
            high = 0.5 * (low + high)
    v, count = low, n_arms
    while True:
        width, kept = math.inf, 0
        for j in range(count):
            log = -offset[active[j]] - rate[active[j]] * v
            if log > -MAX_POINTS:
                width = min(width, 3.0 * math.exp(max(-log, 0.0) / 30.0) / rate[active[j]])
                active[kept] = active[j]
                kept += 1
        count = kept
        if count == 0:
            break
        half = 0.5 * min(width, 6.0 / points_above(offset, rate, active, count, v)[1])
        for i in range(N_NODES):
            points = points_above(offset, rate, active, count, v + half * (1.0 + NODES[i]))[0]
            weights[i] = half * WEIGHTS[i] * math.exp(-points)
        for j in range(count):
            arm, won = active[j], 0.0
            for i in range(N_NODES):
                won += weights[i] * math.exp(-offset[arm] - rate[arm] * (v + half * (1.0 + NODES[i])))
            out[arm] += rate[arm] * won
        v += 2.0 * half
    return make_total_one(out)


@kernel
def gumbel_below(z: float) -> float:
    """The distribution function of Gumbel noise."""
    return math.exp(-math.exp(min(-z, 700.0)))


@rare_kernel
def largest_line(means: Any, observations: Any, scale: float, out: Any) -> None:
    """The probability of each arm, where one noise serves all and arms never observed are on its side, into ``out``."""
    n_arms = out.size
    fresh, level, height = 0, math.inf, -math.inf
    for k in range(n_arms):
        out[k] = 0.0
        if observations[k] == 0.0:
            fresh += 1
            continue
        spread = scale / math.sqrt(observations[k])
        if spread < level or (spread == level and means[k] > height):  # the envelope far to the left
            level, height = spread, means[k]
    z, last = -math.inf, 0.0 if fresh > 0 else math.inf
    while fresh < n_arms and z < last:
        end, steeper, higher = last, level, height
        ties = 0
        for k in range(n_arms):
            if observations[k] == 0.0:
                continue
            spread = scale / math.sqrt(observations[k])
            if spread == level and means[k] == height:
                ties += 1
            elif spread > level:
                crossing = (height - means[k]) / (spread - level)
                if crossing < end or (crossing == end and spread > steeper):
                    end, steeper, higher = max(crossing, z), spread, means[k]
        won = gumbel_below(end) - (gumbel_below(z) if z > -math.inf else 0.0)
        for k in range(n_arms):
            if observations[k] > 0.0 and scale / math.sqrt(observations[k]) == level and means[k] == height:
                out[k] += won / ties
        if steeper == level:
            break
        z, level, height = end, steeper, higher
    for k in range(n_arms):
        if observations[k] == 0.0:
            out[k] = (1.0 if fresh == n_arms else 1.0 - gumbel_below(0.0)) / fresh
