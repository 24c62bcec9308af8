"""Lazy weights: an iteration of boosting touches one number per example, not one per example and label.

A base classifier multiplies the weights of example i by one of two rows of factors, which depend on the example's
labels (its *group*) and on its side. So the update is put off: each example keeps its *slot*, the bit
pattern of the sides it took since weights were last written back, and each group keeps one row of pending factors
per pattern. The current weights of example i are ``values[i] * factors[group * stride + slot[i]]``. Examples lie
group by group.

Weights carry the sign of their label, s = w y: sums of them are edges, sums of |s| are masses. Within a group a
label has one sign, so that masses follow from the sums of the groups. Where bins are bounded and their masses are not
known, the first number after the labels is an upper bound of the example's mass: its sum as written back, times e^a for each
update since.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.lanes import lanes_of, multiply, note_masses, settle, sum_products, vectors
from abex.kernels import compiled, kernel, rare_kernel

TABLE_BYTES = 16_384  # pending factors of one group: half of a first-level cache
BLOCK = 512  # rows summed in working precision before they enter the double sums
STRAIN = (
    1.0 / 64.0
)  # sums carried from update to update lose about a factor 1 - edge of their precision each time
NOW, WRITTEN, FACTOR, EXACT = 0, 1, 2, 3  # places in Weights.numbers


class Weights(NamedTuple):
    """Signed weights of n examples in G groups; a row of labels is ``chunks`` vectors."""

    values: NDArray[Any]  # (n * chunks, lanes), as last written back
    slot: NDArray[Any]  # (n,) the smallest unsigned integers that hold a pattern
    group: NDArray[np.int32]  # (n,) ascending
    group_start: NDArray[np.int64]  # (G + 1,)
    factors: NDArray[Any]  # (G * stride * chunks, lanes)
    signs: NDArray[Any]  # (G * chunks, lanes): +1 label is there, -1 it is not, 0 padding
    turns: NDArray[Any]  # (G * chunks, lanes): +1 label of the group, -1 of the next group, 0 of both or none
    floor: NDArray[Any]  # (chunks, lanes): the smallest weight, 0 in the padding
    block: NDArray[Any]  # (chunks, lanes), scratch
    sides: NDArray[Any]  # (2 * chunks, lanes), scratch: factors of the two sides
    total: NDArray[np.float64]  # (chunks * lanes,) sum of s, now
    mass: NDArray[np.float64]  # (chunks * lanes,) sum of |s|, now
    #: [NOW] sum of all weights; [WRITTEN] their sum as written back, [FACTOR] on it; [EXACT] what is left of its precision
    numbers: NDArray[np.float64]
    counts: NDArray[np.int64]  # [0] pending updates
    chunks: int
    labels: int
    depth: int  # updates that fit into a pattern
    stride: int  # patterns of a group in the table, a power of two
    bounded: bool  # number ``labels`` of a row is a bound of its mass


def label_groups(signs: NDArray[np.int8]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Distinct rows of labels: (index of a representative of each group, group of each example)."""
    _, first, group = np.unique(
        np.ascontiguousarray(signs).view(np.dtype((np.void, signs.shape[1]))).ravel(),
        return_index=True,
        return_inverse=True,
    )
    return first, group.astype(np.int32)


def new_weights(
    signs: NDArray[np.int8], group: NDArray[np.int32], first: NDArray[np.int64], start: NDArray[np.float64],
    rows: NDArray[np.int64], dtype: Any, *, depth: int | None = None, patterns: int | None = None, flips: bool = False,
    spare: bool = False, bounded: bool = False,
) -> Weights:  # fmt: skip
    """A record for examples with labels ``signs`` (n, L), group by group, and initial weights ``start[rows]``.

    ``patterns`` reserves a table of that size for learners with that many leaves, which are written back at once;
    ``flips`` doubles the table by its negative. ``spare`` keeps a number after the labels free, ``bounded`` uses it.
    """
    n, labels = signs.shape
    lanes = lanes_of(dtype)
    chunks = -(-(labels + spare) // lanes)
    if patterns is None:
        depth = depth or best_depth(n, len(first), chunks)
        patterns = 1 << depth
    stride = (1 << (patterns - 1).bit_length()) * (2 if flips else 1)
    values = vectors(n * chunks, dtype)
    for begin in range(0, n, BLOCK):
        part = slice(begin, begin + BLOCK)
        values.reshape(n, -1)[part, :labels] = signs[part] * start[rows[part]]
    table_signs = vectors(len(first) * chunks, dtype)
    table_signs.reshape(len(first), -1)[:, :labels] = signs[first]
    own = np.zeros((len(first) + 1, labels))
    own[:-1] = signs[first] > 0
    turns = vectors(len(first) * chunks, dtype)
    turns.reshape(len(first), -1)[:, :labels] = own[:-1] - own[1:]
    floor = vectors(chunks, dtype)
    floor.reshape(-1)[:labels] = 1e-30 if np.dtype(dtype) == np.float32 else 1e-290
    starts = np.append(first, n).astype(np.int64)
    weights = Weights(
        values, np.zeros(n, np.min_scalar_type(stride - 1)), group, starts,
        vectors(len(first) * stride * chunks, dtype), table_signs, turns, floor, vectors(chunks, dtype),
        vectors(2 * chunks, dtype), np.zeros(chunks * lanes), np.zeros(chunks * lanes), np.ones(4),
        np.zeros(1, np.int64), chunks, labels, depth or 1, stride, bounded,
    )  # fmt: skip
    weights.factors[:] = 1.0
    return weights


def best_depth(n: int, groups: int, chunks: int) -> int:
    """How many updates to put off: as long as tables cost less than writing back, and fit the cache."""
    cost = {k: (groups * 2 ** (k + 1) + 2 * n) / k for k in range(1, 9)}
    fitting = [k for k in cost if 2**k * chunks * 64 <= TABLE_BYTES]
    return min(fitting or [1], key=cost.__getitem__)


@kernel
def add_block(w: Any) -> None:
    """Add the sums of a block of rows of one group to the totals."""
    lanes = w.block.shape[1]
    for k in range(w.labels):
        value = w.block[k // lanes, k % lanes]
        w.total[k] += value
        w.mass[k] += abs(value)


@compiled()
def write_back(w: Any) -> None:
    """Make ``values`` current and sum them up; the empty table normalises them when their sum has left [1/4, 4]."""
    chunks = w.chunks
    for k in range(w.labels):
        w.total[k] = 0.0
        w.mass[k] = 0.0
    for group in range(w.group_start.size - 1):
        end = w.group_start[group + 1]
        for begin in range(w.group_start[group], end, BLOCK):
            last = min(end, begin + BLOCK)
            settle(w.block, w.values, w.slot, w.factors, group * w.stride, w.floor, begin, last, chunks)
            if w.bounded:
                note_masses(w.values, w.labels, begin, last, chunks)
            add_block(w)
    for i in range(w.slot.size):
        w.slot[i] = 0
    everything = 0.0
    for k in range(w.labels):
        everything += w.mass[k]
    factor = 1.0 if 0.25 < everything < 4.0 else 1.0 / everything
    for k in range(w.labels):
        w.total[k] *= factor
        w.mass[k] *= factor
    for slot in range(0, w.factors.shape[0], w.stride * chunks):
        for c in range(chunks):
            for k in range(w.factors.shape[1]):
                w.factors[slot + c, k] = factor
    negate(w, 1)
    w.numbers[NOW] = everything * factor
    w.numbers[WRITTEN] = everything
    w.numbers[FACTOR] = factor
    w.numbers[EXACT] = 1.0
    w.counts[0] = 0


@kernel
def settled(w: Any) -> bool:
    """Whether ``values`` are the current weights as they stand: nothing pending, no factor, no signs to flip."""
    return bool(w.counts[0] == 0 and w.numbers[FACTOR] == 1.0 and w.stride == 1 << w.depth)


@kernel
def negate(w: Any, patterns: int) -> None:
    """Keep the second half of each group's table, if there is one, the negative of the first, bounds of masses apart."""
    half = w.stride // 2
    if half < (1 << w.depth):
        return
    size = half * w.chunks
    lanes = w.factors.shape[1]
    for start in range(0, w.factors.shape[0], 2 * size):
        for at in range(start, start + patterns * w.chunks):
            for k in range(lanes):
                is_label = at % w.chunks * lanes + k < w.labels
                w.factors[at + size, k] = -w.factors[at, k] if is_label else w.factors[at, k]


@kernel
def side_factors(w: Any, group: int, votes: Any, up: float, down: float, flagged: float) -> None:
    """Rows exp(-a v_l phi y_l), up or down, of a group: first for examples off the flag, then for those on it."""
    lanes = w.values.shape[1]
    for c in range(w.chunks):
        for k in range(lanes):
            agreement = votes[c * lanes + k] * flagged * w.signs[group * w.chunks + c, k]
            w.sides[c, k] = down if agreement < 0.0 else up  # padding has no sign: the larger factor
            w.sides[w.chunks + c, k] = down if agreement > 0.0 else up


@rare_kernel
def put_off(w: Any, votes: Any, coefficient: float, flagged: float) -> None:
    """Enter an update into the table. Examples with side phi = ``flagged`` have the bit 1 << pending set."""
    chunks = w.chunks
    known = 1 << w.counts[0]
    up, down = math.exp(coefficient), math.exp(-coefficient)
    for group in range(w.signs.shape[0] // chunks):
        side_factors(w, group, votes, up, down, flagged)
        start = group * w.stride * chunks
        for p in range(known):
            for c in range(chunks):
                old = start + p * chunks + c
                multiply(w.factors, old + known * chunks, w.factors, old, w.sides, chunks + c)
                multiply(w.factors, old, w.factors, old, w.sides, c)
    w.counts[0] += 1
    negate(w, 2 * known)


@kernel
def update(w: Any, votes: Any, edge: float, coefficient: float, flagged: float) -> None:
    """Put an update off; write back when the table is full, or sums carried so far would be too far off."""
    put_off(w, votes, coefficient, flagged)
    w.numbers[EXACT] *= 1.0 - edge
    if w.counts[0] == w.depth or w.numbers[EXACT] < STRAIN:
        write_back(w)


@rare_kernel
def sum_up(w: Any) -> None:
    """Totals of the current weights, signs of the table included."""
    for k in range(w.labels):
        w.total[k] = 0.0
    lanes = w.block.shape[1]
    for group in range(w.group_start.size - 1):
        end = w.group_start[group + 1]
        for begin in range(w.group_start[group], end, BLOCK):
            last = min(end, begin + BLOCK)
            sum_products(w.block, w.values, w.slot, w.factors, group * w.stride, begin, last, w.chunks)
            for k in range(w.labels):
                w.total[k] += w.block[k // lanes, k % lanes]
