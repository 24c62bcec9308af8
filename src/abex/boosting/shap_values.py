r"""Shapley values of features: how much each of them moved a score away from its mean over a background.

Row :math:`x` and set :math:`S` of features known: the score of a tree is :math:`v(S)`, and feature j has

.. math:: \phi_j = \sum_{S \not\ni j} \frac{|S|!\,(d-|S|-1)!}{d!}\,(v(S\cup j) - v(S)).

Two meanings of :math:`v`, as in the package shap:

* *tree_path_dependent*: where a split asks for an unknown feature, both sides are followed, weighted by how many background
  rows went there (Lundberg et al. 2020, Algorithm 1). Where no background row has been, both sides have half.
* *interventional*: unknown features are those of a background row, and the score is averaged over these rows.

A leaf with value :math:`c` adds :math:`c \prod_{i\in S} o_i \prod_{i\notin S} r_i` to :math:`v(S)`: :math:`o_i` says whether
:math:`x_i` lies where the path to the leaf wants it, :math:`r_i` is the share of the background that does (along the path), or
whether a background row does. Of such a product the Shapley value is an integral over the multilinear extension (Owen 1972),

.. math:: \phi_j = c\,(o_j - r_j) \int_0^1 \prod_{i\ne j} (t\,o_i + (1-t)\,r_i)\,dt,

a polynomial of degree below the number k of features on the path: Gauss and Legendre's rule with k/2 points is exact, without the
divisions of the usual recursion.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.forest import Forest, count_rows
from abex.boosting.learners import blocks, dense_rows
from abex.kernels import compiled, kernel
from abex.support.errors import UserError, one_of

MEANINGS = ("tree_path_dependent", "interventional")
PACKED = 62  # features of a path that are packed into one integer
UNVISITED = 1e-9  # rows of a node without any, as the package shap wants them: more than none


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
    share: NDArray[np.float64]  # of the background rows that go on, product over the splits of the feature


class Backgrounds(NamedTuple):
    """What each leaf assumes of unknown features: one or several rows of r with weights that sum to at most 1."""

    start: NDArray[np.int64]  # (leaves + 1,) into weight
    weight: NDArray[np.float64]
    r_start: NDArray[np.int64]  # (leaves + 1,) into r: row after row
    r: NDArray[np.float64]


class Quadrature(NamedTuple):
    """Gauss and Legendre's rule on (0, 1), exact for paths of k features: ``start[k]`` to ``start[k + 1]``."""

    start: NDArray[np.int64]
    point: NDArray[np.float64]
    weight: NDArray[np.float64]


def shap_values(
    forest: Forest, X: Any, background: Any, meaning: str = "tree_path_dependent", mapper: Any = map
) -> ShapValues:
    """Shapley values of every score of a forest, exact up to rounding."""
    one_of("feature_perturbation", meaning, MEANINGS)
    rows = np.concatenate([dense_rows(background, *block) for block in blocks(background.shape[0])])
    if rows.shape[0] < 1:
        raise UserError("background must have at least one row")
    paths = paths_of(forest, covers(forest, rows))
    known = whole_background(paths) if meaning == "tree_path_dependent" else background_rows(paths, rows)
    rule = quadrature(int(np.diff(paths.start).max()))
    labels = forest.values.shape[1]
    out = np.zeros((X.shape[0], X.shape[1], labels))

    def explain(block: tuple[int, int]) -> None:
        add_shapley(dense_rows(X, *block), paths, known, rule, forest.values, out[block[0] : block[1]])

    for _ in mapper(explain, blocks(X.shape[0], 64)):
        pass
    base = np.zeros(labels)
    for leaf, value in enumerate(forest.values):
        base += value * (
            known.weight[known.start[leaf] : known.start[leaf + 1]] @ products(paths, known, leaf)
        )
    return ShapValues(out, base)


def covers(forest: Forest, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many rows pass each node."""
    count = np.zeros(forest.feature.size)
    count_rows(forest, rows, count)
    return count


def paths_of(forest: Forest, cover: NDArray[np.float64]) -> Paths:
    """The ways to all leaves, in the order of their values."""
    found: dict[int, dict[int, tuple[float, float, bool, float]]] = {}
    waiting: list[tuple[int, dict[int, tuple[float, float, bool, float]]]] = [
        (int(root), {}) for root in forest.root[:-1]
    ]
    while waiting:
        node, path = waiting.pop()
        j = int(forest.feature[node])
        if j < 0:
            found[int(forest.leaf[node])] = path
            continue
        low, high, missing, share = path.get(j, (-math.inf, math.inf, True, 1.0))
        threshold, missing_right = float(forest.threshold[node]), bool(forest.missing_right[node])
        left, right = int(forest.left[node]), int(forest.right[node])
        to_left = cover[left] / cover[node] if cover[node] > 0.0 else 0.5
        below = (low, min(high, threshold), missing and not missing_right, share * to_left)
        above = (max(low, threshold), high, missing and missing_right, share * (1.0 - to_left))
        waiting.append((left, {**path, j: below}))
        waiting.append((right, {**path, j: above}))
    ways = [found[leaf] for leaf in range(len(found))]
    limits = [limit for way in ways for limit in way.values()]
    start = np.concatenate([[0], np.cumsum([len(way) for way in ways])])
    return Paths(
        start.astype(np.int64),
        np.array([j for way in ways for j in way], np.int64),
        np.array([low for low, _, _, _ in limits], np.float64),
        np.array([high for _, high, _, _ in limits], np.float64),
        np.array([missing for _, _, missing, _ in limits], np.bool_),
        np.array([share for _, _, _, share in limits], np.float64),
    )


def whole_background(paths: Paths) -> Backgrounds:
    """Shares of the background along the paths: one row of them for each leaf."""
    leaves = paths.start.size - 1
    return Backgrounds(np.arange(leaves + 1), np.ones(leaves), paths.start, paths.share)


def background_rows(paths: Paths, rows: NDArray[np.float64]) -> Backgrounds:
    """Which features of a background row lie where a leaf wants them; equal rows are counted, not repeated."""
    start, weights, r_start, parts = [0], [], [0], []
    for first, last in zip(paths.start[:-1], paths.start[1:], strict=True):
        values = rows[:, paths.feature[first:last]]
        inside = (values > paths.low[first:last]) & (values <= paths.high[first:last])
        inside |= np.isnan(values) & paths.missing[first:last]
        if last - first <= PACKED:
            packed = inside @ (1 << np.arange(last - first))
            _, at, count = np.unique(packed, return_index=True, return_counts=True)
        else:
            _, at, count = np.unique(inside, axis=0, return_index=True, return_counts=True)
        weights.append(count / rows.shape[0])
        parts.append(inside[at].astype(np.float64).ravel())
        start.append(start[-1] + at.size)
        r_start.append(r_start[-1] + parts[-1].size)
    return Backgrounds(np.array(start), np.concatenate(weights), np.array(r_start), np.concatenate(parts))


def products(paths: Paths, known: Backgrounds, leaf: int) -> NDArray[np.float64]:
    """The product of each row of r of a leaf: whether, or how often, nothing known leads there."""
    length = int(paths.start[leaf + 1] - paths.start[leaf])
    count = int(known.start[leaf + 1] - known.start[leaf])
    r = known.r[known.r_start[leaf] : known.r_start[leaf + 1]]
    reached: NDArray[np.float64] = r.reshape(count, length).prod(axis=1)
    return reached


def quadrature(longest: int) -> Quadrature:
    """Rules for paths of up to ``longest`` features: polynomials of degree k - 1 need k / 2 points, rounded up."""
    rules = [np.polynomial.legendre.leggauss(max(1, (k + 1) // 2)) for k in range(longest + 1)]
    start = np.concatenate([[0], np.cumsum([point.size for point, _ in rules])])
    return Quadrature(
        start.astype(np.int64),
        np.concatenate([0.5 * (1.0 + point) for point, _ in rules]),
        np.concatenate([0.5 * weight for _, weight in rules]),
    )


@kernel
def product_rule(o: Any, r: Any, first: int, k: int, t: float, weight: float, before: Any, out: Any) -> None:
    """Add ``weight`` times the product of t o + (1 - t) r over all others to each of the k features of ``out``."""
    product = 1.0
    for e in range(k):
        before[e] = product
        product *= t * o[e] + (1.0 - t) * r[first + e]
    product = weight
    for e in range(k - 1, -1, -1):
        out[e] += before[e] * product
        product *= t * o[e] + (1.0 - t) * r[first + e]


@compiled()
def add_shapley(X: Any, paths: Paths, known: Backgrounds, rule: Quadrature, values: Any, out: Any) -> None:
    """Add the Shapley values of all leaves to ``out`` (n, d, L)."""
    longest = rule.start.size - 1
    o, moved = np.zeros(longest), np.zeros(longest)
    before, inner = np.zeros(longest), np.zeros(longest)
    for i in range(X.shape[0]):
        for leaf in range(values.shape[0]):
            begin = paths.start[leaf]
            k = paths.start[leaf + 1] - begin
            for e in range(k):
                x = X[i, paths.feature[begin + e]]
                inside = x > paths.low[begin + e] and x <= paths.high[begin + e]
                o[e] = 1.0 if inside or (math.isnan(x) and paths.missing[begin + e]) else 0.0
                moved[e] = 0.0
            for p in range(known.start[leaf], known.start[leaf + 1]):
                first = known.r_start[leaf] + (p - known.start[leaf]) * k
                possible = True
                for e in range(k):
                    possible = possible and o[e] + known.r[first + e] > 0.0
                    inner[e] = 0.0
                if possible:
                    for q in range(rule.start[k], rule.start[k + 1]):
                        product_rule(o, known.r, first, k, rule.point[q], rule.weight[q], before, inner)
                    for e in range(k):
                        moved[e] += known.weight[p] * (o[e] - known.r[first + e]) * inner[e]
            for e in range(k):
                if moved[e] != 0.0:
                    for label in range(values.shape[1]):
                        out[i, paths.feature[begin + e], label] += moved[e] * values[leaf, label]


def trees_for_shap(forest: Forest, background: NDArray[np.float64]) -> dict[str, Any]:
    """The dictionary of trees that `shap.TreeExplainer` reads, with the background rows that passed each node."""
    cover = covers(forest, background)
    mean = np.zeros((forest.feature.size, forest.values.shape[1]))
    inner = forest.feature >= 0
    mean[~inner] = forest.values[forest.leaf[~inner]]
    unvisited = cover == 0.0
    for node in np.flatnonzero(unvisited):  # divided evenly, as in `paths_of`
        cover[node] = cover[node] or UNVISITED
        if inner[node]:
            cover[forest.left[node]] = cover[forest.right[node]] = 0.5 * cover[node]
    for node in np.flatnonzero(inner)[::-1]:
        left, right = forest.left[node], forest.right[node]
        both = cover[left] + cover[right]
        mean[node] = (cover[left] * mean[left] + cover[right] * mean[right]) / both
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
