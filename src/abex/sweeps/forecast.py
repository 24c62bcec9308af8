"""How long a sweep will take: from cells like it in the store, else from the size of its problem; corrected while it runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from statistics import median_low
from typing import Any

from abex.errors import UserError
from abex.results import Cell, Store, canonical
from abex.sweeps.boosting_cells import FULL_SEARCH

UNKNOWN = 0.1  # seconds of a cell about which nothing is known
STEP = 5e-7  # seconds of a step of most policies, whatever the number of arms
#: and by arm, of those that draw for each
PER_ARM = {"KLUCB": 1.7e-7, "Thompson": 3e-8, "TSU": 3e-8, "TSMaxN": 3e-8, "ELP": 7e-9}
#: seconds of a boosting iteration: plain, by row and class, by test row and class
ITERATION, PER_WEIGHT, PER_SCORE = 1e-5, 8e-11, 2.5e-10
SEARCH, SEARCH_WEIGHT = 5e-6, 1e-10  # of a full search, for each feature: plain, by row and class


class Forecast:
    """CPU seconds of cells: guessed, then learnt from those that have been computed.

    Cells that differ by the seed alone are kin and take equally long. Kin that has been measured is its own forecast; for the
    others the guesses are scaled by how wrong the guesses about measured kin were.
    """

    def __init__(self, cells: Iterable[Cell], store: Store | None = None) -> None:
        self._measured: dict[str, list[float]] = defaultdict(list)
        if store is not None:
            for cell, measured in store.measured():
                self._measured[kin_of(cell)].append(float(measured.get("seconds", 0.0)))
        self._left: dict[str, int] = defaultdict(int)
        self._guess: dict[str, float] = {}
        self.done = 0.0  # seconds of the cells learnt
        self._guessed = self._taken = 0.0
        for cell in cells:
            kin = kin_of(cell)
            self._left[kin] += 1
            if kin not in self._guess:
                self._guess[kin] = guess(cell)

    def seconds(self, cell: Cell) -> float:
        """What the cell will take."""
        return self._seconds(kin_of(cell), self._guess.get(kin_of(cell)) or guess(cell))

    def _seconds(self, kin: str, guessed: float) -> float:
        if kin in self._measured:
            return median_low(self._measured[kin])  # the first cell of a process has compiled: not the mean
        return guessed * (self._taken / self._guessed if self._guessed else 1.0)

    def learn(self, cell: Cell, seconds: float) -> None:
        """The cell has been computed in so many seconds."""
        kin = kin_of(cell)
        self._measured[kin].append(seconds)
        self._left[kin] -= 1
        self.done += seconds
        self._guessed += self._guess.get(kin, UNKNOWN)
        self._taken += median_low(self._measured[kin])

    def drop(self, cell: Cell) -> None:
        """The cell will not be computed here."""
        self._left[kin_of(cell)] -= 1

    @property
    def left(self) -> float:
        """Seconds of all cells that have not been learnt yet."""
        return math.fsum(
            count * self._seconds(kin, self._guess[kin]) for kin, count in self._left.items() if count > 0
        )


def kin_of(cell: Cell) -> str:
    """What a cell has in common with its other replications."""
    return canonical({name: value for name, value in cell.items() if name not in ("seed", "replication")})


def guess(cell: Cell) -> float:
    """Seconds of CPU of a cell of which no kin has been measured, within a factor of a few.

    >>> guess({"kind": "bandit", "policy": "UCB1()", "horizon": 1000, "problem": {}})
    0.0005
    """
    length = float(cell.get("horizon") or cell.get("iterations") or 0)
    policy, problem = str(cell.get("policy")), cell.get("problem") or {}
    if cell.get("kind") == "bandit":
        runs = int(cell.get("replications", 1))
        return runs * length * (STEP + PER_ARM.get(policy.partition("(")[0], 0.0) * arms_of(problem))
    if cell.get("kind") != "boosting":
        return UNKNOWN
    rows, features, classes, test_rows = shape_of(str(problem.get("data")))
    per_iteration = ITERATION + PER_WEIGHT * rows * classes
    if policy == FULL_SEARCH:
        per_iteration = features * (SEARCH + SEARCH_WEIGHT * rows * classes)
    return length * (per_iteration + PER_SCORE * test_rows * classes)


def arms_of(problem: dict[str, Any]) -> int:
    """About how many arms a bandit problem has."""
    environment = problem.get("environment") or {}
    for name in ("means", "K"):
        if name in environment:
            return len(environment[name]) if isinstance(environment[name], list) else int(environment[name])
    users = (problem.get("recommendation") or {}).get("n_users")
    return int(users) if users is not None else 5_000 if "recommendation" in problem else 10


@lru_cache(maxsize=16)
def shape_of(data: str) -> tuple[int, int, int, int]:
    """Rows, features, classes and test rows of a data set; those of a middling one if it cannot be loaded."""
    import numpy as np

    from abex.datasets import load

    try:
        found = load(data)
    except UserError:
        return 10_000, 100, 10, 3_000
    return *found.X_train.shape, np.unique(found.y_train).size, len(found.y_test)
