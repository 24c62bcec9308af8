"""What cells and experiments are about: bandit regret or boosting error. Whoever runs, reads, judges or draws one asks its task.

A task knows how its cells are said and computed, how the arrays that they computed become losses over work and time, and what
these are called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from abex.lab.results import Cell, CellResult
from abex.lab.sweeps.problems import check_problem
from abex.policies.policy import Policy

Floats = NDArray[np.float64]
Stopped = Callable[[], bool]


class Interrupted(Exception):  # noqa: N818 - not an error: the person pressed Ctrl-C
    """The cell was given up because the sweep is being stopped."""


class Task(ABC):
    """What the cells and the experiments of one kind have in common; `abex.lab.sweeps.cells.TASKS` lists all of them.

    Attributes
    ----------
    kind : str
        The value of ``kind`` in a cell, and in an experiment.
    protocol : int
        Raised when the same cell would compute other numbers than before.
    length : str
        The key of a cell that says how long it is: ``horizon`` or ``iterations``.
    problem : dict
        The keys that its problem may have, and what each holds.
    loss : str
        The array of a payload by which runs are compared.
    scale : float
        What a loss is multiplied by to be shown: errors are stored as shares and shown in per cent.
    loss_name, short_loss, unit : str
        The loss with how it is made, in two words, and what follows a difference of two.
    falls : bool
        Whether the loss falls during a run (an error), so that its end matters, or grows (a sum such as regret), so that its
        growth does.
    axes : dict
        What can stand on the x axis of a figure, with its name; the first is the usual one.
    paper_axis : str
        The one that stands there in the paper.
    """

    kind: ClassVar[str]
    protocol: ClassVar[int]
    length: ClassVar[str]
    problem: ClassVar[dict[str, type]]
    loss: ClassVar[str]
    scale: ClassVar[float] = 1.0
    loss_name: ClassVar[str]
    short_loss: ClassVar[str]
    unit: ClassVar[str] = ""
    falls: ClassVar[bool]
    axes: ClassVar[dict[str, str]]
    paper_axis: ClassVar[str]

    @abstractmethod
    def run(self, cell: Cell, stopped: Stopped) -> CellResult:
        """Compute a cell; raises `Interrupted` where ``stopped()`` turns true meanwhile."""

    def check(self, problem: dict[str, Any]) -> None:
        """Refuse a problem that says what means nothing here."""
        check_problem(problem, self.problem)

    def arms(self, problem: dict[str, Any]) -> int | None:
        """How many arms a problem has, made to see that it can be; None where that is not known beforehand."""
        return None

    @abstractmethod
    def check_policy(self, policy: Policy[Any], problem: dict[str, Any]) -> None:
        """Refuse a policy that cannot be played here, before a cell does."""

    def cell_options(self, rows_at: tuple[int, ...], length: int) -> dict[str, Any]:
        """What the cells of a line of this ``length`` say beside what all cells do."""
        return {}

    def losses(self, arrays: dict[str, NDArray[Any]]) -> Floats:
        """The loss of a run at each of its checkpoints, as it is stored."""
        return np.asarray(arrays[self.loss])

    def slack(self, cells: list[Cell]) -> float:
        """By how much the mean loss of some cells may fall by luck alone: less is no fall."""
        return 0.0

    @abstractmethod
    def curves(self, runs: list[CellResult]) -> dict[str, Any]:
        """Loss, CPU seconds and evaluations of runs, (runs, checkpoints) each, and what else `LineResult` keeps of them."""

    def _losses(self, runs: list[CellResult]) -> Floats:
        return np.array([self.losses(run.arrays) for run in runs]) * self.scale

    def spread(self, drawn: Any) -> dict[str, str]:
        """For a table: median and 95 % quantile of the loss at the end."""
        return {"median": f"{drawn.quantile(0.5):.2f}", "95 % quantile": f"{drawn.quantile(0.95):.2f}"}

    def numbers(self, drawn: Any) -> dict[str, float]:
        """What only this task says about a line, as plain numbers."""
        return {}
