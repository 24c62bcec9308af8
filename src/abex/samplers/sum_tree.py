r"""Exponential weights of many arms in a tree of sums: a draw and an update cost log K, not K.

Leaf k holds :math:`e^{\beta(s_k-r)}`, s_k the score and r a reference; every inner node holds the sum of its two children,
computed from them whenever one changes, so that no error accumulates. Walking down from the root with a uniform number
below the total reaches leaf k with probability :math:`e^{\beta s_k}/\sum_j e^{\beta s_j}`, as a scan of all arms does. A
log-weight moves by at most 2 a step, so the reference has to follow, and all leaves to be written anew, only once in hundreds of
steps of one arm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel, single_dispatch
from abex.samplers.interface import changed, draw

FARTHEST = 200.0  # log-weights that far from the reference move it


class SumTree(Record):
    """Weights ``exp(rate * (score - reference))`` and the sums above them."""

    tree: NDArray[np.float64]  # (2 size,), root at 1, leaf of arm k at size + k
    reference: float  # the score whose weight is 1
    rate: float


def new_sum_tree(scores: NDArray[np.float64], rate: float) -> SumTree:
    """The tree of the weights of these scores at a rate, negative for losses; the reference is 0 where that is near enough."""
    largest = float(scores.max() if rate > 0.0 else scores.min())
    reference = largest if abs(rate * largest) > FARTHEST else 0.0
    logs, which = np.unique(rate * (scores - reference), return_inverse=True)
    return SumTree(
        tree=sums_of(np.array([math.exp(log) for log in logs])[which]), reference=reference, rate=rate
    )


def sums_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The tree of these weights."""
    size = 1 << (weights.size - 1).bit_length()
    tree = np.zeros(2 * size)
    tree[size : size + weights.size] = weights
    while size > 1:  # as `add_up` writes them
        tree[size >> 1 : size] = tree[size : 2 * size : 2] + tree[size + 1 : 2 * size : 2]
        size >>= 1
    return tree


@kernel
def add_up(tree: Any) -> None:
    """Write all sums."""
    for node in range((tree.size >> 1) - 1, 0, -1):
        tree[node] = tree[2 * node] + tree[2 * node + 1]


@kernel
def set_leaf(tree: Any, arm: int, weight: float) -> None:
    """Write one weight and the sums above it."""
    node = (tree.size >> 1) + arm
    tree[node] = weight
    node >>= 1
    while node > 0:
        tree[node] = tree[2 * node] + tree[2 * node + 1]
        node >>= 1


@kernel
def find_leaf(tree: Any, rest: float) -> int:
    """The arm at ``rest`` in the line of all weights; rounding never leads to one without weight."""
    node = 1
    while node < tree.size >> 1:
        node *= 2
        if rest >= tree[node] and tree[node + 1] > 0.0:
            rest -= tree[node]
            node += 1
    return int(node - (tree.size >> 1))


@draw.register(SumTree)
@kernel
def draw_from_tree(sampler: SumTree, scores: Any, at: float, rng: Any) -> int:
    """An arm with probability proportional to ``exp(rate * scores[arm])``."""
    return find_leaf(sampler.tree, rng.random() * sampler.tree[1])


@single_dispatch
def share_of(sampler: Any, arm: int) -> float:
    """The probability with which the sampler just drew an arm: a scan has worked out all of them (kernel)."""
    return sampler.values[arm]  # type: ignore[no-any-return]


@share_of.register(SumTree)
@kernel
def weight_share(sampler: SumTree, arm: int) -> float:
    """The probability of an arm."""
    return sampler.tree[(sampler.tree.size >> 1) + arm] / sampler.tree[1]  # type: ignore[no-any-return]


@changed.register(SumTree)
@kernel
def changed_in_tree(sampler: SumTree, scores: Any, arm: int) -> None:
    """Write the weight of an arm; all of them where the scores have run away from the reference."""
    above = sampler.rate * (scores[arm] - sampler.reference)
    if above > FARTHEST:
        move_reference(sampler, scores)
    else:
        set_leaf(sampler.tree, arm, math.exp(above))
        if sampler.tree[1] < math.exp(-FARTHEST):
            move_reference(sampler, scores)


@rare_kernel
def move_reference(sampler: SumTree, scores: Any) -> None:
    """Take the score of the largest weight as reference."""
    top = scores[0]
    for k in range(1, scores.size):
        if sampler.rate * (scores[k] - top) > 0.0:
            top = scores[k]
    sampler.reference = top
    for k in range(scores.size):
        sampler.tree[(sampler.tree.size >> 1) + k] = math.exp(sampler.rate * (scores[k] - top))
    add_up(sampler.tree)
