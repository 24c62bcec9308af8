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
