"""Hamming trees: every leaf votes for or against every label, h_l(x) = a v_{leaf(x), l}.

Grown best first: the leaf whose cut gains most is cut, gain = sum_l (|s_left| + |s_right| - |s_left + s_right|)
with s the signed weights of a side. As |s_left| + |s_right| = max(|e|, |s|), the scan of `stumps` finds the
best cut when it is told the leaf's |s| as the least contribution of a label.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.boosting.encoding import MOST_BINS
from abex.boosting.lanes import add_to_bins, clear, join_bins
from abex.boosting.stages import coefficient_of, normaliser, record_cut, record_votes
from abex.boosting.stumps import (
    BUFFER,
    EDGE,
    FEATURE,
    MISSING_RIGHT,
    RANK,
    fill_rest,
    keep_buffer,
    scan,
    sums_per_bin,
)
from abex.boosting.weights import FACTOR, NOW, WRITTEN, write_back
from abex.kernels import compiled, kernel

#: places in Learner.at: leaf searched, leaves so far, leaf to search next or -1
LEAF, LEAVES, WAITING = 0, 1, 2
LIGHTEST = 1e-30  # mass of a leaf whose weights have vanished: a search ends where there is none


@compiled()
def begin_tree(learner: Any, search: Any, w: Any) -> float:
    """One leaf with all examples; returns the sum of the weights to search in."""
    n = w.slot.size
    for i in range(n):
        learner.rows[i] = i
    learner.begin[0] = 0
    learner.end[0] = n
    learner.at[LEAVES] = 1
    learner.at[WAITING] = -1
    learner.parent[0] = -1
    w.numbers[NOW] = w.numbers[WRITTEN]
    learner.total[0, w.labels] = w.numbers[WRITTEN]
    for k in range(w.labels):
        learner.total[0, k] = w.total[k] / w.numbers[FACTOR]
    return turn_to(learner, search, w, 0)


@kernel
def turn_to(learner: Any, search: Any, w: Any, leaf: int) -> float:
    """Make ``leaf`` the one searched; returns its mass."""
    learner.at[LEAF] = leaf
    lanes = search.least.shape[1]
    constant = 0.0
    for k in range(w.labels):
        search.least[k // lanes, k % lanes] = abs(learner.total[leaf, k])
        constant += search.least[k // lanes, k % lanes]
    learner.constant[leaf] = constant
    learner.gain[leaf] = 0.0
    return float(learner.total[leaf, w.labels])


@compiled()
def try_in_leaf(codes: Any, j: int, w: Any, search: Any, learner: Any, known: float) -> float:
    """Search the cuts of feature j among the examples of the leaf at hand; see `stumps.try_feature`."""
    if codes.bins[j] < 2:
        return known
    chunks = w.chunks
    bins = codes.bins[j]
    buffer = 1 - search.cut[BUFFER]
    sums = search.sums[buffer]
    leaf = learner.at[LEAF]
    frequent = codes.frequent[j]
    code = codes.code[codes.code_start[j] : codes.code_start[j + 1]]
    count = 0
    for m in range(learner.begin[leaf], learner.end[leaf]):  # those off the frequent bin, without a branch
        i = np.uintp(learner.rows[m])
        learner.spare[count] = i
        learner.code[count] = code[i]
        count += int(code[i] != frequent)
    several = sums_per_bin(bins)
    clear(sums, several * bins * chunks)
    add_to_bins(sums, bins, several, learner.code, learner.spare, w.values, None, None, 0, 0, count, chunks)
    join_bins(sums, bins, several, chunks)
    if frequent >= 0:
        fill_rest(sums, bins, frequent, learner.total[leaf], w.block)
    before, kept = search.best[EDGE], search.cut[FEATURE]
    top = scan(codes, j, w, search, buffer, 0, known)
    if codes.missing[j]:
        top = scan(codes, j, w, search, buffer, 1, top)
    keep_buffer(search, buffer, before, kept)
    return float(top)


@compiled()
def accept_split(t: int, codes: Any, w: Any, search: Any, learner: Any, stages: Any, votes: Any) -> float:
    """Note the best cut of the leaf searched, go on growing; returns 0 when the tree is finished."""
    leaf = learner.at[LEAF]
    if search.cut[FEATURE] >= 0:
        learner.gain[leaf] = search.best[EDGE] - learner.constant[leaf]
        for m in range(4):
            learner.cut[leaf, m] = search.cut[m]
        note_right(codes, w, search, learner, leaf)
    while True:
        if learner.at[WAITING] >= 0:
            leaf = learner.at[WAITING]
            learner.at[WAITING] = -1
            return turn_to(learner, search, w, leaf)
        leaves = learner.at[LEAVES]
        leaf = -1
        gain = 0.0
        if leaves < learner.leaves:
            for k in range(leaves):
                if learner.gain[k] > gain + search.tolerance * w.numbers[NOW]:
                    gain = learner.gain[k]
                    leaf = k
            if leaves == 1 and leaf < 0 and search.cut[FEATURE] >= 0:
                leaf = 0  # the root is cut also where that gains nothing yet: its leaves may, and they vote
        if leaf < 0:
            finish_tree(t, w, search, learner, stages, votes)
            return 0.0
        split(t, codes, w, learner, stages, leaf)
        if leaves + 1 < learner.leaves:
            learner.at[WAITING] = leaves
            return turn_to(learner, search, w, leaf)


@kernel
def border_code(codes: Any, cut: Any) -> tuple[int, int]:
    """Codes above the first number, or equal to the second, are right of a cut."""
    missing = codes.missing[cut[FEATURE]]
    return cut[RANK] + (1 if missing else 0), 0 if missing and cut[MISSING_RIGHT] == 1 else MOST_BINS


@kernel
def note_right(codes: Any, w: Any, search: Any, learner: Any, leaf: int) -> None:
    """Signed sums and mass right of the best cut of a leaf: edges are right sums less left sums."""
    lanes = w.values.shape[1]
    for k in range(w.labels):
        edge = search.edges[2 * w.chunks + k // lanes, k % lanes]
        learner.right[leaf, k] = 0.5 * (learner.total[leaf, k] + edge)
    limit, lost = border_code(codes, search.cut)
    sums = search.sums[search.cut[BUFFER]]
    mass = 0.0
    for b in range(codes.bins[search.cut[FEATURE]]):
        if b > limit or b == lost:
            mass += sums[b * w.chunks + w.labels // lanes, w.labels % lanes]
    learner.right[leaf, w.labels] = mass


@kernel
def split(t: int, codes: Any, w: Any, learner: Any, stages: Any, leaf: int) -> None:
    """Cut a leaf: it keeps the left examples, a new leaf gets the right ones."""
    node = learner.at[LEAVES] - 1
    other = learner.at[LEAVES]
    cut = learner.cut[leaf]
    record_cut(stages, t, node, cut, learner.gain[leaf] / w.numbers[NOW])
    if learner.parent[leaf] >= 0:
        if learner.is_right[leaf]:
            stages.right[t, learner.parent[leaf]] = node
        else:
            stages.left[t, learner.parent[leaf]] = node
    stages.left[t, node] = ~leaf
    stages.right[t, node] = ~other
    j = cut[FEATURE]
    limit, lost = border_code(codes, cut)
    start = codes.code_start[j]
    left = learner.begin[leaf]
    spare = 0
    for m in range(learner.begin[leaf], learner.end[leaf]):  # no branch: written to both, kept in one
        i = learner.rows[m]
        code = codes.code[np.uintp(start + i)]
        right = int(code > limit) | int(code == lost)
        learner.spare[spare] = i
        learner.rows[left] = i
        spare += right
        left += 1 - right
    for m in range(spare):
        learner.rows[left + m] = learner.spare[m]
    learner.begin[other] = left
    learner.end[other] = learner.end[leaf]
    learner.end[leaf] = left
    for k in range(w.labels + 1):
        learner.total[other, k] = learner.right[leaf, k]
        learner.total[leaf, k] -= learner.right[leaf, k]
    for k in (leaf, other):
        learner.parent[k] = node
        learner.is_right[k] = k == other
        learner.gain[k] = 0.0
        learner.total[k, w.labels] = max(learner.total[k, w.labels], LIGHTEST)
    learner.at[LEAVES] += 1


@kernel
def finish_tree(t: int, w: Any, search: Any, learner: Any, stages: Any, votes: Any) -> None:
    """Let the leaves vote, record the tree, update the weights."""
    leaves = learner.at[LEAVES]
    if leaves < 2:
        return
    chunks = w.chunks
    lanes = w.values.shape[1]
    edge = 0.0
    for leaf in range(leaves):
        for k in range(w.labels):
            edge += abs(learner.total[leaf, k])
    edge = min(edge / w.numbers[NOW], 1.0)
    coefficient = coefficient_of(edge, learner.smoothing)
    scale = 1.0 / (w.numbers[NOW] * normaliser(edge, coefficient))
    up, down = scale * math.exp(coefficient), scale * math.exp(-coefficient)
    slack = search.tolerance * w.numbers[NOW]
    for leaf in range(leaves):
        for k in range(w.labels):
            votes[k] = 1.0 if learner.total[leaf, k] > slack else -1.0
        record_votes(stages, t, leaf, votes)
        for group in range(w.signs.shape[0] // chunks):
            for k in range(w.labels):
                agrees = votes[k] * w.signs[group * chunks + k // lanes, k % lanes] > 0.0
                at = (group * w.stride + leaf) * chunks + k // lanes
                w.factors[at, k % lanes] = down if agrees else up
        for m in range(learner.begin[leaf], learner.end[leaf]):
            w.slot[learner.rows[m]] += leaf
    stages.coefficient[t] = coefficient
    stages.edge[t] = edge
    write_back(w)
