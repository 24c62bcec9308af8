"""Histograms: sums of the examples' weights over the bins of a feature.

The weights of an example are a row of numbers, one for each label (`abex.boosting.vectors`). So are the sums of a bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.vectors import (
    Vector,
    Width,
    absolute,
    filled,
    lane_sum,
    load,
    pieces,
    stand_apart,
    store,
    without,
)  # fmt: skip
from abex.kernels import kernel, rare_kernel

Rows = NDArray[Any]  # (rows, padded labels)


@rare_kernel
def clear(rows: Rows, count: int, width: Width) -> None:
    """The first ``count`` rows = 0."""
    stand_apart()
    zero = filled(rows, width, 0.0)
    for piece in range(pieces(width)):
        for row in range(count):
            store(rows, row, piece, width, zero)


@kernel
def add_to_row(rows: Rows, row: int, piece: int, width: Width, vector: Vector) -> None:
    """Add to a row."""
    store(rows, row, piece, width, load(rows, row, piece, width) + vector)


@kernel
def example_at(row: Any, m: int) -> int:
    """Example m of a list, or m itself where there is no list."""
    if row is None:
        return m
    return int(row[np.uintp(m)])


@kernel
def weight_of(values: Rows, i: int, slot: Any, factors: Any, start: int, piece: int, width: Width) -> Vector:
    """The weights of example i, times row ``start + slot`` of ``factors`` if there are slots."""
    if slot is None:
        return load(values, i, piece, width)
    return load(values, i, piece, width) * load(factors, start + int(slot[np.uintp(i)]), piece, width)


@rare_kernel
def add_to_bins(
    sums: Rows, bins: int, several: int, code: NDArray[np.uint8], row: Any, values: Rows, slot: Any, factors: Any,
    start: int, first: int, last: int, width: Width,
) -> None:  # fmt: skip
    """Add example ``row[m]`` to row ``code[m]`` of ``sums``, m = first..last-1.

    The row added is `weight_of` the example. Without ``row`` it is example m. Neighbours often share a bin, and an addition would
    have to wait for the one before: so each bin has ``several`` sums (1, 2 or 4), ``bins`` rows apart, used in turn; and four
    examples are read before the first of them is added.
    """
    stand_apart()
    mask = several - 1
    second, third, fourth = (1 & mask) * bins, (2 & mask) * bins, (3 & mask) * bins
    whole = last - ((last - first) & 3)
    for piece in range(pieces(width)):
        for m in range(first, whole, 4):
            p, q = int(code[np.uintp(m)]), int(code[np.uintp(m + 1)]) + second
            r, s = int(code[np.uintp(m + 2)]) + third, int(code[np.uintp(m + 3)]) + fourth
            a = weight_of(values, example_at(row, m), slot, factors, start, piece, width)
            b = weight_of(values, example_at(row, m + 1), slot, factors, start, piece, width)
            c = weight_of(values, example_at(row, m + 2), slot, factors, start, piece, width)
            d = weight_of(values, example_at(row, m + 3), slot, factors, start, piece, width)
            add_to_row(sums, p, piece, width, a)
            add_to_row(sums, q, piece, width, b)
            add_to_row(sums, r, piece, width, c)
            add_to_row(sums, s, piece, width, d)
        for m in range(whole, last):
            a = weight_of(values, example_at(row, m), slot, factors, start, piece, width)
            add_to_row(sums, int(code[np.uintp(m)]) + ((m - whole) & mask) * bins, piece, width, a)


@rare_kernel
def join_bins(sums: Rows, bins: int, several: int, width: Width) -> None:
    """Add up the ``several`` sums of each bin."""
    stand_apart()
    for piece in range(pieces(width)):
        for copy in range(1, several):
            for b in range(bins):
                add_to_row(sums, b, piece, width, load(sums, copy * bins + b, piece, width))


@rare_kernel
def sum_bins(out: Rows, sums: Rows, first: int, last: int, width: Width) -> None:
    """Row 0 of ``out`` = sum of rows first..last-1 of ``sums``."""
    stand_apart()
    for piece in range(pieces(width)):
        total = filled(out, width, 0.0)
        for b in range(first, last):
            total = total + load(sums, b, piece, width)
        store(out, 0, piece, width, total)


@rare_kernel
def add_weighted_bins(
    out: Rows, sums: Rows, bins: int, several: int, weight: Rows, row: int, width: Width
) -> None:
    """Rows 0..bins-1 of ``out`` += those of ``sums``, bins as in `add_to_bins`, times row ``row`` of ``weight``."""
    stand_apart()
    for piece in range(pieces(width)):
        factor = load(weight, row, piece, width)
        for copy in range(several):
            for b in range(bins):
                add_to_row(out, b, piece, width, factor * load(sums, copy * bins + b, piece, width))


@rare_kernel
def fill_frequent_bin(
    sums: Rows, bins: int, rest: int, whole: NDArray[np.float64], scratch: Rows, width: Width
) -> None:
    """Bin ``rest``, still empty, gets what the others leave of the ``whole``."""
    sum_bins(scratch, sums, 0, bins, width)
    for k in range(whole.size):
        sums[rest, k] = whole[k] - scratch[0, k]


@rare_kernel
def store_masses(values: Rows, label: int, row: Any, first: int, last: int, width: Width) -> None:
    """Number ``label`` of rows ``row[first:last]``, or first..last-1, = sum of the absolute values of the others."""
    stand_apart()
    lanes = values.shape[1] // pieces(width)
    for piece in range(pieces(width)):
        for m in range(first, last):
            i = example_at(row, m)
            mass = lane_sum(without(absolute(load(values, i, piece, width)), label - piece * lanes))
            values[i, label] = mass if piece == 0 else values[i, label] + mass
