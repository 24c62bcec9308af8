"""Shapley values by their definition: all subsets of the features."""

from itertools import combinations
from math import factorial

import numpy as np


def score(model, x):
    """The scores of one row, classifier by classifier."""
    total = np.zeros(model.votes.shape[2])
    for t in range(model.coefficient.size):
        leaf, sign = weak_learner(model, t, x)
        if leaf is not None:
            total += sign * model.coefficient[t] * model.votes[t, leaf]
    return total


def right_of(model, t, k, value):
    return bool(model.missing_right[t, k]) if np.isnan(value) else bool(value > model.threshold[t, k])


def weak_learner(model, t, x):
    there = np.flatnonzero(model.feature[t] >= 0)
    if there.size == 0:
        return None, 0.0
    if model.kind != 2:
        sides = [1.0 if right_of(model, t, k, x[model.feature[t, k]]) else -1.0 for k in there]
        return 0, float(np.prod(sides))
    node = 0
    while node >= 0:
        right = right_of(model, t, node, x[model.feature[t, node]])
        node = model.right[t, node] if right else model.left[t, node]
    return ~node, 1.0


def interventional(model, x, background, known):
    """Mean score of the background rows when ``known`` features are those of x."""
    mixed = background.copy()
    mixed[:, sorted(known)] = x[sorted(known)]
    return np.mean([score(model, row) for row in mixed], axis=0)


def path_dependent(model, x, background, known):
    """Score where an unknown feature follows both sides, by the share of the background rows that are still there."""
    total = np.zeros(model.votes.shape[2])
    for t in range(model.coefficient.size):
        there = np.flatnonzero(model.feature[t] >= 0)
        if there.size and model.kind == 2:
            total += model.coefficient[t] * tree_value(model, t, 0, x, background, known)
        elif there.size:
            total += (
                model.coefficient[t]
                * product_value(model, t, there, x, background, known)
                * model.votes[t, 0]
            )
    return total


def sides_of(model, t, k, x, rows, known):
    """(weight of the right side, rows of the left one, rows of the right one)."""
    j = model.feature[t, k]
    right = np.array([right_of(model, t, k, value) for value in rows[:, j]], bool)
    usual = right.mean() if right.size else 0.5
    weight = float(right_of(model, t, k, x[j])) if j in known else usual
    return weight, rows[~right], rows[right]


def tree_value(model, t, node, x, rows, known):
    if node < 0:
        return model.votes[t, ~node].astype(float)
    weight, left, right = sides_of(model, t, node, x, rows, known)
    value = np.zeros(model.votes.shape[2])
    if weight < 1.0:
        value += (1.0 - weight) * tree_value(model, t, model.left[t, node], x, left, known)
    if weight > 0.0:
        value += weight * tree_value(model, t, model.right[t, node], x, right, known)
    return value


def product_value(model, t, terms, x, rows, known, before=()):
    """The tree of a product has no side that contradicts the terms before it."""
    if len(terms) == 0:
        return 1.0
    k = terms[0]
    weight, left, right = sides_of(model, t, k, x, rows, known)
    possible = [can_be(model, t, (*before, (k, side))) for side in (False, True)]
    if not all(possible):
        weight = float(possible[1])
    value = 0.0
    if weight < 1.0:
        value -= (1.0 - weight) * product_value(model, t, terms[1:], x, left, known, (*before, (k, False)))
    if weight > 0.0:
        value += weight * product_value(model, t, terms[1:], x, right, known, (*before, (k, True)))
    return value


def can_be(model, t, sides):
    """Whether a value of the last term's feature, a missing one among them, lies on these sides of all its terms."""
    feature = model.feature[t, sides[-1][0]]
    mine = [(k, side) for k, side in sides if model.feature[t, k] == feature]
    edges = sorted(model.threshold[t, k] for k, _ in mine)
    tries = [np.nan, *edges, np.nextafter(edges[-1], np.inf)]
    return any(
        all(right_of(model, t, k, value) == side for k, side in mine)
        for value in tries
        if np.isnan(value) or np.isfinite(value)
    )


def shapley(value, d):
    """Shapley values (d, L) of the game ``value``, a function of a set of features; and its value of the empty set."""
    empty = value(frozenset())
    phi = np.zeros((d, empty.size))
    for size in range(d):
        share = factorial(size) * factorial(d - size - 1) / factorial(d)
        for j in range(d):
            for chosen in combinations([k for k in range(d) if k != j], size):
                phi[j] += share * (value(frozenset(chosen) | {j}) - value(frozenset(chosen)))
    return phi, empty
