r"""Intervals from number, sum and sum of squares of rewards in [0, 1], narrow where they vary little, that hold at every moment.

With :math:`D=\sum x-nm`, :math:`V=\sum(x-m)^2` and the bound b = m of :math:`m-x` the evidence that the mean is above m is

.. math:: \ln\frac1J\sum_j\exp\big(\lambda_jD/b-\psi(\lambda_j)V/b^2\big),\qquad\psi(\lambda)=-\ln(1-\lambda)-\lambda;

that it is below has -D and b = 1 - m. Since :math:`e^{\lambda y-\psi(\lambda)y^2}\le1+\lambda y` for :math:`y\ge-1` (Fan, Grama
and Liu 2015, Lemma 4.1), its exponential is a supermartingale while the mean is at most m: whoever refutes m refutes all below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.inference.sums import HALVINGS, with_exponential
from abex.kernels import compile_alone, kernel

RATES = np.geomspace(2e-4, 0.9, 24)  # the lambda_j
PSI = -np.log1p(-RATES) - RATES
GRID = 32  # means of the second arm that are tried for a difference
SHARE = 0.1  # of the risk of a difference, for the intervals in which both means lie

Triple = tuple[float, float, float]  # number, sum and sum of squares of rewards


@kernel
def log_growth_of_moments(count: float, total: float, squares: float, mean: float, sign: float) -> float:
    """Logarithm of the evidence that the mean is above (sign 1) or below (sign -1) ``mean``."""
    bound = mean if sign > 0.0 else 1.0 - mean
    if bound <= 0.0:
        return -math.inf
    shift = sign * (total - count * mean) / bound
    spread = max(squares - mean * (2.0 * total - count * mean), 0.0) / (bound * bound)
    top = -math.inf
    mass = 0.0
    for j in range(RATES.size):
        value = RATES[j] * shift - PSI[j] * spread
        top, mass = with_exponential(top, mass, value)
    return top + math.log(mass / RATES.size)


@kernel
def end_by_moments(count: float, total: float, squares: float, level: float, sign: float) -> float:
    """The end of the interval of a mean: sign 1 for the lower one, -1 for the upper one."""
    inside, outside = total / count, 0.0 if sign > 0.0 else 1.0
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2.0
        if log_growth_of_moments(count, total, squares, middle, sign) < level:
            inside = middle
        else:
            outside = middle
    return outside


@kernel
def end_of_difference_by_moments(one: Any, other: Any, level: float, own: float, sign: float) -> float:
    """The end of the interval of a difference of two means, each within its own interval of the level ``own``."""
    lowest = end_by_moments(one[0], one[1], one[2], own, 1.0)
    highest = end_by_moments(one[0], one[1], one[2], own, -1.0)
    low = end_by_moments(other[0], other[1], other[2], own, 1.0)
    high = end_by_moments(other[0], other[1], other[2], own, -1.0)
    inside, outside = one[1] / one[0] - other[1] / other[0], (lowest - high if sign > 0.0 else highest - low)
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2.0
        first, last = max(low, lowest - middle), min(high, highest - middle)
        least = math.inf
        for i in range(GRID + 1):
            mean = first + (last - first) * i / GRID
            growth = log_growth_of_moments(one[0], one[1], one[2], mean + middle, sign)
            growth += log_growth_of_moments(other[0], other[1], other[2], mean, -sign)
            least = min(least, growth)
        if least < level:
            inside = middle
        else:
            outside = middle
    return outside


def interval_by_moments(
    count: float, total: float, squares: float, risk: float = 0.05
) -> tuple[float, float]:
    """The interval of a mean that leaves it, at any time, with probability at most ``risk``.

    >>> low, high = interval_by_moments(1_000, 200.0, 41.0)  # a variance of 0.001
    >>> round(low, 4), round(high, 4)
    (0.1956, 0.2077)
    """
    if count <= 0.0:
        return 0.0, 1.0
    end, level = compile_alone(end_by_moments), math.log(2.0 / risk)
    numbers = float(count), float(total), float(squares), level
    return end(*numbers, 1.0), end(*numbers, -1.0)


def difference_by_moments(one: Triple, other: Triple, risk: float = 0.05) -> tuple[float, float]:
    """The interval of a difference of two means, from number, sum and sum of squares of both.

    >>> low, high = difference_by_moments((1_000, 210.0, 45.1), (1_000, 200.0, 41.0))
    >>> round(low, 4), round(high, 4)
    (0.0005, 0.0194)
    """
    if min(one[0], other[0]) <= 0.0:
        return -1.0, 1.0
    end = compile_alone(end_of_difference_by_moments)
    level, own = math.log(2.0 / ((1.0 - SHARE) * risk)), math.log(4.0 / (SHARE * risk))
    numbers = tuple(map(float, one)), tuple(map(float, other)), level, own
    return end(*numbers, 1.0), end(*numbers, -1.0)
