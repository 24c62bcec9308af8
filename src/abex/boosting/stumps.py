"""The best stump on a feature: one pass over the examples, one over the bins, exact cuts.

A stump is h_l(x) = a v_l phi(x), phi = +1 where x > b, else -1, votes v in {-1, +1}^L. Its edge is
sum_l |e_l| with e_l = sum_i s_il phi(x_i), v_l = sign e_l: all right sums first, then bins cross to the left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.encoding import MOST_BINS
from abex.boosting.lanes import add, add_to_bins, copy, cross_bins, cross_product, sweep, vectors
from abex.boosting.weights import clear, settled
from abex.kernels import compiled, kernel

MOST_SUMS = 4  # kept for a bin, side by side
EDGE, SCALE = 0, 1  # places in Search.best
FEATURE, RANK, MISSING_RIGHT, BUFFER = 0, 1, 2, 3  # places in Search.cut


class Search(NamedTuple):
    """Scratch of a search, and the best stump it has met."""

    sums: NDArray[
        Any
    ]  # (2 * bins * chunks, lanes): signed sums per bin, of the feature at hand and the best one
    masses: NDArray[Any]  # same for absolute sums, where they are tracked
    edges: NDArray[Any]  # (3 * chunks, lanes): all examples right, running, best
    twice: NDArray[Any]  # (chunks, lanes): 2 for a label, 0 in the padding
    least: NDArray[Any]  # (chunks, lanes): what every label contributes at least; 0 for stumps
    bounds: NDArray[np.float64]  # (bins + 1,) edges at the borders of the bins
    best: NDArray[np.float64]  # [EDGE, SCALE]: the best edge and the sum of the weights searched
    cut: NDArray[np.int64]  # [FEATURE, RANK, MISSING_RIGHT, BUFFER]
    lists: bool  # some features are listed: their sums need the totals
    track: bool  # totals are carried from one update to the next, which needs the masses of every feature
    tolerance: float  # differences of edges below this share of the weights are ties


def new_search(chunks: int, labels: int, dtype: Any, *, lists: bool, track: bool, tolerance: float) -> Search:
    """A record for rows of ``chunks`` vectors."""
    size = 2 * MOST_BINS * chunks
    twice = vectors(chunks, dtype)
    twice.reshape(-1)[:labels] = 2.0
    return Search(
        vectors(size, dtype), vectors(size if track else 0, dtype), vectors(3 * chunks, dtype), twice,
        vectors(chunks, dtype), np.zeros(MOST_BINS + 1), np.zeros(2), np.zeros(4, np.int64), lists, track, tolerance,
    )  # fmt: skip


@kernel
def forget(search: Any, scale: float) -> None:
    """Start a new search among weights that sum to ``scale``."""
    search.best[EDGE] = 0.0
    search.best[SCALE] = scale
    search.cut[FEATURE] = -1
    search.cut[BUFFER] = 1


@compiled()
def try_feature(codes: Any, j: int, w: Any, search: Any, known: float) -> float:
    """Search the cuts of feature j and keep the best stump met; returns its edge, or ``known`` if that is more."""
    if codes.bins[j] < 2:
        return known
    before = search.best[EDGE]
    kept = search.cut[FEATURE]
    buffer = 1 - search.cut[BUFFER]
    base = buffer * MOST_BINS * w.chunks
    fill_bins(codes, j, w, search, base)
    top = scan(codes, j, w, search, base, 0, known)
    if codes.missing[j]:
        top = scan(codes, j, w, search, base, 1, top)
    keep_buffer(search, buffer, before, kept)
    return float(top)


@kernel
def keep_buffer(search: Any, buffer: int, before: float, kept: int) -> None:
    """Remember which half of the sums belongs to the best feature, if it is the one just tried."""
    if search.best[EDGE] > before or search.cut[FEATURE] != kept:
        search.cut[BUFFER] = buffer


@kernel
def fill_bins(codes: Any, j: int, w: Any, search: Any, base: int) -> None:
    """Sums (and masses, where tracked) of the current weights over each bin of feature j."""
    chunks = w.chunks
    bins = codes.bins[j]
    sums = search.sums[base : base + MOST_BINS * chunks]
    several = clear_bins(sums, bins, chunks)
    step = MOST_BINS // several
    if search.track:
        clear(search.masses[base : base + bins * chunks])
    code = codes.code[codes.code_start[j] : codes.code_start[j + 1]]
    listed = codes.listed[j]
    row = codes.row[codes.row_start[j] : codes.row_start[j + 1]]
    if settled(w) and not search.track:
        if listed:
            add_to_bins(sums, several - 1, step, code, row, w.values, None, None, 0, 0, code.size, chunks)
        else:
            add_to_bins(sums, several - 1, step, code, None, w.values, None, None, 0, 0, code.size, chunks)
    else:
        last = 0
        for group in range(w.group_start.size - 1):
            first = last
            last = w.group_start[group + 1]
            start = group * w.stride
            if search.track:
                add_own(w, search, base, group, bins, several, -1.0)
            if listed:
                last = rows_before(row, first, last)
                add_to_bins(
                    sums,
                    several - 1,
                    step,
                    code,
                    row,
                    w.values,
                    w.slot,
                    w.factors,
                    start,
                    first,
                    last,
                    chunks,
                )
            else:
                add_to_bins(
                    sums,
                    several - 1,
                    step,
                    code,
                    None,
                    w.values,
                    w.slot,
                    w.factors,
                    start,
                    first,
                    last,
                    chunks,
                )
            if search.track:
                add_own(w, search, base, group, bins, several, 1.0)
    join_bins(sums, bins, several, chunks)
    if search.track:
        for at in range(
            base, base + bins * chunks
        ):  # what labels that are there have, and what the others have
            for k in range(sums.shape[1]):
                search.masses[at, k] = 2 * search.masses[at, k] - search.sums[at, k]
    if listed:
        fill_rest(search.sums, base, bins, codes.frequent[j], w.total, w.block)
        if search.track:
            fill_rest(search.masses, base, bins, codes.frequent[j], w.mass, w.block)


@kernel
def clear_bins(sums: Any, bins: int, chunks: int) -> int:
    """Empty the bins; returns how many sums there is room for in each (see `add_to_bins`)."""
    several = MOST_SUMS
    while several * bins > MOST_BINS:
        several //= 2
    step = MOST_BINS // several * chunks
    for m in range(several):
        clear(sums[m * step : m * step + bins * chunks])
    return several


@kernel
def join_bins(sums: Any, bins: int, several: int, chunks: int) -> None:
    """Add up the sums of each bin."""
    for m in range(1, several):
        for at in range(bins * chunks):
            add(sums, at, sums, at + MOST_BINS // several * m * chunks)


@kernel
def fill_rest(sums: Any, base: int, bins: int, rest: int, whole: Any, block: Any) -> None:
    """Bin ``rest``, still empty, gets what the others leave of the ``whole``."""
    chunks, lanes = block.shape
    clear(block)
    for b in range(bins):
        for c in range(chunks):
            add(block, c, sums, base + b * chunks + c)
    for c in range(chunks):
        for k in range(lanes):
            sums[base + rest * chunks + c, k] = whole[c * lanes + k] - block[c, k]


@kernel
def rows_before(row: Any, first: int, limit: int) -> int:
    """How many of the ascending ``row`` are below ``limit``; the first ``first`` are."""
    count = row.size - first
    while count > 0:
        half = count // 2
        below = row[first + half] < limit
        first = first + half + 1 if below else first
        count = count - half - 1 if below else half
    return first


@kernel
def add_own(w: Any, search: Any, base: int, group: int, bins: int, several: int, sign: float) -> None:
    """Add what the bins have now of the group's own labels to the masses.

    Before and after the group has been summed, with opposite signs: what remains are the sums over the group.
    """
    chunks = w.chunks
    lanes = search.sums.shape[1]
    step = MOST_BINS // several * chunks
    for k in range(w.labels):
        c, lane = k // lanes, k % lanes
        if w.signs[group * chunks + c, lane] > 0.0:
            for m in range(several):
                for b in range(bins):
                    at = base + b * chunks + c
                    search.masses[at, lane] += sign * search.sums[at + m * step, lane]


@kernel
def scan(codes: Any, j: int, w: Any, search: Any, base: int, missing_right: int, known: float) -> float:
    """Let the bins cross from right to left, smallest values first; returns the best edge met (or known)."""
    chunks = w.chunks
    slack = search.tolerance * search.best[SCALE]
    bounds = search.bounds
    bins = codes.bins[j]
    first = 1 if codes.missing[j] else 0
    crossing = first if missing_right else 0
    sweep(bounds, search.edges, search.sums, base, bins, crossing, search.twice, search.least, chunks)
    top = known
    for b in range(crossing + 1, bins):
        top = max(top, bounds[b])
    wide = codes.wide[j]
    first_rank = codes.first_rank[codes.first_start[j] : codes.first_start[j + 1]]
    best = search.best[EDGE]
    at = -1  # best edges are those with bins below this one on the left
    for b in range(crossing, bins):
        if wide and b >= first and first_rank[b - first + 1] > first_rank[b - first] + 1:
            mass = search.sums[
                base + b * chunks + w.labels // w.values.shape[1], w.labels % w.values.shape[1]
            ]
            # inside the bin |e_l| <= (|e_l| before + after) / 2 + mass_l: no path of steps 2 s_il reaches further
            if 0.5 * (bounds[b] + bounds[b + 1]) + mass + slack >= top:
                cross_bins(search.edges, chunks, 0, search.sums, base, crossing, b, search.twice, chunks)
                for rank in range(first_rank[b - first], first_rank[b - first + 1] - 1):
                    edge = cross_rank(codes, j, rank, w, search)
                    top = max(top, edge)
                    if edge > best + slack:
                        best = edge
                        at = -1
                        keep(search, best, j, rank, missing_right)
                        for c in range(chunks):
                            copy(search.edges, 2 * chunks + c, search.edges, chunks + c)
        if b < bins - 1 and bounds[b + 1] > best + slack:
            best = bounds[b + 1]
            at = b + 1
            rank = b - first if not wide or b < first else first_rank[b - first + 1] - 1
            keep(search, best, j, rank, missing_right)
    if at >= 0:
        cross_bins(search.edges, 2 * chunks, 0, search.sums, base, crossing, at, search.twice, chunks)
    return top


@kernel
def keep(search: Any, edge: float, j: int, rank: int, missing_right: int) -> None:
    """Note the best stump so far."""
    search.best[EDGE] = edge
    search.cut[FEATURE] = j
    search.cut[RANK] = rank
    search.cut[MISSING_RIGHT] = missing_right


@kernel
def cross_rank(codes: Any, j: int, rank: int, w: Any, search: Any) -> float:
    """Let the examples whose value has this rank cross to the left; returns the new edge."""
    chunks = w.chunks
    place = codes.place[codes.place_start[j] :]
    order = codes.order[codes.order_start[j] :]
    edge = 0.0
    for at in range(place[rank], place[rank + 1]):
        i = order[at]
        slot = w.group[i] * w.stride + w.slot[i]
        edge = 0.0
        for c in range(chunks):
            edge += cross_product(
                search.edges, chunks + c, w.values, i * chunks + c, w.factors, slot * chunks + c,
                search.twice, search.least, c,
            )  # fmt: skip
    return edge


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


@compiled()
def mark(codes: Any, j: int, rank: int, missing_right: int, slot: Any, bit: int) -> float:
    """Toggle ``bit`` in the slots of one side of a cut; returns the side phi of the examples toggled."""
    limit = border(codes, j, rank)
    code = codes.code[codes.code_start[j] : codes.code_start[j + 1]]
    flagged = 1.0
    lost = 0 if missing_right and codes.missing[j] else MOST_BINS
    if codes.listed[j]:
        row = codes.row[codes.row_start[j] : codes.row_start[j + 1]]
        right = codes.frequent[j] <= limit  # the side of the rows listed that lie opposite the frequent value
        flagged = 1.0 if right else -1.0
        for m in range(row.size):
            slot[row[m]] ^= bit if (code[m] > limit or code[m] == lost) == right else 0
    else:
        for i in range(code.size):
            slot[i] ^= bit if code[i] > limit else 0
        if lost == 0:
            for i in range(code.size):
                slot[i] ^= bit if code[i] == 0 else 0
    begin, end = inner_rows(codes, j, rank)
    for at in range(begin, end):
        slot[codes.order[at]] ^= bit
    return flagged
