"""Records of the compiled loop: the arms, the pulls, the classifiers found, and what all learners share."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.stumps import FEATURE, MISSING_RIGHT, RANK, SCALE
from abex.kernels import kernel

STUMP, PRODUCT, TREE = 0, 1, 2
CERTAIN = 1.0 - 1e-7  # an edge of 1 would have an infinite coefficient


class Arms(NamedTuple):
    """What a pull searches: arm k has the features ``features[start[k]:start[k + 1]]``."""

    start: NDArray[np.int64]  # (K + 1,)
    features: NDArray[np.int64]
    per_search: int


class Pulls(NamedTuple):
    """What the policy did."""

    arm: NDArray[np.int32]
    reward: NDArray[np.float32]
    made: NDArray[np.int64]  # [0] pulls so far


class Stages(NamedTuple):
    """The classifiers found: a stump has one node, a product its terms, a tree its inner nodes and leaves."""

    feature: NDArray[np.int32]  # (T, nodes), -1: no node
    rank: NDArray[np.int32]  # (T, nodes)
    missing_right: NDArray[np.bool_]  # (T, nodes)
    left: NDArray[np.int16]  # (T, nodes) trees: the next node, or ~leaf
    right: NDArray[np.int16]
    gain: NDArray[np.float32]  # (T, nodes) what the split added to the edge
    votes: NDArray[np.int8]  # (T, leaves, L)
    coefficient: NDArray[np.float64]  # (T,)
    edge: NDArray[np.float64]  # (T,)


def new_stages(count: int, nodes: int, leaves: int, labels: int) -> Stages:
    """Room for ``count`` classifiers."""
    return Stages(
        np.full((count, nodes), -1, np.int32),
        np.zeros((count, nodes), np.int32),
        np.zeros((count, nodes), np.bool_),
        np.zeros((count, nodes), np.int16),
        np.zeros((count, nodes), np.int16),
        np.zeros((count, nodes), np.float32),
        np.zeros((count, leaves, labels), np.int8),
        np.zeros(count),
        np.zeros(count),
    )


@kernel
def record_pull(pulls: Any, arm: int, reward: float) -> None:
    """Note what the policy chose and what it got."""
    pull = pulls.made[0]
    pulls.arm[pull] = arm
    pulls.reward[pull] = reward
    pulls.made[0] = pull + 1


@kernel
def reward_of(edge: float) -> float:
    """min(1, -ln sqrt(1 - edge^2)): what a stump with this edge takes off the logarithm of the error bound."""
    if edge >= 0.95:  # the cap is reached at 0.9298
        return 1.0
    return min(1.0, -0.5 * math.log(1.0 - edge * edge))


@kernel
def coefficient_of(edge: float, smoothing: float) -> float:
    """Coefficient a = (1/2) ln((e_plus + s) / (e_minus + s)), e_plus + e_minus = 1, e_plus - e_minus = edge."""
    edge = min(edge, CERTAIN)
    return 0.5 * math.log((0.5 + 0.5 * edge + smoothing) / (0.5 - 0.5 * edge + smoothing))


@kernel
def normaliser(edge: float, coefficient: float) -> float:
    """Z: the sum of the weights after an update over the sum before."""
    return 0.5 * (1.0 + edge) * math.exp(-coefficient) + 0.5 * (1.0 - edge) * math.exp(coefficient)


@kernel
def read_votes(search: Any, chunks: int, direction: float, votes: Any) -> None:
    """v_l = +1 where the best edge e_l is positive, else -1."""
    lanes = search.edges.shape[1]
    slack = search.tolerance * search.best[SCALE]
    for c in range(chunks):
        for k in range(lanes):
            positive = direction * search.edges[2 * chunks + c, k] > slack
            votes[c * lanes + k] = 1.0 if positive else -1.0


@kernel
def record_cut(stages: Any, t: int, node: int, cut: Any, gain: float) -> None:
    """Write a cut, and what it added to the edge, into a node of stage t."""
    stages.feature[t, node] = cut[FEATURE]
    stages.rank[t, node] = cut[RANK]
    stages.missing_right[t, node] = cut[MISSING_RIGHT] == 1
    stages.gain[t, node] = np.float32(min(max(gain, 0.0), 1.0))


@kernel
def record_votes(stages: Any, t: int, leaf: int, votes: Any) -> None:
    """Write the votes of a leaf of stage t."""
    for label in range(stages.votes.shape[2]):
        stages.votes[t, leaf, label] = np.int8(votes[label])
