"""The best stump on a feature: one pass over the examples, one over the bins, exact cuts.

A stump is h_l(x) = a v_l phi(x), phi = +1 where x > b, else -1, votes v in {-1, +1}^L. Its edge is
sum_l |e_l| with e_l = sum_i s_il phi(x_i), v_l = sign e_l: all right sums first, then bins cross to the left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.encoding import MOST_BINS
from abex.boosting.lanes import (
    add_to_bins,
    add_weighted_bins,
    clear,
    cross_bins,
    cross_rows,
    join_bins,
    lanes_of,
    note_masses,
    sum_bins,
    sweep,
    vectors,
)
from abex.boosting.weights import settled
from abex.kernels import compiled, kernel, rare_kernel

ROOM = 2 * MOST_BINS  # sums kept for a feature: up to four for a bin
EDGE, SCALE = 0, 1  # places in Search.best
FEATURE, RANK, MISSING_RIGHT, BUFFER = 0, 1, 2, 3  # places in Search.cut


class Search(NamedTuple):
    """Scratch of a search, and the best stump it has met."""

    sums: NDArray[Any]  # (2, ROOM * chunks, lanes): signed sums per bin, of the feature at hand and the best
    masses: NDArray[Any]  # (2, bins * chunks, lanes): the same for absolute sums, where they are tracked
    edges: NDArray[Any]  # (4 * chunks, lanes): all examples right, running, best, scratch
    twice: NDArray[Any]  # (chunks, lanes): 2 for a label, 0 in the padding
    least: NDArray[Any]  # (chunks, lanes): what every label contributes at least; 0 for stumps
    bounds: NDArray[np.float64]  # (bins + 1,) edges at the borders of the bins
    inner: NDArray[np.float64]  # (most examples of a bin,) edges inside a bin
    best: NDArray[np.float64]  # [EDGE, SCALE]: the best edge and the sum of the weights searched
    cut: NDArray[np.int64]  # [FEATURE, RANK, MISSING_RIGHT, BUFFER]
    lists: bool  # some features are listed: their sums need the totals
    track: bool  # totals are carried from one update to the next, which needs the masses of every feature
    tolerance: float  # differences of edges below this share of the weights are ties


def new_search(
    chunks: int, labels: int, dtype: Any, *, inner: int, lists: bool, track: bool, tolerance: float
) -> Search:
    """A record for rows of ``chunks`` vectors and wide bins of up to ``inner`` examples."""
    lanes = lanes_of(dtype)
    masses = MOST_BINS * chunks if track else 0
    twice = vectors(chunks, dtype)
    twice.reshape(-1)[:labels] = 2.0
    return Search(
        vectors(2 * ROOM * chunks, dtype).reshape(2, -1, lanes),
        vectors(2 * masses, dtype).reshape(2, masses, lanes), vectors(4 * chunks, dtype), twice,
        vectors(chunks, dtype), np.zeros(MOST_BINS + 1), np.zeros(inner), np.zeros(2),
        np.zeros(4, np.int64), lists, track, tolerance,
    )  # fmt: skip


@kernel
def forget(search: Any, scale: float) -> None:
    """Start a new search among weights that sum to ``scale``."""
    search.best[EDGE] = 0.0
    search.best[SCALE] = scale
    search.cut[FEATURE] = -1
    search.cut[BUFFER] = 1


@compiled()
def try_feature(codes: Any, j: int, w: Any, search: Any, learner: Any, known: float) -> float:
    """Search the cuts of feature j and keep the best stump met; returns its edge, or ``known`` if that is more."""
    if codes.bins[j] < 2:
        return known
    before = search.best[EDGE]
    kept = search.cut[FEATURE]
    buffer = 1 - search.cut[BUFFER]
    fill_bins(codes, j, w, search, buffer)
    top = scan(codes, j, w, search, buffer, 0, known)
    if codes.missing[j]:
        top = scan(codes, j, w, search, buffer, 1, top)
    keep_buffer(search, buffer, before, kept)
    return float(top)


@kernel
def keep_buffer(search: Any, buffer: int, before: float, kept: int) -> None:
    """Remember which half of the sums belongs to the best feature, if it is the one just tried."""
    if search.best[EDGE] > before or search.cut[FEATURE] != kept:
        search.cut[BUFFER] = buffer


@kernel
def fill_bins(codes: Any, j: int, w: Any, search: Any, buffer: int) -> None:
    """Sums (and masses, where tracked) of the current weights over each bin of feature j."""
    chunks = w.chunks
    bins = codes.bins[j]
    sums, masses = search.sums[buffer], search.masses[buffer]
    listed = codes.listed[j]
    several = 1 if search.track and listed else sums_per_bin(bins)
    clear(sums, several * bins * chunks)
    if search.track:
        clear(masses, bins * chunks)
    code = codes.code[codes.code_start[j] : codes.code_start[j + 1]]
    row = codes.row[codes.row_start[j] : codes.row_start[j + 1]]
    if settled(w) and not search.track:
        if listed:
            add_to_bins(sums, bins, several, code, row, w.values, None, None, 0, 0, code.size, chunks)
        else:
            add_to_bins(sums, bins, several, code, None, w.values, None, None, 0, 0, code.size, chunks)
    else:
        groups = w.group_start.size - 1
        last = 0
        for group in range(groups):
            first, last = last, w.group_start[group + 1]
            if listed:
                last = codes.part[codes.part_start[j] + group]
                add_to_bins(
                    sums, bins, several, code, row, w.values, w.slot, w.factors, group * w.stride,
                    first, last, chunks,
                )  # fmt: skip
            else:
                add_to_bins(
                    sums, bins, several, code, None, w.values, w.slot, w.factors, group * w.stride,
                    first, last, chunks,
                )  # fmt: skip
            if search.track:
                add_weighted_bins(masses, sums, bins, several, w.turns, group, chunks)
    join_bins(sums, bins, several, chunks)
    if search.track:
        for at in range(bins * chunks):  # labels that are there, less those that are not
            for k in range(sums.shape[1]):
                masses[at, k] += masses[at, k] - sums[at, k]
    if listed:
        fill_rest(sums, bins, codes.frequent[j], w.total, w.block)
        if search.track:
            fill_rest(masses, bins, codes.frequent[j], w.mass, w.block)
    if search.track and codes.wide[j]:
        note_masses(masses, w.labels, 0, bins, chunks)


@kernel
def sums_per_bin(bins: int) -> int:
    """How many sums there is room for in each bin (see `add_to_bins`)."""
    return 4 if 4 * bins <= ROOM else 2 if 2 * bins <= ROOM else 1


@kernel
def fill_rest(sums: Any, bins: int, rest: int, whole: Any, block: Any) -> None:
    """Bin ``rest``, still empty, gets what the others leave of the ``whole``."""
    chunks, lanes = block.shape
    sum_bins(block, sums, 0, bins, chunks)
    for c in range(chunks):
        for k in range(lanes):
            sums[rest * chunks + c, k] = whole[c * lanes + k] - block[c, k]


@kernel
def scan(codes: Any, j: int, w: Any, search: Any, buffer: int, missing_right: int, known: float) -> float:
    """Let the bins cross from right to left, smallest values first; returns the best edge met (or known)."""
    chunks = w.chunks
    slack = search.tolerance * search.best[SCALE]
    edges, sums, bounds = search.edges, search.sums[buffer], search.bounds
    bins = codes.bins[j]
    first = 1 if codes.missing[j] else 0
    crossing = first if missing_right else 0
    sweep(bounds, edges, sums, bins, crossing, search.twice, search.least, chunks)
    top = known
    for b in range(crossing + 1, bins):
        top = max(top, bounds[b])
    wide = codes.wide[j]
    first_rank = codes.first_rank[codes.first_start[j] : codes.first_start[j + 1]]
    place = codes.place[codes.place_start[j] : codes.place_start[j + 1]]
    # of bins: exact, or sums of what bounds the rows
    masses = search.masses[buffer] if search.track else sums
    row, lane = w.labels // w.values.shape[1], w.labels % w.values.shape[1]
    at = -1  # best edges are those with bins below this one on the left
    running = crossing  # so are running edges
    cross_bins(edges, chunks, 0, sums, running, crossing, search.twice, chunks)
    for b in range(crossing, bins):
        low, high = b - first, b - first + 1  # ranks of the bin, the last of them on the border
        if wide and b >= first:
            low, high = first_rank[low], first_rank[high]
            # inside the bin |e_l| <= (|e_l| before + after) / 2 + mass_l: no path of steps 2 s_il reaches further
            mass = masses[row + b * chunks, lane] if high > low + 1 else -top
            if 0.5 * (bounds[b] + bounds[b + 1]) + mass + slack >= top:
                cross_bins(edges, chunks, chunks, sums, running, b, search.twice, chunks)
                running = b
                cross_inner(codes, j, w, search, low, high - 1, 3 * chunks)
                found = -1
                for rank in range(low, high - 1):
                    edge = search.inner[place[rank + 1] - place[low] - 1]
                    top = max(top, edge)
                    if edge > search.best[EDGE] + slack:
                        keep(search, edge, j, rank, missing_right)
                        found = rank
                if found >= 0:
                    at = -1
                    cross_inner(codes, j, w, search, low, found + 1, 2 * chunks)
        if b < bins - 1 and bounds[b + 1] > search.best[EDGE] + slack:
            keep(search, bounds[b + 1], j, high - 1, missing_right)
            at = b + 1
    if at >= 0:
        cross_bins(edges, 2 * chunks, 0, sums, crossing, at, search.twice, chunks)
    return top


@kernel
def keep(search: Any, edge: float, j: int, rank: int, missing_right: int) -> None:
    """Note the best stump so far."""
    search.best[EDGE] = edge
    search.cut[FEATURE] = j
    search.cut[RANK] = rank
    search.cut[MISSING_RIGHT] = missing_right


@kernel
def cross_inner(codes: Any, j: int, w: Any, search: Any, first: int, last: int, out: int) -> None:
    """Let ranks first..last-1 cross: from the running edges to vectors ``out``.. of the edges."""
    start = codes.order_start[j]
    place = codes.place[codes.place_start[j] :]
    cross_rows(
        search.inner, search.edges, out, w.chunks, w.values, w.group, w.slot, w.factors, w.stride,
        codes.order, start + place[first], start + place[last], search.twice, search.least, w.chunks,
    )  # fmt: skip


@kernel
def border(codes: Any, j: int, rank: int) -> int:
    """Bins above this one are right of the cut; `inner_rows` says which rows of the bin itself are."""
    first = 1 if codes.missing[j] else 0
    if not codes.wide[j] or rank < 0:
        return rank + first
    first_rank = codes.first_rank[codes.first_start[j] : codes.first_start[j + 1]]
    return int(np.searchsorted(first_rank, rank, side="right")) - 1 + first


@kernel
def inner_rows(codes: Any, j: int, rank: int) -> tuple[int, int]:
    """Range of `order` with the rows of the border bin that are right of the cut."""
    if not codes.wide[j] or rank < 0:
        return 0, 0
    first = 1 if codes.missing[j] else 0
    b = border(codes, j, rank) - first
    place = codes.place[codes.place_start[j] :]
    start = codes.order_start[j]
    last = codes.first_rank[codes.first_start[j] + b + 1]
    return start + place[rank + 1], start + place[last]


@rare_kernel
def mark(codes: Any, j: int, rank: int, missing_right: int, slot: Any, bit: int) -> float:
    """Toggle ``bit`` in the slots of one side of a cut; returns the side phi of the examples toggled."""
    limit = border(codes, j, rank)
    code = codes.code[codes.code_start[j] : codes.code_start[j + 1]]
    flagged = 1.0
    lost = missing_right and codes.missing[j]
    if codes.listed[j]:
        row = codes.row[codes.row_start[j] : codes.row_start[j + 1]]
        right = codes.frequent[j] <= limit  # the side of the rows listed that lie opposite the frequent value
        flagged = 1.0 if right else -1.0
        place = 0
        while 1 << place < bit:
            place += 1
        # shifts are not made branches, and the sign of an unsigned index is not looked at
        for m in range(row.size):
            slot[np.uintp(row[m])] ^= np.int64((code[m] > limit) == right) << place
        if lost:
            for m in range(row.size):
                slot[np.uintp(row[m])] ^= np.int64(code[m] == 0) << place
    else:
        for i in range(code.size):
            slot[i] ^= bit if code[i] > limit else 0
        if lost:
            for i in range(code.size):
                slot[i] ^= bit if code[i] == 0 else 0
    begin, end = inner_rows(codes, j, rank)
    for at in range(begin, end):
        slot[codes.order[at]] ^= bit
    return flagged
