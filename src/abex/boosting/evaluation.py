"""Compiled scoring of rows: stage by stage, or through the step functions of a model of stumps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.stages import TREE
from abex.kernels import compiled, kernel


class WeightedStages(NamedTuple):
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
def add_stage(kind: int, model: Any, t: int, row: Any, out: Any) -> None:
    """Add the weighted votes of classifier t for one row."""
    feature = model.feature[t]
    if feature[0] < 0:
        return
    threshold, missing_right = model.threshold[t], model.missing_right[t]
    leaf = 0
    sign = 1.0
    if kind == TREE:
        node = 0
        while node >= 0:
            side = goes_right(row[feature[node]], threshold[node], missing_right[node])
            node = model.right[t, node] if side else model.left[t, node]
        leaf = ~node
    else:
        for k in range(feature.size):
            if feature[k] >= 0 and not goes_right(row[feature[k]], threshold[k], missing_right[k]):
                sign = -sign
    votes = model.votes[t, leaf]
    for label in range(out.size):
        out[label] += sign * votes[label]


@compiled()
def add_stages(kind: int, model: Any, X: Any, out: Any) -> None:
    """Add the scores of all classifiers to ``out`` (n, L)."""
    for i in range(X.shape[0]):
        for t in range(model.feature.shape[0]):
            add_stage(kind, model, t, X[i], out[i])


@compiled()
def add_steps(X: Any, used: Any, start: Any, cuts: Any, values: Any, out: Any) -> None:
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
                    if x > cuts[middle]:
                        low = middle + 1
                    else:
                        high = middle
            for label in range(out.shape[1]):
                out[i, label] += values[low + 2 * j, label]
