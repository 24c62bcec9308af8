r"""Shapley values of features: how much each of them moved a score away from its mean over background rows.

Row :math:`x` and set :math:`S` of features known: :math:`v(S)` is the score of a row that has these features of :math:`x` and the
others of a background row, averaged over these rows (*interventional*, Lundberg et al. 2020). Feature j has

.. math:: \phi_j = \sum_{S \not\ni j} \frac{|S|!\,(d-|S|-1)!}{d!}\,(v(S\cup j) - v(S)).

A leaf asks some features for something. For a background row, :math:`a` of them are as asked in :math:`x` alone, :math:`b` in
the background row alone. If any is in neither, the leaf is never reached. Else it is while the :math:`a` are known and the
:math:`b` are not: in random order each of the :math:`a` opens it with probability :math:`(a-1)!\,b!/(a+b)!`, and each of the
:math:`b` closes it with probability :math:`a!\,(b-1)!/(a+b)!`.

Shapley values of the other meaning, *path-dependent* ones, come from the package shap, which reads the trees as `trees_for_shap`
gives them. Of several outputs its interventional ones differ from the definition.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.forest import Forest, Limits, sides
from abex.boosting.learners import blocks, dense
from abex.kernels import compiled

TRACE = 1e-9  # of a row that goes both ways at every node: the package shap wants more than none everywhere


class ShapValues(NamedTuple):
    """``values`` (n, d, L) and ``base`` (L,); of two classes (n, d) and a number.

    ``values.sum(axis=1) + base`` is what `decision_function` answers.
    """

    values: NDArray[np.float64]
    base: Any


class Paths(NamedTuple):
    """What each leaf asks of the features on the way to it: ``low < x <= high``, or NaN where it is let through."""

    start: NDArray[np.int64]  # (leaves + 1,)
    feature: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    missing: NDArray[np.bool_]


class Backgrounds(NamedTuple):
    """Which features of background rows are as a leaf asks, row after row; equal rows are counted, not repeated."""

    start: NDArray[np.int64]  # (leaves + 1,) into weight
    weight: NDArray[np.float64]  # shares of the rows
    inside_start: NDArray[np.int64]  # (leaves + 1,) into inside
    inside: NDArray[np.bool_]


def shap_values(forest: Forest, X: Any, background: Any, mapper: Any = map) -> ShapValues:
    """Shapley values of every score of a forest, exact up to rounding."""
    rows = dense(background)
    paths = paths_of(forest)
    known = backgrounds_of(paths, rows)
    longest = int(np.diff(paths.start).max())
    order = np.array(
        [[1 / ((a + b + 1) * math.comb(a + b, a)) for b in range(longest)] for a in range(longest)]
    )
    out = np.zeros((X.shape[0], X.shape[1], forest.values.shape[1]))

    def explain(block: slice) -> None:
        add_shapley(dense(X[block]), paths, known, order, forest.values, out[block])

    for _ in mapper(explain, blocks(X.shape[0])):
        pass
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


def paths_of(forest: Forest) -> Paths:
    """The ways to all leaves, in the order of their values."""
    found: dict[int, Limits] = {}
    waiting: list[tuple[int, Limits]] = [(int(root), {}) for root in forest.root[:-1]]
    while waiting:
        node, path = waiting.pop()
        if forest.feature[node] < 0:
            found[int(forest.leaf[node])] = path
            continue
        split = int(forest.feature[node]), float(forest.threshold[node]), bool(forest.missing_right[node])
        children = int(forest.left[node]), int(forest.right[node])
        waiting += zip(children, sides(path, *split), strict=True)
    ways = [found[leaf] for leaf in range(len(found))]
    limits = [limit for way in ways for limit in way.values()]
    return Paths(
        np.concatenate([[0], np.cumsum([len(way) for way in ways])]).astype(np.int64),
        np.array([j for way in ways for j in way], np.int64),
        np.array([low for low, _, _ in limits], np.float64),
        np.array([high for _, high, _ in limits], np.float64),
        np.array([missing for _, _, missing in limits], np.bool_),
    )


def backgrounds_of(paths: Paths, rows: NDArray[np.float64]) -> Backgrounds:
    """Which features of the rows lie where each leaf wants them."""
    start, weights, inside_start, parts = [0], [], [0], []
    for first, last in zip(paths.start[:-1], paths.start[1:], strict=True):
        values = rows[:, paths.feature[first:last]]
        inside = (values > paths.low[first:last]) & (values <= paths.high[first:last])
        inside |= np.isnan(values) & paths.missing[first:last]
        _, at, count = np.unique(np.packbits(inside, axis=1), axis=0, return_index=True, return_counts=True)
        weights.append(count / rows.shape[0])
        parts.append(inside[at].ravel())
        start.append(start[-1] + at.size)
        inside_start.append(inside_start[-1] + parts[-1].size)
    return Backgrounds(
        np.array(start), np.concatenate(weights), np.array(inside_start), np.concatenate(parts)
    )


@compiled()
def add_shapley(X: Any, paths: Paths, known: Backgrounds, order: Any, values: Any, out: Any) -> None:
    """Add the Shapley values of all leaves to ``out`` (n, d, L); ``order[a, b]`` = a! b! / (a + b + 1)!."""
    longest = order.shape[0]
    here, moved = np.zeros(longest, np.bool_), np.zeros(longest)
    for i in range(X.shape[0]):
        for leaf in range(values.shape[0]):
            begin = paths.start[leaf]
            k = paths.start[leaf + 1] - begin
            for e in range(k):
                x = X[i, paths.feature[begin + e]]
                inside = x > paths.low[begin + e] and x <= paths.high[begin + e]
                here[e] = inside or (math.isnan(x) and paths.missing[begin + e])
                moved[e] = 0.0
            for p in range(known.start[leaf], known.start[leaf + 1]):
                first = known.inside_start[leaf] + (p - known.start[leaf]) * k
                a = b = 0
                reached = True
                for e in range(k):
                    if here[e]:
                        a += not known.inside[first + e]
                    elif known.inside[first + e]:
                        b += 1
                    else:
                        reached = False
                        break
                if not reached or a + b == 0:
                    continue
                for e in range(k):
                    if here[e] != known.inside[first + e]:
                        moved[e] += known.weight[p] * (order[a - 1, b] if here[e] else -order[a, b - 1])
            for e in range(k):
                if moved[e] != 0.0:
                    for label in range(values.shape[1]):
                        out[i, paths.feature[begin + e], label] += moved[e] * values[leaf, label]


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
