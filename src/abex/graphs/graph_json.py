"""A feedback graph as a JSON value: the class of its feedback record and the record's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from abex.errors import UserError, shown
from abex.files import decode_array, encode_array
from abex.graphs.checking import checked_feedback
from abex.graphs.feedback import Alone, Changing, Links
from abex.graphs.graph import NO_KEY, FeedbackGraph
from abex.graphs.time_varying import graph_of_feedback

RECORDS: dict[str, Any] = {kind.__name__: kind for kind in (Alone, Links, Changing)}


def write_graph(graph: FeedbackGraph, key: np.uint64 = NO_KEY) -> Any:
    """The graph, and the ``key`` of its draws."""
    record = graph.feedback(key)
    if type(record) not in RECORDS.values():
        raise UserError(f"a graph of kind {type(graph).__name__} cannot be saved")
    fields = {
        name: encode_array(np.asarray(part)) if isinstance(part, np.ndarray | np.generic) else part
        for name, part in record._asdict().items()
    }
    return [type(record).__name__, fields]


def read_graph(saved: Any, n_arms: int) -> tuple[FeedbackGraph, np.uint64]:
    """What `write_graph` wrote of a graph of ``n_arms`` arms; ValueError where it is damaged."""
    name, fields = saved
    kind = RECORDS.get(str(name))
    if kind is None or set(fields) != set(kind._fields):
        raise ValueError(f"there is no feedback graph of kind {shown(name)[:60]}")
    record = checked_feedback(kind(**{field: _part(value) for field, value in fields.items()}), n_arms)
    return graph_of_feedback(record), getattr(record, "key", NO_KEY)


def _part(value: Any) -> Any:
    """An array, or a number that may have been written as an array without dimensions."""
    array = decode_array(value) if isinstance(value, dict) else value
    return array[()] if isinstance(array, np.ndarray) and array.ndim == 0 else array
