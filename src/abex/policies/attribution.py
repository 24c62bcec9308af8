r"""Pending decisions that count by how much of their answer is in: the mean of an arm while silence has not spoken yet.

A decision has an attribution *window*: a conversion comes within it, or silence counts when it ends. Conversions come early and
silence late, so the rewards of recent decisions are nearly all conversions. Here every conversion is learned when it comes, and
every decision of age a counts as G(a) of an observation, G the distribution of the delays of conversions:

.. math:: \hat\mu_k=\frac{\sum_i x_i}{\sum_i G(a_i)},

the sums over the conversions of arm k so far and over its decisions. Their expectations differ by a factor, the mean of k, at
every moment and whatever the window (Vernade, Cappé and Perchet 2017, where G is known).

**G is estimated** from all arms together. A delay is seen only if its decision is older than that (right truncation), so the
product-limit estimate goes back in time. With bins of ages :math:`0=a_0<a_1<\dots<a_J`, the window, let :math:`R_j` be the
conversions of a delay up to :math:`a_{j+1}` among the decisions that are older, and :math:`D_j` those of them with a delay in
bin j:

.. math:: G(a_j)=\prod_{i\ge j}\Bigl(1-\frac{D_i}{R_i}\Bigr).

The ages halve from the window down; within a bin conversions are taken to come at a constant rate, and the decisions of a bin
count as the mean of G over it. So a decision changes what is known at J moments, which its own time fixes: who follows the same
events knows the same.

**What a policy learns**, by the kernel ``learn(state, arm, reward, weight)``, is a conversion as an observation of weight 1, and
silence as many observations of 0 as the sum of all G(a) exceeds the number of conversions, or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel
from abex.policies.learner import Learner, stay

HALVINGS = 12  # of the window, down to the youngest age


class Attribution(Record):
    """How many decisions of each age every arm has, and what their conversions say about delays."""

    ages: NDArray[np.float64]  # (J + 1,), where bins begin; the last is the window
    decisions: NDArray[np.float64]  # (K, J + 1), by bin; in the last one those whose window has ended
    converted: NDArray[np.float64]  # (K,), conversions that were learned
    zeros: NDArray[np.float64]  # (K,), observations of silence that were learned
    ended: NDArray[np.float64]  # (J,), D_j
    within: NDArray[np.float64]  # (J,), R_j
    weights: NDArray[np.float64]  # (J + 1,), of a decision in a bin
    silence: float  # the reward that silence is
    turn: int  # the arm whose decisions are counted anew next, in turn


def new_attribution(n_arms: int, window: float, silence: float) -> Attribution:
    """No decision yet: of delays nothing is known, so every decision counts."""
    ages = np.concatenate([[0.0], window * 0.5 ** np.arange(HALVINGS - 1, -1, -1)])
    return Attribution.of_arms(
        n_arms,
        ages=ages,
        decisions=np.zeros((n_arms, HALVINGS + 1)),
        ended=np.zeros(HALVINGS),
        within=np.zeros(HALVINGS),
        weights=np.ones(HALVINGS + 1),
        silence=float(silence),
    )


@kernel
def bin_of(attribution: Attribution, delay: float) -> int:
    """The bin of a delay: its end is the first age at which the conversion is there."""
    j = 0
    while j < attribution.within.size - 1 and delay > attribution.ages[j + 1]:
        j += 1
    return j


@kernel
def enter(attribution: Attribution, arm: int) -> None:
    """A decision was made."""
    attribution.decisions[arm, 0] += 1.0


@kernel
def grow_older(attribution: Attribution, arm: int, j: int, conversion: int) -> None:
    """A decision leaves bin j for the next one; its conversion had a delay in bin ``conversion``, -1 if there was none yet."""
    attribution.decisions[arm, j] -= 1.0
    attribution.decisions[arm, j + 1] += 1.0
    note_delay(attribution, j, conversion)


@kernel
def note_delay(attribution: Attribution, j: int, conversion: int) -> None:
    """A decision that leaves bin j had a conversion with a delay in bin ``conversion``."""
    if 0 <= conversion <= j:
        attribution.within[j] += 1.0
        if conversion == j:
            attribution.ended[j] += 1.0


@rare_kernel
def weigh(attribution: Attribution) -> None:
    """The weights of all bins, from the distribution of delays as it is known now."""
    upper = 1.0  # G at the end of a bin
    for j in range(attribution.within.size - 1, -1, -1):
        lower = upper
        if j == 0:
            lower = 0.0
        elif attribution.within[j] > 0.0:
            lower *= 1.0 - attribution.ended[j] / attribution.within[j]
        attribution.weights[j] = mean_within(lower, upper)
        upper = lower


@kernel
def mean_within(lower: float, upper: float) -> float:
    """The mean of G over a bin with these values at its ends, as if conversions came at a constant rate in it."""
    before, after = 1.0 - lower, 1.0 - upper
    if after <= 0.0 or before - after < 1e-12:
        return 0.5 * (lower + upper)
    return 1.0 - (before - after) / math.log(before / after)


@kernel
def weighed_decisions(attribution: Attribution, arm: int) -> float:
    """The sum of G over the decisions of an arm."""
    total = 0.0
    for j in range(attribution.weights.size):
        total += attribution.decisions[arm, j] * attribution.weights[j]
    return total


@kernel
def hear_silence(attribution: Attribution, arm: int) -> float:
    """How many observations of silence more there are of an arm than were learned; now they were."""
    zeros = max(weighed_decisions(attribution, arm) - attribution.converted[arm], 0.0)
    more = zeros - attribution.zeros[arm]
    attribution.zeros[arm] = zeros
    return float(more)


@cache
def silences(learn: Callable[..., Any]) -> Any:
    """The kernel by which a policy that learns by ``learn`` hears of the silence of an arm."""

    @kernel
    def hear(attribution: Attribution, state: Any, arm: int) -> None:
        more = hear_silence(attribution, arm)
        if more != 0.0:
            learn(state, arm, attribution.silence, more)

    return hear


def can_weigh(policy: Any) -> bool:
    """Whether a policy learns by weighted observations alone, so that pending decisions may count in part."""
    return isinstance(policy, Learner) and policy.advance is stay
