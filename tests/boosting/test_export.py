"""Exported models answer as ours do: run by onnxruntime, and by the recipes of a page as compiled C and by Treelite."""

from __future__ import annotations

import ast
import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from abex.boosting import AdaBoostMHClassifier
from abex.cli import main
from abex.support.errors import UserError
from tests.each import each

PAGE = Path(__file__).parents[2] / "docs" / "export_model.md"
RNG = np.random.default_rng(4)
X = RNG.normal(size=(250, 5))
X[:, 4] = X[:, 4].round(1)
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 2]) > 0).astype(int) + (np.nan_to_num(X[:, 3]) > 1)
LABELS = {
    "classes": Y,
    "words": np.array(["apple", "lemon", "pear"])[Y],
    "two": (Y > 0) * 2.0,
    "labels": np.stack([Y > 0, Y > 1], axis=1).astype(int),
}
COMPILER = shutil.which("cc")


def fitted(base, y=Y, **parameters):
    return AdaBoostMHClassifier(base=base, **{"n_estimators": 60, "random_state": 0, **parameters}).fit(X, y)


def by_onnx(model, rows):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    content = model if isinstance(model, bytes) else model.SerializeToString()
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(["label", "probabilities", "scores"], {"X": np.asarray(rows, np.float64)})


def recipe(title, name):
    """A function of docs/export_model.md, in the block below a title."""
    block = PAGE.read_text().split(f"\n## {title}\n")[1].split("```python\n")[1].split("```")[0]
    lines = ast.parse(block).body
    end = [getattr(line, "name", None) for line in lines].index(name) + 1
    found = {}
    exec(compile(ast.Module(lines[:end], []), str(PAGE), "exec"), found)
    return found[name]


def by_c(source, rows, folder):
    code, library = folder / "model.c", folder / "model.so"
    code.write_text(source)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, str(code), "-o", str(library), "-lm"], check=True)
    predict = ctypes.CDLL(str(library)).predict
    pointer = ctypes.POINTER(ctypes.c_double)
    return [predict(row.ctypes.data_as(pointer)) for row in np.ascontiguousarray(rows, np.float64)]


def check(classifier, rows, numbers):
    """The export of a classifier, given ``numbers``, against what it says of ``rows``."""
    scores, chances = classifier.model_.scores(classifier.coded(rows)), classifier.predict_proba(rows)
    label, probabilities, found = by_onnx(classifier.to_onnx(), numbers)
    np.testing.assert_allclose(found, scores, atol=1e-9)
    np.testing.assert_allclose(probabilities, chances, atol=1e-9)
    np.testing.assert_array_equal(label, classifier.predict(rows))


@each("kind", LABELS)
@each("base", ["stump", "product", "tree"])
def test_exports_answer_as_the_model_does(base, kind):
    classifier = fitted(base, LABELS[kind], committee_size=25 if kind == "classes" else None)
    rows = np.concatenate([X, X + 1e-9, np.full((1, 5), np.nan), np.zeros((1, 5))])
    check(classifier, rows, rows)


@pytest.mark.parametrize("kind", ["words", "two"])
@pytest.mark.parametrize("base", ["stump", "product", "tree"])
def test_recipes_answer_as_the_model_does(base, kind, tmp_path):
    treelite = pytest.importorskip("treelite")
    classifier = fitted(base, LABELS[kind])
    rows = np.concatenate([X, X + 1e-9, np.full((1, 5), np.nan), np.zeros((1, 5))])
    votes = treelite.gtil.predict(recipe("Treelite", "treelite_of")(classifier), rows, nthread=1)
    np.testing.assert_allclose(votes[:, 0], classifier.model_.scores(rows), atol=1e-9)
    if COMPILER:
        best = by_c(recipe("C", "c_of")(classifier), rows, tmp_path)
        np.testing.assert_array_equal(classifier.classes_[best], classifier.predict(rows))


def test_thresholds_are_doubles_on_the_way():
    """Values that no float tells apart are told apart."""
    near = 1.0 + np.arange(40)[:, None] * 1e-12
    classifier = AdaBoostMHClassifier(n_estimators=5, base="stump", random_state=0).fit(
        near, np.arange(40) > 17
    )
    assert classifier.score(near, np.arange(40) > 17) == 1.0
    np.testing.assert_array_equal(by_onnx(classifier.to_onnx(), near)[0], classifier.predict(near))


def test_a_model_of_a_sparse_matrix_takes_dense_rows():
    rows = np.nan_to_num(X) * (np.abs(np.nan_to_num(X)) > 1)
    classifier = AdaBoostMHClassifier(n_estimators=30, random_state=0).fit(csr_matrix(rows), Y)
    check(classifier, csr_matrix(rows), rows)


def test_a_model_that_learnt_nothing_leaves_too():
    check(
        AdaBoostMHClassifier(n_estimators=3).fit(np.zeros((20, 2)), np.arange(20) % 2),
        X[:3, :2] * 0,
        X[:3, :2],
    )


def test_categories_are_given_by_their_positions():
    colour = RNG.choice(["red", "green", "blue", "violet"], 250).astype(object)
    colour[::11] = None
    table = pd.DataFrame(
        {"x": X[:, 0], "colour": pd.Categorical(colour), "size": RNG.choice([3.0, 7.0, 9.0], 250)}
    )
    y = ((colour == "red") | ((table["size"] == 7) & (X[:, 2] > 0))).to_numpy()
    classifier = AdaBoostMHClassifier(
        n_estimators=40, random_state=0, categorical_features=["colour", "size"]
    )
    classifier.fit(table, y)
    words, sizes = ({value: k for k, value in enumerate(c.values)} for c in classifier.categories_)
    numbers = np.stack(
        [X[:, 0], [words.get(c, np.nan) for c in colour], [sizes[s] for s in table["size"]]], axis=1
    )
    check(classifier, table, numbers)
    unseen = table.assign(colour="black", size=8.0)
    check(classifier, unseen, np.stack([X[:, 0], np.full(250, 99.0), np.full(250, -1.0)], axis=1))
    assert json.loads(json.dumps(list(words))) == ["blue", "green", "red", "violet"]
    assert "colour in {" in classifier.export_text()
    values, mean = classifier.shap_values(table[:20], table)
    np.testing.assert_allclose(values.sum(axis=1) + mean, classifier.decision_function(table[:20]), atol=1e-9)
    codes = classifier.coded(table)
    assert np.isnan(codes[::11, 1]).all()
    np.testing.assert_allclose(classifier.model_.scores(codes) @ [-1, 1], classifier.decision_function(table))


def test_the_command_writes_onnx(tmp_path, capsys):
    classifier = fitted("tree", n_estimators=10)
    classifier.save(tmp_path / "model.abex")
    main(["boost", "export", str(tmp_path / "model.abex")])
    assert "wrote" in capsys.readouterr().out
    content = (tmp_path / "model.onnx").read_bytes()
    np.testing.assert_allclose(by_onnx(content, X)[1], classifier.predict_proba(X), atol=1e-9)


def test_a_package_that_is_not_there_is_named(monkeypatch):
    classifier = fitted("stump", n_estimators=2)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs onnx, which is not installed: pip install .*\[export\]'"):
        classifier.to_onnx()
