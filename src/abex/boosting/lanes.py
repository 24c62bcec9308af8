"""Arithmetic on rows of labels: 64 bytes at a time, one vector instruction where the machine has it.

The weights of an example are a row of L numbers. Rows are padded to whole *vectors* of 64 bytes (16 floats or
8 doubles) and kept in arrays of shape (vectors, lanes); an index below counts vectors, or rows of ``n`` vectors.
Python runs these functions as they stand. Numba compiles them as `lanes_code` writes them, since it cannot see by itself that the
arrays do not overlap (measured: four times slower), or as they stand where it cannot be taught. All three add in the same order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.boosting import lanes_code
from abex.kernels import kernel
from abex.kernels.vectors import lanes_of, vectorised, vectors

__all__ = [
    "add_magnitudes", "add_to_bins", "add_weighted_bins", "clear", "cross_bins", "cross_rows", "join_bins", "lanes_of",
    "multiply", "note_masses", "settle", "sum_bins", "sum_products", "sweep", "vectors",
]  # fmt: skip


@kernel
def total(row: Any) -> float:
    """Sum of a row, shape (vectors, lanes), which is used up: by halves of a vector, as the instructions do.

    >>> total(np.arange(32.0).reshape(2, 16))
    496.0
    """
    n, lanes = row.shape
    if n <= lanes_code.FEW:  # so many vectors are added up before
        for c in range(1, n):
            for k in range(lanes):
                row[0, k] += row[c, k]
        n = 1
    whole = 0.0
    for c in range(n):
        width = lanes
        while width > 1:
            width //= 2
            for k in range(width):
                row[c, k] += row[c, k + width]
        whole += float(row[c, 0])
    return whole


@kernel
def cross(running: Any, twice: Any, values: Any, start: int) -> None:
    """A row of edges after ``values``, from vector ``start`` on, have changed side."""
    for c in range(running.shape[0]):
        for k in range(running.shape[1]):
            running[c, k] -= twice[c, k] * values[start + c, k]


@kernel
def sum_of_sizes(edges: Any, least: Any, scratch: Any) -> float:
    """Sum of max(|edge|, least) over a row."""
    for c in range(edges.shape[0]):
        for k in range(edges.shape[1]):
            size = abs(edges[c, k])
            scratch[c, k] = least[c, k] if size < least[c, k] else size
    return total(scratch)


@vectorised(lanes_code.clear, apart=True)
def clear(out: Any, count: int) -> None:
    """The first ``count`` vectors = 0."""
    out[:count] = 0.0


@vectorised(lanes_code.multiply)
def multiply(out: Any, o: int, a: Any, i: int, b: Any, j: int) -> None:
    """out[o] = a[i] * b[j]."""
    for k in range(out.shape[1]):
        out[o, k] = a[i, k] * b[j, k]


@vectorised(lanes_code.add_magnitudes)
def add_magnitudes(out: Any, o: int, a: Any, i: int, b: Any, j: int, n: int) -> None:
    """Row o of ``out`` += |row i of ``a`` times row j of ``b``|."""
    for c in range(n):
        for k in range(out.shape[1]):
            out[o * n + c, k] += abs(a[i * n + c, k] * b[j * n + c, k])


@vectorised(lanes_code.add_to_bins, apart=True)
def add_to_bins(
    sums: Any, bins: int, several: int, code: Any, row: Any, values: Any, slot: Any, factors: Any, start: int,
    first: int, last: int, n: int,
) -> None:  # fmt: skip
    """Add example ``row[m]`` to row ``code[m]`` of ``sums``, m = first..last-1.

    The row added is that of ``values`` times row ``start + slot`` of ``factors``. Without ``row`` it is example m, without
    ``slot`` there are no factors. Neighbours often share a bin, and an addition would have to wait for the one
    before: so each bin has ``several`` sums (1, 2 or 4), ``bins`` rows apart, used in turn.
    """
    for m in range(first, last):
        o = (int(code[m]) + ((m - first) & (several - 1)) * bins) * n
        i = m if row is None else int(row[m])
        for c in range(n):
            for k in range(sums.shape[1]):
                if slot is None:
                    sums[o + c, k] += values[i * n + c, k]
                else:
                    j = (start + int(slot[i])) * n + c
                    sums[o + c, k] += values[i * n + c, k] * factors[j, k]


@vectorised(lanes_code.sum_products, apart=True)
def sum_products(
    sums: Any, values: Any, slot: Any, factors: Any, start: int, first: int, last: int, n: int
) -> None:
    """Row 0 of ``sums`` = sum of rows first..last-1 of ``values`` times their factors, as in `add_to_bins`."""
    sums[:n] = 0.0
    for m in range(first, last):
        j = (start + int(slot[m])) * n
        for c in range(n):
            for k in range(sums.shape[1]):
                sums[c, k] += values[m * n + c, k] * factors[j + c, k]


@vectorised(lanes_code.settle, apart=True)
def settle(
    sums: Any, values: Any, slot: Any, factors: Any, start: int, floor: Any, first: int, last: int, n: int
) -> None:
    """`sum_products`; the products, moved away from zero to at least row 0 of ``floor``, are the new ``values``."""
    sums[:n] = 0.0
    for m in range(first, last):
        j = (start + int(slot[m])) * n
        for c in range(n):
            for k in range(sums.shape[1]):
                value = values[m * n + c, k] * factors[j + c, k]
                size = floor[c, k] if abs(value) < floor[c, k] else abs(value)
                values[m * n + c, k] = math.copysign(size, value)
                sums[c, k] += values[m * n + c, k]


@vectorised(lanes_code.note_masses, apart=True)
def note_masses(values: Any, lane: int, first: int, last: int, n: int) -> None:
    """Number ``lane`` of rows first..last-1 = sum of the absolute values of the others."""
    lanes = values.shape[1]
    together = n if n <= lanes_code.FEW else 1
    scratch = np.zeros((together, lanes), values.dtype)
    for m in range(first, last):
        at, place = m * n + lane // lanes, lane % lanes
        values[at, place] = 0.0
        mass = values[at, place]  # in working precision
        for begin in range(0, n, together):
            for c in range(together):
                for k in range(lanes):
                    scratch[c, k] = abs(values[m * n + begin + c, k])
            mass += values.dtype.type(total(scratch))
        values[at, place] = mass


@vectorised(lanes_code.join_bins, apart=True)
def join_bins(sums: Any, bins: int, several: int, n: int) -> None:
    """Add up the ``several`` sums of each bin."""
    for copy in range(1, several):
        for at in range(bins * n):
            for k in range(sums.shape[1]):
                sums[at, k] += sums[copy * bins * n + at, k]


@vectorised(lanes_code.sum_bins, apart=True)
def sum_bins(out: Any, sums: Any, first: int, last: int, n: int) -> None:
    """Row 0 of ``out`` = sum of rows first..last-1 of ``sums``."""
    out[:n] = 0.0
    for b in range(first, last):
        for c in range(n):
            for k in range(out.shape[1]):
                out[c, k] += sums[b * n + c, k]


@vectorised(lanes_code.add_weighted_bins, apart=True)
def add_weighted_bins(out: Any, sums: Any, bins: int, several: int, weight: Any, row: int, n: int) -> None:
    """Rows 0..bins-1 of ``out`` += those of ``sums``, bins as in `add_to_bins`, times row ``row`` of ``weight``."""
    for copy in range(several):
        for at in range(bins * n):
            for k in range(out.shape[1]):
                out[at, k] += weight[row * n + at % n, k] * sums[copy * bins * n + at, k]


@vectorised(lanes_code.sweep, apart=True)
def sweep(
    bounds: Any, edges: Any, sums: Any, bins: int, crossing: int, twice: Any, least: Any, n: int
) -> None:
    """The edges of all cuts between bins, the first rows of ``sums``.

    Row 0 of ``edges`` = sum of all bins; ``bounds[crossing]`` = its sum of max(|edge|, least); ``bounds[b + 1]`` = the
    same after bins crossing..b have changed side, each taking ``twice`` its sum off the edges.
    """
    running = np.zeros((n, edges.shape[1]), edges.dtype)
    scratch = np.zeros((n, edges.shape[1]), edges.dtype)
    for b in range(bins):
        cross(running, twice, sums, b * n)
    for c in range(n):  # - 2 times the sum of all bins
        for k in range(edges.shape[1]):
            running[c, k] *= -0.5
            edges[c, k] = running[c, k]
    bounds[crossing] = sum_of_sizes(running, least, scratch)
    for b in range(crossing, bins):
        cross(running, twice, sums, b * n)
        bounds[b + 1] = sum_of_sizes(running, least, scratch)


@vectorised(lanes_code.cross_bins, apart=True)
def cross_bins(edges: Any, o: int, i: int, sums: Any, first: int, last: int, twice: Any, n: int) -> None:
    """Vectors o.. of ``edges`` = vectors i.. after bins first..last-1 have changed side, as in `sweep`."""
    running = edges[i : i + n].copy()
    for b in range(first, last):
        cross(running, twice, sums, b * n)
    edges[o : o + n] = running


@vectorised(lanes_code.cross_rows, apart=True)
def cross_rows(
    inner: Any, edges: Any, o: int, i: int, values: Any, group: Any, slot: Any, factors: Any, stride: int,
    order: Any, first: int, last: int, twice: Any, least: Any, n: int,
) -> None:  # fmt: skip
    """Vectors o.. of ``edges`` = vectors i.. after examples ``order[first:last]`` have changed side.

    ``inner[k]`` = sum of max(|edge|, least) after the first k + 1 have. Factors of an example are row
    ``group * stride + slot``.
    """
    running = edges[i : i + n].copy()
    scratch = np.zeros((n, edges.shape[1]), edges.dtype)
    for m in range(first, last):
        row = int(order[m])
        j = (int(group[row]) * stride + int(slot[row])) * n
        for c in range(n):
            for k in range(edges.shape[1]):
                scratch[c, k] = values[row * n + c, k] * factors[j + c, k]
        cross(running, twice, scratch, 0)
        inner[m - first] = sum_of_sizes(running, least, scratch)
    edges[o : o + n] = running
