"""Shapley values against their definition, and against the package shap."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
from sklearn.inspection import permutation_importance

from abex.boosting import AdaBoostMHClassifier
from abex.boosting.forest import forest_of
from abex.boosting.shap_values import quadrature
from abex.support.errors import UserError
from tests.each import each
from tests.naive import explanations as naive

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 5))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 2]) > 0).astype(int) + (np.nan_to_num(X[:, 3]) > 1)
BASES = ("stump", "product", "tree")
GAMES = {"tree_path_dependent": naive.path_dependent, "interventional": naive.interventional}


def fitted(base, y=Y, **parameters):
    options = {"n_estimators": 12, "n_leaves": 7, "n_terms": 4, "random_state": 0, "calibrate": False}
    return AdaBoostMHClassifier(base=base, **{**options, **parameters}).fit(X, y)


@each("meaning", GAMES)
@each("base", BASES)
def test_values_are_those_of_the_definition(base, meaning):
    classifier, background = fitted(base), X[:6]  # few: some nodes are without any of them
    values, mean = classifier.shap_values(X[30:33], background, meaning)
    for i, x in enumerate(X[30:33]):
        game = cache(lambda known, x=x: GAMES[meaning](classifier.model_, x, background, known))
        wanted, empty = naive.shapley(game, 5)
        np.testing.assert_allclose(values[i], wanted, atol=1e-12)
        np.testing.assert_allclose(mean, empty, atol=1e-12)


@each("meaning", GAMES)
@each("base", BASES)
@each("y", [Y, Y > 0, np.stack([Y > 0, Y > 1], axis=1).astype(int)])
def test_values_add_up_to_the_decision(base, meaning, y):
    classifier = fitted(base, y, n_estimators=150, committee_size=40)
    values, mean = classifier.shap_values(X, X[:40], meaning)
    scores = classifier.decision_function(X)
    assert abs(values.sum(axis=1) + mean - scores).max() <= 1e-9 * abs(scores).max()
    assert values.shape == (150, 5, *scores.shape[1:])


@pytest.mark.parametrize("meaning", GAMES)
@pytest.mark.parametrize("base", BASES)
def test_the_package_shap_reads_the_trees_and_agrees(base, meaning):
    shap = pytest.importorskip("shap")
    classifier, background = fitted(base, n_estimators=60), X[:80]
    rows = background if meaning == "interventional" else None
    explainer = shap.TreeExplainer(classifier.to_shap(background), data=rows, feature_perturbation=meaning)
    theirs = np.asarray(explainer.shap_values(X, check_additivity=False))
    ours, mean = classifier.shap_values(X, background, meaning)
    # theirs sums interventions in single precision, and needs a trace of weight on branches without a row
    np.testing.assert_allclose(ours, theirs, atol=1e-5 if meaning == "interventional" else 1e-6)
    np.testing.assert_allclose(mean, explainer.expected_value, atol=1e-6)


def test_sparse_rows_are_explained_like_dense_ones():
    rows = np.nan_to_num(X) * (np.abs(np.nan_to_num(X)) > 1)
    classifier = AdaBoostMHClassifier(n_estimators=20, random_state=0).fit(csr_matrix(rows), Y)
    sparse, dense = (classifier.shap_values(given[:9], given) for given in (csr_matrix(rows), rows))
    np.testing.assert_array_equal(sparse.values, dense.values)


def test_threads_change_nothing():
    one, two = (fitted("tree", n_jobs=jobs).shap_values(X, X[:20]).values for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("base", BASES)
def test_a_forest_scores_like_its_model(base):
    classifier = fitted(base, n_estimators=30)
    forest = forest_of(classifier.model_)
    scores = np.zeros((X.shape[0], 3))
    for i, x in enumerate(X):
        for node in forest.root[:-1]:
            while forest.feature[node] >= 0:
                value = x[forest.feature[node]]
                right = forest.missing_right[node] if np.isnan(value) else value > forest.threshold[node]
                node = (forest.right if right else forest.left)[node]
            scores[i] += forest.values[forest.leaf[node]]
    np.testing.assert_allclose(scores, classifier.decision_function(X), atol=1e-9)
    inner = np.flatnonzero(forest.feature >= 0)
    assert (forest.left[inner] > inner).all()
    assert (forest.right[inner] > inner).all()


def test_terms_on_one_feature_leave_out_what_cannot_be():
    x = np.repeat(np.arange(30.0), 3)[:, None]
    classifier = AdaBoostMHClassifier(
        n_estimators=1, base="product", n_terms=3, calibrate=False, random_state=0
    )
    forest = forest_of(classifier.fit(x, (x[:, 0] // 8).astype(int) % 2).model_)
    assert (forest.leaf >= 0).sum() == 4  # three thresholds: four intervals, not eight


def test_rules_of_quadrature_are_exact():
    rule = quadrature(9)
    for k in range(1, 10):
        part = slice(rule.start[k], rule.start[k + 1])
        for degree in range(k):
            assert rule.weight[part] @ rule.point[part] ** degree == pytest.approx(
                1 / (degree + 1), rel=1e-14
            )


def test_what_cannot_be_explained_is_named():
    long = AdaBoostMHClassifier(n_estimators=2, base="product", n_terms=20, random_state=0, calibrate=False)
    with pytest.raises(UserError, match="at most 12 terms"):
        long.fit(RNG.normal(size=(200, 40)), RNG.integers(0, 5, 200)).shap_values(
            np.zeros((1, 40)), np.zeros((1, 40))
        )
    with pytest.raises(UserError, match="unknown feature_perturbation"):
        fitted("stump").shap_values(X, X, "other")


def test_permutation_importance_works():
    X_iris, y_iris = load_iris(return_X_y=True)
    noisy = np.hstack([X_iris, RNG.normal(size=(150, 1))])
    classifier = AdaBoostMHClassifier(n_estimators=30, random_state=0).fit(noisy, y_iris)
    found = permutation_importance(classifier, noisy, y_iris, n_repeats=5, random_state=0)
    assert found.importances_mean[4] < found.importances_mean[[2, 3]].min()
