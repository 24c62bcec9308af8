"""Cells of boosting: AdaBoost.MH with one stump per iteration on a feature that the policy names.

The error at iteration t is the mean over the last 20 % of the iterations up to t, as in the paper. What is drawn on
the test set is never used to choose anything: parameters are compared on a fifth of the training set (`part`
"validation"), on a split of its own for each replication.
"""

from __future__ import annotations

import threading
import time
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError, one_of
from abex.results import Cell, Payload

SAMPLES = 500  # the error is looked at so often, evenly over the iterations, and in twenty places before each checkpoint
SHARE = 0.2  # of the iterations up to t over which it is averaged, and of the rows for validation
FULL_SEARCH = "full search"
ROWS = 256  # followed at a time

_warm: set[tuple[str | None, str]] = set()
_warming = threading.Lock()


def run_boosting(cell: Cell, stopped: Any) -> Payload:
    """Fit and follow the test error; arrays ``step``, ``error`` (smoothed), ``evaluations``; CPU seconds measured."""
    from abex.boosting import AdaBoostMHClassifier
    from abex.randomness import seed_sequence
    from abex.simulation import as_checkpoints
    from abex.sweeps.cells import Interrupted

    X, y, X_test, y_test = _split(cell["problem"], cell["seed"], cell["replication"])
    policy = None if cell["policy"] == FULL_SEARCH else cell["policy"]
    warm_up(policy, cell["problem"]["data"], X, y)
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
        base="stump",
        arms_per_round=1,
        calibrate=False,
        random_state=seed,
        callbacks=[look],
    )
    began = time.thread_time()
    model.fit(X, y)
    if stopped():
        raise Interrupted
    steps = as_checkpoints(cell["checkpoints"], iterations)
    ends = sample_points(steps, iterations)
    errors = error_curve(model.model_, X_test, np.searchsorted(model.classes_, y_test), ends)
    done, seconds = np.array(clock, dtype=float).T
    if done.size > 1:  # what the fit took before its first iteration
        begin = max(0.0, seconds[0] - (seconds[-1] - seconds[0]) * done[0] / (done[-1] - done[0]))
        done, seconds = np.append(0.0, done), np.append(begin, seconds)
    features = len(model.arm_features_[0]) if policy is None else 1
    report = {} if policy is None else {**last[0].recipe.policy.report(last[0].state)}
    if policy is not None:
        report["entropy"] = model.policy_report().entropy
    return Payload(
        arrays={
            "step": steps,
            "error": smoothed(errors, ends, steps),
            "evaluations": steps.astype(np.int64) * features,
        },
        numbers={str(name): float(value) for name, value in report.items()},
        measured={"curve": np.interp(steps, done, seconds).round(6).tolist()},
    )


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
    windows = [(ends >= first_of(step)) & (ends <= step) for step in steps]
    return np.array([errors[window].mean() for window in windows])


def error_curve(model: Any, X: Any, truth: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of rows that the first ``ends[0]``, ``ends[1]``, ... stumps get wrong."""
    wrong = np.zeros(ends.size, np.int64)
    votes = np.ascontiguousarray(model.votes[:, 0] * model.coefficient[:, None])
    stumps = (
        model.feature[:, 0].copy(),
        model.threshold[:, 0].copy(),
        model.missing_right[:, 0].copy(),
        votes,
    )
    _follower()(
        *stumps,
        np.ascontiguousarray(X.T, np.float64),
        truth,
        ends,
        np.zeros((votes.shape[1], len(X))),
        np.empty(ROWS),
        wrong,
    )
    return wrong / len(X)


@cache
def _follower() -> Any:
    from abex.kernels import compiled

    # a few stumps at a time for a few rows at a time, columns side by side: all of it stays in the nearest caches, which
    # is ten times faster than carrying each row through all stumps
    @compiled()
    def follow(
        feature: Any,
        threshold: Any,
        missing_right: Any,
        votes: Any,
        columns: Any,
        truth: Any,
        ends: Any,
        scores: Any,
        sign: Any,
        wrong: Any,
    ) -> None:
        first = 0
        for e in range(ends.size):
            for begin in range(0, truth.size, ROWS):
                count = min(ROWS, truth.size - begin)
                for t in range(first, ends[e]):
                    j = feature[t]
                    if j < 0:
                        continue
                    for i in range(count):
                        x = columns[j, begin + i]
                        sign[i] = 1.0 if x > threshold[t] or (missing_right[t] and x != x) else -1.0
                    for label in range(scores.shape[0]):
                        vote = votes[t, label]
                        for i in range(count):
                            scores[label, begin + i] += sign[i] * vote
                for i in range(begin, begin + count):
                    best = 0
                    for label in range(1, scores.shape[0]):
                        if scores[label, i] > scores[best, i]:
                            best = label
                    if best != truth[i]:
                        wrong[e] += 1
            first = ends[e]

    return follow


def warm_up(policy: str | None, data: str, X: Any, y: Any) -> None:
    """Compile before the clock runs, and in one thread only."""
    with _warming:
        if (policy, data) not in _warm:
            from abex.boosting import AdaBoostMHClassifier

            AdaBoostMHClassifier(
                2, policy, base="stump", arms_per_round=1, calibrate=False, random_state=0
            ).fit(X, y)
            _warm.add((policy, data))


def _split(problem: dict[str, Any], seed: int, replication: int) -> tuple[Any, Any, Any, Any]:
    """Rows to learn from and rows to be judged by."""
    from abex.randomness import stream

    data = _loaded(problem["data"])
    if problem.get("checksum") not in (None, data.checksum):
        raise UserError(
            f"the data set {problem['data']!r} here is not the one the cell was made for: `abex data check` tells why"
        )
    if one_of("part", problem.get("part", "test"), ("test", "validation")) == "test":
        return data.X_train, data.y_train, data.X_test, data.y_test
    order = stream(seed, replication, "validation split").permutation(data.y_train.size)
    held = int(SHARE * order.size)
    rest, aside = np.sort(order[held:]), np.sort(order[:held])
    return data.X_train[rest], data.y_train[rest], data.X_train[aside], data.y_train[aside]


@lru_cache(maxsize=2)
def _loaded(name: str) -> Any:
    from abex.datasets import load

    return load(name)
