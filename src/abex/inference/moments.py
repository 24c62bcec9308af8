r"""Intervals from number, sum and sum of squares of rewards in [0, 1], narrow where they vary little, that hold at every moment.

With :math:`D=\sum x-nm`, :math:`V=\sum(x-m)^2` and the bound b = m of :math:`m-x` the evidence that the mean is above m is

.. math:: \ln\sum_jg_j\exp\big(\lambda_jD/b-\psi(\lambda_j)V/b^2\big),\qquad\psi(\lambda)=-\ln(1-\lambda)-\lambda,
          \qquad g_j\propto\lambda_j^{1/4};

that it is below has -D and b = 1 - m. Since :math:`e^{\lambda y-\psi(\lambda)y^2}\le1+\lambda y` for :math:`y\ge-1` (Fan, Grama
and Liu 2015, Lemma 4.1), its exponential is a supermartingale while the mean is at most m: whoever refutes m refutes all below.

For a difference of two arms the evidence is the mean of two: the product of both mixtures, and one mixture over j with
:math:`\lambda_j` for the first arm and :math:`\min\{\lambda_jb'/b,0.95\}` for the second, the rates that arms observed equally
often need: one search for a rate in the place of two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.inference.sums import end_finder, ends_of, logarithm_of_sum, with_exponential
from abex.kernels import kernel

RATES = np.geomspace(2e-4, 0.9, 24)  # the lambda_j
PSI = -np.log1p(-RATES) - RATES
LOG_SHARES = 0.25 * np.log(RATES) - math.log(
    float((RATES**0.25).sum())
)  # ln g_j, more for those that few rewards need
GRID = 32  # means of the second arm that are tried for a difference
MOST_RATE = 0.95  # of the second arm, where the first one's rate asks for more
SHARE = 0.1  # of the risk of a difference, for the intervals in which both means lie

Triple = tuple[float, float, float]  # number, sum and sum of squares of rewards


@kernel
def mixed(shift: float, spread: float) -> float:
    r"""The logarithm of the sum over j of :math:`g_j\,e^{\lambda_j shift-\psi(\lambda_j)spread}`."""
    top, mass = -math.inf, 0.0
    for j in range(RATES.size):
        top, mass = with_exponential(top, mass, RATES[j] * shift - PSI[j] * spread + LOG_SHARES[j])
    return top + math.log(mass)


@kernel
def by_bound(
    count: float, total: float, squares: float, mean: float, sign: float
) -> tuple[float, float, float]:
    """The bound b of one reward, D / b, and V over its square."""
    bound = mean if sign > 0.0 else 1.0 - mean
    if bound <= 0.0:
        return 0.0, 0.0, 0.0
    shift = sign * (total - count * mean) / bound
    return bound, shift, max(squares - mean * (2.0 * total - count * mean), 0.0) / (bound * bound)


@kernel
def log_growth_of_both(
    n: float, s: float, q: float, mean: float, m: float, t: float, r: float, other: float, sign: float
) -> float:
    """The same that the first mean is above ``mean`` and the second below ``other``; with sign -1 the reverse."""
    bound, shift, spread = by_bound(n, s, q, mean, sign)
    second_bound, second_shift, second_spread = by_bound(m, t, r, other, -sign)
    if min(bound, second_bound) <= 0.0:
        return -math.inf
    top, mass = mixed(shift, spread) + mixed(second_shift, second_spread), 1.0
    for j in range(RATES.size):
        rate = min(RATES[j] * second_bound / bound, MOST_RATE)
        value = RATES[j] * shift - PSI[j] * spread + rate * second_shift
        value += (math.log1p(-rate) + rate) * second_spread + LOG_SHARES[j]
        top, mass = with_exponential(top, mass, value)
    return top + math.log(0.5 * mass)


@kernel
def growth_of_difference_by_moments(numbers: Any, shift: float, sign: float) -> float:
    """Of a difference, from the numbers of both arms and the intervals in which their means lie: the least over the means."""
    n, s, q, lowest, highest, m, t, r, low, high = numbers
    first, last = max(low, lowest - shift), min(high, highest - shift)
    least = math.inf
    for i in range(GRID + 1):
        mean = first + (last - first) * i / GRID
        least = min(least, log_growth_of_both(n, s, q, mean + shift, m, t, r, mean, sign))
    return least


def interval_by_moments(counts: Any, totals: Any, squares: Any, risk: float = 0.05) -> tuple[Any, Any]:
    """The interval of a mean, or of each of many, that leaves it, at any time, with probability at most ``risk``.

    By NumPy: a millisecond, and nothing is compiled.

    >>> low, high = interval_by_moments([1_000, 0], [200.0, 0.0], [41.0, 0.0])  # a variance of 0.001
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.1959, 0.0], [0.2069, 1.0])
    """
    n, s, q = (np.asarray(values, np.float64) for values in (counts, totals, squares))

    def growth(mean: Any, sign: float) -> Any:
        bound = np.maximum(mean if sign > 0.0 else 1.0 - mean, 1e-150)
        shift = sign * (s - n * mean) / bound
        spread = np.maximum(q - mean * (2.0 * s - n * mean), 0.0) / bound**2
        return logarithm_of_sum(RATES * shift[..., None] - PSI * spread[..., None] + LOG_SHARES)

    return ends_of(n, s, growth, risk)


def difference_by_moments(one: Triple, other: Triple, risk: float = 0.05) -> tuple[float, float]:
    """The interval of a difference of two means, from number, sum and sum of squares of both.

    >>> low, high = difference_by_moments((1_000, 210.0, 45.1), (1_000, 200.0, 41.0))
    >>> round(low, 4), round(high, 4)
    (0.0021, 0.0178)
    """
    if min(one[0], other[0]) <= 0.0:
        return -1.0, 1.0
    end, level = end_finder(growth_of_difference_by_moments), math.log(2.0 / ((1.0 - SHARE) * risk))
    counts, totals, squares = np.transpose([one, other])
    (lowest, low), (highest, high) = interval_by_moments(counts, totals, squares, SHARE * risk / 2.0)
    numbers = tuple(map(float, (*one, lowest, highest, *other, low, high)))
    middle = one[1] / one[0] - other[1] / other[0]
    return end(numbers, middle, lowest - high, level, 1.0), end(numbers, middle, highest - low, level, -1.0)
