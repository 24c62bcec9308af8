"""Cells of boosting: AdaBoost.MH on features that the policy names, one for each stump or split of a tree.

The error at iteration t is the mean over the last 20 % of the iterations up to t, as in the paper. What is drawn on
the test set is never used to choose anything: parameters are compared on a fifth of the training set (`part`
"validation"), on a split of its own for each replication. At the iterations ``rows_at`` of a cell the same mean is kept
for every test row, as a count, so that differences can be judged over rows and seeds alike.
"""

from __future__ import annotations

import threading
import time
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from abex.lab.results import Cell, CellResult
from abex.lab.sweeps.problems import BOOSTING
from abex.lab.sweeps.task import Floats, Interrupted, Stopped, Task
from abex.policies.policy import Policy
from abex.support.errors import UserError, one_of

SAMPLES = 500  # the error is looked at so often, evenly over the iterations, and in twenty places before each checkpoint
SHARE = 0.2  # of the iterations up to t over which it is averaged, and of the rows for validation
FEW_ROWS = 4  # by so many validation rows an error may fall by luck alone
FULL_SEARCH = "full search"  # the policy of a cell that asks none

_warm: set[tuple[str | None, str, str]] = set()
_warming = threading.Lock()


def sample_points(steps: NDArray[np.int64], iterations: int) -> NDArray[np.int64]:
    """Where the error is looked at: evenly, and in up to twenty places of the fifth before each checkpoint."""
    evenly = np.linspace(1, iterations, min(SAMPLES, iterations))
    before = [np.linspace(first_of(step), step, 20) for step in steps]
    return np.unique(np.concatenate([evenly, *before]).astype(np.int64))


def first_of(step: Any) -> Any:
    """First iteration of the last fifth up to ``step``."""
    return np.floor((1.0 - SHARE) * step + 1e-9).astype(np.int64) + 1


def smoothed(
    errors: NDArray[np.float64], ends: NDArray[np.int64], steps: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Mean of the error over the last fifth of the iterations up to each step, from the points looked at.

    >>> every = np.arange(1, 6)
    >>> smoothed(np.array([5.0, 4.0, 3.0, 2.0, 1.0]), every, np.array([1, 5])).tolist()
    [5.0, 1.0]
    """
    return np.array([errors[window_of(ends, step)].mean() for step in steps])


def window_of(ends: NDArray[np.int64], step: int) -> NDArray[np.bool_]:
    """The points looked at in the last fifth of the iterations up to ``step``."""
    return np.asarray((ends >= first_of(step)) & (ends <= step))


def errors_by_row(
    by_row: NDArray[np.bool_], ends: NDArray[np.int64], steps: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """How often each row was wrong in the last fifth up to each step, and how often it was looked at.

    >>> wrong = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0]], np.bool_)  # after 1, 9 and 10 iterations
    >>> found = errors_by_row(wrong, np.array([1, 9, 10]), np.array([10]))
    >>> found["row_errors"].tolist(), found["row_looks"].tolist()
    ([[2, 0, 0]], [2])
    """
    windows = [window_of(ends, step) for step in steps]
    looks = np.array([window.sum() for window in windows])
    counts = np.array([by_row[window].sum(axis=0, dtype=np.int64) for window in windows])
    kept = counts.astype(np.min_scalar_type(int(looks.max())))
    return {"row_step": steps, "row_looks": looks, "row_errors": kept}


def learner_of(problem: dict[str, Any]) -> dict[str, Any]:
    """The weak learner of a problem, as parameters of the classifier.

    >>> learner_of({"data": "letter"}), learner_of({"data": "letter", "base": "tree", "leaves": 8})
    ({'base': 'stump'}, {'base': 'tree', 'n_leaves': 8})
    """
    base = one_of("base", problem.get("base", "stump"), ("stump", "tree"))
    return {"base": base, **({"n_leaves": problem["leaves"]} if "leaves" in problem else {})}


def warm_up(policy: str | None, data: str, learner: dict[str, Any], X: Any, y: Any) -> None:
    """Compile before the clock runs, and in one thread only."""
    with _warming:
        if (policy, data, learner["base"]) not in _warm:
            from abex.boosting import AdaBoostMHClassifier

            AdaBoostMHClassifier(
                2, policy, **learner, arms_per_search=1, calibrate=False, random_state=0
            ).fit(X, y)
            _warm.add((policy, data, learner["base"]))


def _split(problem: dict[str, Any], seed: int, replication: int) -> tuple[Any, Any, Any, Any]:
    """Rows to learn from and rows to be judged by."""
    from abex.support.randomness import stream

    data = _loaded(problem["data"])
    if problem.get("checksum") not in (None, data.checksum):
        raise UserError(
            f"the data set {problem['data']!r} here is not the one the cell was made for: `abex data check` tells why"
        )
    if one_of("part", problem.get("part", "test"), ("test", "validation")) == "test":
        return data.X_train, data.y_train, data.X_test, data.y_test
    order = stream(seed, replication, "validation split").permutation(data.y_train.size)
    held = judged_rows(problem)
    rest, aside = np.sort(order[held:]), np.sort(order[:held])
    return data.X_train[rest], data.y_train[rest], data.X_train[aside], data.y_train[aside]


def judged_rows(problem: dict[str, Any]) -> int:
    """How many rows the error of a problem is measured on."""
    data = _loaded(problem["data"])
    if problem.get("part", "test") == "test":
        return int(data.y_test.size)
    return int(SHARE * data.y_train.size)


@lru_cache(maxsize=2)
def _loaded(name: str) -> Any:
    from abex.lab.datasets import load

    return load(name)


class BoostingTask(Task):
    """Test error over the iterations of boosting."""

    kind = "boosting"
    protocol = 3
    length = "iterations"
    problem = BOOSTING
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

    def run(self, cell: Cell, stopped: Stopped) -> CellResult:
        """Fit and follow the test error; arrays ``step``, ``error`` (smoothed), ``evaluations``; CPU seconds measured.

        With ``rows_at`` in the cell also ``row_step``, ``row_looks`` (how often the error was looked at in the fifth before that
        step) and ``row_errors`` (how often each test row was wrong).
        """
        from abex.boosting import AdaBoostMHClassifier
        from abex.simulation import as_checkpoints
        from abex.support.randomness import seed_sequence

        X, y, X_test, y_test = _split(cell["problem"], cell["seed"], cell["replication"])
        policy = None if cell["policy"] == FULL_SEARCH else cell["policy"]
        learner = learner_of(cell["problem"])
        warm_up(policy, cell["problem"]["data"], learner, X, y)
        iterations = int(cell["iterations"])
        clock: list[tuple[int, float]] = []
        last: list[Any] = [None]

        def look(done: int, fit: Any) -> bool:
            clock.append((done, time.thread_time() - began))
            last[0] = fit
            return bool(stopped())

        seed = int(seed_sequence(cell["seed"], cell["replication"], "boosting").generate_state(1)[0]) % 2**31
        model = AdaBoostMHClassifier(
            iterations,
            policy,
            **learner,
            arms_per_search=1,
            calibrate=False,
            random_state=seed,
            callbacks=[look],
        )
        began = time.thread_time()
        model.fit(X, y)
        if stopped():
            raise Interrupted
        rows_at = np.array(cell.get("rows_at", []), dtype=np.int64)
        steps = np.union1d(as_checkpoints(cell["checkpoints"], iterations), rows_at)
        ends = sample_points(steps, iterations)
        truth = np.searchsorted(model.classes_, y_test)
        by_row = np.concatenate([*model.model_.errors(X_test, truth, ends)], axis=1)
        done, seconds = np.array(clock, dtype=float).T
        if done.size > 1:  # what the fit took before its first iteration
            begin = max(0.0, seconds[0] - (seconds[-1] - seconds[0]) * done[0] / (done[-1] - done[0]))
            done, seconds = np.append(0.0, done), np.append(begin, seconds)
        features = len(model.arm_features_[0]) if policy is None else 1
        report = {} if policy is None else {**last[0].candidate.policy.report(last[0].state)}
        if policy is not None:
            report["entropy"] = model.policy_report().entropy
        return CellResult(
            arrays={
                "step": steps,
                "error": smoothed(by_row.sum(axis=1) / truth.size, ends, steps),
                "evaluations": steps.astype(np.int64) * features,
                **(errors_by_row(by_row, ends, rows_at) if rows_at.size else {}),
            },
            numbers={str(name): float(value) for name, value in report.items()},
            measured={"curve": np.interp(steps, done, seconds).round(6).tolist()},
        )

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

    def curves(self, runs: list[CellResult]) -> dict[str, Any]:
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

    def _rows(self, runs: list[CellResult]) -> dict[int, Floats]:
        """Per cent of the looks at which each test row was wrong, (runs, rows), by step."""
        return {
            int(step): np.array(
                [self.scale * run.arrays["row_errors"][at] / run.arrays["row_looks"][at] for run in runs]
            )
            for at, step in enumerate(runs[0].arrays["row_step"])
        }
