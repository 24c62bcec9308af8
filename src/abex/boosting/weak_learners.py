"""The weak learners found, and the formulas that all kinds of them share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, fields_of, kernel

STUMP, PRODUCT, TREE = 0, 1, 2
KINDS = ("stump", "product", "tree")
CERTAIN = 1.0 - 1e-7  # an edge of 1 would have an infinite coefficient


class WeakLearners(Record):
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

    def followed_by(self, others: WeakLearners) -> WeakLearners:
        """These and then the others."""
        both = {name: (getattr(self, name), getattr(others, name)) for name in fields_of(self)}
        return WeakLearners(**{name: np.concatenate(arrays) for name, arrays in both.items()})


def new_weak_learners(count: int, nodes: int, leaves: int, labels: int) -> WeakLearners:
    """Room for ``count`` classifiers."""
    return WeakLearners(
        feature=np.full((count, nodes), -1, np.int32),
        rank=np.zeros((count, nodes), np.int32),
        missing_right=np.zeros((count, nodes), np.bool_),
        left=np.zeros((count, nodes), np.int16),
        right=np.zeros((count, nodes), np.int16),
        gain=np.zeros((count, nodes), np.float32),
        votes=np.zeros((count, leaves, labels), np.int8),
        coefficient=np.zeros(count),
        edge=np.zeros(count),
    )


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
def record_split(
    learners: WeakLearners, t: int, node: int, feature: int, rank: int, missing_right: bool, gain: float
) -> None:
    """Write a split, and what it added to the edge, into a node of learner t."""
    learners.feature[t, node] = feature
    learners.rank[t, node] = rank
    learners.missing_right[t, node] = missing_right
    learners.gain[t, node] = np.float32(min(max(gain, 0.0), 1.0))


@kernel
def record_votes(learners: WeakLearners, t: int, leaf: int, votes: NDArray[np.float64]) -> None:
    """Write the votes of a leaf of learner t."""
    for label in range(learners.votes.shape[2]):
        learners.votes[t, leaf, label] = np.int8(votes[label])
