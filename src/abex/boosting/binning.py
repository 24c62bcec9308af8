"""Features as small integers: what the stump kernels read instead of the numbers themselves.

A feature with at most 256 distinct values is coded exactly: bin = rank of the value. A *wide* feature is coded
into bins of about equal count, and keeps its rows in order of value, so that a search finds the best bin
first and the exact split inside it afterwards. A feature with one very frequent value is *listed*: only the
rows elsewhere are stored. Missing values have bin 0 for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record

MAX_BINS = 256  # a code is one byte
WIDE_BINS = 192  # measured on USPS and ISOLET: fewer cost refinement, more cost cache
LISTED_FROM = 0.35  # share of the most frequent value from which the other rows are listed
# lists must save this share of all codes, since with them totals are carried from stump to stump
LISTS_PAY = 0.2
MAX_COPIED_BYTES = 1 << 24  # bytes of columns that are copied at once, about
BLOCK = (
    64  # columns of a sparse matrix converted at a time; of an array, as many as fill so many bytes of a row
)


class BinnedFeatures(Record):
    """All features, coded. Arrays of one feature lie one after the other; ``*_start`` says where."""

    bins: NDArray[np.int64]  # (d,) number of bins; 0 or 1 for a constant feature
    missing: NDArray[np.bool_]  # (d,) bin 0 holds missing values
    listed: NDArray[np.bool_]  # (d,)
    wide: NDArray[np.bool_]  # (d,)
    frequent: NDArray[np.int64]  # (d,) the bin of a value that many rows share, or -1; not listed
    code_start: NDArray[np.int64]  # (d + 1,)
    code: NDArray[np.uint8]
    row_start: NDArray[np.int64]  # (d + 1,) listed features only
    row: NDArray[np.int32]
    part_start: NDArray[np.int64]  # (d + 1,) listed features only
    part: NDArray[np.int32]  # how many listed rows lie in the first group of examples, the first two, ...
    thresholds_start: NDArray[np.int64]  # (d + 1,)
    thresholds: NDArray[np.float64]  # thresholds[r] separates the values of rank r and r + 1
    first_rank_start: NDArray[np.int64]  # (d + 1,) wide features only
    first_rank: NDArray[np.int64]  # first rank of each bin, then the number of ranks
    place_start: NDArray[np.int64]  # (d + 1,) wide features only
    place: NDArray[np.int32]  # where the rows of a rank begin in `order`, relative to its start
    order_start: NDArray[np.int64]  # (d + 1,) wide features only
    order: NDArray[np.int32]  # rows by value


class BinnedFeature(NamedTuple):
    """One feature, coded."""

    bins: int
    code: NDArray[np.uint8]
    missing: bool
    thresholds: NDArray[np.float64]
    listed: bool
    frequent: int  # the bin whose rows are not listed
    row: NDArray[np.int32]
    part: NDArray[np.int32]
    wide: bool
    first_rank: NDArray[np.int64]
    place: NDArray[np.int32]
    order: NDArray[np.int32]


NOTHING = np.zeros(0, np.int64)
NO_ROWS = np.zeros(0, np.int32)


def bin_features(
    X: Any,
    rows: NDArray[np.int64],
    ends: NDArray[np.int64],
    *,
    stumps: bool = True,
    single: bool = False,
    mapper: Callable[..., Iterable[Any]] = map,
) -> BinnedFeatures:
    """The columns of ``X`` (array or sparse matrix), examples in the order ``rows``.

    Parameters
    ----------
    ends : array
        Where the groups of examples end, after that order.
    stumps : bool
        Whether all rows are searched at once: then features with a frequent value may be listed, and wide ones keep the order
        of their rows. Trees split these between bins only.
    single : bool
        Whether thresholds are midpoints of float32 numbers (as MultiBoost computes them).
    mapper : callable
        How blocks of columns are mapped: `map`, or that of a thread pool.
    """

    def coded(block: tuple[int, int]) -> list[BinnedFeature]:
        return [bin_feature(c, ends, stumps, single) for c in columns(X, rows, *block)]

    size = BLOCK if hasattr(X, "toarray") else max(1, BLOCK // X.dtype.itemsize)
    size = max(1, min(size, MAX_COPIED_BYTES // (rows.size * 8)))
    blocks = [(first, min(first + size, X.shape[1])) for first in range(0, X.shape[1], size)]
    parts = [column for part in mapper(coded, blocks) for column in part]
    saved = sum(rows.size - column.code.size for column in parts if column.listed)
    if not stumps or saved < LISTS_PAY * rows.size * sum(column.bins > 1 for column in parts):
        parts = [spread(column, rows.size) for column in parts]
    return gather(parts)


def columns(X: Any, rows: NDArray[np.int64], first: int, last: int) -> Iterator[NDArray[np.float64]]:
    """Columns first..last-1 as contiguous arrays of doubles, examples in the order ``rows``."""
    part = X[:, first:last]
    part = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
    across = np.ascontiguousarray(part.T)
    for j in range(last - first):
        yield across[j][rows].astype(np.float64)


def bin_feature(
    values: NDArray[np.float64], ends: NDArray[np.int64], exact: bool, single: bool
) -> BinnedFeature:
    """Code one feature."""
    lost = np.isnan(values)
    missing = bool(lost.any())
    present = values[~lost] if missing else values
    distinct, rank = ranked(present)
    most = MAX_BINS - missing
    wide = distinct.size > most
    counts = np.bincount(rank, minlength=distinct.size)
    common = int(counts.argmax()) if distinct.size else 0
    listed = bool(distinct.size > 1 and counts[common] >= LISTED_FROM * values.size)
    first = NOTHING
    bin_of_rank = np.arange(distinct.size)
    if wide:
        bin_of_rank = even_bins(counts, WIDE_BINS if exact else most, common if listed else -1)
        first = np.append(np.searchsorted(bin_of_rank, np.arange(bin_of_rank[-1] + 1)), distinct.size)
    code = np.zeros(values.size, np.uint8)
    code[~lost] = (bin_of_rank + missing)[rank]
    frequent = int(bin_of_rank[common]) + missing if listed else -1
    bins = (int(bin_of_rank[-1]) + 1 if distinct.size else 0) + missing
    row, part, order, place = NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS
    if wide and exact:
        behind = np.flatnonzero(~lost)
        keep = rank != common if listed else np.ones(rank.size, bool)
        order = behind[keep][np.argsort(rank[keep], kind="stable")].astype(np.int32)
        kept = counts.copy()
        kept[common] = 0 if listed else kept[common]
        place = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)
    if listed:
        row = np.flatnonzero(code != frequent).astype(np.int32)
        part = np.searchsorted(row, ends).astype(np.int32)
        code = code[row]
    if bins < 2:
        code = np.zeros(0, np.uint8)
    thresholds = midpoints(distinct, single)
    if wide and not exact:
        thresholds = thresholds[first[1:-1] - 1]
    return BinnedFeature(
        bins, code, missing, thresholds, listed, frequent, row, part, wide and exact, first, place, order
    )


def ranked(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Distinct values and the rank of each value; a counting sort where values are small integers."""
    if values.size == 0:
        return values, NOTHING
    low, high = values.min(), values.max()
    if high - low < 65_536 and low == np.floor(low):
        shifted = (values - low).astype(np.int64)
        if np.array_equal(shifted + low, values):
            there = np.zeros(int(high - low) + 1, np.int64)
            there[shifted] = 1
            return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[shifted]
    distinct, rank = np.unique(values, return_inverse=True)
    return distinct, rank.astype(np.int64)


def even_bins(counts: NDArray[np.int64], bins: int, alone: int) -> NDArray[np.int64]:
    """The bin of each rank: about equal counts, at most ``bins``, rank ``alone`` by itself."""
    others = counts.astype(np.float64)
    reserved = 0
    if alone >= 0:
        others[alone] = 0.0
        reserved = 2  # its own bin may divide another
    middle = np.cumsum(others) - others / 2
    bin_of_rank = np.floor(middle / others.sum() * (bins - reserved)).astype(np.int64)
    change = np.concatenate([[0], np.diff(bin_of_rank) != 0]).astype(np.int64)
    if alone >= 0:
        change[alone] = alone > 0
        if alone + 1 < change.size:
            change[alone + 1] = 1
    return np.cumsum(change)


def midpoints(distinct: NDArray[np.float64], single: bool) -> NDArray[np.float64]:
    """Thresholds b with distinct[r] <= b < distinct[r + 1]: ``x > b`` separates them whatever the rounding."""
    if single:
        narrow = distinct.astype(np.float32)
        return ((narrow[:-1] + narrow[1:]) / np.float32(2.0)).astype(np.float64)
    middle = distinct[:-1] / 2 + distinct[1:] / 2
    return np.where((middle >= distinct[:-1]) & (middle < distinct[1:]), middle, distinct[:-1])


def largest_bin(binned: BinnedFeatures) -> int:
    """The most rows that a bin of a wide feature has to keep in order."""
    most = 0
    for j in np.flatnonzero(binned.wide):
        place = binned.place[binned.place_start[j] : binned.place_start[j + 1]]
        first_rank = binned.first_rank[binned.first_rank_start[j] : binned.first_rank_start[j + 1]]
        most = max(most, int(np.diff(place[first_rank]).max()))
    return most


def spread(column: BinnedFeature, n: int) -> BinnedFeature:
    """The same feature without a list."""
    if not column.listed:
        return column
    code = np.full(n, column.frequent, np.uint8)
    code[column.row] = column.code
    return column._replace(listed=False, code=code, row=NO_ROWS, part=NO_ROWS)


def gather(parts: list[BinnedFeature]) -> BinnedFeatures:
    """All columns in one record of arrays."""
    fields: dict[str, NDArray[Any]] = {}
    for name, values in zip(BinnedFeature._fields, zip(*parts, strict=True), strict=True):
        if isinstance(values[0], np.ndarray):
            fields[f"{name}_start"] = np.cumsum([0, *(value.size for value in values)])
            fields[name] = np.concatenate(values)
        else:
            fields[name] = np.array(values)
    return BinnedFeatures(**fields)
