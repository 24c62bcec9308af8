"""A model as a forest of binary trees: what explanations and exports read, whatever the base learner.

A stump is a tree of two leaves, a product of m stumps one of up to 2^m leaves: its terms are the levels of the tree, and
sides that no value can be on are left out.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.learners import Model
from abex.boosting.settings import TREE
from abex.support.errors import UserError

MAX_TERMS = 12  # of a product that is expanded: 4,096 leaves
LEAF = -1


class Forest(NamedTuple):
    """Trees whose nodes lie one after the other: x goes right where ``x > threshold``, NaN where it was learnt to.

    A node stands before those below it.
    """

    root: NDArray[np.int64]  # (trees + 1,) where the nodes of each tree begin, its root first
    feature: NDArray[np.int64]  # (nodes,) -1: a leaf
    threshold: NDArray[np.float64]
    missing_right: NDArray[np.bool_]
    left: NDArray[np.int64]  # (nodes,) the next node, numbered through all trees; -1 below a leaf
    right: NDArray[np.int64]
    leaf: NDArray[np.int64]  # (nodes,) row of `values`, -1: an inner node
    values: NDArray[np.float64]  # (leaves, L) what a leaf adds to the scores

    @property
    def trees(self) -> int:
        """Number of trees."""
        return self.root.size - 1

    def tree(self, t: int) -> range:
        """The nodes of tree t, its root first."""
        return range(int(self.root[t]), int(self.root[t + 1]))


Limits = dict[int, tuple[float, float, bool]]  # feature -> low < x <= high, and whether it may be missing


def sides(known: Limits, feature: int, threshold: float, missing_right: bool) -> tuple[Limits, Limits]:
    """What is known of a row left and right of a split, of what was known before it."""
    low, high, missing = known.get(feature, (-math.inf, math.inf, True))
    below = (low, min(high, threshold), missing and not missing_right)
    above = (max(low, threshold), high, missing and missing_right)
    return {**known, feature: below}, {**known, feature: above}


class _Nodes:
    """Nodes under way."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []  # the fields of `Forest` from `feature` to `leaf`
        self.values: list[NDArray[np.float64]] = []

    def add(self, feature: int, threshold: float, missing_right: bool) -> int:
        self.rows.append([feature, threshold, missing_right, LEAF, LEAF, -1])
        return len(self.rows) - 1

    def add_leaf(self, value: NDArray[np.float64]) -> int:
        self.rows.append([LEAF, 0.0, False, LEAF, LEAF, len(self.values)])
        self.values.append(value)
        return len(self.rows) - 1

    def join(self, node: int, left: int, right: int) -> None:
        self.rows[node][3:5] = left, right


def forest_of(model: Model) -> Forest:
    """The classifiers of a model as binary trees; those without a split are left out.

    >>> from abex.boosting import AdaBoostMHClassifier
    >>> from sklearn.datasets import load_iris
    >>> fitted = AdaBoostMHClassifier(n_estimators=3, base="stump", random_state=0).fit(*load_iris(return_X_y=True))
    >>> forest = forest_of(fitted.model_)
    >>> forest.trees, forest.values.shape
    (3, (6, 3))
    """
    terms = (model.feature >= 0).sum(axis=1)
    if model.kind != TREE and terms.max(initial=0) > MAX_TERMS:
        raise UserError(
            f"a product of {terms.max()} terms would be a tree of 2**{terms.max()} leaves: "
            f"products of at most {MAX_TERMS} terms can be explained and exported"
        )
    nodes, roots = _Nodes(), [0]
    values = model.weighted_votes
    for t in np.flatnonzero(terms > 0).tolist():
        if model.kind == TREE:
            _add_tree(nodes, model, t, values[t])
        else:
            _add_product(nodes, model, t, values[t, 0])
        roots.append(len(nodes.rows))
    if len(roots) == 1:  # nothing was learnt: one leaf that says nothing
        nodes.add_leaf(np.zeros(model.labels))
        roots.append(1)
    columns = zip(*nodes.rows, strict=True)
    return Forest._make(map(np.array, (roots, *columns, nodes.values)))


def _add_tree(nodes: _Nodes, model: Model, t: int, values: NDArray[np.float64]) -> None:
    size = int((model.feature[t] >= 0).sum())
    first = len(nodes.rows)
    for k in range(size):
        nodes.add(int(model.feature[t, k]), float(model.threshold[t, k]), bool(model.missing_right[t, k]))
    for k in range(size):
        children = (int(model.left[t, k]), int(model.right[t, k]))
        nodes.join(first + k, *(first + c if c >= 0 else nodes.add_leaf(values[~c]) for c in children))


def _add_product(nodes: _Nodes, model: Model, t: int, value: NDArray[np.float64]) -> None:
    there = np.flatnonzero(model.feature[t] >= 0)

    def grow(depth: int, sign: float, known: Limits) -> int:
        if depth == there.size:
            return nodes.add_leaf(sign * value)
        k = there[depth]
        split = int(model.feature[t, k]), float(model.threshold[t, k]), bool(model.missing_right[t, k])
        below, above = sides(known, *split)
        # the root stays even where one of its sides is empty: a tree begins with its first node
        if depth > 0 and _empty(below[split[0]]):
            return grow(depth + 1, sign, above)
        if depth > 0 and _empty(above[split[0]]):
            return grow(depth + 1, -sign, below)
        node = nodes.add(*split)
        nodes.join(node, grow(depth + 1, -sign, below), grow(depth + 1, sign, above))
        return node

    grow(0, 1.0, {})


def _empty(limits: tuple[float, float, bool]) -> bool:
    low, high, missing = limits
    return low >= high and not missing
