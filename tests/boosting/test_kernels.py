"""The compiled search and update against AdaBoost.MH as the papers write it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.boosting import full_search
from abex.boosting.examples import Examples
from abex.boosting.fit import Shared, new_fit
from abex.boosting.selection import Candidate
from abex.boosting.settings import PRODUCT, STUMP, TREE, Settings
from abex.boosting.vectors import ManyVectors, TwoVectors
from abex.boosting.weights import first_weights
from abex.policies import Uniform
from tests.each import each
from tests.naive import boosting as naive


def fitted(X, signs, iterations, policy=None, dtype=np.float64, mapper=map, **parameters):
    candidate = Candidate(policy, parameters.pop("per_search", 1))
    fit = new_fit(
        Examples(X, signs, np.ones(len(X))), Settings(dtype=dtype, **parameters), candidate, iterations,
        Shared(seed=1, mapper=mapper),
    )  # fmt: skip
    fit.advance(iterations)
    return fit


def current_weights(fit):
    """Weights of the examples as given, (n, L), summing to 1."""
    w, labels = fit.weights, fit.learners.votes.shape[2]
    now = w.values * w.factors[w.group * w.stride + w.slot]
    plain = np.zeros((fit.rows.size, labels))
    plain[fit.rows] = np.abs(now[:, :labels].astype(np.float64))
    return plain / plain.sum()


def features_tried(fit, iterations):
    """The features each search was allowed, in order, from what the policy pulled."""
    arms = fit.pulls.arm[: fit.pulls.made].reshape(iterations, -1)
    start, features = fit.arms.start, fit.arms.features
    return [[j for arm in row for j in features[start[arm] : start[arm + 1]]] for row in arms]


def assert_follows(fit, X, signs, iterations, smoothing=0.0, tolerance=1e-12):
    found, weights = naive.boost(
        X, signs, first_weights(signs, np.ones(len(X))), features_tried(fit, iterations), smoothing, tolerance
    )
    model = fit.model()
    for t, (stump, coefficient, _) in enumerate(found):
        assert model.feature[t, 0] == stump.feature, t
        if stump.feature < 0:
            continue
        assert model.threshold[t, 0] == pytest.approx(stump.threshold, abs=1e-12), t
        if np.isnan(X[:, stump.feature]).any():
            assert model.missing_right[t, 0] == stump.missing_right, t
        assert (model.votes[t, 0] == stump.votes).all(), t
        assert model.coefficient[t] == pytest.approx(coefficient, abs=1e-9), t
        assert model.edge[t] == pytest.approx(stump.edge, abs=1e-9), t
    np.testing.assert_allclose(current_weights(fit), weights, rtol=1e-6, atol=1e-15)


def problem(kind, seed=0):
    rng = np.random.default_rng(seed)
    n, d = {
        "narrow": (60, 5),
        "wide": (700, 3),
        "listed": (120, 6),
        "missing": (80, 4),
        "multilabel": (60, 5),
    }[kind]
    X = rng.normal(size=(n, d))
    if kind in ("narrow", "multilabel"):
        X = np.round(2 * X)
    if kind == "listed":
        X[rng.random((n, d)) < 0.8] = 0.0
        X[:, 0] = 3.0
    if kind == "missing":
        X = np.round(3 * X)
        X[rng.random((n, d)) < 0.2] = np.nan
        X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, 1.0)
    if kind == "multilabel":
        signs = np.where(rng.random((n, 4)) < 0.3 + 0.2 * (X[:, :4] > 0), 1, -1).astype(np.int8)
    else:
        y = np.digitize(np.nan_to_num(X[:, 1]) + 0.5 * rng.normal(size=n), [-0.5, 0.5])
        signs = naive.label_signs(y)
    return X, signs


@pytest.mark.parametrize("kind", ["narrow", "wide", "listed", "missing", "multilabel"])
def test_full_search_finds_the_naive_stumps(kind):
    X, signs = problem(kind)
    iterations = 12 if kind == "wide" else 40
    assert_follows(fitted(X, signs, iterations), X, signs, iterations)


@pytest.mark.parametrize("kind", ["narrow", "wide", "listed", "missing", "multilabel"])
def test_full_search_by_several_threads_finds_the_naive_stumps(kind, monkeypatch):
    monkeypatch.setattr(full_search, "MIN_WORK", 0)
    X, signs = problem(kind)
    iterations = 12 if kind == "wide" else 40
    with ThreadPoolExecutor(3) as pool:
        fit = fitted(X, signs, iterations, mapper=pool.map)
    assert len(fit.parts) > 1
    assert_follows(fit, X, signs, iterations)


@pytest.mark.parametrize("parameters", [{}, {"kind": TREE, "leaves": 6}, {"kind": PRODUCT, "terms": 3}])
def test_full_search_in_parts_is_that_of_the_compiled_loop(parameters, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 21))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, :7] = np.round(2 * X[:, :7])
    signs = naive.label_signs(np.digitize(np.nan_to_num(X[:, 1] * X[:, 9]), [-0.5, 0.1, 0.6]))
    alone = fitted(X, signs, 15, **parameters)
    monkeypatch.setattr(full_search, "MIN_WORK", 0)
    with ThreadPoolExecutor(2) as pool:
        fits = [fitted(X, signs, 15, mapper=mapper, **parameters) for mapper in (map, pool.map)]
    assert not alone.parts
    for fit in fits:
        assert len(fit.parts) == full_search.PARTS
        for name, value in alone.model().arrays().items():
            np.testing.assert_array_equal(fit.model().arrays()[name], value, err_msg=name)
        np.testing.assert_array_equal(fit.pulls.reward, alone.pulls.reward)


@pytest.mark.parametrize("kind", ["narrow", "wide", "listed", "missing", "multilabel"])
def test_a_policy_gets_the_best_stump_of_its_feature(kind):
    X, signs = problem(kind, seed=1)
    iterations = 30 if kind == "wide" else 60
    assert_follows(fitted(X, signs, iterations, Uniform()), X, signs, iterations)


def test_listed_and_wide_features_at_once():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 3))
    X[rng.random(X.shape) < 0.6] = 0.25
    X[:20, 2] = np.nan
    signs = naive.label_signs(np.digitize(X[:, 0] + rng.normal(size=900), [-0.3, 0.4]))
    fit = fitted(X, signs, 25, Uniform())
    assert fit.binned.listed.all()
    assert fit.binned.wide.all()
    assert fit.search.track
    assert not fit.weights.bounded
    assert_follows(fit, X, signs, 25)


@each("labels", [12, 20])  # rows of two vectors of doubles, and of three
@each("policy", [None, Uniform()])
def test_rows_of_several_vectors(labels, policy):
    rng = np.random.default_rng(labels)
    X = rng.normal(size=(500, 3))
    X[rng.random(500) < 0.6, 1] = 0.5
    X[:, 2] = np.round(X[:, 2])
    X[rng.random(500) < 0.1, 2] = np.nan
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=500), np.linspace(-1.5, 1.5, labels - 1))
    signs = naive.label_signs(y)
    iterations = 10 if policy is None else 20
    fit = fitted(X, signs, iterations, policy)
    assert fit.weights.values.shape[1] == 8 * -(-(labels + 1) // 8)
    assert type(fit.weights.width) is (TwoVectors if labels == 12 else ManyVectors)
    assert fit.binned.wide[0]
    assert_follows(fit, X, signs, iterations)


def test_many_groups_of_labels_with_lists_need_no_totals_in_between():
    X, _ = problem("listed", seed=11)
    signs = np.where(np.random.default_rng(0).random((len(X), 8)) < 0.5, 1, -1).astype(np.int8)
    fit = fitted(X, signs, 30, Uniform())
    assert fit.binned.listed.any()
    assert not fit.search.track
    assert_follows(fit, X, signs, 30)


def test_several_arms_per_search_keep_the_best():
    X, signs = problem("narrow", seed=2)
    assert_follows(fitted(X, signs, 30, Uniform(), per_search=3), X, signs, 30)


def test_rewards_are_what_a_stump_takes_off_the_bound():
    X, signs = problem("narrow", seed=3)
    fit = fitted(X, signs, 20, Uniform())
    expected = [naive.reward(edge) for edge in fit.model().edge]
    np.testing.assert_allclose(fit.pulls.reward[:20], expected, rtol=1e-5)


def test_multiboost_mode_smooths_and_uses_single_precision_cuts():
    X, signs = problem("narrow", seed=4)
    X = X + 0.1
    start = first_weights(signs, np.ones(len(X)))
    fit = fitted(X, signs, 40, Uniform(), multiboost=True)
    found, _ = naive.boost(X, signs, start, features_tried(fit, 40), smoothing=0.01 / len(X), tolerance=0.0)
    model = fit.model()
    for t, (stump, coefficient, _) in enumerate(found):
        below, above = np.float32(stump.threshold - 1e-6), np.float32(stump.threshold + 1e-6)
        assert below <= model.threshold[t, 0] <= above
        assert model.threshold[t, 0] == np.float32(model.threshold[t, 0])
        assert model.coefficient[t] == pytest.approx(coefficient, abs=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 4), st.integers(2, 5), st.integers(2, 6))
def test_small_problems_of_any_shape(seed, n, d, labels, levels):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)).astype(float)
    X[rng.random((n, d)) < 0.15] = np.nan
    signs = np.where(rng.random((n, labels)) < 0.4, 1, -1).astype(np.int8)
    iterations = 10
    start = first_weights(signs, np.ones(n))
    fit = fitted(X, signs, iterations, Uniform())
    found, _ = naive.boost(X, signs, start, features_tried(fit, iterations))
    edges = [stump.edge for stump, _, _ in found]
    ours = fit.model().edge
    # exact ties are broken by the last bit: compare until the first one that could be
    for t in range(iterations):
        assert ours[t] == pytest.approx(edges[t], abs=1e-7)
        if ours[t] > 1 - 1e-6:
            break


def test_single_precision_finds_stumps_as_good_as_double():
    X, signs = problem("wide", seed=6)
    fit = fitted(X, signs, 40, Uniform(), dtype=np.float32)
    weights = first_weights(signs, np.ones(len(X)))
    model = fit.model()
    for t, features in enumerate(features_tried(fit, 40)):
        best = naive.best_stump(X, weights * signs, features)
        assert model.edge[t] == pytest.approx(best.edge, abs=2e-6)
        stump = naive.Stump(0.0, model.feature[t, 0], model.threshold[t, 0], False, model.votes[t, 0])
        weights = weights * np.exp(-model.coefficient[t] * signs * stump.votes * stump.side(X)[:, None])
        weights /= weights.sum()


def test_weights_do_not_drift_in_fifty_thousand_iterations():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    signs = naive.label_signs(y)
    fit = fitted(X, signs, 50_000, Uniform(), dtype=np.float32)
    start = first_weights(signs, np.ones(len(X)))
    logs = np.log(start) - signs * fit.model().scores(X)
    exact = np.exp(logs - logs.max())
    exact /= exact.sum()
    ours = current_weights(fit)
    heavy = exact > 1e-12
    assert heavy.sum() > 1000
    np.testing.assert_allclose(ours[heavy], exact[heavy], rtol=2e-3)
    np.testing.assert_allclose(ours[~heavy], exact[~heavy], atol=1e-14)


def test_training_error_is_below_the_bound():
    X, signs = problem("wide", seed=7)
    fit = fitted(X, signs, 200, Uniform())
    model = fit.model()
    label = (signs > 0).argmax(axis=1)
    errors = [naive.errors_and_ties(scores, label).mean() for scores in model.staged_scores(X)]
    bound = np.sqrt(signs.shape[1] - 1) * np.cumprod(np.sqrt(1 - model.edge**2))
    assert (errors <= bound + 1e-12).all()


@pytest.mark.parametrize("kind", ["narrow", "missing"])
def test_scores_of_a_model_are_the_sum_of_its_votes(kind):
    X, signs = problem(kind, seed=8)
    fit = fitted(X, signs, 60, Uniform())
    model = fit.model()
    assert model.kind == STUMP
    slow = np.zeros(signs.shape)
    for t in range(60):
        if model.feature[t, 0] >= 0:
            stump = naive.Stump(
                0, model.feature[t, 0], model.threshold[t, 0], model.missing_right[t, 0], None
            )
            slow += model.coefficient[t] * model.votes[t, 0] * stump.side(X)[:, None]
    np.testing.assert_allclose(model.scores(X), slow, atol=1e-10)
    *_, last = model.staged_scores(X)
    np.testing.assert_allclose(last, slow, atol=1e-10)


@each("kind", ["narrow", "wide", "missing"])
@each("parameters", [{}, {"kind": TREE, "leaves": 5}, {"kind": PRODUCT, "terms": 3}])
def test_errors_of_a_growing_model_are_those_of_its_scores(kind, parameters):
    X, signs = problem(kind, seed=11)
    model = fitted(X, signs, 30, Uniform(), **parameters).model()
    label = (signs > 0).argmax(axis=1)
    slow = np.array([scores.argmax(axis=1) != label for scores in model.staged_scores(X)])
    for ends in (np.arange(1, 31), np.array([3, 17, 30])):
        np.testing.assert_array_equal(np.concatenate([*model.errors(X, label, ends)], axis=1), slow[ends - 1])


@each("kind", ["narrow", "listed", "missing", "multilabel"])
@each(("grower", "size"), [(TREE, 5), (PRODUCT, 3)])
def test_trees_and_products_are_the_naive_ones(kind, grower, size):
    """Each iteration's grower has the edge of the one grown naively under the weights before it."""
    X, signs = problem(kind, seed=9)
    iterations = 6
    parameters = {"leaves": size} if grower == TREE else {"terms": size}
    fit = fitted(X, signs, iterations, kind=grower, **parameters)
    model = fit.model()
    weights = first_weights(signs, np.ones(len(X)))
    before = np.zeros(signs.shape)
    for t, scores in enumerate(model.staged_scores(X)):
        s = weights * signs
        edge = naive.tree_edge(X, s, size) if grower == TREE else naive.product_edge(X, s, size)
        assert model.edge[t] == pytest.approx(edge, abs=1e-9)
        weights = weights * np.exp(-signs * (scores - before))
        weights /= weights.sum()
        before = scores


def test_products_on_listed_features_keep_their_totals():
    X, signs = problem("listed", seed=10)
    fit = fitted(X, signs, 40, Uniform(), kind=PRODUCT, terms=3, per_search=2)
    assert fit.binned.listed.any()
    weights = first_weights(signs, np.ones(len(X)))
    before = np.zeros(signs.shape)
    for t, scores in enumerate(fit.model().staged_scores(X)):
        edge = (weights * signs * np.sign(scores - before)).sum()
        assert fit.model().edge[t] == pytest.approx(edge, abs=1e-9)
        weights = weights * np.exp(-signs * (scores - before))
        weights /= weights.sum()
        before = scores
    np.testing.assert_allclose(current_weights(fit), weights, rtol=1e-6)


def edges_again(fit, X, signs):
    """The edge of every classifier under weights recomputed from the scores, in doubles."""
    logs, edges = np.zeros(signs.shape), []
    start = first_weights(signs, np.ones(len(X)))
    before = np.zeros(signs.shape)
    for scores in fit.model().staged_scores(X):
        weights = start * np.exp(logs - logs.max())
        edges.append((weights * signs * np.sign(scores - before)).sum() / weights.sum())
        logs = -signs * scores
        before = scores
    return np.array(edges)


@each("grower", [{}, {"kind": PRODUCT, "terms": 3}, {"kind": TREE, "leaves": 4}])
@each(("dtype", "tolerance"), [(np.float32, 2e-3), (np.float64, 1e-7)])
@each("flipped", [0.01, 0.05])
@each("values", ["coins", "fractions"])
def test_nearly_separable_data_neither_end_a_fit_nor_spoil_its_sums(
    grower, dtype, tolerance, flipped, values
):
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.5
    X = (y[:, None] ^ (rng.random((2000, 30)) < flipped)).astype(np.float64)
    X = 2.0 * X + rng.random(X.shape) if values == "fractions" else X
    signs = naive.label_signs(y.astype(int))
    fit = fitted(X, signs, 60, Uniform(), dtype, **grower)
    model = fit.model()
    found = model.feature[:, 0] >= 0  # a coin that was just cut has nothing left to cut
    assert found.sum() >= (60 if values == "fractions" else 45)
    assert found[-10:].any()
    assert fit.pulls.made >= 60
    np.testing.assert_allclose(model.edge, edges_again(fit, X, signs), rtol=0, atol=tolerance)


@pytest.mark.parametrize("grower", [{}, {"kind": PRODUCT, "terms": 2}, {"kind": TREE, "leaves": 3}])
def test_separable_data_are_boosted_to_the_end(grower):
    y = np.arange(60) % 3
    X = np.column_stack([y, y == 1, np.arange(60) % 7]).astype(np.float64)
    for dtype in (np.float32, np.float64):
        fit = fitted(X, naive.label_signs(y), 40, Uniform(), dtype, **grower)
        assert (fit.model().scores(X).argmax(axis=1) == y).all()
        assert np.isfinite(fit.model().coefficient).all()
        assert fit.model().edge.max() <= 1.0 + 1e-6
        assert fit.weights.sum > 0.0


@each("seed", range(6))
@each("dtype", [np.float32, np.float64])
def test_trees_find_what_no_single_cut_does(seed, dtype):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=150), rng.integers(0, 2, (150, 4))])
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    fit = fitted(X, naive.label_signs(y), 200, Uniform(), dtype, kind=TREE, leaves=20, per_search=2)
    model = fit.model()
    assert (model.feature[:, 0] >= 0).all()
    assert (model.scores(X).argmax(axis=1) == y).all()
    assert model.edge.max() <= 1.0
