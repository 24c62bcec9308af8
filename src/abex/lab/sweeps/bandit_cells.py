"""Cells of simulation: one policy in one bandit problem, one replication or a block of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from abex.lab.results import Cell, Payload, canonical
from abex.lab.sweeps.cell_kind import CellKind, Interrupted, Stopped
from abex.lab.sweeps.problems import BANDIT, bandit_problem, late_rewards

REPORT = (
    "report: "  # before the name of what a policy says about itself, where a cell has several replications
)


def run_bandit(cell: Cell, stopped: Stopped) -> Payload:
    """Play one replication; arrays ``step``, ``regret`` and ``hits`` (optimal pulls), and what the policy reports about itself.

    A cell with ``replications`` plays so many from ``replication`` on; its arrays, reports among them, then have one row each.
    """
    import abex  # noqa: F401 - registers every policy
    from abex.policies.naming import parse_policy
    from abex.simulation import as_checkpoints, check_setting, play_replication

    policy = parse_policy(cell["policy"])
    environment, graph = opened(canonical(cell["problem"]))
    delay, batch = late_rewards(cell["problem"], environment)
    steps = as_checkpoints(cell["checkpoints"], cell["horizon"])
    check_setting([policy], environment, graph, cell["horizon"])
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
        return Payload(
            arrays={"step": steps, "regret": played.regret, "hits": played.optimal_pulls},
            numbers={str(name): float(value) for name, value in played.report.items()},
            measured={"nanoseconds": played.nanoseconds},
        )
    reports = {f"{REPORT}{name}": np.array([run.report[name] for run in runs]) for name in runs[0].report}
    return Payload(
        arrays={
            "step": steps,
            "regret": np.array([run.regret for run in runs]),
            "hits": np.array([run.optimal_pulls for run in runs]).astype(np.int32),
            **reports,
        },
        measured={"nanoseconds": [run.nanoseconds for run in runs]},
    )


def replications_of(cell: Cell) -> range:
    """The replications that a cell computes.

    >>> replications_of({"replication": 50, "replications": 3})
    range(50, 53)
    """
    first = int(cell["replication"])
    return range(first, first + int(cell.get("replications", 1)))


def rows_of(cell: Cell, payload: Payload) -> list[tuple[int, Payload]]:
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
        rows.append((replication, Payload(arrays, numbers, measured)))
    return rows


@lru_cache(maxsize=8)
def opened(problem: str) -> tuple[Any, Any]:
    """Environment and graph, made once in a process: cells of a sweep share them."""
    import json

    return bandit_problem(json.loads(problem))


BANDIT_CELLS = CellKind("bandit", 5, "horizon", BANDIT, run_bandit, 5e-7)
