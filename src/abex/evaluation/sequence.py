r"""The interval of a policy's value that holds at every moment, where the probabilities of all arms are known.

With the weight :math:`w=\pi(a)/p_a` of the arm played, its reward x in [0, 1] and the mean reward c of the decisions before,

.. math:: \varphi=c+w(x-c),\qquad h=\frac1{\max_kw_k\,\max\{c,1-c\}},

:math:`\varphi` has the mean v, the value of the target, given the past, and h and c are known before the draw. So
:math:`y=\pm h(\varphi-c)\ge-1`, :math:`e^{\lambda y-\psi(\lambda)y^2}\le1+\lambda y` (`abex.inference.moments`), and

.. math:: \sum_jg_j\exp\Big(\pm\lambda_j\sum h(\varphi-v)-\psi(\lambda_j)\sum h^2(\varphi-c)^2\Big)

is a supermartingale: it reaches :math:`2/\alpha` at any time with probability at most :math:`\alpha/2`. A decision with a large
weight counts little, one in which the log could not choose what the target does counts nothing. Where levels move, the interval
is that of the h-weighted mean of the values over time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.inference.moments import mixed
from abex.inference.sums import end_finder
from abex.kernels import Record, compile_alone, kernel

Floats = NDArray[np.float64]


class ValueSums(Record):
    """Sums over decisions; all that the interval is made of."""

    count: float
    total: float  # of rewards
    weight: float  # of h
    gain: float  # of h phi
    spread: float  # of the squares of h (phi - c)


@kernel
def add_decision(sums: ValueSums, arm: int, reward: float, target: Any, law: Any) -> None:
    """One more decision: ``arm``, drawn with the probabilities ``law``, paid ``reward`` in [0, 1]."""
    c = (sums.total + 0.5) / (sums.count + 1.0)
    most = 0.0
    for k in range(target.size):
        if target[k] > 0.0:
            most = max(most, target[k] / law[k] if law[k] > 0.0 else math.inf)
    if most < math.inf:
        h = 1.0 / (most * max(c, 1.0 - c))
        shift = target[arm] / law[arm] * (reward - c)
        sums.weight += h
        sums.gain += h * (c + shift)
        sums.spread += h * h * shift * shift
    sums.count += 1.0
    sums.total += reward


@kernel
def add_decisions(sums: ValueSums, arms: NDArray[np.int64], rewards: Any, target: Any, laws: Any) -> None:
    """Decisions in their order, with a row of probabilities each or one for all."""
    for i in range(arms.size):
        add_decision(sums, arms[i], rewards[i], target, laws[min(i, laws.shape[0] - 1)])


@kernel
def growth_of_value(numbers: Any, value: float, sign: float) -> float:
    """Logarithm of the evidence that the value is above (sign 1) or below (sign -1) ``value``."""
    return mixed(sign * (numbers[1] - value * numbers[0]), numbers[2])


def value_of(
    arms: Any, rewards: Any, target: Floats, laws: Floats, risk: float
) -> tuple[float, float, float]:
    """The h-weighted value of a target, and its interval that holds at every moment; rewards lie in [0, 1].

    ``laws`` has the probabilities of all arms at each decision, (rows, K), or (1, K) where they never change.

    >>> arms, rewards = np.arange(4_000) % 2, np.arange(4_000) % 4 > 1
    >>> np.round(value_of(arms, rewards, np.array([0.0, 1.0]), np.array([[0.5, 0.5]]), 0.05), 3).tolist()
    [0.5, 0.461, 0.539]
    """
    sums = ValueSums()
    columns = np.asarray(arms, np.int64), np.asarray(rewards, np.float64), np.asarray(target, np.float64)
    compile_alone(add_decisions)(sums, *columns, np.ascontiguousarray(laws, np.float64))
    if sums.weight == 0.0:
        return math.nan, 0.0, 1.0
    end, level = end_finder(growth_of_value), math.log(2.0 / risk)
    value, numbers = sums.gain / sums.weight, (sums.weight, sums.gain, sums.spread)
    low, high = (
        end(numbers, min(max(value, 0.0), 1.0), edge, level, 1.0 - 2.0 * edge) for edge in (0.0, 1.0)
    )
    return value, low, high
