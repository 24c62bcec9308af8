"""Lazy weights: an iteration of boosting touches one number per example, not one per example and label.

A base classifier multiplies the weights of example i by one of two rows of factors, which depend on the example's
labels (its *group*) and on its side. So the update is put off: each example keeps its *slot*, the bit
pattern of the sides it took since weights were last written back, and each group keeps one row of pending factors
per pattern. The current weights of example i are ``values[i] * factors[group * stride + slot[i]]``. Examples lie
group by group.

ExampleWeights carry the sign of their label, s = w y: sums of them are edges, sums of |s| are masses. Within a group a
label has one sign, so that masses follow from the sums of the groups. Where bins are bounded and their masses are not
known, the first number after the labels is an upper bound of the example's mass: its sum as written back, times e^a for each
update since.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.histogram import Rows, example_at, store_masses, weight_of
from abex.boosting.vectors import (
    Width,
    absolute,
    copysign,
    filled,
    load,
    maximum,
    new_rows,
    pieces,
    stand_apart,
    store,
    width_of,
)  # fmt: skip
from abex.kernels import Record, kernel, rare_kernel

TABLE_BYTES = 16_384  # pending factors of one group: half of a first-level cache
BLOCK = 512  # rows summed in working precision before they enter the double sums
MIN_PRECISION_LEFT = (
    1.0 / 64.0
)  # sums carried from update to update lose about a factor 1 - edge of their precision each time


class ExampleWeights(Record):
    """Signed weights of n examples with L labels in G groups; rows are padded to whole vectors."""

    values: Rows  # (n, padded), as last written back
    slot: NDArray[Any]  # (n,) the smallest unsigned integers that hold a pattern
    group: NDArray[np.int32]  # (n,) ascending
    group_start: NDArray[np.int64]  # (G + 1,)
    factors: Rows  # (G * stride, padded)
    signs: Rows  # (G, padded): +1 label is there, -1 it is not, 0 padding
    group_sign_changes: Rows  # (G, padded): +1 label of the group, -1 of the next group, 0 of both or none
    floor: Rows  # (1, padded): the smallest weight, 0 in the padding
    block: Rows  # (1, padded), scratch
    sides: Rows  # (2, padded), scratch: factors of the two sides
    total: NDArray[np.float64]  # (padded,) sum of s, now
    mass: NDArray[np.float64]  # (padded,) sum of |s|, now
    width: Width  # of the rows
    sum: float  # of all weights, now
    written: float  # their sum as written back
    factor: float  # on it, in the table when that is empty
    precision_left: float  # what is left of the precision of the sums carried since
    pending: int  # updates
    labels: int
    depth: int  # updates that fit into a pattern
    stride: int  # patterns of a group in the table, a power of two
    bounded: bool  # number ``labels`` of a row is a bound of its mass


class GroupedExamples(NamedTuple):
    """Examples in the order of their groups: those with the same labels."""

    rows: NDArray[np.int64]  # (n,) the order
    signs: NDArray[np.int8]  # (n, L) labels, in that order
    group: NDArray[np.int32]  # (n,) ascending
    starts: NDArray[np.int64]  # (G,) where a group begins
    ends: NDArray[np.int64]


def group_examples(signs: NDArray[np.int8]) -> GroupedExamples:
    """Examples with labels ``signs`` (n, L), group by group.

    >>> group_examples(np.array([[1, -1], [-1, 1], [1, -1]], np.int8)).rows.tolist()
    [0, 2, 1]
    """
    _, group = np.unique(
        np.ascontiguousarray(signs).view(np.dtype((np.void, signs.shape[1]))).ravel(), return_inverse=True
    )
    rows = np.argsort(group, kind="stable")
    ordered = group[rows].astype(np.int32)
    starts = np.searchsorted(ordered, np.arange(ordered[-1] + 1))
    return GroupedExamples(rows, signs[rows], ordered, starts, np.append(starts[1:], rows.size))


def first_weights(signs: NDArray[np.int8], sample_weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half of an example's weight on its labels, half on the others, summing to 1.

    With one label per example these are MultiBoost's 1/(2n) and 1/(2n(L - 1)); an example with no label, or
    with all, spreads its weight evenly.
    """
    labels = signs.shape[1]
    there = (signs > 0).sum(axis=1, keepdims=True).astype(np.float64)
    absent = labels - there
    with np.errstate(divide="ignore"):
        weights: NDArray[np.float64] = np.where(signs > 0, 0.5 / there, 0.5 / absent)
    weights[((there == 0) | (absent == 0)).ravel()] = 1.0 / labels
    weights *= sample_weight[:, None]
    weights /= weights.sum()
    return weights


def new_weights(
    examples: GroupedExamples, start: NDArray[np.float64], dtype: Any, *, depth: int | None = None,
    patterns: int | None = None, flips: bool = False, spare: bool = False, bounded: bool = False,
) -> ExampleWeights:  # fmt: skip
    """A record for grouped examples and initial weights ``start`` (n, L), which are in the order of before.

    ``patterns`` reserves a table of that size for learners with that many leaves, which are written back at once;
    ``flips`` doubles the table by its negative. ``spare`` keeps a number after the labels free, ``bounded`` uses it.
    """
    signs, first = examples.signs, examples.starts
    n, labels = signs.shape
    numbers, groups = labels + spare, first.size
    if patterns is None:
        depth = depth or best_depth(n, groups, new_rows(1, numbers, dtype).nbytes)
        patterns = 1 << depth
    stride = (1 << (patterns - 1).bit_length()) * (2 if flips else 1)
    group_signs, group_sign_changes, floor = (
        new_rows(count, numbers, dtype) for count in (groups, groups, 1)
    )
    group_signs[:, :labels] = signs[first]
    own = np.zeros((groups + 1, labels))
    own[:-1] = signs[first] > 0
    group_sign_changes[:, :labels] = own[:-1] - own[1:]
    floor[:, :labels] = 1e-30 if np.dtype(dtype) == np.float32 else 1e-290
    weights = ExampleWeights(
        values=new_rows(n, numbers, dtype),
        slot=np.zeros(n, np.min_scalar_type(stride - 1)),
        group=examples.group,
        group_start=np.append(first, n).astype(np.int64),
        factors=new_rows(groups * stride, numbers, dtype),
        signs=group_signs,
        group_sign_changes=group_sign_changes,
        floor=floor,
        block=new_rows(1, numbers, dtype),
        sides=new_rows(2, numbers, dtype),
        total=np.zeros(floor.size),
        mass=np.zeros(floor.size),
        width=width_of(numbers, dtype),
        sum=1.0,
        written=1.0,
        factor=1.0,
        precision_left=1.0,
        labels=labels,
        depth=depth or 1,
        stride=stride,
        bounded=bounded,
    )
    set_weights(weights, start, examples.rows)
    return weights


def set_weights(w: ExampleWeights, start: NDArray[np.float64], rows: NDArray[np.int64]) -> None:
    """Make ``start[rows]`` the current weights."""
    for begin in range(0, rows.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        w.values[part, : w.labels] = w.signs[w.group[part], : w.labels] * start[rows[part]]
    w.factors[:] = 1.0
    w.slot[:] = 0
    w.pending = w.depth  # to be written back before anything else


def best_depth(n: int, groups: int, row_bytes: int) -> int:
    """How many updates to put off: as long as tables cost less than writing back, and fit the cache."""
    cost = {k: (groups * 2 ** (k + 1) + 2 * n) / k for k in range(1, 9)}
    fitting = [k for k in cost if 2**k * row_bytes <= TABLE_BYTES]
    return min(fitting or [1], key=cost.__getitem__)


@rare_kernel
def sum_products(
    sums: Rows, values: Rows, slot: NDArray[Any], factors: Rows, start: int, first: int, last: int, width: Width
) -> None:  # fmt: skip
    """Row 0 of ``sums`` = sum of the current weights of examples first..last-1, which are of one group."""
    stand_apart()
    for piece in range(pieces(width)):
        total = filled(sums, width, 0.0)
        for i in range(first, last):
            total = total + weight_of(values, i, slot, factors, start, piece, width)
        store(sums, 0, piece, width, total)


@rare_kernel
def flush_rows(
    sums: Rows, values: Rows, slot: NDArray[Any], factors: Rows, start: int, floor: Rows, row: Any, first: int,
    last: int, width: Width,
) -> None:  # fmt: skip
    """`sum_products` over examples ``row[first:last]``, or first..last-1 where there is no list.

    The products, moved away from zero to at least row 0 of ``floor``, are the new ``values``.
    """
    stand_apart()
    for piece in range(pieces(width)):
        total = filled(sums, width, 0.0)
        least = load(floor, 0, piece, width)
        for m in range(first, last):
            i = example_at(row, m)
            weight = weight_of(values, i, slot, factors, start, piece, width)
            weight = copysign(maximum(absolute(weight), least), weight)
            store(values, i, piece, width, weight)
            total = total + weight
        store(sums, 0, piece, width, total)


@kernel
def add_block(w: ExampleWeights) -> None:
    """Add the sums of a block of rows of one group to the totals."""
    for k in range(w.labels):
        value = w.block[0, k]
        w.total[k] += value
        w.mass[k] += abs(value)


@rare_kernel
def flush(w: ExampleWeights, starts: NDArray[np.int64], row: Any) -> None:
    """Make ``values`` current and sum them up; the empty table normalises them when their sum has left [1/4, 4].

    Only the examples of a list ``row`` have weights, if there is one; groups begin at ``starts`` in it.
    """
    for k in range(w.labels):
        w.total[k] = 0.0
        w.mass[k] = 0.0
    for group in range(starts.size - 1):
        end = starts[group + 1]
        for begin in range(starts[group], end, BLOCK):
            last = min(end, begin + BLOCK)
            flush_rows(
                w.block, w.values, w.slot, w.factors, group * w.stride, w.floor, row, begin, last, w.width
            )
            if w.bounded:
                store_masses(w.values, w.labels, row, begin, last, w.width)
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
    for start in range(0, w.factors.shape[0], w.stride):
        for k in range(w.factors.shape[1]):
            w.factors[start, k] = factor
    w.sum = everything * factor
    w.written = everything
    w.factor = factor
    w.precision_left = 1.0
    w.pending = 0


@kernel
def is_flushed(w: ExampleWeights) -> bool:
    """Whether ``values`` are the current weights as they stand: nothing pending, no factor, no signs to flip."""
    return bool(w.pending == 0 and w.factor == 1.0 and w.stride == 1 << w.depth)


@kernel
def negate(w: ExampleWeights, patterns: int) -> None:
    """Keep the second half of each group's table, if there is one, the negative of the first, bounds of masses apart."""
    half = w.stride // 2
    if half < (1 << w.depth):
        return
    labels = w.labels
    for start in range(0, w.factors.shape[0], w.stride):
        for row in range(start, start + patterns):
            for k in range(w.factors.shape[1]):
                w.factors[row + half, k] = -w.factors[row, k] if k < labels else w.factors[row, k]


@kernel
def side_factors(
    w: ExampleWeights, group: int, votes: NDArray[np.float64], up: float, down: float, marked_side: float
) -> None:
    """Rows exp(-a v_l phi y_l), up or down, of a group: first for examples off the flag, then for those on it."""
    for k in range(w.sides.shape[1]):
        agreement = votes[k] * marked_side * w.signs[group, k]
        w.sides[0, k] = down if agreement < 0.0 else up  # padding has no sign: the larger factor
        w.sides[1, k] = down if agreement > 0.0 else up


@rare_kernel
def update(
    w: ExampleWeights, votes: NDArray[np.float64], edge: float, coefficient: float, marked_side: float
) -> None:
    """Put an update off: enter it into the table. Examples with side phi = ``marked_side`` have the bit 1 << pending set."""
    factors, sides, width = w.factors, w.sides, w.width
    known = 1 << w.pending
    up, down = math.exp(coefficient), math.exp(-coefficient)
    for group in range(w.signs.shape[0]):
        side_factors(w, group, votes, up, down, marked_side)
        for piece in range(pieces(width)):
            off, on = load(sides, 0, piece, width), load(sides, 1, piece, width)
            for row in range(group * w.stride, group * w.stride + known):
                old = load(factors, row, piece, width)
                store(factors, row + known, piece, width, old * on)
                store(factors, row, piece, width, old * off)
    w.pending += 1
    w.precision_left *= 1.0 - edge
    negate(w, 2 * known)


@kernel
def flush_if_full(w: ExampleWeights) -> None:
    """Write back when the table is full, or sums carried so far would be too far off."""
    if w.pending == w.depth or w.precision_left < MIN_PRECISION_LEFT:
        flush(w, w.group_start, None)
        negate(w, 1)


@rare_kernel
def sum_up(w: ExampleWeights) -> None:
    """Totals of the current weights, signs of the table included."""
    for k in range(w.labels):
        w.total[k] = 0.0
    for group in range(w.group_start.size - 1):
        end = w.group_start[group + 1]
        for begin in range(w.group_start[group], end, BLOCK):
            last = min(end, begin + BLOCK)
            sum_products(w.block, w.values, w.slot, w.factors, group * w.stride, begin, last, w.width)
            for k in range(w.labels):
                w.total[k] += w.block[0, k]
