"""A cell is the smallest piece of a sweep: one policy, one problem, one replication, as plain JSON.

``run_cell(cell)`` is a pure, importable function: it computes the same numbers in any process on any machine.
What it needs to know is in the cell, data by name and checksum, so the hash of the cell names the result for ever.
When the meaning of a kind of cell changes, its `PROTOCOL` does.
"""

from __future__ import annotations

import importlib
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from abex.errors import UserError, nearest
from abex.kernels import source_stamp
from abex.results import Cell, Payload, canonical, key_of
from abex.sweeps.problems import bandit_problem

PROTOCOL = {"bandit": 4, "boosting": 3}
REPORT = (
    "report: "  # before the name of what a policy says about itself, where a cell has several replications
)
RUNNERS = {"bandit": "abex.sweeps.cells:run_bandit", "boosting": "abex.sweeps.boosting_cells:run_boosting"}
Stopped = Callable[[], bool]


class Interrupted(Exception):  # noqa: N818 - not an error: the person pressed Ctrl-C
    """The cell was given up because the sweep is being stopped."""


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed, and why."""

    why: str
    mistake: bool = False  # of the person, who gets the sentence as it is


def bandit_cell(
    policy: Any, problem: dict[str, Any], *, horizon: int, checkpoints: int, seed: int, replication: int,
    code: dict[str, str] | None = None,
) -> Cell:  # fmt: skip
    """One replication of a policy in a bandit problem (`abex.sweeps.problems`)."""
    cell = {
        "kind": "bandit",
        "protocol": PROTOCOL["bandit"],
        "policy": repr(policy),
        "problem": problem,
        "horizon": horizon,
        "checkpoints": checkpoints,
        "seed": seed,
        "replication": replication,
    }
    return {**cell, "code": code} if code else cell


def run_cell(cell: Cell, stopped: Stopped = lambda: False) -> Payload:
    """Compute a cell. ``kind`` is one of ours or ``"module:function"``, a function from cell to `Payload`."""
    kind = str(cell.get("kind"))
    target = RUNNERS.get(kind, kind)
    module, colon, name = target.partition(":")
    if not colon:
        raise UserError(f"unknown kind of cell {kind!r}{nearest(kind, RUNNERS)}; known: {', '.join(RUNNERS)}")
    load_code(cell.get("code") or {})
    function = getattr(importlib.import_module(module), name)
    began = time.thread_time()
    payload: Payload = function(cell, stopped)
    about = {"seconds": time.thread_time() - began, "sources": source_stamp()}
    return Payload(payload.arrays, payload.numbers, {**about, **payload.measured})


def run_bandit(cell: Cell, stopped: Stopped) -> Payload:
    """Play one replication; arrays ``step``, ``regret`` and ``hits``, and what the policy reports about itself.

    A cell with ``replications`` plays so many from ``replication`` on; its arrays, reports among them, then have one row each.
    """
    import abex  # noqa: F401 - registers every policy
    from abex.policies.base import parse_policy
    from abex.simulation import as_checkpoints, check_setting, play_replication

    policy = parse_policy(cell["policy"])
    environment, graph = opened(canonical(cell["problem"]))
    steps = as_checkpoints(cell["checkpoints"], cell["horizon"])
    check_setting([policy], environment, graph, cell["horizon"])
    runs = []
    for replication in replications_of(cell):
        runs.append(
            play_replication(policy, environment, graph, steps, cell["seed"], replication, stopped=stopped)
        )
        if stopped():
            raise Interrupted
    if "replications" not in cell:
        (played,) = runs
        return Payload(
            arrays={"step": steps, "regret": played.regret, "hits": played.hits},
            numbers={str(name): float(value) for name, value in played.report.items()},
            measured={"nanoseconds": played.nanoseconds},
        )
    reports = {f"{REPORT}{name}": np.array([run.report[name] for run in runs]) for name in runs[0].report}
    return Payload(
        arrays={
            "step": steps,
            "regret": np.array([run.regret for run in runs]),
            "hits": np.array([run.hits for run in runs]).astype(np.int32),
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


def run_batch(cells: list[Cell], stopped: Stopped = lambda: False) -> tuple[str, list[Payload | Failure]]:
    """Compute cells one after the other; what fails is reported and the rest goes on. With it the sources' stamp."""
    outcomes: list[Payload | Failure] = []
    for cell in cells:
        try:
            outcomes.append(run_cell(cell, stopped))
        except UserError as error:
            outcomes.append(Failure(str(error), mistake=True))
        except Interrupted:
            outcomes.append(Failure("stopped"))
        except Exception as error:
            outcomes.append(Failure(f"{type(error).__name__}: {error}"))
    return source_stamp(), outcomes


def name_of(cell: Cell) -> str:
    """A cell in a few words, for messages."""
    problem = cell.get("problem") or {}
    where = problem.get("data") or (problem.get("environment") or problem.get("recommendation") or {}).get(
        "name"
    )
    words = [str(cell.get("policy", cell.get("kind"))), f"on {where}" if where else ""]
    if "replications" in cell:
        words.append(f"replications {cell['replication']} to {replications_of(cell)[-1]}")
    else:
        words.append(f"replication {cell['replication']}" if "replication" in cell else "")
    return f"{' '.join(word for word in words if word)} [{key_of(cell)[:12]}]"


def load_code(code: dict[str, str]) -> None:
    """Define the policies of a person's own files (file name -> source), once in a process.

    The source travels in the cell: workers of a cluster need no copy of the file, and an edited file is another cell.
    """
    for name, source in code.items():
        module = module_of(name, source)
        if module in sys.modules:
            continue
        made = types.ModuleType(module)
        made.__file__ = name
        sys.modules[module] = made  # dataclasses look their module up
        try:
            exec(compile(source, name, "exec"), made.__dict__)
        except Exception as error:
            del sys.modules[module]
            raise UserError(
                f"cannot load the policies of {name!r}: {type(error).__name__}: {error}"
            ) from error


def module_of(name: str, source: str) -> str:
    """The name under which a person's file is loaded."""
    return f"abex_own_{key_of({'name': name, 'source': source})[:16]}"
