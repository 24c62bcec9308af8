"""Whether a feedback record from elsewhere is one that kernels may follow blindly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Alone, Changing


def checked_feedback(record: Any, n_arms: int) -> Any:
    """``record``, if it is a graph of ``n_arms`` arms; raises ValueError otherwise. Its arrays become read-only.

    Rows are compressed, increasing, without repetition, and closed by their own arm; the rows of who is seen and of who sees
    hold the same edges.
    """
    if isinstance(record, Alone):
        _demand(record.n_arms == n_arms, "it must have as many nodes as there are arms")
        return record
    period = 1
    if isinstance(record, Changing):
        _demand(
            _whole(record.n_arms) and record.n_arms == n_arms, "it must have as many nodes as there are arms"
        )
        _demand(_whole(record.period) and record.period >= 1, "it must have a period")
        probability = type(record.keep) is float and 0.0 <= record.keep <= 1.0
        _demand(probability, "its edges must be there with a probability")
        _demand(isinstance(record.key, np.uint64), "its key must be a word of 64 bits")
        _demand(type(record.paired) is bool and type(record.dense) is bool, "its kind must be given")
        period = record.period
    rows = ((record.out_start, record.out_arms), (record.in_start, record.in_arms))
    for start, arms in rows:
        _demand(start.dtype == np.int64 and arms.dtype == np.int32, "its rows must be whole numbers")
    if isinstance(record, Changing) and record.dense:
        _demand(period == 1, "a graph of all pairs does not take turns")
        _demand(all(arms.size == 0 for _, arms in rows), "a graph of all pairs stores no edges")
    else:
        _demand(period * n_arms * n_arms < 2**63, "it must not be larger than any machine")
        turn, row, arm = _edges(record.out_start, record.out_arms, n_arms, period)
        seen = (turn * n_arms + row) * n_arms + arm
        turn, row, arm = _edges(record.in_start, record.in_arms, n_arms, period)
        seers = np.sort((turn * n_arms + arm) * n_arms + row)
        _demand(np.array_equal(seen, seers), "who is seen and who sees must be the same edges")
    for array in (*rows[0], *rows[1]):
        array.setflags(write=False)
    return record


def _edges(
    start: NDArray[np.int64], arms: NDArray[np.int32], n_arms: int, period: int
) -> tuple[NDArray[np.int64], ...]:
    """Turn, row and arm of every entry of compressed rows, in this order, own arms left out."""
    _demand(
        start.ndim == arms.ndim == 1 and start.size == period * (n_arms + 1),
        "it must have a row for each arm",
    )
    table = start.reshape(period, n_arms + 1)
    sizes = np.diff(table, axis=1)
    _demand(bool(table[0, 0] == 0 and table[-1, -1] == arms.size), "its rows must fill its arms")
    _demand(bool((table[1:, 0] == table[:-1, -1]).all()), "its graphs must follow each other")
    _demand(bool(((sizes >= 1) & (sizes <= n_arms)).all()), "its rows must hold from 1 to all arms")
    _demand(bool(((arms >= 0) & (arms < n_arms)).all()), "its edges must join arms")
    row = np.repeat(np.tile(np.arange(n_arms), period), sizes.ravel())
    turn = np.repeat(np.repeat(np.arange(period), n_arms), sizes.ravel())
    last = np.zeros(arms.size, dtype=bool)
    last[table[:, 1:].ravel() - 1] = True
    _demand(np.array_equal(arms == row, last), "every row must end with its own arm")
    rising = np.diff(arms.astype(np.int64)) > 0
    _demand(bool((rising | last[1:] | last[:-1]).all()), "its rows must be increasing")
    return turn[~last], row[~last], arms[~last].astype(np.int64)


def _whole(value: Any) -> bool:
    return type(value) is int


def _demand(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(f"the graph is damaged: {sentence}")
