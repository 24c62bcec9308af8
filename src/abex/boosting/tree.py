"""The grower of Hamming trees: every leaf votes for or against every label, h_l(x) = a v_{leaf(x), l}.

Grown best first: the leaf whose split gains most is split, gain = sum_l (|s_left| + |s_right| - |s_left + s_right|)
with s the signed weights of a side. As |s_left| + |s_right| = max(|e|, |s|), the scan of `splitter` finds the
best split when it is told the leaf's |s| as the least contribution of a label.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import MAX_BINS, BinnedFeatures
from abex.boosting.histogram import add_to_bins, clear, fill_frequent_bin, join_bins
from abex.boosting.learners import WeakLearners, coefficient_of, normaliser, record_split, record_votes
from abex.boosting.splitter import SplitSearch, scan_both, sums_per_bin
from abex.boosting.weights import ExampleWeights, flush
from abex.kernels import Record, compiled, kernel

MIN_MASS = 1e-30  # mass of a leaf whose weights have vanished: a search ends where there is none


class TreeGrower(Record):
    """A tree under way: its leaves, the best split of each, and which of them is searched."""

    sample: NDArray[np.int32]  # (n,) first the examples that trees are grown on, ascending
    sample_start: NDArray[np.int64]  # (G + 1,) where those of a group begin
    rows: NDArray[np.int32]  # (n,) examples, leaf by leaf
    begin: NDArray[np.int64]  # (leaves,) where the examples of a leaf begin
    end: NDArray[np.int64]
    parent: NDArray[np.int64]  # node, -1: none
    is_right: NDArray[np.bool_]  # on which side of it
    total: NDArray[np.float64]  # (leaves, padded labels) signed sums of the labels, then the mass
    unsplit: NDArray[np.float64]  # (leaves,) sum of their sizes: the edge of a leaf as it is
    feature: NDArray[np.int64]  # (leaves,) best split
    rank: NDArray[np.int64]
    missing_right: NDArray[np.bool_]
    gain: NDArray[np.float64]
    right: NDArray[np.float64]  # (leaves, padded labels) as total, right of the best split
    votes: NDArray[np.float64]  # (padded labels,) scratch
    most_leaves: int
    smoothing: float
    sampled: int  # examples that trees are grown on
    leaves: int  # so far
    leaf: int  # the one searched
    waiting: int  # leaf to be searched next, or -1


def new_tree_grower(w: ExampleWeights, leaves: int, smoothing: float) -> TreeGrower:
    """A grower for the examples of ``w``."""
    n, padded = w.values.shape
    return TreeGrower(
        sample=np.arange(n, dtype=np.int32),
        sample_start=w.group_start.copy(),
        rows=np.zeros(n, np.int32),
        begin=np.zeros(leaves, np.int64),
        end=np.zeros(leaves, np.int64),
        parent=np.zeros(leaves, np.int64),
        is_right=np.zeros(leaves, np.bool_),
        total=np.zeros((leaves, padded)),
        unsplit=np.zeros(leaves),
        feature=np.zeros(leaves, np.int64),
        rank=np.zeros(leaves, np.int64),
        missing_right=np.zeros(leaves, np.bool_),
        gain=np.zeros(leaves),
        right=np.zeros((leaves, padded)),
        votes=np.zeros(padded),
        most_leaves=leaves,
        smoothing=smoothing,
        sampled=n,
    )


def restrict_to_sample(grower: TreeGrower, w: ExampleWeights, drawn: NDArray[np.bool_]) -> None:
    """Grow trees on the examples ``drawn`` (n,); the others, out of the bag, have no weights."""
    sample = np.flatnonzero(drawn)
    grower.sampled = sample.size
    grower.sample[: sample.size] = sample
    grower.sample_start[:] = np.searchsorted(sample, w.group_start)


@compiled()
def begin_tree(grower: TreeGrower, search: SplitSearch, w: ExampleWeights) -> float:
    """One leaf with all examples in the bag; returns the sum of the weights to search in."""
    if w.pending == w.depth:
        flush(w, grower.sample_start, grower.sample)
    n = grower.sampled
    rows, sample = grower.rows, grower.sample
    for m in range(n):
        rows[m] = sample[m]
    grower.begin[0] = 0
    grower.end[0] = n
    grower.leaves = 1
    grower.waiting = -1
    grower.parent[0] = -1
    w.sum = w.written
    grower.total[0, w.labels] = w.written
    for k in range(w.labels):
        grower.total[0, k] = w.total[k] / w.factor
    return open_leaf(grower, search, w, 0)


@kernel
def open_leaf(grower: TreeGrower, search: SplitSearch, w: ExampleWeights, leaf: int) -> float:
    """Make ``leaf`` the one searched; returns its mass."""
    grower.leaf = leaf
    edge = 0.0
    for k in range(w.labels):
        search.least[0, k] = abs(grower.total[leaf, k])
        edge += search.least[0, k]
    grower.unsplit[leaf] = edge
    search.unsplit = edge
    grower.gain[leaf] = 0.0
    return float(grower.total[leaf, w.labels])


@compiled()
def search_in_leaf(
    binned: BinnedFeatures, j: int, w: ExampleWeights, search: SplitSearch, grower: TreeGrower, known: float
) -> float:
    """Search the splits of feature j among the examples of the leaf at hand; see `splitter.search_feature`."""
    if binned.bins[j] < 2:
        return known
    width = w.width
    bins = binned.bins[j]
    buffer = 1 - search.buffer
    sums = search.sums[buffer]
    leaf = grower.leaf
    frequent = binned.frequent[j]
    code = binned.code[binned.code_start[j] : binned.code_start[j + 1]]
    rows, chosen, chosen_code = grower.rows, search.row, search.code
    count = 0
    if search.shuffle.size > 0:  # the shadow of the feature: every example has the value of another one
        if search.stale:
            shuffle_leaf(search, grower)
        shuffle, first = search.shuffle, grower.begin[leaf]
        for m in range(first, grower.end[leaf]):
            other = np.uintp(shuffle[m - first])
            chosen[count] = rows[m]
            chosen_code[count] = code[other]
            count += int(code[other] != frequent)
    else:
        for m in range(grower.begin[leaf], grower.end[leaf]):  # those off the frequent bin, without a branch
            i = np.uintp(rows[m])
            chosen[count] = i
            chosen_code[count] = code[i]
            count += int(code[i] != frequent)
    several = sums_per_bin(bins)
    clear(sums, several * bins, width)
    add_to_bins(sums, bins, several, chosen_code, chosen, w.values, None, None, 0, 0, count, width)
    join_bins(sums, bins, several, width)
    if frequent >= 0:
        fill_frequent_bin(sums, bins, frequent, grower.total[leaf], search.scratch, width)
    return scan_both(binned, j, w, search, buffer, known, None)


@kernel
def shuffle_leaf(search: SplitSearch, grower: TreeGrower) -> None:
    """The examples of the leaf at hand in random order (Fisher and Yates, numbers of a linear congruence)."""
    out, rows, first = search.shuffle, grower.rows, grower.begin[grower.leaf]
    number = np.uint64(search.random)
    for m in range(grower.end[grower.leaf] - first):
        number = number * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        k = np.uintp(((number >> np.uint64(33)) * np.uint64(m + 1)) >> np.uint64(31))
        out[m] = out[k]
        out[k] = rows[first + m]
    search.random = int(number)
    search.stale = False


@compiled()
def accept_split(
    t: int, binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch, grower: TreeGrower, learners: WeakLearners
) -> float:  # fmt: skip
    """Note the best split of the leaf searched, go on growing; returns 0 when the tree is finished."""
    leaf = grower.leaf
    if search.feature >= 0:
        grower.gain[leaf] = search.edge - grower.unsplit[leaf]
        grower.feature[leaf] = search.feature
        search.rank = mid_gap(binned, w, search)
        grower.rank[leaf] = search.rank
        grower.missing_right[leaf] = search.missing_right
        note_right(binned, w, search, grower, leaf)
    while True:
        if grower.waiting >= 0:
            leaf = grower.waiting
            grower.waiting = -1
            return open_leaf(grower, search, w, leaf)
        leaves = grower.leaves
        leaf = -1
        gain = 0.0
        if leaves < grower.most_leaves:
            for k in range(leaves):
                if grower.gain[k] > gain + search.tolerance * w.sum:
                    gain = grower.gain[k]
                    leaf = k
            if leaves == 1 and leaf < 0 and search.feature >= 0:
                leaf = 0  # the root is split also where that gains nothing yet: its leaves may, and they vote
        if leaf < 0:
            finish_tree(t, w, search, grower, learners)
            return 0.0
        split_leaf(t, binned, w, search, grower, learners, leaf)
        if leaves + 1 < grower.most_leaves:
            grower.waiting = leaves
            return open_leaf(grower, search, w, leaf)


@kernel
def border_code(binned: BinnedFeatures, feature: int, rank: int, missing_right: bool) -> tuple[int, int]:
    """Codes above the first number, or equal to the second, are right of a split."""
    missing = binned.missing[feature]
    return rank + (1 if missing else 0), 0 if missing and missing_right else MAX_BINS


@kernel
def mid_gap(binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch) -> int:
    """The split in the middle of the empty bins around the best one: all of them part the examples of the leaf alike.

    A leaf has examples in few of the bins. The first of equal splits would lie close to the examples on its left.
    """
    feature, rank = search.feature, search.rank
    first = 1 if binned.missing[feature] else 0
    if rank < 0:
        return rank
    sums = search.sums[search.buffer]
    nothing = search.tolerance * search.scale
    last = rank + first + 1
    while last < binned.bins[feature] - 1 and sums[last, w.labels] <= nothing:
        last += 1
    return rank + (last - rank - first - 1) // 2


@kernel
def note_right(
    binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch, grower: TreeGrower, leaf: int
) -> None:
    """Signed sums and mass right of the best split of a leaf: edges are right sums less left sums."""
    for k in range(w.labels):
        grower.right[leaf, k] = 0.5 * (grower.total[leaf, k] + search.best[0, k])
    limit, lost = border_code(binned, search.feature, search.rank, search.missing_right)
    sums = search.sums[search.buffer]
    mass = 0.0
    for b in range(binned.bins[search.feature]):
        if b > limit or b == lost:
            mass += sums[b, w.labels]
    grower.right[leaf, w.labels] = mass


@kernel
def split_leaf(
    t: int, binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch, grower: TreeGrower, learners: WeakLearners,
    leaf: int,
) -> None:  # fmt: skip
    """Split a leaf: it keeps the left examples, a new leaf gets the right ones."""
    node = grower.leaves - 1
    other = grower.leaves
    feature, rank, missing_right = grower.feature[leaf], grower.rank[leaf], grower.missing_right[leaf]
    record_split(learners, t, node, feature, rank, missing_right, grower.gain[leaf] / w.sum)
    if grower.parent[leaf] >= 0:
        if grower.is_right[leaf]:
            learners.right[t, grower.parent[leaf]] = node
        else:
            learners.left[t, grower.parent[leaf]] = node
    learners.left[t, node] = ~leaf
    learners.right[t, node] = ~other
    limit, lost = border_code(binned, feature, rank, missing_right)
    start = binned.code_start[feature]
    codes, rows, spare = binned.code, grower.rows, search.row
    left = grower.begin[leaf]
    count = 0
    for m in range(grower.begin[leaf], grower.end[leaf]):  # no branch: written to both, kept in one
        i = rows[m]
        code = codes[np.uintp(start + i)]
        right = int(code > limit) | int(code == lost)
        spare[count] = i
        rows[left] = i
        count += right
        left += 1 - right
    for m in range(count):
        rows[left + m] = spare[m]
    grower.begin[other] = left
    grower.end[other] = grower.end[leaf]
    grower.end[leaf] = left
    for k in range(w.labels + 1):
        grower.total[other, k] = grower.right[leaf, k]
        grower.total[leaf, k] -= grower.right[leaf, k]
    for k in (leaf, other):
        grower.parent[k] = node
        grower.is_right[k] = k == other
        grower.gain[k] = 0.0
        grower.total[k, w.labels] = max(grower.total[k, w.labels], MIN_MASS)
    grower.leaves += 1


@kernel
def finish_tree(
    t: int, w: ExampleWeights, search: SplitSearch, grower: TreeGrower, learners: WeakLearners
) -> None:
    """Let the leaves vote, record the tree, put its update off."""
    if grower.leaves < 2:
        return
    edge = 0.0
    for leaf in range(grower.leaves):
        for k in range(w.labels):
            edge += abs(grower.total[leaf, k])
    edge = min(edge / w.sum, 1.0)
    coefficient = coefficient_of(edge, grower.smoothing)
    scale = 1.0 / (w.sum * normaliser(edge, coefficient))
    up, down = scale * math.exp(coefficient), scale * math.exp(-coefficient)
    slack = search.tolerance * w.sum
    votes, slot, rows = grower.votes, w.slot, grower.rows
    for leaf in range(grower.leaves):
        for k in range(w.labels):
            votes[k] = 1.0 if grower.total[leaf, k] > slack else -1.0
        record_votes(learners, t, leaf, votes)
        for group in range(w.group_start.size - 1):
            row = group * w.stride + leaf
            for k in range(w.labels):
                agrees = votes[k] * w.signs[group, k] > 0.0
                w.factors[row, k] = down if agrees else up
        for m in range(grower.begin[leaf], grower.end[leaf]):
            slot[rows[m]] += leaf
    learners.coefficient[t] = coefficient
    learners.edge[t] = edge
    w.pending = w.depth  # the table is full
