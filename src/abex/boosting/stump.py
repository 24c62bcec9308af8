"""The grower of stumps: a single search, whose update is put off."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import BinnedFeatures
from abex.boosting.histogram import Rows, add_to_row, sum_bins, weight_of
from abex.boosting.learners import WeakLearners, coefficient_of, normaliser, record_split, record_votes
from abex.boosting.splitter import SplitSearch, border, inner_rows, mark, read_votes
from abex.boosting.vectors import absolute, pieces, stand_apart
from abex.boosting.weights import ExampleWeights, flush_if_full, update
from abex.kernels import Record, compiled, kernel, rare_kernel


class StumpGrower(Record):
    """What stumps are grown with."""

    votes: NDArray[np.float64]  # (padded labels,) scratch
    smoothing: float


def new_stump_grower(padded: int, smoothing: float) -> StumpGrower:
    """A grower for rows of ``padded`` labels."""
    return StumpGrower(votes=np.zeros(padded), smoothing=smoothing)


@compiled()
def begin_stump(grower: StumpGrower, search: SplitSearch, w: ExampleWeights) -> float:
    """One search; returns the sum of the weights to search in."""
    flush_if_full(w)
    return w.sum


@compiled()
def accept_stump(
    t: int, binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch, grower: StumpGrower, learners: WeakLearners
) -> float:  # fmt: skip
    """Record the stump found and put its update off."""
    if search.feature < 0:
        return 0.0  # nothing to split: an iteration without effect
    votes = grower.votes
    edge = min(search.edge / w.sum, 1.0)  # rounding may bring it above
    coefficient = coefficient_of(edge, grower.smoothing)
    read_votes(search, 1.0, votes)
    record_split(learners, t, 0, search.feature, search.rank, search.missing_right, edge)
    record_votes(learners, t, 0, votes)
    learners.coefficient[t] = coefficient
    learners.edge[t] = edge
    if search.track:
        carry_totals(binned, w, search, votes, coefficient)
    else:
        w.sum *= normaliser(edge, coefficient)
    marked_side = mark(binned, search.feature, search.rank, search.missing_right, w.slot, 1 << w.pending)
    update(w, votes, edge, coefficient, marked_side)
    return 0.0


@kernel
def carry_totals(
    binned: BinnedFeatures,
    w: ExampleWeights,
    search: SplitSearch,
    votes: NDArray[np.float64],
    coefficient: float,
) -> None:
    """Sums of the weights after the update, from the sums of the best stump's bins."""
    j, rank = search.feature, search.rank
    masses = search.masses[search.buffer]
    sum_bins(search.scratch, masses, border(binned, j, rank) + 1, binned.bins[j], w.width)
    if binned.missing[j] and search.missing_right:
        for k in range(search.scratch.shape[1]):
            search.scratch[0, k] += masses[0, k]
    begin, end = inner_rows(binned, j, rank)
    add_sizes(search.scratch, w, binned.order, begin, end)
    everything = 0.0
    up, down = math.exp(coefficient), math.exp(-coefficient)
    for k in range(w.labels):
        right_mass = search.scratch[0, k]
        right = 0.5 * (w.total[k] + search.best[0, k])
        left_mass = w.mass[k] - right_mass
        left = w.total[k] - right
        shrink = down if votes[k] > 0.0 else up
        positive = 0.5 * ((right_mass + right) * shrink + (left_mass + left) / shrink)
        negative = 0.5 * ((right_mass - right) / shrink + (left_mass - left) * shrink)
        w.total[k] = positive - negative
        w.mass[k] = positive + negative
        everything += w.mass[k]
    w.sum = everything


@rare_kernel
def add_sizes(out: Rows, w: ExampleWeights, order: NDArray[np.int32], begin: int, end: int) -> None:
    """``out`` += absolute current weights of examples ``order[begin:end]``."""
    stand_apart()
    for piece in range(pieces(w.width)):
        for at in range(begin, end):
            i = int(order[np.uintp(at)])
            start = int(w.group[np.uintp(i)]) * w.stride
            weight = weight_of(w.values, i, w.slot, w.factors, start, piece, w.width)
            add_to_row(out, 0, piece, w.width, absolute(weight))
