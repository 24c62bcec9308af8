"""How long a sweep will take: from cells like it in the store, else from its steps; corrected while it runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush, heappushpop

from abex.lab.results import Cell, Store, canonical
from abex.lab.sweeps.cells import TASKS

UNKNOWN = 0.1  # seconds of a cell about which nothing is known


class RunningMedian:
    """The lower median of numbers that come one by one, each in logarithmic time.

    A heap holds the lower half, its greatest on top, another one the upper half, its least on top.

    >>> median = RunningMedian()
    >>> for number in (9.0, 0.1, 0.2, 0.3):
    ...     median.add(number)
    >>> median.value
    0.2
    """

    def __init__(self) -> None:
        self._lower: list[float] = []  # negated: heaps of the standard library have the least on top
        self._upper: list[float] = []

    def add(self, number: float) -> None:
        """Take one more number in."""
        heappush(self._upper, -heappushpop(self._lower, -number))
        if len(self._upper) > len(self._lower):
            heappush(self._lower, -heappop(self._upper))

    @property
    def value(self) -> float:
        """The median of those taken in, of which there must be one."""
        return -self._lower[0]


class TimeLeft:
    """CPU seconds of cells: guessed, then learnt from those that have been computed.

    Cells that differ by the seed alone are replicates and take equally long: those of which one has been measured are forecast
    by its time, for the others the guesses are scaled by how wrong the guesses about measured ones were.
    """

    def __init__(self, cells: Iterable[Cell], store: Store | None = None) -> None:
        self._measured: dict[str, RunningMedian] = defaultdict(RunningMedian)
        if store is not None:
            for cell, measured in store.measured():
                self._measured[replicates_of(cell)].add(float(measured.get("seconds", 0.0)))
        self._left: dict[str, int] = defaultdict(int)
        self._guess: dict[str, float] = {}
        self.done = 0.0  # seconds of the cells learnt
        self._guessed = self._taken = 0.0
        for cell in cells:
            group = replicates_of(cell)
            self._left[group] += 1
            if group not in self._guess:
                self._guess[group] = guess(cell)

    def seconds(self, cell: Cell) -> float:
        """What the cell will take."""
        return self._seconds(replicates_of(cell), self._guess.get(replicates_of(cell)) or guess(cell))

    def _seconds(self, group: str, guessed: float) -> float:
        if group in self._measured:
            return self._measured[group].value  # the first cell of a process has compiled: not the mean
        return guessed * (self._taken / self._guessed if self._guessed else 1.0)

    def learn(self, cell: Cell, seconds: float) -> None:
        """The cell has been computed in so many seconds."""
        group = replicates_of(cell)
        self._measured[group].add(seconds)
        self._left[group] -= 1
        self.done += seconds
        self._guessed += self._guess.get(group, UNKNOWN)
        self._taken += self._measured[group].value

    def drop(self, cell: Cell) -> None:
        """The cell will not be computed here."""
        self._left[replicates_of(cell)] -= 1

    @property
    def left(self) -> float:
        """Seconds of all cells that have not been learnt yet."""
        return math.fsum(
            count * self._seconds(group, self._guess[group])
            for group, count in self._left.items()
            if count > 0
        )


def replicates_of(cell: Cell) -> str:
    """What a cell has in common with its other replications."""
    return canonical({name: value for name, value in cell.items() if name not in ("seed", "replication")})


def guess(cell: Cell) -> float:
    """Seconds of CPU of a cell of which no replicate has been measured, by its steps alone.

    >>> guess({"kind": "bandit", "policy": "UCB1()", "horizon": 1000, "problem": {}})
    0.0005
    """
    task = TASKS.get(str(cell.get("kind")))
    if task is None:
        return UNKNOWN
    return task.step_seconds * float(cell.get(task.length) or 0) * int(cell.get("replications", 1))
