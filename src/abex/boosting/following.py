"""How many rows a growing model gets wrong: all classifiers in order, looked at after some of them.

A few rows at a time go through all classifiers, their scores side by side per label: ranks, scores and signs of such a
block stay in the nearest caches, and the loops over its rows are vector code. Thresholds of a feature are
replaced by their ranks among the model's own, and values by the number of thresholds below them, a quarter of the bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.encoding import BLOCK, columns
from abex.boosting.stages import TREE
from abex.kernels import compiled, kernel

ROWS = 128  # of a block: scores of 26 labels are 26 kB
MISSING = -1  # in place of the number of thresholds below a value that is not there


class RankedStages(NamedTuple):
    """Classifiers as `Model` has them: features counted among those used, thresholds as ranks, votes with coefficients."""

    feature: NDArray[np.int64]  # -1: no such cut
    rank: NDArray[np.int64]
    missing_right: NDArray[np.bool_]
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    votes: NDArray[np.float64]


class Scratch(NamedTuple):
    """What a block needs."""

    scores: NDArray[np.float64]  # (L, ROWS)
    sign: NDArray[np.float64]  # (ROWS,)
    wrong: NDArray[np.bool_]  # (ROWS,)


def ranked(model: Any, X: Any) -> tuple[RankedStages, NDArray[Any]]:
    """The classifiers of a `Model` and the rows of ``X``, (blocks, features used, ROWS), in ranks."""
    there = model.feature >= 0
    used, place = np.unique(model.feature[there], return_inverse=True)
    feature = np.full(model.feature.shape, -1, np.int64)
    feature[there] = place
    rank = np.zeros(model.feature.shape, np.int64)
    order = np.argsort(feature, axis=None, kind="stable")[np.count_nonzero(~there) :]
    mine = np.split(order, np.cumsum(np.bincount(place, minlength=used.size))[:-1]) if used.size else []
    blocks = -(-X.shape[0] // ROWS)
    small = all(cuts.size < np.iinfo(np.int16).max for cuts in mine)
    below = np.zeros((blocks, used.size, ROWS), np.int16 if small else np.int32)
    rows = np.arange(X.shape[0])
    for first in range(0, X.shape[1], BLOCK):
        wanted = np.flatnonzero((used >= first) & (used < first + BLOCK))
        if not wanted.size:
            continue
        across = list(columns(X, rows, first, min(first + BLOCK, X.shape[1])))
        for j in wanted:
            values = across[used[j] - first]
            cuts, rank.flat[mine[j]] = np.unique(model.threshold.flat[mine[j]], return_inverse=True)
            counts = np.where(np.isnan(values), MISSING, np.searchsorted(cuts, values, side="left"))
            padded = np.zeros(blocks * ROWS, below.dtype)
            padded[: values.size] = counts
            below[:, j] = padded.reshape(blocks, ROWS)
    votes = model.votes * model.coefficient[:, None, None]
    return RankedStages(feature, rank, model.missing_right, model.left, model.right, votes), below


def error_counts(
    model: Any, X: Any, truth: NDArray[np.int64], ends: NDArray[np.int64], strict: bool, mapper: Any
) -> NDArray[np.int64]:
    """How many rows the first ``ends[0]``, ``ends[1]``, ... classifiers get wrong; ``strict`` counts ties as errors."""
    stages, below = ranked(model, X)

    def count(block: int) -> NDArray[np.int64]:
        wrong = np.zeros(ends.size, np.int64)
        labels = truth[block * ROWS : (block + 1) * ROWS]
        scratch = Scratch(np.zeros((model.labels, ROWS)), np.zeros(ROWS), np.zeros(ROWS, np.bool_))
        follow(model.kind, stages, below[block], labels, ends, strict, scratch, wrong)
        return wrong

    total = np.zeros(ends.size, np.int64)
    for part in mapper(count, range(below.shape[0])):
        total += part
    return total


@compiled()
def follow(
    kind: int, stages: Any, below: Any, truth: Any, ends: Any, strict: bool, scratch: Any, wrong: Any
) -> None:
    """Take one block through all classifiers, adding to ``wrong`` at each end."""
    first = 0
    for e in range(ends.size):
        for t in range(first, ends[e]):
            if stages.feature[t, 0] >= 0:
                if kind == TREE:
                    add_tree(stages, t, below, truth.size, scratch.scores)
                else:
                    add_product(stages, t, below, scratch.scores, scratch.sign)
        first = ends[e]
        wrong[e] += count_wrong(scratch.scores, truth, strict, scratch.sign, scratch.wrong)


@kernel
def add_product(stages: Any, t: int, below: Any, scores: Any, sign: Any) -> None:
    """Add the votes of a product of stumps, or of a stump, which is a product of one."""
    for i in range(ROWS):
        sign[i] = 1.0
    for k in range(stages.feature.shape[1]):
        if stages.feature[t, k] >= 0:
            column = below[stages.feature[t, k]]
            rank = stages.rank[t, k]
            for i in range(ROWS):
                sign[i] = sign[i] if column[i] > rank else -sign[i]
            if stages.missing_right[t, k]:
                for i in range(ROWS):
                    sign[i] = -sign[i] if column[i] == MISSING else sign[i]
    for label in range(scores.shape[0]):
        vote = stages.votes[t, 0, label]
        score = scores[label]
        for i in range(ROWS):
            score[i] += vote * sign[i]


@kernel
def add_tree(stages: Any, t: int, below: Any, rows: int, scores: Any) -> None:
    """Add the votes of the leaf in which each row ends."""
    for i in range(rows):
        node = 0
        while node >= 0:
            count = below[stages.feature[t, node], i]
            right = count > stages.rank[t, node] or (count == MISSING and stages.missing_right[t, node])
            node = stages.right[t, node] if right else stages.left[t, node]
        for label in range(scores.shape[0]):
            scores[label, i] += stages.votes[t, ~node, label]


@kernel
def count_wrong(scores: Any, truth: Any, strict: bool, own: Any, wrong: Any) -> int:
    """Rows of which another label scores more than the true one, or as much and comes first (``strict``: or as much)."""
    for i in range(truth.size):
        own[i] = scores[truth[i], i]
        wrong[i] = False
    for label in range(scores.shape[0]):
        score = scores[label]
        for i in range(truth.size):
            tie = (score[i] == own[i]) & (label != truth[i]) & (strict | (label < truth[i]))
            wrong[i] |= (score[i] > own[i]) | tie
    count = 0
    for i in range(truth.size):
        count += wrong[i]
    return count
