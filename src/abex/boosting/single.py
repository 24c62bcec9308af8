"""The learner of one stump: a single search, whose update is put off."""

from __future__ import annotations

import math
from typing import Any

from abex.boosting.lanes import add_magnitudes, sum_bins
from abex.boosting.stages import coefficient_of, normaliser, read_votes, record_cut, record_votes
from abex.boosting.stumps import BUFFER, EDGE, FEATURE, MISSING_RIGHT, RANK, border, inner_rows, mark
from abex.boosting.weights import NOW, update
from abex.kernels import compiled, kernel


@compiled()
def begin_stump(learner: Any, search: Any, w: Any) -> float:
    """One search; returns the sum of the weights to search in."""
    return float(w.numbers[NOW])


@compiled()
def accept_stump(t: int, codes: Any, w: Any, search: Any, learner: Any, stages: Any, votes: Any) -> float:
    """Record the stump found and put its update off."""
    j, rank, missing_right = search.cut[FEATURE], search.cut[RANK], search.cut[MISSING_RIGHT]
    if j < 0:
        return 0.0  # nothing to cut: an iteration without effect
    edge = min(search.best[EDGE] / w.numbers[NOW], 1.0)  # rounding may bring it above
    coefficient = coefficient_of(edge, learner.smoothing)
    read_votes(search, w.chunks, 1.0, votes)
    record_cut(stages, t, 0, search.cut, edge)
    record_votes(stages, t, 0, votes)
    stages.coefficient[t] = coefficient
    stages.edge[t] = edge
    if search.track:
        carry_totals(codes, w, search, votes, coefficient)
    else:
        w.numbers[NOW] *= normaliser(edge, coefficient)
    flagged = mark(codes, j, rank, missing_right, w.slot, 1 << w.counts[0])
    update(w, votes, edge, coefficient, flagged)
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
