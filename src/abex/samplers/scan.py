r"""Scans: every arm is looked at in every draw. They find the arm where there are few, and need not be told what changes.

Softmax and exponential weights :math:`p_k\propto\exp(\beta v_k)`, the largest index, the largest perturbed mean, the largest Beta
draw.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel
from abex.samplers.interface import (
    contending_index,
    distribution,
    draw,
    first_contender,
    level_of,
    time_of_arm,
    times_differ,
)
from abex.samplers.largest_beta import largest_beta
from abex.samplers.largest_gumbel import largest_gumbel, largest_line
from abex.support.randomness import argmax, share_among_largest


class Scan(Record):
    """Room for a number of each arm."""

    values: NDArray[np.float64]  # (K,)


# -- softmax ----------------------------------------------------------------------------------------------


class SoftmaxScan(Scan):
    """Room for the weights of a softmax."""


@draw.register(SoftmaxScan)
@kernel
def draw_by_weight(sampler: SoftmaxScan, scores: Any, rate: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(rate * scores[arm])``."""
    return pick(sampler.values, softmax_weights(scores, rate, sampler.values), rng)


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


# -- exponential weights of losses --------------------------------------------------------------------------


class LossScan(Scan):
    """Room for the probabilities of exponential weights."""


@draw.register(LossScan)
@kernel
def draw_by_loss(sampler: LossScan, losses: Any, rate: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(-rate * losses[arm])``."""
    loss_probabilities(losses, rate, sampler.values)
    return pick(sampler.values, 1.0, rng)


@kernel
def loss_probabilities(losses: Any, rate: float, out: Any) -> None:
    """softmax(-rate * losses) into ``out``."""
    least = math.inf
    for k in range(losses.size):
        least = min(least, losses[k])
    total = 0.0
    for k in range(losses.size):
        out[k] = math.exp(-rate * (losses[k] - least))
        total += out[k]
    normalise(out, total)


# -- the largest index --------------------------------------------------------------------------------------


class IndexScan(Scan):
    """Room for indices."""


@draw.register(IndexScan)
@kernel
def largest_index(sampler: IndexScan, state: Any, t: int, rng: Any) -> int:
    """The arm of the largest index, ties broken uniformly."""
    write_indices(sampler, state, t)
    return argmax(sampler.values, rng)


@kernel
def write_indices(sampler: IndexScan, state: Any, t: int) -> None:
    """The indices of all arms that can have the largest one, the first contender's first."""
    if times_differ(state.memory):
        write_indices_of_own_times(sampler, state, t)
        return
    level = level_of(state, float(t))
    first = first_contender(state)
    best = -math.inf
    if first >= 0:
        best = contending_index(state, first, level, best)
        sampler.values[first] = best
    for k in range(state.means.size):
        if k != first:
            sampler.values[k] = contending_index(state, k, level, best)
            best = max(best, sampler.values[k])


@rare_kernel
def write_indices_of_own_times(sampler: IndexScan, state: Any, t: int) -> None:
    """The same where the time of each arm is another."""
    best = -math.inf
    for k in range(state.means.size):
        level = level_of(state, time_of_arm(state.memory, k, float(t)))
        sampler.values[k] = contending_index(state, k, level, best)
        best = max(best, sampler.values[k])


@distribution.register(IndexScan)
@kernel
def law_of_largest_index(sampler: IndexScan, state: Any, t: int, out: Any) -> None:
    """1 over the ties."""
    write_indices(sampler, state, t)
    for k in range(out.size):
        out[k] = 0.0
    share_among_largest(sampler.values, 1.0, out)


# -- the largest perturbed mean -----------------------------------------------------------------------------


class GumbelScan(Scan):
    """Room for perturbed means."""


@draw.register(GumbelScan)
@kernel
def largest_perturbed(sampler: GumbelScan, state: Any, t: int, rng: Any) -> int:
    """The largest perturbed mean, found by drawing the noise of every arm."""
    noise = 0.0
    if state.shared_noise:
        noise = -state.scale * math.log(rng.standard_exponential())
    for k in range(state.means.size):
        if not state.shared_noise and state.observations[k] > 0.0:
            noise = -state.scale * math.log(rng.standard_exponential())
        if state.observations[k] > 0.0:
            sampler.values[k] = state.means[k] + noise / math.sqrt(state.observations[k])
        elif state.shared_noise:
            sampler.values[k] = math.copysign(math.inf, noise)
        else:
            sampler.values[k] = math.inf
    return argmax(sampler.values, rng)


@kernel
def share_unseen(state: Any, out: Any) -> bool:
    """Whether arms never observed, which come first, share all probability; if not, ``out`` is 0."""
    fresh = 0
    for k in range(out.size):
        fresh += 1 if state.observations[k] == 0.0 else 0
        out[k] = 0.0
    if fresh > 0:
        share_among_largest(state.means, 1.0, out)
    return fresh > 0


@distribution.register(GumbelScan)
@kernel
def law_of_largest_perturbed(sampler: GumbelScan, state: Any, t: int, out: Any) -> None:
    """The probability of each arm to have the largest perturbed mean; arms never observed come first."""
    if state.shared_noise:
        for k in range(out.size):
            out[k] = 0.0
        largest_line(state.means, state.observations, state.scale, out)
    elif not share_unseen(state, out):
        if state.scale == 0.0:
            share_among_largest(state.means, 1.0, out)
            return
        for k in range(out.size):
            sampler.values[k] = math.sqrt(state.observations[k]) / state.scale
        largest_gumbel(state.means, sampler.values, out)


# -- the largest Beta draw ----------------------------------------------------------------------------------


class BetaScan(Scan):
    """Room for draws."""


@draw.register(BetaScan)
@kernel
def largest_of_draws(sampler: BetaScan, state: Any, t: int, rng: Any) -> int:
    """The largest draw, found by drawing for every arm."""
    for k in range(sampler.values.size):
        sampler.values[k] = rng.beta(state.successes[k], state.failures[k])
    return argmax(sampler.values, rng)


@distribution.register(BetaScan)
@kernel
def law_of_largest_draw(sampler: BetaScan, state: Any, t: int, out: Any) -> None:
    """The probability of each arm to have the largest draw."""
    largest_beta(state.successes, state.failures, out)
