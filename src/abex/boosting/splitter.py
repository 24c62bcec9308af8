"""The best split of a feature: one pass over the examples, one over the bins, exact thresholds.

A stump is h_l(x) = a v_l phi(x), phi = +1 where x > b, else -1, votes v in {-1, +1}^L. Its edge is
sum_l |e_l| with e_l = sum_i s_il phi(x_i), v_l = sign e_l: all right sums first, then bins cross to the left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting import vectors
from abex.boosting.binning import MAX_BINS, BinnedFeatures
from abex.boosting.histogram import (
    Rows,
    add_to_bins,
    add_weighted_bins,
    clear,
    fill_frequent_bin,
    join_bins,
    store_masses,
    weight_of,
)
from abex.boosting.vectors import Vector, Width
from abex.boosting.weights import ExampleWeights, is_flushed
from abex.kernels import Record, compiled, kernel, rare_kernel

ROOM = 2 * MAX_BINS  # sums kept for a feature: up to four for a bin


class SplitSearch(Record):
    """Scratch of a search, and the best split it has met."""

    sums: NDArray[Any]  # (2, ROOM, padded): signed sums per bin, of the feature at hand and the best
    masses: NDArray[Any]  # (2, bins, padded): the same for absolute sums, where they are tracked
    all_right: Rows  # (1, padded) edges with all examples right of the split
    running: Rows  # (1, padded) edges with some of the bins left of it
    best: Rows  # (1, padded) edges of the best split
    scratch: Rows  # (1, padded)
    twice: Rows  # (1, padded): 2 for a label, 0 in the padding
    least: Rows  # (1, padded): what every label contributes at least; 0 for stumps
    bounds: NDArray[np.float64]  # (bins + 1,) edges at the borders of the bins
    inner: NDArray[np.float64]  # (most examples of a bin,) edges inside a bin
    row: NDArray[np.int32]  # (n,) trees: scratch for examples of a leaf
    code: NDArray[np.uint8]  # (n,) trees: and their bins
    shuffle: NDArray[np.int32]  # (n,) of a search of shadows: the examples of the leaf, shuffled; else empty
    lists: bool  # some features are listed: their sums need the totals
    track: bool  # totals are carried from one update to the next, which needs the masses of every feature
    tolerance: float  # differences of edges below this share of the weights are ties
    scale: float  # sum of the weights searched
    stale: bool  # the leaf is another one than that of the shuffle
    random: int  # where the random numbers of the shuffle have got to
    unsplit: float  # their edge without a split: that of the leaf in trees, else 0
    edge: float  # of the best split
    feature: int  # of the best split, -1: there is none
    rank: int  # of the largest value left of it
    missing_right: bool
    buffer: int  # which half of the sums belongs to it


def new_split_search(
    w: ExampleWeights, *, inner: int, lists: bool, track: bool, tolerance: float, rows: int = 0
) -> SplitSearch:
    """A record for wide bins of up to ``inner`` examples and leaves of up to ``rows``."""
    padded, dtype = w.values.shape[1], w.values.dtype
    masses = MAX_BINS if track else 0
    all_right, running, best, scratch, twice, least = (vectors.new_rows(1, padded, dtype) for _ in range(6))
    twice[0, : w.labels] = 2.0
    return SplitSearch(
        sums=vectors.new_rows(2 * ROOM, padded, dtype).reshape(2, ROOM, padded),
        masses=vectors.new_rows(2 * masses, padded, dtype).reshape(2, masses, padded),
        all_right=all_right,
        running=running,
        best=best,
        scratch=scratch,
        twice=twice,
        least=least,
        bounds=np.zeros(MAX_BINS + 1),
        inner=np.zeros(inner),
        row=np.zeros(rows, np.int32),
        code=np.zeros(rows, np.uint8),
        shuffle=np.zeros(0, np.int32),
        lists=lists,
        track=track,
        tolerance=tolerance,
    )


@kernel
def forget(search: SplitSearch, scale: float) -> None:
    """Start a new search among weights that sum to ``scale``."""
    search.edge = 0.0
    search.scale = scale
    search.feature = -1
    search.buffer = 1


@compiled()
def search_feature(
    binned: BinnedFeatures, j: int, w: ExampleWeights, search: SplitSearch, grower: Any, known: float
) -> float:
    """Search the splits of feature j and keep the best one met; returns its edge, or ``known`` if that is more."""
    if binned.bins[j] < 2:
        return known
    buffer = 1 - search.buffer
    fill_bins(binned, j, w, search, buffer)
    return scan_both(binned, j, w, search, buffer, known, binned.order)


@kernel
def scan_both(
    binned: BinnedFeatures, j: int, w: ExampleWeights, search: SplitSearch, buffer: int, known: float, order: Any
) -> float:  # fmt: skip
    """Scan the bins of feature j, a second time with missing values on the right if there are any."""
    before, kept = search.edge, search.feature
    top = known
    for missing_right in range(2 if binned.missing[j] else 1):
        top = scan(binned, j, w, search, buffer, missing_right == 1, top, order)
    if search.edge > before or search.feature != kept:
        search.buffer = buffer
    return top


@kernel
def fill_bins(binned: BinnedFeatures, j: int, w: ExampleWeights, search: SplitSearch, buffer: int) -> None:
    """Sums (and masses, where tracked) of the current weights over each bin of feature j."""
    width = w.width
    bins = binned.bins[j]
    sums, masses = search.sums[buffer], search.masses[buffer]
    listed = binned.listed[j]
    several = 1 if search.track and listed else sums_per_bin(bins)
    clear(sums, several * bins, width)
    if search.track:
        clear(masses, bins, width)
    code = binned.code[binned.code_start[j] : binned.code_start[j + 1]]
    row = binned.row[binned.row_start[j] : binned.row_start[j + 1]]
    if is_flushed(w) and not search.track:
        if listed:
            add_to_bins(sums, bins, several, code, row, w.values, None, None, 0, 0, code.size, width)
        else:
            add_to_bins(sums, bins, several, code, None, w.values, None, None, 0, 0, code.size, width)
    else:
        last = 0
        for group in range(w.group_start.size - 1):
            first, last = last, w.group_start[group + 1]
            start = group * w.stride
            if listed:
                last = binned.part[binned.part_start[j] + group]
                add_to_bins(
                    sums, bins, several, code, row, w.values, w.slot, w.factors, start, first, last, width
                )
            else:
                add_to_bins(
                    sums, bins, several, code, None, w.values, w.slot, w.factors, start, first, last, width
                )
            if search.track:
                add_weighted_bins(masses, sums, bins, several, w.group_sign_changes, group, width)
    join_bins(sums, bins, several, width)
    if search.track:
        finish_masses(masses, sums, bins, width)
    if listed:
        fill_frequent_bin(sums, bins, binned.frequent[j], w.total, search.scratch, width)
        if search.track:
            fill_frequent_bin(masses, bins, binned.frequent[j], w.mass, search.scratch, width)
    if search.track and binned.wide[j]:
        store_masses(masses, w.labels, None, 0, bins, width)


@rare_kernel
def finish_masses(masses: Rows, sums: Rows, bins: int, width: Width) -> None:
    """Sums of labels that are there become masses: less those that are not."""
    vectors.stand_apart()
    for piece in range(vectors.pieces(width)):
        for b in range(bins):
            mass = vectors.load(masses, b, piece, width)
            vectors.store(masses, b, piece, width, mass + (mass - vectors.load(sums, b, piece, width)))


@kernel
def sums_per_bin(bins: int) -> int:
    """How many sums there is room for in each bin (see `add_to_bins`)."""
    return 4 if 4 * bins <= ROOM else 2 if 2 * bins <= ROOM else 1


@kernel
def edge_of(edges: Vector, least: Vector) -> Any:
    """Sum of max(|edge|, least)."""
    return vectors.lane_sum(vectors.maximum(vectors.absolute(edges), least))


@kernel
def add_piece(out: NDArray[np.float64], at: int, piece: int, edge: float) -> None:
    """Add what a piece of the labels contributes to an edge; the first finds nothing there."""
    place = np.uintp(at)
    out[place] = edge if piece == 0 else out[place] + edge


@rare_kernel
def sweep(
    bounds: NDArray[np.float64], all_right: Rows, sums: Rows, bins: int, crossing: int, twice: Rows, least: Rows,
    width: Width,
) -> None:  # fmt: skip
    """The edges of all splits between bins, the first rows of ``sums``.

    ``all_right`` = sum of all bins; ``bounds[crossing]`` = its sum of max(|edge|, least); ``bounds[b + 1]`` = the
    same after bins crossing..b have changed side, each taking ``twice`` its sum off the edges.
    """
    vectors.stand_apart()
    for piece in range(vectors.pieces(width)):
        double, low = vectors.load(twice, 0, piece, width), vectors.load(least, 0, piece, width)
        edges = vectors.filled(sums, width, 0.0)
        for b in range(bins):
            edges = edges - double * vectors.load(sums, b, piece, width)
        edges = edges * vectors.filled(sums, width, -0.5)  # they were - 2 times the sum of all bins
        vectors.store(all_right, 0, piece, width, edges)
        add_piece(bounds, crossing, piece, edge_of(edges, low))
        for b in range(crossing, bins):
            edges = edges - double * vectors.load(sums, b, piece, width)
            add_piece(bounds, b + 1, piece, edge_of(edges, low))


@rare_kernel
def cross_bins(out: Rows, edges: Rows, sums: Rows, first: int, last: int, twice: Rows, width: Width) -> None:
    """``out`` = ``edges`` after bins first..last-1 have changed side, as in `sweep`."""
    vectors.stand_apart()
    for piece in range(vectors.pieces(width)):
        double = vectors.load(twice, 0, piece, width)
        crossed = vectors.load(edges, 0, piece, width)
        for b in range(first, last):
            crossed = crossed - double * vectors.load(sums, b, piece, width)
        vectors.store(out, 0, piece, width, crossed)


@rare_kernel
def cross_rows(
    inner: NDArray[np.float64], out: Rows, edges: Rows, w: ExampleWeights, order: NDArray[np.int32], first: int,
    last: int, twice: Rows, least: Rows,
) -> None:  # fmt: skip
    """``out`` = ``edges`` after examples ``order[first:last]`` have changed side.

    ``inner[k]`` = sum of max(|edge|, least) after the first k + 1 have.
    """
    vectors.stand_apart()
    values, slot, factors, group, stride, width = w.values, w.slot, w.factors, w.group, w.stride, w.width
    for piece in range(vectors.pieces(width)):
        double, low = vectors.load(twice, 0, piece, width), vectors.load(least, 0, piece, width)
        crossed = vectors.load(edges, 0, piece, width)
        for m in range(first, last):
            i = int(order[np.uintp(m)])
            start = int(group[np.uintp(i)]) * stride
            crossed = crossed - double * weight_of(values, i, slot, factors, start, piece, width)
            add_piece(inner, m - first, piece, edge_of(crossed, low))
        vectors.store(out, 0, piece, width, crossed)


@kernel
def scan(
    binned: BinnedFeatures, j: int, w: ExampleWeights, search: SplitSearch, buffer: int, missing_right: bool,
    known: float, order: Any,
) -> float:  # fmt: skip
    """Let the bins cross from right to left, smallest values first; returns the best edge met (or known).

    Without ``order``, the examples by value, features are split between bins only.
    """
    width = w.width
    slack = search.tolerance * search.scale
    sums, bounds = search.sums[buffer], search.bounds
    bins = binned.bins[j]
    first = 1 if binned.missing[j] else 0
    crossing = first if missing_right else 0
    sweep(bounds, search.all_right, sums, bins, crossing, search.twice, search.least, width)
    top = known
    for b in range(crossing + 1, bins):
        top = max(top, bounds[b])
    at = -1  # best edges are those with bins below this one on the left
    running = crossing  # so are running edges
    cross_bins(search.running, search.all_right, sums, running, crossing, search.twice, width)
    for b in range(crossing, bins):
        last_rank = b - first  # of the bin, on its border
        if order is not None:  # noqa: SIM102 - the compiler leaves out what needs it
            if binned.wide[j] and b >= first:
                first_rank = binned.first_rank_start[j] + b - first
                low, last_rank = binned.first_rank[first_rank], binned.first_rank[first_rank + 1] - 1
                # of bins: exact, or sums of what bounds the rows
                masses = search.masses[buffer] if search.track else sums
                # inside the bin |e_l| <= (|e_l| before + after) / 2 + mass_l: no path of steps 2 s_il reaches further
                mass = masses[b, w.labels] if last_rank > low else -top
                if 0.5 * (bounds[b] + bounds[b + 1]) + mass + slack >= top:
                    cross_bins(search.running, search.running, sums, running, b, search.twice, width)
                    running = b
                    place = binned.place[binned.place_start[j] : binned.place_start[j + 1]]
                    begin = binned.order_start[j] + place[low]
                    end = binned.order_start[j] + place[last_rank]
                    cross_rows(
                        search.inner, search.scratch, search.running, w, order, begin, end, search.twice, search.least
                    )  # fmt: skip
                    found = -1
                    for rank in range(low, last_rank):
                        edge = search.inner[place[rank + 1] - place[low] - 1]
                        top = max(top, edge)
                        if edge > search.edge + slack:
                            keep(search, edge, j, rank, missing_right)
                            found = rank
                    if found >= 0:
                        at = -1
                        end = binned.order_start[j] + place[found + 1]
                        cross_rows(
                            search.inner, search.best, search.running, w, order, begin, end, search.twice, search.least
                        )  # fmt: skip
        if b < bins - 1 and bounds[b + 1] > search.edge + slack:
            keep(search, bounds[b + 1], j, last_rank, missing_right)
            at = b + 1
    if at >= 0:
        cross_bins(search.best, search.all_right, sums, crossing, at, search.twice, width)
    return top


@kernel
def keep(search: SplitSearch, edge: float, j: int, rank: int, missing_right: bool) -> None:
    """Note the best split so far."""
    search.edge = edge
    search.feature = j
    search.rank = rank
    search.missing_right = missing_right


@kernel
def border(binned: BinnedFeatures, j: int, rank: int) -> int:
    """Bins above this one are right of the split; `inner_rows` says which rows of the bin itself are."""
    first = 1 if binned.missing[j] else 0
    if not binned.wide[j] or rank < 0:
        return rank + first
    first_rank = binned.first_rank[binned.first_rank_start[j] : binned.first_rank_start[j + 1]]
    return int(np.searchsorted(first_rank, rank, side="right")) - 1 + first


@kernel
def inner_rows(binned: BinnedFeatures, j: int, rank: int) -> tuple[int, int]:
    """Range of `order` with the rows of the border bin that are right of the split."""
    if not binned.wide[j] or rank < 0:
        return 0, 0
    first = 1 if binned.missing[j] else 0
    b = border(binned, j, rank) - first
    place = binned.place[binned.place_start[j] :]
    start = binned.order_start[j]
    last = binned.first_rank[binned.first_rank_start[j] + b + 1]
    return start + place[rank + 1], start + place[last]


@rare_kernel
def mark(binned: BinnedFeatures, j: int, rank: int, missing_right: bool, slot: Any, bit: int) -> float:
    """Toggle ``bit`` in the slots of one side of a split; returns the side phi of the examples toggled."""
    limit = border(binned, j, rank)
    code = binned.code[binned.code_start[j] : binned.code_start[j + 1]]
    marked_side = 1.0
    lost = missing_right and binned.missing[j]
    if binned.listed[j]:
        row = binned.row[binned.row_start[j] : binned.row_start[j + 1]]
        right = (
            binned.frequent[j] <= limit
        )  # the side of the rows listed that lie opposite the frequent value
        marked_side = 1.0 if right else -1.0
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
    begin, end = inner_rows(binned, j, rank)
    for at in range(begin, end):
        slot[binned.order[at]] ^= bit
    return marked_side


@kernel
def read_votes(search: SplitSearch, direction: float, votes: NDArray[np.float64]) -> None:
    """v_l = +1 where the best edge e_l is positive, else -1."""
    slack = search.tolerance * search.scale
    for k in range(votes.size):
        positive = direction * search.best[0, k] > slack
        votes[k] = 1.0 if positive else -1.0
