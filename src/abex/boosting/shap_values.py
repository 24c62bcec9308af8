r"""Shapley values of features: how much each of them moved a score away from its mean over background rows.

Row :math:`x` and set :math:`S` of features known: :math:`v(S)` is the score of a row that has these features of :math:`x` and the
others of a background row, averaged over these rows (*interventional*, Lundberg et al. 2020). Feature j has

.. math:: \phi_j = \sum_{S \not\ni j} \frac{|S|!\,(d-|S|-1)!}{d!}\,(v(S\cup j) - v(S)).

A row and a background row go down a tree together. Where a split parts them, its feature is taken from the row on one way and
from the background row on the other: so a leaf is reached while :math:`a` features are known and :math:`b` others are not. In
random order each of the :math:`a` opens it with probability :math:`(a-1)!\,b!/(a+b)!`, and each of the :math:`b` closes it
with probability :math:`a!\,(b-1)!/(a+b)!`.

Shapley values of the other meaning, *path-dependent* ones, come from the package shap, which reads the trees as `trees_for_shap`
gives them. Of several outputs its interventional ones differ from the definition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.forest import Forest
from abex.boosting.learners import blocks, dense
from abex.boosting.predictor import goes_right
from abex.kernels import compiled, kernel
from abex.support.extras import needed

TRACE = 1e-9  # of a row that goes both ways at every node: the package shap wants more than none everywhere


class ShapValues(NamedTuple):
    """``values`` (n, d, L) and ``base`` (L,); of two classes (n, d) and a number.

    ``values.sum(axis=1) + base`` is what `decision_function` answers.
    """

    values: NDArray[np.float64]
    base: Any


def shap_values(forest: Forest, X: Any, background: Any, mapper: Any = map) -> ShapValues:
    """Shapley values of every score of a forest, exact up to rounding."""
    with needed("boosting"):
        from scipy.special import beta

    rows = dense(background)
    most = min(X.shape[1], int(np.diff(forest.root).max()) // 2) + 1  # features, or inner nodes
    order = beta(*np.ogrid[1 : most + 1, 1 : most + 1])
    out = np.zeros((X.shape[0], X.shape[1], forest.values.shape[1]))

    def explain(block: slice) -> None:
        add_shapley(dense(X[block]), rows, forest, order, out[block])

    for _ in mapper(explain, blocks(X.shape[0])):
        pass
    out /= rows.shape[0]
    ends = forest.feature < 0
    share = passed(forest, rows)[ends] / rows.shape[0]
    return ShapValues(out, share @ forest.values[forest.leaf[ends]])


def passed(forest: Forest, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many rows pass each node."""
    count = np.zeros(forest.feature.size)
    node, i = (a.ravel() for a in np.meshgrid(forest.root[:-1], np.arange(rows.shape[0])))
    while node.size:
        count += np.bincount(node, minlength=count.size)
        inner = forest.feature[node] >= 0
        node, i = node[inner], i[inner]
        x = rows[i, forest.feature[node]]
        right = np.where(np.isnan(x), forest.missing_right[node], x > forest.threshold[node])
        node = np.where(right, forest.right[node], forest.left[node])
    return count


@kernel
def next_node(forest: Forest, node: int, x: float) -> int:
    """Where a value of its feature goes on from a node."""
    right = goes_right(x, forest.threshold[node], forest.missing_right[node])
    return int(forest.right[node] if right else forest.left[node])


@compiled()
def add_shapley(X: Any, background: Any, forest: Forest, order: Any, out: Any) -> None:
    """Add the Shapley values of all pairs of rows to ``out`` (n, d, L); ``order[a, b]`` = a! b! / (a + b + 1)!."""
    most = order.shape[0]
    feature, known = np.zeros(most, np.int64), np.zeros(most, np.bool_)  # that parted the rows on the way
    waiting, depth = np.zeros(most, np.int64), np.zeros(most, np.int64)  # nodes of the background row's way
    for i in range(X.shape[0]):
        for other in range(background.shape[0]):
            for tree in range(forest.root.size - 1):
                node, parted, left = forest.root[tree], 0, 0
                while node >= 0:
                    j = forest.feature[node]
                    if j >= 0:
                        mine = next_node(forest, node, X[i, j])
                        theirs = next_node(forest, node, background[other, j])
                        if mine != theirs:
                            e = 0
                            while e < parted and feature[e] != j:
                                e += 1
                            if e == parted:
                                waiting[left], depth[left] = theirs, parted
                                left += 1
                                feature[parted], known[parted] = j, True
                                parted += 1
                            elif not known[e]:
                                mine = theirs
                        node = mine
                        continue
                    a = 0
                    for e in range(parted):
                        a += known[e]
                    b = parted - a
                    for e in range(parted):
                        share = order[a - 1, b] if known[e] else -order[a, b - 1]
                        for label in range(out.shape[2]):
                            out[i, feature[e], label] += share * forest.values[forest.leaf[node], label]
                    node = -1
                    if left > 0:
                        left -= 1
                        node, parted = waiting[left], depth[left] + 1
                        known[parted - 1] = False


def trees_for_shap(forest: Forest, background: Any) -> dict[str, Any]:
    """The dictionary of trees that `shap.TreeExplainer` reads, with the background rows that passed each node."""
    inner = forest.feature >= 0
    cover = passed(forest, dense(background))
    trace = np.zeros(cover.size)
    trace[forest.root[:-1]] = TRACE
    for node in np.flatnonzero(inner):
        trace[[forest.left[node], forest.right[node]]] = 0.5 * trace[node]
    cover += trace
    mean = np.zeros((cover.size, forest.values.shape[1]))
    mean[~inner] = forest.values[forest.leaf[~inner]]
    for node in np.flatnonzero(inner)[::-1]:
        children = [forest.left[node], forest.right[node]]
        mean[node] = cover[children] @ mean[children] / cover[node]
    trees = []
    for t in range(forest.trees):
        part = slice(int(forest.root[t]), int(forest.root[t + 1]))
        left, right = (
            np.where(inner[part], side[part] - part.start, -1) for side in (forest.left, forest.right)
        )
        trees.append({
            "children_left": left,
            "children_right": right,
            "children_default": np.where(forest.missing_right[part], right, left),
            "features": np.where(inner[part], forest.feature[part], -1),
            "thresholds": forest.threshold[part],
            "values": mean[part],
            "node_sample_weight": cover[part],
        })  # fmt: skip
    return {
        "trees": trees,
        "internal_dtype": np.float64,
        "input_dtype": np.float64,
        "tree_output": "raw_value",
        "base_offset": 0.0,
    }
