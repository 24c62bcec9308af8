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
    absolute_sum,
    add,
    add_row,
    add_row_product,
    add_row_product_with_mass,
    add_row_with_mass,
    copy,
    cross,
    multiply,
    subtract,
    vectors,
)
from abex.boosting.weights import clear, settled
from abex.kernels import compiled, kernel

HALF_BINS = MOST_BINS // 2
EDGE, SCALE = 0, 1  # places in Search.best
FEATURE, RANK, MISSING_RIGHT, BUFFER = 0, 1, 2, 3  # places in Search.cut


class Search(NamedTuple):
    """Scratch of a search, and the best stump it has met."""

    sums: NDArray[
        Any
    ]  # (2 * bins * chunks, lanes): signed sums per bin, of the feature at hand and the best one
    masses: NDArray[Any]  # same for absolute sums
    edges: NDArray[Any]  # (4 * chunks, lanes): running, before the bin, best, one row
    least: NDArray[Any]  # (chunks, lanes): what every label contributes at least; 0 for stumps
    bounds: NDArray[np.float64]  # (bins + 1,) edges at the borders of the bins
    best: NDArray[np.float64]  # [EDGE, SCALE]: the best edge and the sum of the weights searched
    cut: NDArray[np.int64]  # [FEATURE, RANK, MISSING_RIGHT, BUFFER]
    lists: bool  # some features are listed: their sums need the totals
    track: bool  # totals are carried from one update to the next, which needs the masses of every feature
    tolerance: float  # differences of edges below this share of the weights are ties


def new_search(chunks: int, dtype: Any, *, lists: bool, track: bool, tolerance: float) -> Search:
    """A record for rows of ``chunks`` vectors."""
    size = 2 * MOST_BINS * chunks
    return Search(
        vectors(size, dtype), vectors(size, dtype), vectors(4 * chunks, dtype), vectors(chunks, dtype), np.zeros(MOST_BINS + 1),
        np.zeros(2), np.zeros(4, np.int64), lists, track, tolerance,
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
    """Sums (and masses, where needed) of the current weights over each bin of feature j."""
    chunks = w.chunks
    sums, masses = search.sums, search.masses
    heavy = search.track or codes.wide[j]
    size = codes.bins[j] * chunks
    # two sums for a bin, of even and odd rows, where there is room: neighbours often share a bin, and an addition
    # would have to wait for the one before
    odd = HALF_BINS if codes.bins[j] <= HALF_BINS else 0
    clear(sums[base : base + size])
    clear(masses[base : base + size])
    if odd:
        clear(sums[base + odd * chunks : base + odd * chunks + size])
        clear(masses[base + odd * chunks : base + odd * chunks + size])
    code = codes.code[codes.code_start[j] : codes.code_start[j + 1]]
    listed = codes.listed[j]
    sums, masses = sums[base:], masses[base:]
    if listed:
        fill_listed(code, codes.row[codes.row_start[j] : codes.row_start[j + 1]], w, sums, masses, odd, heavy)
    else:
        fill_dense(code, w, sums, masses, odd, heavy)
    if odd:
        for at in range(size):
            add(sums, at, sums, at + odd * chunks)
            add(masses, at, masses, at + odd * chunks)
    if listed:
        fill_frequent(codes, j, w, search, base)


@kernel
def fill_dense(code: Any, w: Any, sums: Any, masses: Any, odd: int, heavy: bool) -> None:
    """Add every row to its bin."""
    chunks = w.chunks
    if settled(w):
        for i in range(code.size):
            if heavy:
                add_row_with_mass(sums, masses, code[i] + (i & 1) * odd, w.values, i, chunks)
            else:
                add_row(sums, code[i] + (i & 1) * odd, w.values, i, chunks)
    elif heavy:
        for i in range(code.size):
            at = code[i] + (i & 1) * odd
            add_row_product_with_mass(sums, masses, at, w.values, i, w.factors, w.slot[i], chunks)
    else:
        for i in range(code.size):
            add_row_product(sums, code[i] + (i & 1) * odd, w.values, i, w.factors, w.slot[i], chunks)


@kernel
def fill_listed(code: Any, row: Any, w: Any, sums: Any, masses: Any, odd: int, heavy: bool) -> None:
    """Add the listed rows to their bins."""
    chunks = w.chunks
    if settled(w):
        for m in range(row.size):
            if heavy:
                add_row_with_mass(sums, masses, code[m] + (m & 1) * odd, w.values, row[m], chunks)
            else:
                add_row(sums, code[m] + (m & 1) * odd, w.values, row[m], chunks)
    else:
        for m in range(row.size):
            i = row[m]
            at = code[m] + (m & 1) * odd
            add_row_product_with_mass(sums, masses, at, w.values, i, w.factors, w.slot[i], chunks)


@kernel
def fill_frequent(codes: Any, j: int, w: Any, search: Any, base: int) -> None:
    """The bin that is not listed: what the others leave of the totals."""
    chunks = w.chunks
    lanes = w.values.shape[1]
    at = base + codes.frequent[j] * chunks
    for c in range(chunks):
        for k in range(lanes):
            search.sums[at + c, k] = w.total[c * lanes + k]
            search.masses[at + c, k] = w.mass[c * lanes + k]
    for b in range(codes.bins[j]):
        if b != codes.frequent[j]:
            for c in range(chunks):
                subtract(search.sums, at + c, search.sums, base + b * chunks + c)
                subtract(search.masses, at + c, search.masses, base + b * chunks + c)


@kernel
def offer(search: Any, chunks: int, slack: float, edge: float, j: int, rank: int, missing_right: int) -> None:
    """Keep the stump at the running edges if it beats the best."""
    if edge > search.best[EDGE] + slack:
        search.best[EDGE] = edge
        search.cut[FEATURE] = j
        search.cut[RANK] = rank
        search.cut[MISSING_RIGHT] = missing_right
        for c in range(chunks):
            copy(search.edges, 2 * chunks + c, search.edges, c)


@kernel
def scan(codes: Any, j: int, w: Any, search: Any, base: int, missing_right: int, known: float) -> float:
    """Let the bins cross from right to left, smallest values first; returns the best edge met (or known)."""
    chunks = w.chunks
    slack = search.tolerance * search.best[SCALE]
    edges, sums = search.edges, search.sums
    bins = codes.bins[j]
    first = 1 if codes.missing[j] else 0
    for c in range(chunks):
        for k in range(edges.shape[1]):
            edges[c, k] = 0.0
        for b in range(bins):
            add(edges, c, sums, base + b * chunks + c)
    top = known
    edge = 0.0
    if first == 1 and missing_right == 0:
        for c in range(chunks):
            edge += cross(edges, c, sums, base + c, search.least, c)
        top = max(top, edge)
        offer(search, chunks, slack, edge, j, -1, 0)
    else:
        for c in range(chunks):
            edge += absolute_sum(edges, c)
    if codes.wide[j]:
        return scan_wide(codes, j, w, search, base, missing_right, edge, top)
    for b in range(first, bins - 1):
        edge = 0.0
        for c in range(chunks):
            edge += cross(edges, c, sums, base + b * chunks + c, search.least, c)
        top = max(top, edge)
        offer(search, chunks, slack, edge, j, b - first, missing_right)
    return top


@kernel
def scan_wide(
    codes: Any, j: int, w: Any, search: Any, base: int, missing_right: int, edge: float, top: float
) -> float:
    """The exact best cut of a wide feature: inside a bin only where a bound says it could be better.

    Inside bin b, |e_l| <= (|e_l| before + |e_l| after) / 2 + mass_l: no path of steps 2 s_il reaches further.
    """
    chunks = w.chunks
    slack = search.tolerance * search.best[SCALE]
    edges, bounds = search.edges, search.bounds
    bins = codes.bins[j]
    first = 1 if codes.missing[j] else 0
    first_rank = codes.first_rank[codes.first_start[j] :]
    for c in range(chunks):
        copy(edges, chunks + c, edges, c)
    bounds[first] = edge
    for b in range(first, bins):
        edge = 0.0
        for c in range(chunks):
            edge += cross(edges, c, search.sums, base + b * chunks + c, search.least, c)
        bounds[b + 1] = edge
        if b < bins - 1:
            top = max(top, edge)
    for c in range(chunks):
        copy(edges, c, edges, chunks + c)
    for b in range(first, bins):
        if first_rank[b - first + 1] > first_rank[b - first] + 1:
            mass = 0.0
            for c in range(chunks):
                mass += absolute_sum(search.masses, base + b * chunks + c)
            if 0.5 * (bounds[b] + bounds[b + 1]) + mass >= top:
                for c in range(chunks):
                    copy(edges, chunks + c, edges, c)
                for rank in range(first_rank[b - first], first_rank[b - first + 1] - 1):
                    edge = cross_rank(codes, j, rank, w, search)
                    top = max(top, edge)
                    offer(search, chunks, slack, edge, j, rank, missing_right)
                for c in range(chunks):
                    copy(edges, c, edges, chunks + c)
        for c in range(chunks):
            cross(edges, c, search.sums, base + b * chunks + c, search.least, c)
        if b < bins - 1:
            offer(search, chunks, slack, bounds[b + 1], j, first_rank[b - first + 1] - 1, missing_right)
    return top


@kernel
def cross_rank(codes: Any, j: int, rank: int, w: Any, search: Any) -> float:
    """Let the examples whose value has this rank cross to the left; returns the new edge."""
    chunks = w.chunks
    place = codes.place[codes.place_start[j] :]
    order = codes.order[codes.order_start[j] :]
    edge = 0.0
    for at in range(place[rank], place[rank + 1]):
        i = order[at]
        edge = 0.0
        for c in range(chunks):
            multiply(
                search.edges, 3 * chunks + c, w.values, i * chunks + c, w.factors, w.slot[i] * chunks + c
            )
            edge += cross(search.edges, c, search.edges, 3 * chunks + c, search.least, c)
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
