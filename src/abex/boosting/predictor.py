"""Compiled scoring of rows: stage by stage, or through the step functions of a model of stumps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.boosting.settings import TREE
from abex.kernels import compiled, kernel


@kernel
def goes_right(x: float, threshold: float, missing_right: bool) -> bool:
    """The side of a value: x > threshold, a missing one as it was learnt."""
    if math.isnan(x):
        return missing_right
    return x > threshold


@kernel
def add_learner(model: Any, votes: Any, t: int, columns: Any, sign: Any, scores: Any) -> None:
    """Add the weighted ``votes`` of classifier t to the ``scores`` (rows, L) of all rows; ``sign`` (rows,) is scratch.

    It passes over the rows, whose features lie side by side in ``columns`` (d, rows): ten times as fast as one row passing
    through all classifiers.
    """
    feature, threshold, missing_right = model.feature[t], model.threshold[t], model.missing_right[t]
    left, right, is_tree = model.left[t], model.right[t], model.kind == TREE
    if feature[0] < 0:
        return
    for i in range(sign.size):
        sign[i] = 1.0
    if not is_tree:
        for k in range(feature.size):
            j = feature[k]
            if j >= 0:
                limit, lost = threshold[k], missing_right[k]
                for i in range(sign.size):
                    x = columns[j, i]
                    sign[i] *= 1.0 if x > limit or (lost and x != x) else -1.0
    for i in range(sign.size):
        node = 0 if is_tree else ~0
        while node >= 0:
            side = goes_right(columns[feature[node], i], threshold[node], missing_right[node])
            node = right[node] if side else left[node]
        for label in range(scores.shape[1]):
            scores[i, label] += sign[i] * votes[t, ~node, label]


@compiled()
def add_learners(model: Any, votes: Any, first: int, last: int, columns: Any, scores: Any) -> None:
    """Add the weighted ``votes`` of classifiers first..last-1 to ``scores`` (rows, L)."""
    sign = np.ones(scores.shape[0])
    for t in range(first, last):
        add_learner(model, votes, t, columns, sign, scores)


@compiled()
def find_errors(model: Any, votes: Any, columns: Any, label: Any, ends: Any, wrong: Any) -> None:
    """Note in ``wrong`` (ends, rows) which rows the first ``ends[0]``, ``ends[1]``, ... classifiers misjudge."""
    scores = np.zeros((label.size, votes.shape[2]))
    sign = np.ones(label.size)
    first = 0
    for e in range(ends.size):
        for t in range(first, ends[e]):
            add_learner(model, votes, t, columns, sign, scores)
        for i in range(label.size):
            wrong[e, i] = np.argmax(scores[i]) != label[i]
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
