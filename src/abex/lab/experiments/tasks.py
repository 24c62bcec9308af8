"""What an experiment is about: bandit regret or boosting error. Whoever runs, reads, judges or draws one asks its task.

A task knows its cells (`abex.lab.sweeps.cell_kind`), how the arrays that they computed become losses over work and time, and what
these are called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from abex.lab.results import Cell, Payload
from abex.lab.sweeps.boosting_cells import judged_rows
from abex.lab.sweeps.cell_kind import CellKind
from abex.lab.sweeps.cells import KINDS
from abex.lab.sweeps.problems import bandit_problem, check_problem, late_rewards
from abex.policies.policy import Policy
from abex.support.errors import UserError, one_of

Floats = NDArray[np.float64]
FEW_ROWS = 4


class Task(ABC):
    """What the experiments of one kind have in common.

    Attributes
    ----------
    cells : CellKind
        How its cells are said and computed.
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
    views : tuple of str
        The panels of the second figure: x axes, and "differences", "finals", "reached".
    """

    cells: ClassVar[CellKind]
    loss: ClassVar[str]
    scale: ClassVar[float] = 1.0
    loss_name: ClassVar[str]
    short_loss: ClassVar[str]
    unit: ClassVar[str] = ""
    falls: ClassVar[bool]
    axes: ClassVar[dict[str, str]]
    paper_axis: ClassVar[str]
    views: ClassVar[tuple[str, ...]]

    def check(self, problem: dict[str, Any]) -> None:
        """Refuse a problem that says what means nothing here."""
        check_problem(problem, self.cells.problem)

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
    def curves(self, runs: list[Payload]) -> dict[str, Any]:
        """Loss, CPU seconds and evaluations of runs, (runs, checkpoints) each, and what else `Drawn` keeps of them."""

    def _losses(self, runs: list[Payload]) -> Floats:
        return np.array([self.losses(run.arrays) for run in runs]) * self.scale

    def spread(self, drawn: Any) -> dict[str, str]:
        """For a table: median and 95 % quantile of the loss at the end."""
        return {"median": f"{drawn.quantile(0.5):.2f}", "95 % quantile": f"{drawn.quantile(0.95):.2f}"}

    def numbers(self, drawn: Any) -> dict[str, float]:
        """What only this task says about a line, as plain numbers."""
        return {}


class BanditTask(Task):
    """Regret over the steps of a bandit problem."""

    cells = KINDS["bandit"]
    loss = "regret"
    loss_name = "regret (sum of lost mean rewards)"
    short_loss = "regret"
    falls = False
    axes: ClassVar = {"step": "step", "seconds": "CPU time (s)", "evaluations": "pulls"}
    paper_axis = "step"
    views = ("step", "differences", "finals", "seconds")

    def arms(self, problem: dict[str, Any]) -> int | None:
        """Those of its environment, which is made: a mistake is better heard now than from a cell."""
        environment, _ = bandit_problem(problem)
        late_rewards(problem, environment)
        return int(environment.n_arms)

    def check_policy(self, policy: Policy[Any], problem: dict[str, Any]) -> None:
        """Some must know the feedback graph."""
        if policy.needs_graph and not (problem.get("graph") or "recommendation" in problem):
            raise UserError(
                f"{policy} needs to know the feedback graph: give the problem a table called graph"
            )

    def curves(self, runs: list[Payload]) -> dict[str, Any]:
        """Time by the nanoseconds of a step; every pull is an evaluation."""
        loss = self._losses(runs)
        step = runs[0].arrays["step"].astype(float)
        nanoseconds = np.array([run.measured["nanoseconds"] for run in runs])
        evaluations = np.broadcast_to(step, loss.shape)
        return {"loss": loss, "seconds": step * nanoseconds[:, None] * 1e-9, "evaluations": evaluations}

    def spread(self, drawn: Any) -> dict[str, str]:
        """And the share of locked runs."""
        return {**super().spread(drawn), "locked": f"{100.0 * drawn.locked:.2g} %"}

    def numbers(self, drawn: Any) -> dict[str, float]:
        """The share of locked runs."""
        return {"locked": drawn.locked}


class BoostingTask(Task):
    """Test error over the iterations of boosting."""

    cells = KINDS["boosting"]
    loss = "error"
    scale = 100.0
    loss_name = "test error, mean of the last 20 % of iterations (%)"
    short_loss = "test error (%)"
    unit = " points"
    falls = True
    axes: ClassVar = {
        "step": "boosting iteration",
        "seconds": "CPU time of training (s)",
        "evaluations": "weak learners tried",
    }
    paper_axis = "seconds"
    views = ("step", "evaluations", "seconds", "differences", "finals", "reached")

    def check(self, problem: dict[str, Any]) -> None:
        """It needs data."""
        super().check(problem)
        if "data" not in problem:
            raise UserError("the problem of boosting needs data, for example data = 'digits'")

    def check_policy(self, policy: Policy[Any], problem: dict[str, Any]) -> None:
        """There is no feedback graph."""
        if policy.needs_graph:
            raise UserError(f"{policy} needs a feedback graph, which boosting does not have")

    def cell_options(self, rows_at: tuple[int, ...], length: int) -> dict[str, Any]:
        """Where every test row's errors are kept: at the end, and at steps that claims ask about."""
        return {"rows_at": sorted({step for step in rows_at if step < length} | {length})}

    def curves(self, runs: list[Payload]) -> dict[str, Any]:
        """Time as measured; and, where all runs have kept them, how often each test row was wrong."""
        kept = all("row_step" in run.arrays for run in runs)
        return {
            "loss": self._losses(runs),
            "seconds": np.array([run.measured["curve"] for run in runs], dtype=float),
            "evaluations": np.array([run.arrays["evaluations"] for run in runs], dtype=float),
            "rows": self._rows(runs) if kept else {},
        }

    def slack(self, cells: list[Cell]) -> float:
        """A fall by d of the rows judged has a standard error of at least sqrt(d) rows: up to four are within two of them."""
        return FEW_ROWS / (len(cells) * judged_rows(cells[0]["problem"]))

    def _rows(self, runs: list[Payload]) -> dict[int, Floats]:
        """Per cent of the looks at which each test row was wrong, (runs, rows), by step."""
        return {
            int(step): np.array(
                [self.scale * run.arrays["row_errors"][at] / run.arrays["row_looks"][at] for run in runs]
            )
            for at, step in enumerate(runs[0].arrays["row_step"])
        }


TASKS: dict[str, Task] = {task.cells.name: task for task in (BanditTask(), BoostingTask())}


def task_of(kind: str) -> Task:
    """The task of a kind of experiment.

    >>> task_of("bandit").short_loss
    'regret'
    """
    return TASKS[one_of("kind", kind, TASKS)]
