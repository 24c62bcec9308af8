r"""Evidence from sums of rewards: a test, and intervals, that hold at every moment.

With n observations of sum s, rewards in [0, 1] and a mean m that is claimed,

.. math:: S_\pm(n,s,m)=\ln\frac1J\sum_j\exp\big(\pm\eta_j s-n\ln(1+m(e^{\pm\eta_j}-1))\big).

:math:`e^{\eta x}\le1-x+xe^\eta` on [0, 1], so :math:`e^{S_+}` is a supermartingale while every mean is at most m, and
:math:`e^{S_-}` while every mean is at least m, whatever chooses what is observed next; for coins of mean m both are martingales.
It reaches 1/risk with probability at most the risk, at any time (Ville 1939): one may look as often as one likes.

In m both are convex, :math:`S_+` falls and :math:`S_-` rises; so ends of intervals are found by bisection, and the least sum of
two of them by golden section.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from abex.kernels import can_compile, compile_alone, compiled, kernel

RATES = np.geomspace(0.003, 6.0, 18)  # the eta_j
RISE, FALL = np.expm1(RATES), np.expm1(-RATES)
HALVINGS = 40  # of an interval that is bisected: to 1e-12 of its length
SECTIONS = 32  # golden sections: to 2e-7
WIDEST = 40.0  # logarithms of a ratio from its estimate to an end that is none
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@kernel
def with_exponential(top: float, mass: float, value: float) -> tuple[float, float]:
    """A sum of exponentials, ``mass`` times that of the largest exponent, and that of one more ``value``."""
    if value > top:
        return value, mass * math.exp(top - value) + 1.0
    return top, mass + math.exp(value - top)


@kernel
def log_growth(count: float, total: float, mean: float, sign: float) -> float:
    """Logarithm of the evidence that the mean is above (sign 1) or below (sign -1) ``mean``."""
    top = -math.inf
    mass = 0.0
    for j in range(RATES.size):
        factor = RISE[j] if sign > 0.0 else FALL[j]
        value = sign * RATES[j] * total - count * math.log1p(mean * factor)
        top, mass = with_exponential(top, mass, value)
    return top + math.log(mass / RATES.size)


@kernel
def difference_growth(
    n: float, s: float, m: float, t: float, slope: float, shift: float, sign: float
) -> float:
    r"""Least over x of :math:`S_\pm(n,s,ax+d)+S_\mp(m,t,x)`, the slope a and the shift d.

    It is the evidence that the mean of the first arm is above (sign 1) or below (sign -1) a times that of the second plus d.
    """
    low = max(0.0, -shift / slope)
    high = min(1.0, (1.0 - shift) / slope)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left = log_growth(n, s, slope * left + shift, sign) + log_growth(m, t, left, -sign)
    at_right = log_growth(n, s, slope * right + shift, sign) + log_growth(m, t, right, -sign)
    for _ in range(SECTIONS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = log_growth(n, s, slope * left + shift, sign) + log_growth(m, t, left, -sign)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = log_growth(n, s, slope * right + shift, sign) + log_growth(m, t, right, -sign)
    return min(at_left, at_right)


@cache
def end_finder(growth: Callable[..., float]) -> Callable[..., float]:
    """The function that finds an end of an interval by bisection: the value nearest ``inside`` at which the growth is ``level``.

    ``growth(numbers, value, sign)`` rises from ``inside`` to ``outside``, which is the end where the level is not reached.
    """

    def end(numbers: Any, inside: float, outside: float, level: float, sign: float) -> float:
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2.0
            if growth(numbers, middle, sign) < level:
                inside = middle
            else:
                outside = middle
        return outside

    return compiled(growth)(end) if can_compile() else end


@kernel
def growth_of_difference(numbers: Any, shift: float, sign: float) -> float:
    """Of a difference, from number and sum of both arms."""
    return difference_growth(numbers[0], numbers[1], numbers[2], numbers[3], 1.0, shift, sign)


@kernel
def growth_of_ratio(numbers: Any, log_ratio: float, sign: float) -> float:
    """The same of the logarithm of a ratio."""
    return difference_growth(numbers[0], numbers[1], numbers[2], numbers[3], math.exp(log_ratio), 0.0, sign)


def interval(counts: Any, totals: Any, risk: float = 0.05) -> tuple[Any, Any]:
    """The interval of a mean, or of each of many, that leaves it, at any time, with probability at most ``risk``.

    By NumPy: a millisecond, and nothing is compiled.

    >>> low, high = interval([1_000, 0], [200, 0])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.159, 0.0], [0.246, 1.0])
    """
    n, s = np.asarray(counts, np.float64), np.asarray(totals, np.float64)

    def growth(mean: Any, sign: float) -> Any:
        factor = RISE if sign > 0.0 else FALL
        exponents = sign * RATES * s[..., None] - n[..., None] * np.log1p(mean[..., None] * factor)
        return logarithm_of_sum(exponents) - math.log(RATES.size)

    return ends_of(n, s, growth, risk)


def logarithm_of_sum(exponents: Any) -> Any:
    """The logarithm of the sum of the exponentials of each row."""
    top = exponents.max(axis=-1)
    return top + np.log(np.exp(exponents - top[..., None]).sum(axis=-1))


def ends_of(counts: Any, totals: Any, growth: Callable[[Any, float], Any], risk: float) -> tuple[Any, Any]:
    """Both ends of the intervals of means, where ``growth(means, sign)`` is their evidence."""
    ends = []
    for sign in (1.0, -1.0):
        outside = np.full(counts.shape, 0.5 - 0.5 * sign)
        inside = np.divide(totals, counts, out=outside.copy(), where=counts > 0.0)
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2.0
            refuted = growth(middle, sign) >= math.log(2.0 / risk)
            inside, outside = np.where(refuted, inside, middle), np.where(refuted, middle, outside)
        ends.append(outside[()])
    return ends[0], ends[1]


def difference(n: float, s: float, m: float, t: float, risk: float = 0.05) -> tuple[float, float]:
    """The interval of a difference of two means, from number and sum of both.

    >>> low, high = difference(1_000, 300, 1_000, 200)
    >>> round(low, 3), round(high, 3)
    (0.025, 0.175)
    """
    if min(n, m) <= 0.0:
        return -1.0, 1.0
    end, level, middle = end_finder(growth_of_difference), math.log(2.0 / risk), s / n - t / m
    numbers = float(n), float(s), float(m), float(t)
    return end(numbers, middle, -1.0, level, 1.0), end(numbers, middle, 1.0, level, -1.0)


def ratio(n: float, s: float, m: float, t: float, risk: float = 0.05) -> tuple[float, float]:
    """The interval of a ratio of two means, from number and sum of both.

    >>> low, high = ratio(1_000, 300, 1_000, 200)
    >>> round(low, 2), round(high, 2)
    (1.11, 2.06)
    """
    if min(n, m) <= 0.0:
        return 0.0, math.inf
    end, level = end_finder(growth_of_ratio), math.log(2.0 / risk)
    numbers = float(n), float(s), float(m), float(t)
    middle = math.log((s + 0.5) * (m + 1.0) / ((t + 0.5) * (n + 1.0)))
    low, high = (
        end(numbers, middle, middle - WIDEST, level, 1.0),
        end(numbers, middle, middle + WIDEST, level, -1.0),
    )
    return math.exp(low) if low > middle - WIDEST else 0.0, math.exp(
        high
    ) if high < middle + WIDEST else math.inf


def sample_ratio(counts: Any, shares: Any) -> float:
    r"""The evidence that arms are not drawn with these shares, which holds at every moment; beyond 100 it is a warning.

    The mean over arms and signs of :math:`\exp S_\pm(n,N_k,p_k)`, a martingale while the shares are right.

    >>> round(sample_ratio([5_200, 4_800], [0.5, 0.5])), round(sample_ratio([5_100, 4_900], [0.5, 0.5]), 2)
    (124, 0.83)
    """
    total = float(np.sum(counts))
    growth = compile_alone(log_growth)
    both = [
        growth(total, float(count), float(share), sign)
        for count, share in zip(counts, shares, strict=True)
        for sign in (1.0, -1.0)
    ]
    return math.exp(min(float(np.logaddexp.reduce(both)) - math.log(len(both)), 700.0))
