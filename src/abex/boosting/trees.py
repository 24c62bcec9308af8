"""Hamming trees: every leaf votes for or against every label, h_l(x) = a v_{leaf(x), l}.

Grown best first: the leaf whose cut gains most is cut, gain = sum_l (|s_left| + |s_right| - |s_left + s_right|)
with s the signed weights of a side. As |s_left| + |s_right| = max(|e|, |s|), the scan of `stumps` finds the
best cut when it is told the leaf's |s| as the least contribution of a label.
"""

from __future__ import annotations

import math
from typing import Any

from abex.boosting.encoding import MOST_BINS
from abex.boosting.lanes import add_row, add_row_with_mass
from abex.boosting.stages import coefficient_of, normaliser, record_cut, record_votes
from abex.boosting.stumps import BUFFER, EDGE, FEATURE, MISSING_RIGHT, RANK, keep_buffer, scan
from abex.boosting.weights import clear, write_back
from abex.kernels import compiled, kernel

LEAF, LEAVES, WAITING = (
    0,
    1,
    2,
)  # places in Learner.at: leaf searched, leaves so far, leaf to search next or -1


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
    w.numbers[0] = w.numbers[1]
    sum_leaf(w, learner, 0)
    return turn_to(learner, search, w, 0)


@kernel
def sum_leaf(w: Any, learner: Any, leaf: int) -> None:
    """Signed sums and mass of a leaf."""
    chunks = w.chunks
    clear(w.block)
    for m in range(learner.begin[leaf], learner.end[leaf]):
        i = learner.rows[m]
        add_row_with_mass(w.block[:chunks], w.block[chunks:], 0, w.values, i, chunks)
    mass = 0.0
    for c in range(chunks):
        for k in range(w.block.shape[1]):
            learner.total[leaf * chunks + c, k] = w.block[c, k]
            mass += w.block[chunks + c, k]
    learner.mass[leaf] = mass


@kernel
def turn_to(learner: Any, search: Any, w: Any, leaf: int) -> float:
    """Make ``leaf`` the one searched; returns its mass."""
    learner.at[LEAF] = leaf
    constant = 0.0
    for c in range(w.chunks):
        for k in range(search.least.shape[1]):
            search.least[c, k] = abs(learner.total[leaf * w.chunks + c, k])
            constant += search.least[c, k]
    learner.constant[leaf] = constant
    learner.gain[leaf] = 0.0
    return float(learner.mass[leaf])


@compiled()
def try_in_leaf(codes: Any, j: int, w: Any, search: Any, learner: Any, known: float) -> float:
    """Search the cuts of feature j among the examples of the leaf at hand; see `stumps.try_feature`."""
    if codes.bins[j] < 2:
        return known
    chunks = w.chunks
    buffer = 1 - search.cut[BUFFER]
    base = buffer * MOST_BINS * chunks
    sums = search.sums[base : base + codes.bins[j] * chunks]
    clear(sums)
    leaf = learner.at[LEAF]
    start = codes.code_start[j]
    for m in range(learner.begin[leaf], learner.end[leaf]):
        i = learner.rows[m]
        add_row(sums, codes.code[start + i], w.values, i, chunks)
    before, kept = search.best[EDGE], search.cut[FEATURE]
    top = scan(codes, j, w, search, base, 0, known)
    if codes.missing[j]:
        top = scan(codes, j, w, search, base, 1, top)
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
                if learner.gain[k] > gain + search.tolerance * w.numbers[0]:
                    gain = learner.gain[k]
                    leaf = k
        if leaf < 0:
            finish_tree(t, w, search, learner, stages, votes)
            return 0.0
        split(t, codes, w, learner, stages, leaf)
        if leaves + 1 < learner.leaves:
            learner.at[WAITING] = leaves
            return turn_to(learner, search, w, leaf)


@kernel
def split(t: int, codes: Any, w: Any, learner: Any, stages: Any, leaf: int) -> None:
    """Cut a leaf: it keeps the left examples, a new leaf gets the right ones."""
    node = learner.at[LEAVES] - 1
    other = learner.at[LEAVES]
    cut = learner.cut[leaf]
    record_cut(stages, t, node, cut)
    if learner.parent[leaf] >= 0:
        if learner.is_right[leaf]:
            stages.right[t, learner.parent[leaf]] = node
        else:
            stages.left[t, learner.parent[leaf]] = node
    stages.left[t, node] = ~leaf
    stages.right[t, node] = ~other
    j = cut[FEATURE]
    limit = cut[RANK] + (1 if codes.missing[j] else 0)
    lost = 0 if cut[MISSING_RIGHT] == 1 and codes.missing[j] else MOST_BINS
    start = codes.code_start[j]
    left = learner.begin[leaf]
    spare = 0
    for m in range(learner.begin[leaf], learner.end[leaf]):
        i = learner.rows[m]
        code = codes.code[start + i]
        if code > limit or code == lost:
            learner.spare[spare] = i
            spare += 1
        else:
            learner.rows[left] = i
            left += 1
    for m in range(spare):
        learner.rows[left + m] = learner.spare[m]
    learner.begin[other] = left
    learner.end[other] = learner.end[leaf]
    learner.end[leaf] = left
    for k in (leaf, other):
        learner.parent[k] = node
        learner.is_right[k] = k == other
        learner.gain[k] = 0.0
        sum_leaf(w, learner, k)
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
    for at in range(leaves * chunks):
        for k in range(lanes):
            edge += abs(learner.total[at, k])
    edge /= w.numbers[0]
    coefficient = coefficient_of(edge, learner.smoothing)
    scale = 1.0 / (w.numbers[0] * normaliser(edge, coefficient))
    up, down = scale * math.exp(coefficient), scale * math.exp(-coefficient)
    slack = search.tolerance * w.numbers[0]
    for leaf in range(leaves):
        for k in range(w.total.size):
            votes[k] = 1.0 if learner.total[leaf * chunks + k // lanes, k % lanes] > slack else -1.0
        record_votes(stages, t, leaf, votes)
        for group in range(w.signs.shape[0] // chunks):
            for k in range(w.total.size):
                agrees = votes[k] * w.signs[group * chunks + k // lanes, k % lanes] > 0.0
                at = (group * w.stride + leaf) * chunks + k // lanes
                w.factors[at, k % lanes] = down if agrees else up
        for m in range(learner.begin[leaf], learner.end[leaf]):
            w.slot[learner.rows[m]] += leaf
    stages.coefficient[t] = coefficient
    stages.edge[t] = edge
    write_back(w)
