"""Files and matrices that somebody made to do harm: refused by name, before compiled code follows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from abex.boosting import AdaBoostMHClassifier, load
from abex.boosting.learners import Model
from abex.boosting.model_file import MODEL, check_model
from abex.support.errors import UserError
from tests.each import each
from tests.waiting import PATIENCE

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


def classifier(**parameters):
    return AdaBoostMHClassifier(**{"n_estimators": 6, "random_state": 0, "calibrate": False, **parameters})


def test_forged_models_are_refused_or_work():
    """In a process of its own: before models were checked, such files ended it or hung."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.boosting.forged_models", "--cases", "400", "--seed", "1"],
        capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    ended = json.loads(done.stdout)
    assert sum(ended.values()) == 400
    assert ended["refused"] > 200
    assert ended["works"] > 20


@pytest.fixture(scope="module")
def tree():
    return classifier(n_leaves=5).fit(X, Y).model_


def changed(model, **arrays):
    return Model(kind=model.kind, n_features=model.n_features, **{**model.arrays(), **arrays})


def test_a_fitted_model_is_as_its_class_says(tree):
    check_model(tree)
    for base in ("stump", "product"):
        check_model(classifier(base=base).fit(X, Y).model_)
    check_model(classifier().fit(np.ones((20, 2)), [0] * 9 + [1] * 11).model_)  # nothing to split
    assert MODEL.keys() == tree.arrays().keys()
    for name, declared in MODEL.items():
        array = getattr(tree, name)
        assert array.dtype == declared.dtype
        assert array.ndim == len(declared.shape.split())


@pytest.mark.parametrize(
    ("node", "side", "child"),
    [(0, "left", 0), (1, "left", 1), (1, "right", 0), (0, "right", 3), (0, "left", ~4)],
)
def test_children_have_one_parent_before_them(tree, node, side, child):
    arrays = {side: getattr(tree, side).copy()}
    if arrays[side][0, node] == child:
        child = ~3
    arrays[side][0, node] = child
    with pytest.raises(ValueError, match="nowhere or in a circle"):
        check_model(changed(tree, **arrays))


def test_two_children_may_not_change_places_with_a_circle(tree):
    """Every child is there once, but one stands before its parent."""
    feature = np.zeros((1, 3), np.int32)
    left, right = np.array([[~0, 2, 1]], np.int16), np.array([[~1, ~2, ~3]], np.int16)
    arrays = {
        "feature": feature, "threshold": np.zeros((1, 3)), "missing_right": np.zeros((1, 3), bool),
        "gain": np.zeros((1, 3), np.float32), "votes": np.ones((1, 4, 2), np.int8), "coefficient": np.ones(1),
        "edge": np.ones(1), "left": left, "right": right,
    }  # fmt: skip
    with pytest.raises(ValueError, match="nowhere or in a circle"):
        check_model(changed(tree, **arrays))


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "model.abex"
    classifier().fit(X, Y).save(file)
    assert load(file).n_iter_ == 6
    monkeypatch.setenv("ABEX_MAX_BYTES", "1000")
    with pytest.raises(UserError, match="grows beyond"):
        load(file)


def test_a_file_of_another_format_says_so(tmp_path):
    file = tmp_path / "model.abex"
    classifier().fit(X, Y).save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays["header"]))
    for change, said in (
        ({"version": 0}, "no format 0"), ({"version": 99}, "newer abex"), ({"version": "x"}, "not a model file"),
        ({"format": "another"}, "not a model file"),
    ):  # fmt: skip
        with file.open("wb") as stream:
            np.savez(stream, **{**arrays, "header": np.array(json.dumps({**header, **change}))})
        with pytest.raises(UserError, match=said):
            load(file)


# -- sparse matrices ------------------------------------------------------------------------------------


def damaged():
    """Sparse matrices that lead outside of themselves, by what is wrong with them."""
    for form in ("csr", "csc", "bsr"):
        for name, place, value in (
            ("indices", 0, 10**6), ("indices", 0, -3), ("indptr", 1, 10**6), ("indptr", 0, 5), ("indptr", 2, -1),
        ):  # fmt: skip
            matrix = sparse.csr_matrix(X).asformat(form)
            getattr(matrix, name)[place] = value
            yield f"{form} {name}[{place}] = {value}", matrix
        matrix = sparse.csr_matrix(X).asformat(form)
        matrix.indptr = matrix.indptr[:-2]
        yield f"{form} short indptr", matrix
    for name in ("row", "col"):
        matrix = sparse.coo_matrix(X)
        getattr(matrix, name)[3] = 10**6
        yield f"coo {name}", matrix
    matrix = sparse.lil_matrix(X)
    matrix.rows[0][0] = 10**6
    yield "lil", matrix


@each(("damage", "matrix"), damaged())
def test_damaged_sparse_matrices_are_refused_everywhere(damage, matrix, fitted):
    for method in (
        "predict",
        "predict_proba",
        "decision_function",
        "staged_predict",
        "staged_decision_function",
    ):
        with pytest.raises(UserError, match="X is a damaged sparse matrix"):
            getattr(fitted, method)(matrix)
    with pytest.raises(UserError, match="X is a damaged sparse matrix"):
        fitted.staged_score(matrix, Y)
    with pytest.raises(UserError, match="X is a damaged sparse matrix"):
        fitted.model_.scores(matrix)
    with pytest.raises(UserError, match="X is a damaged sparse matrix"):
        classifier().fit(matrix, Y)
    with pytest.raises(UserError, match="y is a damaged sparse matrix"):
        classifier().fit(X, matrix)


@pytest.fixture(scope="module")
def fitted():
    return classifier(base="stump").fit(X, Y)


@each("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_sound_sparse_matrices_of_every_format_are_read(form, fitted):
    matrix = sparse.csr_matrix(X).asformat(form)
    np.testing.assert_array_equal(fitted.decision_function(matrix), fitted.decision_function(X))


def test_entries_out_of_order_and_twice_are_what_scipy_makes_of_them(fitted):
    matrix = sparse.csr_matrix(X)
    backwards = np.concatenate([np.arange(4)[::-1] + 4 * i for i in range(60)])
    twice = sparse.csr_matrix(
        (np.repeat(X.ravel()[backwards] / 2, 2), np.repeat(matrix.indices[backwards], 2), 2 * matrix.indptr),
        shape=X.shape,
    )
    np.testing.assert_array_equal(fitted.decision_function(twice), fitted.decision_function(X))
    again = classifier(base="stump").fit(twice, Y)
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
