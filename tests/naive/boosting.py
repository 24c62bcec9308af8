"""AdaBoost.MH as the papers write it: float64, every cut tried, every weight updated in every iteration."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Stump(NamedTuple):
    edge: float
    feature: int
    threshold: float
    missing_right: bool
    votes: np.ndarray

    def side(self, X):
        x = X[:, self.feature]
        with np.errstate(invalid="ignore"):
            right = np.where(np.isnan(x), self.missing_right, x > self.threshold)
        return np.where(right, 1.0, -1.0)


def label_signs(y):
    """+1 for the label of each example, -1 elsewhere."""
    return np.where(np.asarray(y)[:, None] == np.unique(y), 1, -1).astype(np.int8)


def first_weights(signs):
    """Half of the weight on the labels that are there, half on the others (Kégl and Busa-Fekete 2009)."""
    n, labels = signs.shape
    return np.where(signs > 0, 1 / (2 * n), 1 / (2 * n * (labels - 1)))


def thresholds(x):
    distinct = np.unique(x[~np.isnan(x)])
    cuts = [(a + b) / 2 for a, b in pairwise(distinct)]
    if not np.isnan(x).any():
        return [(cut, False) for cut in cuts]
    return ([(-math.inf, False)] if distinct.size else []) + [
        (cut, right) for right in (False, True) for cut in cuts
    ]


def best_stump(X, s, features, tolerance=1e-12):
    """The stump with the largest edge for signed weights ``s``; the first one among ties."""
    best = Stump(0.0, -1, 0.0, False, np.full(s.shape[1], -1))
    for j in features:
        for threshold, missing_right in thresholds(X[:, j]):
            stump = Stump(0.0, j, threshold, missing_right, best.votes)
            e = stump.side(X) @ s
            edge = np.abs(e).sum()
            if edge > best.edge + tolerance:
                best = Stump(edge, j, threshold, missing_right, np.where(e > tolerance, 1, -1))
    return best


def coefficient(edge, smoothing=0.0):
    edge = min(edge, 1 - 1e-7)
    return 0.5 * math.log(((1 + edge) / 2 + smoothing) / ((1 - edge) / 2 + smoothing))


def reward(edge):
    return 1.0 if edge >= 1 else min(1.0, -0.5 * math.log(1 - edge**2))


def boost(X, signs, weights, feature_lists, smoothing=0.0, tolerance=1e-12):
    """(stump, coefficient, Z) of every iteration, given the features each may use; the last weights."""
    weights = weights / weights.sum()
    found = []
    for features in feature_lists:
        stump = best_stump(X, weights * signs, features, tolerance)
        if stump.feature < 0:
            found.append((stump, 0.0, 1.0))
            continue
        a = coefficient(stump.edge, smoothing)
        weights = weights * np.exp(-a * signs * stump.votes * stump.side(X)[:, None])
        found.append((stump, a, weights.sum()))
        weights = weights / weights.sum()
    return found, weights


def tree_edge(X, s, leaves, tolerance=1e-12):
    """Edge of the tree grown best first by full search, all leaves voting by sign."""
    rows = [np.arange(len(X))]

    def best_cut(part):
        constant = np.abs(s[part].sum(axis=0)).sum()
        best = (tolerance if len(rows) > 1 else -1.0, None)  # the root is cut in any case
        for j in range(X.shape[1]):
            for threshold, missing_right in thresholds(X[part, j]):
                right = Stump(0.0, j, threshold, missing_right, None).side(X[part]) > 0
                edge = np.abs(s[part][right].sum(axis=0)).sum() + np.abs(s[part][~right].sum(axis=0)).sum()
                if edge - constant > best[0] + tolerance:
                    best = (edge - constant, right)
        return best

    while len(rows) < leaves:
        cuts = [best_cut(part) for part in rows]
        k = max(range(len(rows)), key=lambda k: (cuts[k][0], -k))
        if cuts[k][1] is None:
            break
        part, right = rows[k], cuts[k][1]
        rows[k] = part[~right]
        rows.append(part[right])
    return sum(np.abs(s[part].sum(axis=0)).sum() for part in rows)


def product_edge(X, s, terms):
    """Edge of the product of stumps, one term after the other by full search, a term kept where it helps."""
    sign = np.ones(len(X))
    edge = 0.0
    for _ in range(terms):
        stump = best_stump(X, s * sign[:, None], range(X.shape[1]))
        if stump.edge > edge + 1e-12:
            edge = stump.edge
            sign = sign * stump.side(X)
    return edge


def errors_and_ties(scores, label):
    """Rows whose own label does not have the largest score by itself."""
    own = scores[np.arange(label.size), label][:, None]
    return ((scores >= own).sum(axis=1) > 1).astype(float)
