"""Cells of simulation: one policy in one bandit problem, one replication or a block of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from abex.lab.results import Cell, CellResult, canonical
from abex.lab.sweeps.problems import BANDIT, bandit_problem, late_rewards
from abex.lab.sweeps.task import Interrupted, Stopped, Task
from abex.lab.sweeps.until_winner import Identified, play_until_winner
from abex.policies.policy import Policy
from abex.support.errors import UserError

REPORT = (
    "report: "  # before the name of what a policy says about itself, where a cell has several replications
)


def replications_of(cell: Cell) -> range:
    """The replications that a cell computes.

    >>> replications_of({"replication": 50, "replications": 3})
    range(50, 53)
    """
    first = int(cell["replication"])
    return range(first, first + int(cell.get("replications", 1)))


def rows_of(cell: Cell, payload: CellResult) -> list[tuple[int, CellResult]]:
    """What a cell computed, replication by replication: (its number, its payload)."""
    if "replications" not in cell:
        return [(int(cell.get("replication", 0)), payload)]
    rows = []
    for at, replication in enumerate(replications_of(cell)):
        arrays = {
            name: array if name == "step" else array[at]
            for name, array in payload.arrays.items()
            if not name.startswith(REPORT)
        }
        reports = {name: array[at] for name, array in payload.arrays.items() if name.startswith(REPORT)}
        numbers = {name.removeprefix(REPORT): float(value) for name, value in reports.items()}
        share = float(payload.measured.get("seconds", 0.0)) / int(cell["replications"])
        measured = {**payload.measured, "nanoseconds": payload.measured["nanoseconds"][at], "seconds": share}
        rows.append((replication, CellResult(arrays, numbers, measured)))
    return rows


@lru_cache(maxsize=8)
def cached_problem(problem: str) -> tuple[Any, Any]:
    """Environment and graph, made once in a process: cells of a sweep share them."""
    import json

    return bandit_problem(json.loads(problem))


class BanditTask(Task):
    """Regret over the steps of a bandit problem."""

    kind = "bandit"
    protocol = 5
    length = "horizon"
    problem = BANDIT
    loss = "regret"
    loss_name = "regret (sum of lost mean rewards)"
    short_loss = "regret"
    falls = False
    axes: ClassVar = {"step": "step", "seconds": "CPU time (s)", "evaluations": "pulls"}
    paper_axis = "step"

    def run(self, cell: Cell, stopped: Stopped) -> CellResult:
        """Play one replication; arrays ``step``, ``regret`` and ``hits`` (optimal pulls), and what the policy reports.

        A cell with ``replications`` plays so many from ``replication`` on; its arrays, and reports, then have a row each.
        """
        import abex  # noqa: F401 - registers every policy
        from abex.policies.naming import parse_policy
        from abex.simulation import as_checkpoints, check_setting, play_replication

        policy = parse_policy(cell["policy"])
        environment, graph = cached_problem(canonical(cell["problem"]))
        delay, batch = late_rewards(cell["problem"], environment)
        steps = as_checkpoints(cell["checkpoints"], cell["horizon"])
        check_setting([policy], environment, graph, cell["horizon"])
        if "risk" in cell:
            return self._identified(cell, policy, environment, stopped)
        runs = []
        for replication in replications_of(cell):
            run = play_replication(
                policy, environment, graph, steps, cell["seed"], replication, delay=delay, batch=batch, stopped=stopped
            )  # fmt: skip
            runs.append(run)
            if stopped():
                raise Interrupted
        if "replications" not in cell:
            (played,) = runs
            return CellResult(
                arrays={"step": steps, "regret": played.regret, "hits": played.optimal_pulls},
                numbers={str(name): float(value) for name, value in played.report.items()},
                measured={"nanoseconds": played.nanoseconds},
            )
        reports = {f"{REPORT}{name}": np.array([run.report[name] for run in runs]) for name in runs[0].report}
        return CellResult(
            arrays={
                "step": steps,
                "regret": np.array([run.regret for run in runs]),
                "hits": np.array([run.optimal_pulls for run in runs]).astype(np.int32),
                **reports,
            },
            measured={"nanoseconds": [run.nanoseconds for run in runs]},
        )

    def _identified(self, cell: Cell, policy: Policy[Any], environment: Any, stopped: Stopped) -> CellResult:
        """Play until a winner is named; arrays ``stop``, ``winner`` and ``regret``, an entry for each replication."""
        found = []
        for replication in replications_of(cell):
            run = play_until_winner(
                policy, environment, horizon=cell["horizon"], risk=cell["risk"], method=cell["test"], seed=cell["seed"],
                replication=replication, stopped=stopped,
            )  # fmt: skip
            found.append(run)
            if stopped():
                raise Interrupted
        return CellResult(
            arrays={
                name: np.array(column)
                for name, column in zip(Identified._fields, zip(*found, strict=True), strict=True)
            }
        )

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

    def curves(self, runs: list[CellResult]) -> dict[str, Any]:
        """Time by the nanoseconds of a step; every pull is an evaluation."""
        loss = self._losses(runs)
        step = runs[0].arrays["step"].astype(float)
        nanoseconds = np.array([run.measured["nanoseconds"] for run in runs])
        evaluations = np.broadcast_to(step, loss.shape)
        return {"loss": loss, "seconds": step * nanoseconds[:, None] * 1e-9, "evaluations": evaluations}

    def spread(self, drawn: Any) -> dict[str, str]:
        """And the share of locked runs."""
        share = float(f"{100.0 * drawn.linear_regret_share:.2g}")
        return {**super().spread(drawn), "locked": f"{share:g} %"}

    def numbers(self, drawn: Any) -> dict[str, float]:
        """The share of locked runs."""
        return {"locked": drawn.linear_regret_share}
