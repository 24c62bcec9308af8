"""Arithmetic on rows of labels: 64 bytes at a time, one vector instruction where the machine has it.

The weights of an example are a row of L numbers. Rows are padded to whole *vectors* of 64 bytes (16 floats or
8 doubles) and kept in arrays of shape (vectors, lanes); an index below counts vectors, or rows of ``n`` vectors.
Python runs these functions as they stand. Numba compiles them as `lanes_code` writes them, since it cannot see by itself that the
arrays do not overlap (measured: four times slower), or as they stand where it cannot be taught. All three add in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting import lanes_code
from abex.kernels import kernel
from abex.kernels.vectors import lanes_of, vectorised, vectors

__all__ = [
    "add_magnitudes", "add_to_bins", "add_weighted_bins", "clear", "cross_bins", "cross_rows", "join_bins", "lanes_of",
    "multiply", "note_masses", "settle", "sum_bins", "sum_products", "sweep", "vectors",
]  # fmt: skip

TOGETHER = lanes_code.TOGETHER


@kernel
def total(row: NDArray[Any]) -> float:
    """Sum of the numbers of a row, shape (vectors, lanes), in the order of the instructions: by halves of a vector.

    >>> total(np.arange(32.0).reshape(2, 16))
    496.0
    """
    n, lanes = row.shape
    whole = 0.0
    few = n <= lanes_code.FEW  # so many vectors are added up before
    for c in range(1 if few else n):
        part = row[c].copy()
        for other in range(1, n if few else 1):
            part += row[other]
        width = lanes
        while width > 1:
            width //= 2
            for k in range(width):
                part[k] += part[k + width]
        whole += float(part[0])
    return whole


@vectorised(lanes_code.clear, apart=True)
def clear(out: Any, count: int) -> None:
    """The first ``count`` vectors = 0."""
    out[:count] = 0.0


@vectorised(lanes_code.multiply)
def multiply(out: Any, o: int, a: Any, i: int, b: Any, j: int) -> None:
    """out[o] = a[i] * b[j]."""
    out[o] = a[i] * b[j]


@vectorised(lanes_code.add_magnitudes)
def add_magnitudes(out: Any, o: int, a: Any, i: int, b: Any, j: int, n: int) -> None:
    """Row o of ``out`` += |row i of ``a`` times row j of ``b``|."""
    out[o * n : o * n + n] += np.abs(a[i * n : i * n + n] * b[j * n : j * n + n])


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
        o = int(code[m]) + ((m - first) & (several - 1)) * bins
        i = m if row is None else row[m]
        value = values[i * n : i * n + n]
        if slot is not None:
            j = start + int(slot[i])
            value = value * factors[j * n : j * n + n]
        sums[o * n : o * n + n] += value


@vectorised(lanes_code.sum_products, apart=True)
def sum_products(
    sums: Any, values: Any, slot: Any, factors: Any, start: int, first: int, last: int, n: int
) -> None:
    """Row 0 of ``sums`` = sum of rows first..last-1 of ``values`` times their factors, as in `add_to_bins`."""
    j = start + slot[first:last].astype(np.int64)
    rows = values[first * n : last * n].reshape(last - first, n, -1)
    sums[:n] = (rows * factors.reshape(-1, n, factors.shape[1])[j]).sum(axis=0)


@vectorised(lanes_code.settle, apart=True)
def settle(
    sums: Any, values: Any, slot: Any, factors: Any, start: int, floor: Any, first: int, last: int, n: int
) -> None:
    """`sum_products`; the products, moved away from zero to at least row 0 of ``floor``, are the new ``values``."""
    j = start + slot[first:last].astype(np.int64)
    rows = values[first * n : last * n].reshape(last - first, n, -1)
    new = rows * factors.reshape(-1, n, factors.shape[1])[j]
    rows[:] = np.copysign(np.maximum(np.abs(new), floor[:n]), new)
    sums[:n] = rows.sum(axis=0)


@vectorised(lanes_code.note_masses, apart=True)
def note_masses(values: Any, lane: int, first: int, last: int, n: int) -> None:
    """Number ``lane`` of rows first..last-1 = sum of the absolute values of the others."""
    rows = values[first * n : last * n].reshape(last - first, -1)
    rows[:, lane] = 0.0
    rows[:, lane] = np.abs(rows).sum(axis=1)


@vectorised(lanes_code.join_bins, apart=True)
def join_bins(sums: Any, bins: int, several: int, n: int) -> None:
    """Add up the ``several`` sums of each bin."""
    sums[: bins * n] = sums[: several * bins * n].reshape(several, bins * n, -1).sum(axis=0)


@vectorised(lanes_code.sum_bins, apart=True)
def sum_bins(out: Any, sums: Any, first: int, last: int, n: int) -> None:
    """Row 0 of ``out`` = sum of rows first..last-1 of ``sums``."""
    out[:n] = sums[first * n : last * n].reshape(last - first, n, -1).sum(axis=0)


@vectorised(lanes_code.add_weighted_bins, apart=True)
def add_weighted_bins(out: Any, sums: Any, bins: int, several: int, weight: Any, row: int, n: int) -> None:
    """Rows 0..bins-1 of ``out`` += those of ``sums``, bins as in `add_to_bins`, times row ``row`` of ``weight``."""
    for copy in range(several):
        for b in range(bins):
            o = copy * bins + b
            out[b * n : b * n + n] += weight[row * n : row * n + n] * sums[o * n : o * n + n]


@vectorised(lanes_code.sweep, apart=True)
def sweep(
    bounds: Any, edges: Any, sums: Any, bins: int, crossing: int, twice: Any, least: Any, n: int
) -> None:
    """The edges of all cuts between bins, the first rows of ``sums``.

    Row 0 of ``edges`` = sum of all bins; ``bounds[crossing]`` = its sum of max(|edge|, least); ``bounds[b + 1]`` = the
    same after bins crossing..b have changed side, each taking ``twice`` its sum off the edges.
    """
    rows = sums[: bins * n].reshape(bins, n, -1)
    edges[:n] = rows.sum(axis=0) * (twice[:n] * 0.5)
    running = edges[:n].copy()
    bounds[crossing] = np.maximum(np.abs(running), least[:n]).sum()
    for b in range(crossing, bins):
        running -= twice[:n] * rows[b]
        bounds[b + 1] = np.maximum(np.abs(running), least[:n]).sum()


@vectorised(lanes_code.cross_bins, apart=True)
def cross_bins(edges: Any, o: int, i: int, sums: Any, first: int, last: int, twice: Any, n: int) -> None:
    """Vectors o.. of ``edges`` = vectors i.. after bins first..last-1 have changed side, as in `sweep`."""
    rows = sums[: last * n].reshape(last, n, -1)
    running = edges[i : i + n].copy()
    for b in range(first, last):
        running -= twice[:n] * rows[b]
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
    for k, row in enumerate(order[first:last]):
        j = group[row] * stride + int(slot[row])
        running -= twice[:n] * (values[row * n : row * n + n] * factors[j * n : j * n + n])
        inner[k] = np.maximum(np.abs(running), least[:n]).sum()
    edges[o : o + n] = running
