"""A cell is the smallest piece of a sweep: one policy, one problem, one replication, as plain JSON.

``run_cell(cell)`` is a pure, importable function: it computes the same numbers in any process on any machine.
What it needs to know is in the cell, data by name and checksum, so the hash of the cell names the result for ever.
When the meaning of a kind of cell changes, its ``protocol`` does (`abex.lab.sweeps.task`).
Beside its numbers stand the versions of those packages on which they depend.
"""

from __future__ import annotations

import importlib
import socket
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

import abex
from abex.kernels import source_stamp
from abex.lab.results import Cell, CellResult, key_of
from abex.lab.sweeps.bandit_cells import BanditTask, replications_of
from abex.lab.sweeps.boosting_cells import BoostingTask
from abex.lab.sweeps.task import Interrupted, Stopped, Task
from abex.support.errors import UserError, nearest, one_of
from abex.support.plugins import packages_of

PACKAGES = ("numpy", "numba")
TASKS: dict[str, Task] = {task.kind: task for task in (BanditTask(), BoostingTask())}


def task_of(kind: str) -> Task:
    """The task of a kind of cell or experiment.

    >>> task_of("bandit").short_loss
    'regret'
    """
    return TASKS[one_of("kind", kind, TASKS)]


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed, and why."""

    why: str
    mistake: bool = False  # of the person, who gets the sentence as it is
    lost: bool = False  # not by its own fault, as far as is known: its worker died


def new_cell(
    kind: str, policy: str, problem: dict[str, Any], length: int, *, checkpoints: int, seed: int, replication: int,
    **more: Any,
) -> Cell:  # fmt: skip
    """One replication of a policy in a problem; the only place where cells are made, as their hash is the key of a result.

    ``more`` are keys that few cells have (``replications``, ``risk``, ``test``, ``version``, ``rows_at``, ``code``); those that
    are None or empty are left out.
    """
    cell = {
        "kind": kind,
        "protocol": TASKS[kind].protocol,
        "policy": policy,
        "problem": problem,
        TASKS[kind].length: length,
        "checkpoints": checkpoints,
        "seed": seed,
        "replication": replication,
    }
    environment = problem.get("environment")
    place = str(environment.get("name")) if isinstance(environment, dict) else ""
    more["packages"] = packages_of(policy, place)  # another version may play otherwise
    return {**cell, **{name: value for name, value in more.items() if value}}


def bandit_cell(
    policy: Any, problem: dict[str, Any], *, horizon: int, checkpoints: int, seed: int, replication: int,
    code: dict[str, str] | None = None,
) -> Cell:  # fmt: skip
    """One replication of a policy in a bandit problem (`abex.lab.sweeps.problems`)."""
    return new_cell(
        "bandit", repr(policy), problem, horizon, checkpoints=checkpoints, seed=seed, replication=replication, code=code
    )  # fmt: skip


def run_cell(cell: Cell, stopped: Stopped = lambda: False) -> CellResult:
    """Compute a cell. ``kind`` is one of ours or ``"module:function"``, a function from cell to `CellResult`."""
    name = str(cell.get("kind"))
    load_code(cell.get("code") or {})
    run = TASKS[name].run if name in TASKS else _function(name)
    began = time.thread_time()
    payload = run(cell, stopped)
    worker = this_worker()
    about = {
        "seconds": time.thread_time() - began,
        "sources": worker.sources,
        "versions": worker.versions,
    }
    return CellResult(payload.arrays, payload.numbers, {**about, **payload.measured})


def _function(name: str) -> Callable[[Cell, Stopped], CellResult]:
    """The function called ``module:name``."""
    module, colon, function = name.partition(":")
    if not colon:
        raise UserError(f"unknown kind of cell {name!r}{nearest(name, TASKS)}; known: {', '.join(TASKS)}")
    found: Callable[[Cell, Stopped], CellResult] = getattr(importlib.import_module(module), function)
    return found


def length_of(cell: Cell) -> int:
    """How long a cell is: its steps, or iterations."""
    return next((int(cell[task.length]) for task in TASKS.values() if cell.get(task.length)), 0)


def work_of(cell: Cell) -> int:
    """How many steps a cell has in all its replications; one where it has none.

    >>> work_of({"kind": "bandit", "horizon": 1000, "replication": 0, "replications": 50})
    50000
    """
    return max(1, length_of(cell)) * int(cell.get("replications", 1))


def run_batch(
    cells: list[Cell], stopped: Stopped = lambda: False
) -> tuple[CellWorker, list[CellResult | Failure]]:
    """Compute cells one after the other; what fails is reported and the rest goes on. With it who computed them."""
    outcomes: list[CellResult | Failure] = []
    for cell in cells:
        try:
            outcomes.append(run_cell(cell, stopped))
        except UserError as error:
            outcomes.append(Failure(str(error), mistake=True))
        except Interrupted:
            outcomes.append(Failure("stopped"))
        except Exception as error:
            outcomes.append(Failure(f"{type(error).__name__}: {error}"))
    return this_worker(), outcomes


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


# -- who computes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellWorker:
    """A process that computes cells.

    ``sources`` is the stamp of abex's source files, ``versions`` are those of abex and of the packages that compute.
    """

    host: str
    sources: str
    versions: dict[str, str]


@cache
def this_worker() -> CellWorker:
    """The process that asks.

    >>> sorted(this_worker().versions)
    ['abex', 'numba', 'numpy']
    """
    versions = {"abex": abex.__version__, **{name: metadata.version(name) for name in PACKAGES}}
    return CellWorker(socket.gethostname(), source_stamp(), versions)
