"""Sampling kernels shared by the policies that draw an arm from a distribution."""

from __future__ import annotations

import math
from typing import Any

from abex.kernels import kernel

MOST_RATE = 1e14  # beyond, what tells two means apart is how they were rounded


@kernel
def root_rate(eta: float, t: int) -> float:
    """Eta sqrt(t - 1), the inverse temperature of step t."""
    return min(eta * math.sqrt(t - 1.0), MOST_RATE)


@kernel
def boltzmann_weights(values: Any, rate: float, out: Any) -> float:
    """``exp(rate (value - largest value))`` into ``out``; returns their sum. Infinite values share all weight."""
    top = values[0]
    for k in range(1, values.size):
        if values[k] > top:
            top = values[k]
    total = 0.0
    if top == math.inf:
        for k in range(values.size):
            out[k] = 1.0 if values[k] == top else 0.0
            total += out[k]
        return total
    for k in range(values.size):
        weight = math.exp(rate * (values[k] - top))
        out[k] = weight
        total += weight
    return total


@kernel
def normalised(weights: Any, total: float) -> None:
    """Divide by the total."""
    for k in range(weights.size):
        weights[k] /= total


@kernel
def pick(weights: Any, total: float, rng: Any) -> int:
    """An arm with probability proportional to its weight."""
    rest = rng.random() * total
    for k in range(weights.size):
        rest -= weights[k]
        if rest < 0.0:
            return k
    # rounding can leave a rest above the last weight: take the last arm that has any
    k = weights.size - 1
    while weights[k] <= 0.0 and k > 0:
        k -= 1
    return int(k)
