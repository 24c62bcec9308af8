"""The compiled loop of boosting: ask the policy, search its features, let the learner go on.

As in `abex.simulation`, the policy's kernels are compiled into the loop: a pull costs nanoseconds. A learner is
a sequence of searches: `begin` opens it, `accept` takes what a search found and says whether there is another.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.lanes import add_magnitudes, sum_bins
from abex.boosting.products import accept_term, begin_product
from abex.boosting.stages import (
    PRODUCT,
    STUMP,
    TREE,
    coefficient_of,
    normaliser,
    read_votes,
    record_cut,
    record_votes,
    reward_of,
)
from abex.boosting.stumps import (
    BUFFER,
    EDGE,
    FEATURE,
    MISSING_RIGHT,
    RANK,
    border,
    forget,
    inner_rows,
    mark,
    try_feature,
)
from abex.boosting.trees import accept_split, begin_tree, try_in_leaf
from abex.boosting.weights import NOW, put_off, write_back
from abex.kernels import address_of, call_at, compiled, kernel
from abex.policies.base import Kernels


class Learner(NamedTuple):
    """The base learner and what it keeps between two searches."""

    terms: int  # of a product
    cycles: int  # how often each term is fitted
    leaves: int  # of a tree
    smoothing: float
    at: NDArray[np.int64]  # (3,) where the learner stands
    value: NDArray[np.float64]  # (2,)
    cut: NDArray[np.int64]  # (terms or leaves, 4) as Search.cut
    rows: NDArray[np.int32]  # (n,) examples by leaf
    spare: NDArray[np.int32]  # (n,) scratch
    code: NDArray[np.uint8]  # (n,) scratch
    begin: NDArray[np.int64]  # (leaves,)
    end: NDArray[np.int64]
    parent: NDArray[np.int64]
    is_right: NDArray[np.bool_]
    gain: NDArray[np.float64]
    constant: NDArray[np.float64]
    total: NDArray[
        np.float64
    ]  # (leaves, L + 1) signed sums of the labels, mass; padded as rows of weights are
    right: NDArray[np.float64]  # (leaves, L + 1) the same right of the best cut


def new_learner(
    kind: int, n: int, width: int, *, terms: int = 1, cycles: int = 1, leaves: int = 1,
    smoothing: float = 0.0,
) -> Learner:  # fmt: skip
    """A record for ``n`` examples with rows of ``width`` numbers."""
    examples = n if kind == TREE else 0
    return Learner(
        terms, cycles, leaves, smoothing, np.zeros(3, np.int64), np.zeros(2),
        np.zeros((max(terms, leaves), 4), np.int64), np.zeros(examples, np.int32),
        np.zeros(examples, np.int32), np.zeros(examples, np.uint8), np.zeros(leaves, np.int64), np.zeros(leaves, np.int64),
        np.zeros(leaves, np.int64), np.zeros(leaves, np.bool_), np.zeros(leaves), np.zeros(leaves),
        np.zeros((leaves, width)), np.zeros((leaves, width)),
    )  # fmt: skip


@compiled()
def accept_stump(t: int, codes: Any, w: Any, search: Any, learner: Any, stages: Any, votes: Any) -> float:
    """Record the stump found and put its update off."""
    j, rank, missing_right = search.cut[FEATURE], search.cut[RANK], search.cut[MISSING_RIGHT]
    if j < 0:
        return 0.0  # nothing to cut: an iteration without effect
    edge = search.best[EDGE] / w.numbers[NOW]
    coefficient = coefficient_of(edge, learner.smoothing)
    read_votes(search, w.chunks, 1.0, votes)
    record_cut(stages, t, 0, search.cut)
    record_votes(stages, t, 0, votes)
    stages.coefficient[t] = coefficient
    stages.edge[t] = edge
    if search.track:
        carry_totals(codes, w, search, votes, coefficient)
    else:
        w.numbers[NOW] *= normaliser(edge, coefficient)
    flagged = mark(codes, j, rank, missing_right, w.slot, 1 << w.counts[0])
    put_off(w, votes, coefficient, flagged)
    if w.counts[0] == w.depth:
        write_back(w)
    return 0.0


@kernel
def carry_totals(codes: Any, w: Any, search: Any, votes: Any, coefficient: float) -> None:
    """Sums of the weights after the update, from the sums of the best stump's bins."""
    chunks = w.chunks
    lanes = w.values.shape[1]
    j, rank = search.cut[FEATURE], search.cut[RANK]
    masses = search.masses[search.cut[BUFFER]]
    sum_bins(w.block, masses, border(codes, j, rank) + 1, codes.bins[j], chunks)
    if codes.missing[j] and search.cut[MISSING_RIGHT]:
        for c in range(chunks):
            for k in range(lanes):
                w.block[c, k] += masses[c, k]
    begin, end = inner_rows(codes, j, rank)
    for at in range(begin, end):
        i = codes.order[at]
        slot = w.group[i] * w.stride + w.slot[i]
        add_magnitudes(w.block, 0, w.values, i, w.factors, slot, chunks)
    everything = 0.0
    up, down = math.exp(coefficient), math.exp(-coefficient)
    for k in range(w.labels):
        right_mass = w.block[k // lanes, k % lanes]
        right = 0.5 * (w.total[k] + search.edges[2 * chunks + k // lanes, k % lanes])
        left_mass = w.mass[k] - right_mass
        left = w.total[k] - right
        shrink = down if votes[k] > 0.0 else up
        positive = 0.5 * ((right_mass + right) * shrink + (left_mass + left) / shrink)
        negative = 0.5 * ((right_mass - right) / shrink + (left_mass - left) * shrink)
        w.total[k] = positive - negative
        w.mass[k] = positive + negative
        everything += w.mass[k]
    w.numbers[NOW] = everything


@compiled()
def begin_stump(learner: Any, search: Any, w: Any) -> float:
    """One search; returns the sum of the weights to search in."""
    return float(w.numbers[NOW])


#: learner -> what opens it, what searches a feature, what takes the result of a search
STEPS = {
    STUMP: (begin_stump, try_feature, accept_stump),
    PRODUCT: (begin_product, try_feature, accept_term),
    TREE: (begin_tree, try_in_leaf, accept_split),
}


class Steps(NamedTuple):
    """Addresses of the three functions of a learner, which are compiled once for all policies."""

    begin: int
    search: int
    accept: int


def steps_of(
    kind: int, codes: Any, w: Any, search: Any, learner: Any, stages: Any, votes: NDArray[np.float64]
) -> Steps:
    """The learner's functions for records of these types."""
    begin, try_one, accept = STEPS[kind]
    return Steps(
        address_of(begin, learner, search, w),
        address_of(try_one, codes, 0, w, search, learner, 0.0),
        address_of(accept, 0, codes, w, search, learner, stages, votes),
    )


@cache
def boosting_loop(kernels: Kernels) -> Any:
    """The loop, compiled once per policy."""
    select, update = kernels

    @compiled(*kernels)
    def boost(
        first: int, last: int, steps: Any, codes: Any, w: Any, search: Any, learner: Any, arms: Any, pulls: Any,
        stages: Any, state: Any, rng: Any, votes: Any,
    ) -> None:  # fmt: skip
        """Iterations first..last-1."""
        for t in range(first, last):
            scale = call_at(steps.begin, (learner, search, w))
            while scale > 0.0:
                forget(search, scale)
                for _ in range(arms.per_search):
                    pull = pulls.made[0]
                    arm = select(state, pull + 1, rng)
                    edge = 0.0
                    for m in range(arms.start[arm], arms.start[arm + 1]):
                        edge = call_at(steps.search, (codes, arms.features[m], w, search, learner, edge))
                    reward = reward_of(edge / scale)
                    update(state, pull + 1, arm, arm, reward, rng)
                    pulls.arm[pull] = arm
                    pulls.reward[pull] = reward
                    pulls.made[0] = pull + 1
                scale = call_at(steps.accept, (t, codes, w, search, learner, stages, votes))

    return boost
