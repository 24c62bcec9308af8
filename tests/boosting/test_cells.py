from __future__ import annotations

import numpy as np
import pytest

from abex.lab.datasets import load
from abex.lab.experiments.experiment import FULL_SEARCH
from abex.lab.sweeps.boosting_cells import BoostingTask, sample_points, smoothed
from abex.lab.sweeps.cells import run_cell
from abex.support.errors import UserError

CELL = {
    "kind": "boosting", "protocol": 2, "policy": "Uniform()", "problem": {"data": "digits", "part": "test"},
    "iterations": 120, "checkpoints": 10, "seed": 1, "replication": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def payload():
    return run_cell(CELL)


def test_a_cell_is_a_function_of_the_cell_alone(payload):
    again = BoostingTask().run(CELL, lambda: False)
    for name, array in payload.arrays.items():
        assert array.tobytes() == again.arrays[name].tobytes()
    assert payload.numbers == again.numbers
    other = BoostingTask().run({**CELL, "replication": 1}, lambda: False)
    assert not np.array_equal(other.arrays["error"], payload.arrays["error"])


def test_a_cell_records_error_work_and_time(payload):
    assert payload.arrays["step"][-1] == 120
    assert (payload.arrays["evaluations"] == payload.arrays["step"]).all()
    assert 0.0 < payload.arrays["error"][-1] < payload.arrays["error"][0] <= 1.0
    assert (np.diff(payload.measured["curve"]) >= 0).all()
    assert 0.9 < payload.numbers["entropy"] <= 1.0


def test_the_errors_of_every_test_row_are_those_of_the_curve():
    found = run_cell({**CELL, "rows_at": [60, 120]}).arrays
    assert found["row_step"].tolist() == [60, 120]
    assert found["row_errors"].shape == (2, len(load("digits").y_test))
    assert found["row_errors"].dtype == np.uint8
    at = np.searchsorted(found["step"], found["row_step"])
    assert found["step"][at].tolist() == [60, 120]
    shares = found["row_errors"].mean(axis=1) / found["row_looks"]
    np.testing.assert_allclose(shares, found["error"][at])


def test_full_search_tries_every_feature_that_varies():
    payload = run_cell({**CELL, "policy": FULL_SEARCH, "iterations": 5})
    varying = (np.ptp(load("digits").X_train, axis=0) > 0).sum()
    assert payload.arrays["evaluations"].tolist() == (payload.arrays["step"] * varying).tolist()


def test_smoothing_is_the_mean_of_the_last_fifth():
    errors = np.random.default_rng(1).random(1000)
    steps = np.array([1, 4, 5, 10, 37, 1000])
    every = np.arange(1, 1001)
    expected = [errors[int(0.8 * step + 1e-9) : step].mean() for step in steps]
    np.testing.assert_allclose(smoothed(errors, every, steps), expected)


def test_every_window_is_looked_at_in_many_places():
    steps = np.unique(np.geomspace(1, 50_000, 100).astype(np.int64))
    ends = sample_points(steps, 50_000)
    assert ends.size < 3_000
    for step in steps:
        window = step - int(0.8 * step + 1e-9)
        assert ((ends > step - window) & (ends <= step)).sum() >= min(window, 19)


def test_validation_rows_come_from_the_training_set_and_differ_by_replication():
    from abex.lab.sweeps.boosting_cells import _split

    data = load("digits")
    splits = [_split({"data": "digits", "part": "validation"}, 1, r) for r in (0, 1)]
    for X, y, X_aside, y_aside in splits:
        assert len(y) + len(y_aside) == data.y_train.size
        assert len(y_aside) == data.y_train.size // 5
        rows = {row.tobytes() for row in np.concatenate([X, X_aside])}
        assert rows == {row.tobytes() for row in data.X_train}
    assert not np.array_equal(splits[0][2], splits[1][2])


def test_other_data_under_the_same_name_are_refused():
    with pytest.raises(UserError, match="not the one the cell was made for"):
        run_cell({**CELL, "problem": {"data": "digits", "part": "test", "checksum": "0" * 64}})
