"""Shapley values, ours and those of the package shap, against their definition."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
from sklearn.inspection import permutation_importance

from abex.boosting import AdaBoostMHClassifier
from abex.boosting.forest import forest_of
from abex.support.errors import UserError
from tests.each import each
from tests.naive import explanations as naive

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 5))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 2]) > 0).astype(int) + (np.nan_to_num(X[:, 3]) > 1)
BASES = ("stump", "product", "tree")


def fitted(base, y=Y, **parameters):
    options = {"n_estimators": 12, "n_leaves": 7, "n_terms": 4, "random_state": 0, "calibrate": False}
    return AdaBoostMHClassifier(base=base, **{**options, **parameters}).fit(X, y)


def values_by_definition(classifier, game, rows, background):
    """Shapley values of each row, and the value of knowing nothing, from all subsets of the features."""
    found = []
    for x in rows:
        value = cache(lambda known, x=x: game(classifier.model_, x, background, known))
        found.append(naive.shapley(value, rows.shape[1]))
    return np.array([phi for phi, _ in found]), found[0][1]


@each("base", BASES)
def test_values_are_those_of_the_definition(base):
    classifier, background = fitted(base), X[:6]
    values, mean = classifier.shap_values(X[30:33], background)
    wanted, empty = values_by_definition(classifier, naive.interventional, X[30:33], background)
    np.testing.assert_allclose(values, wanted, atol=1e-12)
    np.testing.assert_allclose(mean, empty, atol=1e-12)


@each("base", BASES)
@each("y", [Y, Y > 0, np.stack([Y > 0, Y > 1], axis=1).astype(int)])
def test_values_add_up_to_the_decision(base, y):
    classifier = fitted(base, y, n_estimators=150, committee_size=40)
    values, mean = classifier.shap_values(X, X[:40])
    scores = classifier.decision_function(X)
    assert abs(values.sum(axis=1) + mean - scores).max() <= 1e-9 * abs(scores).max()
    assert values.shape == (150, 5, *scores.shape[1:])


@each("base", BASES)
def test_the_package_shap_reads_the_trees(base):
    """It needs a trace of weight on branches without a row, of which there are some with six background rows."""
    shap = pytest.importorskip("shap")
    classifier, background = fitted(base), X[:6]
    explainer = shap.TreeExplainer(classifier.to_shap(background))
    values = np.asarray(explainer.shap_values(X[30:33], check_additivity=False))
    wanted, empty = values_by_definition(classifier, naive.path_dependent, X[30:33], background)
    np.testing.assert_allclose(values, wanted, atol=1e-6)
    np.testing.assert_allclose(explainer.expected_value, empty, atol=1e-6)


@each("base", BASES)
def test_trees_for_shap_score_like_their_model_and_know_their_means(base):
    classifier = fitted(base, n_estimators=30)
    trees = classifier.to_shap(X[:50])["trees"]
    scores = np.zeros((X.shape[0], 3))
    for tree in trees:
        for i, x in enumerate(X):
            node = 0
            while tree["children_left"][node] >= 0:
                value = x[tree["features"][node]]
                side = "right" if value > tree["thresholds"][node] else "left"
                node = tree[f"children_{'default' if np.isnan(value) else side}"][node]
            scores[i] += tree["values"][node]
    np.testing.assert_allclose(scores, classifier.decision_function(X), atol=1e-9)
    means = sum(tree["values"][0] for tree in trees)
    np.testing.assert_allclose(means, classifier.decision_function(X[:50]).mean(axis=0), atol=1e-6)
    assert all(tree["node_sample_weight"].min() > 0.0 for tree in trees)


def test_sparse_rows_are_explained_like_dense_ones():
    rows = np.nan_to_num(X) * (np.abs(np.nan_to_num(X)) > 1)
    classifier = AdaBoostMHClassifier(n_estimators=20, random_state=0).fit(csr_matrix(rows), Y)
    sparse, dense = (classifier.shap_values(given[:9], given) for given in (csr_matrix(rows), rows))
    np.testing.assert_array_equal(sparse.values, dense.values)


def test_threads_change_nothing():
    one, two = (fitted("tree", n_jobs=jobs).shap_values(X, X[:20]).values for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


@each("base", BASES)
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


def test_what_cannot_be_explained_is_named():
    long = AdaBoostMHClassifier(n_estimators=2, base="product", n_terms=20, random_state=0, calibrate=False)
    with pytest.raises(UserError, match="at most 12 terms"):
        long.fit(RNG.normal(size=(200, 40)), RNG.integers(0, 5, 200)).shap_values(
            np.zeros((1, 40)), np.zeros((1, 40))
        )
    with pytest.raises(ValueError, match="0 sample"):
        fitted("stump").shap_values(X, csr_matrix((0, 5)))


def test_permutation_importance_works():
    X_iris, y_iris = load_iris(return_X_y=True)
    noisy = np.hstack([X_iris, RNG.normal(size=(150, 1))])
    classifier = AdaBoostMHClassifier(n_estimators=30, random_state=0).fit(noisy, y_iris)
    found = permutation_importance(classifier, noisy, y_iris, n_repeats=5, random_state=0)
    assert found.importances_mean[4] < found.importances_mean[[2, 3]].min()
