"""Cells: what stands in them is the key of a stored result, so none of it may change."""

from __future__ import annotations

import pytest

from abex import Uniform
from abex.lab.experiments.experiment import Experiment, Line
from abex.lab.results import key_of
from abex.lab.sweeps import bandit_cell, run_cell
from abex.lab.sweeps.cells import TASKS, length_of, task_of
from abex.support.errors import UserError

PROBLEM = {"environment": {"name": "Bernoulli", "means": [0.8, 0.4]}}
LINE = Line("A", ("UCB1(scale=2.0)",))
COMMON = {"policy": "UCB1(scale=2.0)", "version": 1, "checkpoints": 100, "seed": 1}


def experiment(**more) -> Experiment:
    given = {
        "name": "small",
        "title": "Small",
        "problem": PROBLEM,
        "lines": (LINE,),
        "length": 200,
        "seeds": 3,
    }
    return Experiment(**{**given, **more})


def test_a_cell_of_one_replication():
    cell = bandit_cell(Uniform(), PROBLEM, horizon=100, checkpoints=5, seed=1, replication=2)
    assert cell == {
        "kind": "bandit", "protocol": 5, "policy": repr(Uniform()), "problem": PROBLEM, "horizon": 100,
        "checkpoints": 5, "seed": 1, "replication": 2,
    }  # fmt: skip
    assert bandit_cell(
        Uniform(), PROBLEM, horizon=100, checkpoints=5, seed=1, replication=2, code={"a.py": "x = 1"}
    ) == {**cell, "code": {"a.py": "x = 1"}}
    assert length_of(cell) == 100


def test_cells_of_a_bandit_experiment():
    first, *_ = experiment().cells(LINE, LINE.candidates[0])
    assert first == {
        **COMMON, "kind": "bandit", "protocol": 5, "problem": PROBLEM, "horizon": 200, "replication": 0
    }  # fmt: skip
    # written down when results were first stored under this protocol
    assert key_of(first) == "94a613009eaea80f5603c80813e1636fd64b5fc30de00b97fa89badb3b90ec4b"
    _, second = experiment(block=2, version=4, code={"a.py": "x = 1"}).cells(LINE, LINE.candidates[0])
    assert second == {**first, "replication": 2, "replications": 1, "version": 4, "code": {"a.py": "x = 1"}}


def test_cells_of_a_boosting_experiment():
    boosting = experiment(kind="boosting", problem={"data": "digits"}, rows_at=(50, 900))
    drawn, *_ = boosting.cells(LINE, LINE.candidates[0])
    expected = {**COMMON, "kind": "boosting", "protocol": 3, "problem": {"data": "digits"}, "iterations": 200}
    assert drawn == {**expected, "replication": 0, "rows_at": [50, 200]}
    tuning, *_ = boosting.tuning_cells(LINE, LINE.candidates[0])
    assert tuning == {**expected, "replication": 1_000_000}
    assert length_of(drawn) == 200


def test_every_task_has_its_kind_and_an_unknown_one_is_named():
    for name, task in TASKS.items():
        assert task.kind == name
        assert {task.paper_axis} <= set(task.axes)
    with pytest.raises(UserError, match=r"unknown kind 'bandits'.*'bandit'"):
        task_of("bandits")
    with pytest.raises(UserError, match=r"unknown kind of cell 'bandits'.*'bandit'"):
        run_cell({"kind": "bandits"})
