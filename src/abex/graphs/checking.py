"""Whether a feedback record from elsewhere is one that kernels may follow blindly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Alone, Links, as_changing


def checked_feedback(record: Any, n_arms: int) -> Any:
    """``record``, if it is a graph of ``n_arms`` arms; raises ValueError otherwise. Its arrays become read-only.

    Rows are compressed, increasing, without repetition, and closed by their own arm; the rows of who is seen and of who sees
    hold the same edges.
    """
    if isinstance(record, Alone):
        _demand(record.n_arms == n_arms, "it must have as many nodes as there are arms")
        return record
    graph = as_changing(record)
    _demand(_whole(graph.n_arms) and graph.n_arms == n_arms, "it must have as many nodes as there are arms")
    _demand(_whole(graph.period) and graph.period >= 1, "it must have a period")
    _demand(
        type(graph.keep) is float and 0.0 <= graph.keep <= 1.0, "its edges must be there with a probability"
    )
    _demand(isinstance(graph.key, np.uint64), "its key must be a word of 64 bits")
    _demand(type(graph.paired) is bool and type(graph.dense) is bool, "its kind must be given")
    for start, arms in (graph[:2], graph[2:4]):
        _demand(start.dtype == np.int64 and arms.dtype == np.int32, "its rows must be whole numbers")
    if graph.dense:
        _demand(graph.period == 1, "a graph of all pairs does not take turns")
        _demand(graph.out_arms.size == 0 and graph.in_arms.size == 0, "a graph of all pairs stores no edges")
    else:
        _demand(graph.period * n_arms * n_arms < 2**63, "it must not be larger than any machine")
        turn, row, arm = _edges(graph.out_start, graph.out_arms, n_arms, graph.period)
        seen = (turn * n_arms + row) * n_arms + arm
        turn, row, arm = _edges(graph.in_start, graph.in_arms, n_arms, graph.period)
        seers = np.sort((turn * n_arms + arm) * n_arms + row)
        _demand(np.array_equal(seen, seers), "who is seen and who sees must be the same edges")
    for array in (graph.out_start, graph.out_arms, graph.in_start, graph.in_arms):
        array.setflags(write=False)
    if isinstance(record, Links) and np.array_equal(graph.out_arms, graph.in_arms):
        return Links(*record[:2], *record[:2])  # one copy of an undirected graph, as `Graph` keeps it
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
