"""What a pull reveals, as kernels: a feedback record and ``reveal(feedback, t, arm, seen) -> count``.

`reveal` writes the observed arms of step t into ``seen``, the pulled arm last, and says how many they are.
Policies that must know the graph hold it as a `Changing` record, whatever it is, and ask it with `observers`
and `chance_seen`: one record, so that each policy is written once for fixed and for changing graphs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.randomness import GOLDEN, mix, uniform_at


class Alone(NamedTuple):
    """Bandit feedback: only the pulled arm is seen."""

    n_arms: int


class Links(NamedTuple):
    """A fixed graph in compressed rows: closed neighbourhoods, each row ending with its own arm."""

    out_start: NDArray[np.int64]  # (K + 1,)
    out_arms: NDArray[np.int32]  # (edges + K,): the arms that a pull of k reveals
    in_start: NDArray[np.int64]  # (K + 1,)
    in_arms: NDArray[np.int32]  # (edges + K,): the arms whose pull reveals k


class Changing(NamedTuple):
    """Graphs that take turns, and whose edges may be absent at random; `Links` is the case of one graph kept whole."""

    out_start: NDArray[np.int64]  # (period * (K + 1),): the rows of step t begin at turn_of(t) * (K + 1)
    out_arms: NDArray[np.int32]
    in_start: NDArray[np.int64]
    in_arms: NDArray[np.int32]
    n_arms: int
    period: int  # number of graphs
    keep: float  # probability that an edge is there at a step
    key: np.uint64  # names the draws
    paired: bool  # u -> v and v -> u come and go together
    dense: bool  # every pair is an edge: no rows are stored


def as_changing(feedback: Any) -> Changing:
    """Any feedback record as the one that policies hold; arrays are shared."""
    if isinstance(feedback, Changing):
        return feedback
    if isinstance(feedback, Alone):
        start = np.arange(feedback.n_arms + 1, dtype=np.int64)
        arms = np.arange(feedback.n_arms, dtype=np.int32)
        feedback = Links(start, arms, start, arms)
    n_arms = int(feedback.out_start.size) - 1
    rows = (feedback.out_start, feedback.out_arms, feedback.in_start, feedback.in_arms)
    return Changing(*rows, n_arms, 1, 1.0, np.uint64(0), True, False)


def changes(record: Changing) -> bool:
    """Whether the graph at step t depends on t."""
    return record.period > 1 or record.keep < 1.0


@kernel
def reveal_alone(feedback: Any, t: int, arm: int, seen: Any) -> int:
    """The pulled arm."""
    seen[0] = arm
    return 1


@kernel
def reveal_links(feedback: Any, t: int, arm: int, seen: Any) -> int:
    """The closed out-neighbourhood of the pulled arm."""
    first = feedback.out_start[arm]
    count = int(feedback.out_start[arm + 1] - first)
    for j in range(count):
        seen[j] = feedback.out_arms[first + j]
    return count


@kernel
def turn_of(graph: Any, t: int) -> int:
    """Which of the graphs is in force at step t = 1, 2, ..."""
    return 0 if graph.period == 1 else int((t - 1) % graph.period)  # a division costs as much as ten sums


@kernel
def there(graph: Any, t: int, source: int, target: int) -> bool:
    """Whether an edge of the graph is present at step t; the same answer whoever asks."""
    if graph.keep >= 1.0 or source == target:
        return True
    if graph.paired and source > target:
        source, target = target, source
    return bool(uniform_at(mix(graph.key + np.uint64(source + 1) * GOLDEN), t, target) < graph.keep)


@kernel
def reveal_changing(feedback: Any, t: int, arm: int, seen: Any) -> int:
    """The closed out-neighbourhood of the pulled arm at step t."""
    count = 0
    if feedback.dense:
        for other in range(feedback.n_arms):
            if other != arm and there(feedback, t, arm, other):
                seen[count] = other
                count += 1
        seen[count] = arm
        return count + 1
    row = turn_of(feedback, t) * (feedback.n_arms + 1) + arm
    for j in range(feedback.out_start[row], feedback.out_start[row + 1]):
        other = feedback.out_arms[j]
        if there(feedback, t, arm, other):
            seen[count] = other
            count += 1
    return count


@kernel
def observers(graph: Any, t: int, arm: int, who: Any) -> int:
    """The arms that would reveal ``arm`` at step t into ``who``, itself last; returns their number."""
    count = 0
    if graph.dense:
        for other in range(graph.n_arms):
            if other != arm and there(graph, t, other, arm):
                who[count] = other
                count += 1
        who[count] = arm
        return count + 1
    row = turn_of(graph, t) * (graph.n_arms + 1) + arm
    for j in range(graph.in_start[row], graph.in_start[row + 1]):
        other = graph.in_arms[j]
        if there(graph, t, other, arm):
            who[count] = other
            count += 1
    return count


@kernel
def chance_seen(graph: Any, t: int, arm: int, chances: Any) -> float:
    """Probability that ``arm`` is observed at step t when the pull has the law ``chances``."""
    total = 0.0
    if graph.dense:
        for other in range(graph.n_arms):
            if there(graph, t, other, arm):
                total += chances[other]
        return total
    row = turn_of(graph, t) * (graph.n_arms + 1) + arm
    if graph.keep >= 1.0:
        for j in range(graph.in_start[row], graph.in_start[row + 1]):
            total += chances[graph.in_arms[j]]
        return total
    for j in range(graph.in_start[row], graph.in_start[row + 1]):
        other = graph.in_arms[j]
        if there(graph, t, other, arm):
            total += chances[other]
    return total
