r"""Exponential weights of many arms in a tree of sums: a draw and an update cost log K, not K.

Leaf k holds :math:`e^{s_k-r}`, s_k the log-weight and r a reference; every inner node holds the sum of its two children,
computed from them whenever one changes, so that no error accumulates. Walking down from the root with a uniform number
below the total reaches leaf k with probability :math:`e^{s_k}/\sum_j e^{s_j}`: the law of the loop over all arms. A log-weight
moves by at most 2 a step, so the reference has to follow, and all leaves to be written anew, only once in hundreds of
steps of one arm.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel
from abex.policies.base import PerArm
from abex.policies.schema import Chances, Rebuilt, Within, agree
from abex.randomness import below

FARTHEST = 200.0  # log-weights that far from the reference move it


class Exp3Tree(NamedTuple):
    """Log-weights with their tree, and the probability of the last decision."""

    scores: Annotated[PerArm, Within()]  # float64 (K,)
    chances: Annotated[NDArray[np.float64], Chances()]  # (1,), of the chosen arm
    tree: Annotated[NDArray[np.float64], Rebuilt()]  # (2 size,), root at 1, leaf of arm k at size + k
    reference: Annotated[NDArray[np.float64], Within()]  # (1,)
    mixing: float
    step: float

    def restored(self, fresh: Exp3Tree) -> Exp3Tree:
        """The weights follow from their logarithms."""
        above = float(self.scores.max() - self.reference[0])
        agree(0.0 <= above <= FARTHEST, "reference must be near the largest score")
        return self._replace(tree=tree_of(self.scores - self.reference[0], fresh.tree))


class ImplicitTree(NamedTuple):
    """Estimated losses with the tree of their weights, and the probability of the last decision."""

    losses: Annotated[PerArm, Within()]  # float64 (K,)
    chances: Annotated[NDArray[np.float64], Chances()]  # (1,), of the chosen arm
    tree: Annotated[NDArray[np.float64], Rebuilt()]  # (2 size,)
    reference: Annotated[NDArray[np.float64], Within()]  # (1,)
    eta: float

    def restored(self, fresh: ImplicitTree) -> ImplicitTree:
        """The weights follow from the losses."""
        least = float(self.losses.min() - self.reference[0])
        agree(least >= 0.0, "reference must not be above a loss")
        tree = tree_of(-self.eta * (self.losses - self.reference[0]), fresh.tree)
        agree(bool(tree[1] >= math.exp(-FARTHEST - 1.0)), "reference must be near the smallest loss")
        return self._replace(tree=tree)


def tree_of(logs: NDArray[np.float64], like: NDArray[np.float64]) -> NDArray[np.float64]:
    """The tree of the weights with these logarithms, in the size of another one."""
    tree = np.zeros_like(like)
    size = tree.size >> 1
    different, which = np.unique(logs, return_inverse=True)
    tree[size : size + logs.size] = np.array([math.exp(log) for log in different])[which]
    while size > 1:  # all sums, as `add_up` writes them
        tree[size >> 1 : size] = tree[size : 2 * size : 2] + tree[size + 1 : 2 * size : 2]
        size >>= 1
    return tree


def even_tree(n_arms: int) -> NDArray[np.float64]:
    """The tree of ``n_arms`` weights of 1."""
    size = 1 << (n_arms - 1).bit_length()
    tree = np.zeros(2 * size)
    tree[size : size + n_arms] = 1.0
    add_up(tree)
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


@kernel
def exp3_tree_select(state: Any, t: int, rng: Any) -> int:
    """A draw from the mixture of weights and uniform choice."""
    n_arms = state.scores.size
    total = state.tree[1]
    even = rng.random() < state.mixing
    arm = below(n_arms, rng) if even else find_leaf(state.tree, rng.random() * total)
    weight = state.tree[(state.tree.size >> 1) + arm]
    state.chances[0] = (1.0 - state.mixing) * weight / total + state.mixing / n_arms
    return arm


@kernel
def exp3_tree_update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Importance-weighted reward of the pulled arm."""
    if seen == arm and reward != 0.0:  # else the weights stay
        state.scores[arm] += state.step * reward / state.chances[0]
        if state.scores[arm] - state.reference[0] > FARTHEST:
            move_up(state)
        else:
            set_leaf(state.tree, arm, math.exp(state.scores[arm] - state.reference[0]))


@rare_kernel
def move_up(state: Any) -> None:
    """Take the largest log-weight as reference."""
    top = state.scores[0]
    for k in range(1, state.scores.size):
        top = max(top, state.scores[k])
    state.reference[0] = top
    for k in range(state.scores.size):
        state.tree[(state.tree.size >> 1) + k] = math.exp(state.scores[k] - top)
    add_up(state.tree)


@kernel
def implicit_tree_select(state: Any, t: int, rng: Any) -> int:
    """A draw from the weights of the losses."""
    arm = find_leaf(state.tree, rng.random() * state.tree[1])
    state.chances[0] = state.tree[(state.tree.size >> 1) + arm] / state.tree[1]
    return arm


@kernel
def implicit_tree_update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Tempered loss of the pulled arm; the weights shrink, and the reference follows the smallest loss."""
    if seen == arm and reward != 1.0:  # else the weights stay
        state.losses[arm] += (1.0 - reward) / (state.chances[0] + 0.5 * state.eta)
        set_leaf(state.tree, arm, math.exp(-state.eta * (state.losses[arm] - state.reference[0])))
        if state.tree[1] < math.exp(-FARTHEST):
            move_down(state)


@rare_kernel
def move_down(state: Any) -> None:
    """Take the smallest loss as reference."""
    least = state.losses[0]
    for k in range(1, state.losses.size):
        least = min(least, state.losses[k])
    state.reference[0] = least
    for k in range(state.losses.size):
        state.tree[(state.tree.size >> 1) + k] = math.exp(-state.eta * (state.losses[k] - least))
    add_up(state.tree)
