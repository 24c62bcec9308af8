r"""Draws from the softmax of scores, :math:`p_k\propto\exp(\beta v_k)`: a `BoundedScan` of few arms, `Buckets` of many."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.samplers import crossover
from abex.samplers.bounded_scan import BoundedScan, new_bounded_scan
from abex.samplers.buckets import Buckets, new_buckets
from abex.samplers.interface import changed, draw
from abex.schema import Scratch


class SoftmaxScan(NamedTuple):
    """Room for the weights of all arms."""

    weights: Annotated[NDArray[np.float64], Scratch()]  # (K,)


def new_softmax(observations: NDArray[np.float64], initial: float) -> BoundedScan | Buckets:
    """A sampler for arms observed so often; the score of an arm never observed is ``initial``."""
    if observations.size > crossover.SOFTMAX:
        return new_buckets(observations, initial)
    return new_bounded_scan(observations.size)


@draw.register(SoftmaxScan)
@kernel
def draw_by_scan(sampler: SoftmaxScan, scores: Any, rate: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(rate * scores[arm])``."""
    return pick(sampler.weights, softmax_weights(scores, rate, sampler.weights), rng)


@changed.register(SoftmaxScan)
@kernel
def changed_by_scan(sampler: SoftmaxScan, scores: Any, arm: int) -> None:
    """A scan remembers nothing."""


@kernel
def softmax_weights(scores: Any, rate: float, out: Any) -> float:
    """``exp(rate (score - largest score))`` into ``out``; returns their sum. Infinite scores share all weight."""
    top = scores[0]
    for k in range(1, scores.size):
        if scores[k] > top:
            top = scores[k]
    total = 0.0
    if top == math.inf:
        for k in range(scores.size):
            out[k] = 1.0 if scores[k] == top else 0.0
            total += out[k]
        return total
    for k in range(scores.size):
        weight = math.exp(rate * (scores[k] - top))
        out[k] = weight
        total += weight
    return total


@kernel
def softmax(scores: Any, rate: float, out: Any) -> None:
    """The probabilities ``exp(rate * scores) / sum`` into ``out``."""
    normalise(out, softmax_weights(scores, rate, out))


@kernel
def normalise(weights: Any, total: float) -> None:
    """Divide by the total."""
    for k in range(weights.size):
        weights[k] /= total


@kernel
def make_total_one(weights: Any) -> float:
    """Divide by the total, which is returned."""
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    normalise(weights, total)
    return total


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
