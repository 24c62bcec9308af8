"""Arithmetic on rows of labels: 64 bytes at a time, one vector instruction where the machine has it.

The weights of an example are a row of L numbers. Rows are padded to whole *vectors* of 64 bytes (16 floats or
8 doubles) and kept in arrays of shape (vectors, lanes); an index below counts vectors, or rows of ``n`` vectors.
Python runs these functions as they stand; Numba is taught to turn each into vector instructions (`lanes_code`), since
it cannot see by itself that the arrays do not overlap (measured: four times slower).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import before_compiling

VECTOR_BYTES = 64


def lanes_of(dtype: Any) -> int:
    """How many numbers of this type a vector holds."""
    return VECTOR_BYTES // int(np.dtype(dtype).itemsize)


def vectors(count: int, dtype: Any) -> NDArray[Any]:
    """Zeros of shape (count, lanes), aligned to the vector size."""
    lanes = lanes_of(dtype)
    raw = np.zeros((count + 1) * lanes, dtype=dtype)
    skip = (-raw.ctypes.data % VECTOR_BYTES) // raw.itemsize
    return raw[skip : skip + count * lanes].reshape(count, lanes)


def add(out: Any, o: int, a: Any, i: int) -> None:
    """out[o] += a[i]."""
    out[o] += a[i]


def copy(out: Any, o: int, a: Any, i: int) -> None:
    """out[o] = a[i]."""
    out[o] = a[i]


def multiply(out: Any, o: int, a: Any, i: int, b: Any, j: int) -> None:
    """out[o] = a[i] * b[j]."""
    out[o] = a[i] * b[j]


def add_magnitudes(out: Any, o: int, a: Any, i: int, b: Any, j: int, n: int) -> None:
    """Row o of ``out`` += |row i of ``a`` times row j of ``b``|."""
    out[o * n : o * n + n] += np.abs(a[i * n : i * n + n] * b[j * n : j * n + n])


def cross_product(
    edges: Any, e: int, a: Any, i: int, b: Any, j: int, twice: Any, least: Any, k: int
) -> float:
    """edges[e] -= twice[k] a[i] b[j]: an example changes side; returns the sum of max(|edges[e]|, least[k])."""
    edges[e] -= twice[k] * (a[i] * b[j])
    return float(np.maximum(np.abs(edges[e]), least[k]).sum())


def add_to_bins(
    sums: Any, mask: int, step: int, code: Any, row: Any, values: Any, slot: Any, factors: Any, start: int,
    first: int, last: int, n: int,
) -> None:  # fmt: skip
    """Add example ``row[m]`` to row ``code[m]`` of ``sums``, m = first..last-1.

    The row added is that of ``values`` times row ``start + slot`` of ``factors``. Without ``row`` it is example m, without
    ``slot`` there are no factors. Neighbours often share a bin, and an addition would have to wait for the one
    before: so each bin has mask + 1 sums, ``step`` rows apart, used in turn.
    """
    for m in range(first, last):
        o = code[m] + (m & mask) * step
        i = m if row is None else row[m]
        value = values[i * n : i * n + n]
        if slot is not None:
            j = start + slot[i]
            value = value * factors[j * n : j * n + n]
        sums[o * n : o * n + n] += value


def sum_products(
    sums: Any, values: Any, slot: Any, factors: Any, start: int, first: int, last: int, n: int
) -> None:
    """Row 0 of ``sums`` = sum of rows first..last-1 of ``values`` times their factors, as in `add_to_bins`."""
    j = start + slot[first:last].astype(np.int64)
    rows = values[first * n : last * n].reshape(last - first, n, -1)
    sums[:n] = (rows * factors.reshape(-1, n, factors.shape[1])[j]).sum(axis=0)


def settle(
    sums: Any, values: Any, slot: Any, factors: Any, start: int, floor: Any, first: int, last: int, n: int
) -> None:
    """`sum_products`; the products, moved away from zero to at least row 0 of ``floor``, are the new ``values``."""
    j = start + slot[first:last].astype(np.int64)
    rows = values[first * n : last * n].reshape(last - first, n, -1)
    new = rows * factors.reshape(-1, n, factors.shape[1])[j]
    rows[:] = np.copysign(np.maximum(np.abs(new), floor[:n]), new)
    sums[:n] = rows.sum(axis=0)


def note_masses(values: Any, lane: int, first: int, last: int, n: int) -> None:
    """Number ``lane`` of rows first..last-1 = sum of the absolute values of the others."""
    rows = values[first * n : last * n].reshape(last - first, -1)
    rows[:, lane] = 0.0
    rows[:, lane] = np.abs(rows).sum(axis=1)


def sweep(
    bounds: Any, edges: Any, sums: Any, base: int, bins: int, crossing: int, twice: Any, least: Any, n: int
) -> None:
    """The edges of all cuts between bins, rows of ``sums`` from vector ``base`` on.

    Row 0 of ``edges`` = sum of all bins; ``bounds[crossing]`` = its sum of max(|edge|, least); ``bounds[b + 1]`` = the
    same after bins crossing..b have changed side, each taking ``twice`` its sum off the edges.
    """
    rows = sums[base : base + bins * n].reshape(bins, n, -1)
    edges[:n] = rows.sum(axis=0) * (twice[:n] * 0.5)
    running = edges[:n].copy()
    bounds[crossing] = np.maximum(np.abs(running), least[:n]).sum()
    for b in range(crossing, bins):
        running -= twice[:n] * rows[b]
        bounds[b + 1] = np.maximum(np.abs(running), least[:n]).sum()


def cross_bins(
    edges: Any, o: int, i: int, sums: Any, base: int, first: int, last: int, twice: Any, n: int
) -> None:
    """Vectors o.. of ``edges`` = vectors i.. after bins first..last-1 have changed side, as in `sweep`."""
    rows = sums[base : base + last * n].reshape(last, n, -1)
    running = edges[i : i + n].copy()
    for b in range(first, last):
        running -= twice[:n] * rows[b]
    edges[o : o + n] = running


@before_compiling
def teach_numba() -> None:
    """Give Numba vector code for the functions above."""
    from abex.boosting.lanes_code import teach

    teach()
