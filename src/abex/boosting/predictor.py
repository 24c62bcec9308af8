"""Compiled scoring of rows: stage by stage, or through the step functions of a model of stumps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.settings import TREE
from abex.kernels import compiled, kernel


class WeightedLearners(NamedTuple):
    """Classifiers as `Model` has them, votes multiplied by coefficients."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_right: NDArray[np.bool_]
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    votes: NDArray[np.float64]


@kernel
def goes_right(x: float, threshold: float, missing_right: bool) -> bool:
    """The side of a value: x > threshold, a missing one as it was learnt."""
    if math.isnan(x):
        return missing_right
    return x > threshold


@kernel
def leaf_of(model: Any, t: int, columns: Any, i: int) -> int:
    """The leaf of tree t that row i ends in."""
    node = 0
    while node >= 0:
        x = columns[model.feature[t, node], i]
        side = goes_right(x, model.threshold[t, node], model.missing_right[t, node])
        node = model.right[t, node] if side else model.left[t, node]
    return ~node


@kernel
def add_learner(kind: int, model: Any, t: int, columns: Any, i: int, out: Any) -> None:
    """Add the weighted votes of classifier t for row i."""
    feature = model.feature[t]
    if feature[0] < 0:
        return
    threshold, missing_right = model.threshold[t], model.missing_right[t]
    leaf = 0
    sign = 1.0
    if kind == TREE:
        leaf = leaf_of(model, t, columns, i)
    else:
        for k in range(feature.size):
            if feature[k] >= 0 and not goes_right(columns[feature[k], i], threshold[k], missing_right[k]):
                sign = -sign
    votes = model.votes[t, leaf]
    for label in range(out.size):
        out[label] += sign * votes[label]


@compiled()
def add_learners(kind: int, model: Any, X: Any, out: Any) -> None:
    """Add the scores of all classifiers to ``out`` (n, L)."""
    columns = X.T
    for i in range(X.shape[0]):
        for t in range(model.feature.shape[0]):
            add_learner(kind, model, t, columns, i, out[i])


@kernel
def find_leaves(model: Any, t: int, columns: Any, leaf: Any) -> None:
    """The leaf of tree t that each row ends in."""
    for i in range(leaf.size):
        leaf[i] = leaf_of(model, t, columns, i)


@kernel
def find_signs(model: Any, t: int, columns: Any, sign: Any) -> None:
    """The sign that stump or product t gives each row."""
    for i in range(sign.size):
        sign[i] = 1.0
    for k in range(model.feature.shape[1]):
        j = model.feature[t, k]
        if j >= 0:
            threshold = model.threshold[t, k]
            lost = model.missing_right[t, k]
            for i in range(sign.size):
                x = columns[j, i]
                sign[i] *= 1.0 if x > threshold or (lost and x != x) else -1.0


@compiled()
def count_errors(
    kind: int, model: Any, columns: Any, label: Any, ends: Any, strict: bool, wrong: Any, by_row: Any
) -> None:
    """Count into ``wrong`` the rows misclassified by the first ``ends[0]``, ``ends[1]``, ... classifiers.

    ``by_row`` (ends, rows) gets a 1 for each of them, unless it is empty. ``strict`` counts ties as errors. A classifier
    passes over a few rows, whose features lie side by side in ``columns`` (d, rows): ten times faster than a row passing
    through all classifiers.
    """
    labels = model.votes.shape[2]
    scores = np.zeros((labels, label.size))
    sign = np.ones(label.size)
    leaf = np.zeros(label.size, np.int64)
    first = 0
    for e in range(ends.size):
        for t in range(first, ends[e]):
            if model.feature[t, 0] < 0:
                continue
            if kind == TREE:
                find_leaves(model, t, columns, leaf)
                for k in range(labels):
                    for i in range(label.size):
                        scores[k, i] += model.votes[t, leaf[i], k]
            else:
                find_signs(model, t, columns, sign)
                for k in range(labels):
                    vote = model.votes[t, 0, k]
                    for i in range(label.size):
                        scores[k, i] += sign[i] * vote
        for i in range(label.size):
            truth = label[i]
            for k in range(labels):
                tie = scores[k, i] == scores[truth, i] and k != truth and (strict or k < truth)
                if scores[k, i] > scores[truth, i] or tie:
                    wrong[e] += 1
                    if by_row.shape[0] > 0:
                        by_row[e, i] = 1
                    break
        first = ends[e]


@compiled()
def add_steps(X: Any, used: Any, start: Any, thresholds: Any, values: Any, out: Any) -> None:
    """Add the scores of an additive model to ``out`` (n, L)."""
    for i in range(X.shape[0]):
        for j in used:
            x = X[i, j]
            low, high = start[j], start[j + 1]
            if math.isnan(x):
                low = high + 1
            else:
                while low < high:
                    middle = (low + high) // 2
                    if x > thresholds[middle]:
                        low = middle + 1
                    else:
                        high = middle
            for label in range(out.shape[1]):
                out[i, label] += values[low + 2 * j, label]
