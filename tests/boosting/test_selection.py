"""How many features a split looks at: few where most features tell something, many where few do."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification

from abex.boosting import AdaBoostMHClassifier, selection
from abex.boosting.examples import Examples
from abex.boosting.fit import Shared, short_fits
from abex.boosting.selection import first_candidate, mcnemar_better, numbers_of_arms, practised
from abex.boosting.settings import Settings, checked_settings
from abex.policies import Screening, Setting, Uniform


def classifier(**parameters):
    common = {"n_estimators": 8, "n_leaves": 30, "random_state": 0, "calibrate": False}
    return AdaBoostMHClassifier(**{**common, **parameters})


def wide_table():
    """Ten features among two hundred tell something."""
    return make_classification(
        1200,
        200,
        n_informative=10,
        n_redundant=0,
        n_classes=3,
        n_clusters_per_class=1,
        class_sep=1.5,
        random_state=0,
    )


def test_few_good_features_among_many_are_searched_for():
    X, y = wide_table()
    auto = classifier(policy="Uniform").fit(X[:800], y[:800])
    five = classifier(policy="Uniform", arms_per_search=5).fit(X[:800], y[:800])
    assert auto.arms_per_search_ >= 20
    spread = np.sqrt(0.25 / 400)
    assert auto.score(X[800:], y[800:]) > five.score(X[800:], y[800:]) + 4 * spread
    assert auto.pulled_arms_.size > 3 * five.pulled_arms_.size


def test_a_policy_that_has_practised_finds_them():
    X, y = wide_table()
    auto, uniform = (classifier(policy=policy).fit(X[:800], y[:800]) for policy in ("auto", "Uniform"))
    assert auto.policy_ == Screening()
    spread = np.sqrt(0.25 / 400)
    assert auto.score(X[800:], y[800:]) > uniform.score(X[800:], y[800:]) + spread
    assert auto.arms_per_search_ < uniform.arms_per_search_
    useful = np.argsort(-auto.policy_report().share)[:10]  # ten features tell something
    share = auto.policy_report().share[useful].sum()
    assert share > 0.5
    assert len(set(np.argsort(-auto.feature_importances_)[:8]) & set(useful)) >= 6


def test_features_that_say_nothing_are_paid_a_half(monkeypatch):
    monkeypatch.setattr(Settings, "pays_by_shadows", lambda settings, policy: True)  # also who chooses evenly
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=(300, 40)), rng.integers(0, 2, (300, 20)), rng.random((300, 20)) < 0.1]
    )
    y = rng.integers(0, 3, 300)
    common = {"committee_size": 1, "calibrate": False, "random_state": 0}
    fitted = AdaBoostMHClassifier(300, policy="Boltzmann(eta=1e-9)", n_leaves=2, **common).fit(X, y)
    means = fitted.policy_report().mean_reward
    for kind in (means[:40], means[40:60], means[60:]):  # of many values, of two, and of one that is rare
        assert abs(kind.mean() - 0.5) < 4 * kind.std() / np.sqrt(kind.size)
    deep = AdaBoostMHClassifier(20, policy="Boltzmann(eta=1e-9)", **common).fit(X, y)
    assert 0.4 < deep.pulled_rewards_.mean() < 0.5  # where it was split by chance, less is left


def test_a_practised_policy_finds_its_arms_again_among_more():
    """A feature that does not vary in the rows of the practice is no arm there, and may be one in the fit."""
    X, y = wide_table()
    X = X[:, :40].copy()
    X[:, 7] = 0.0
    X[-1, 7] = 1.0
    settings = checked_settings(classifier(policy="Screening"))
    signs = np.where(y[:, None] == np.arange(3), 1, -1).astype(np.int8)
    new = short_fits(settings, Shared(seed=1), Examples(X[:-1], signs[:-1], np.ones(1199)))
    practice = practised(new, settings, first_candidate(settings, 40, None)).practice
    assert practice.arms.features.tolist() == [j for j in range(40) if j != 7]
    arms = copy.copy(practice.arms)
    arms.start, arms.features = np.arange(41), np.arange(40)
    state = practice.carried_to(arms, Setting(40))
    np.testing.assert_array_equal(np.delete(state.means, 7), practice.state.means)
    assert state.observations[7] == 0
    assert state.total == practice.state.total
    out = np.zeros(40)
    Screening.probabilities(state, 1, out)
    assert out.argmax() == 7  # never seen
    arms.start, arms.features = np.arange(31), np.arange(5, 35)
    state = practice.carried_to(arms, Setting(30))
    np.testing.assert_array_equal(np.delete(state.means, 2), practice.state.means[5:34])


def test_one_who_learns_from_shadows_goes_on_where_it_was():
    X, y = wide_table()
    common = {"n_leaves": 6, "policy": "Screening", "committee_size": 3, "arms_per_search": 5}
    whole = classifier(**common, n_estimators=9).fit(X, y)
    parts = classifier(**common, n_estimators=4, warm_start=True).fit(X, y)
    parts.set_params(n_estimators=9).fit(X, y)
    np.testing.assert_array_equal(parts.model_.feature, whole.model_.feature)
    auto = classifier(n_leaves=6, committee_size=3, n_estimators=4, warm_start=True).fit(X, y)
    assert auto.set_params(n_estimators=6).fit(X, y).policy_ == Screening()


def test_where_more_features_do_not_help_nobody_practises(monkeypatch):
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(selection, "practised", lambda *_: pytest.fail("practised for nothing"))
    assert classifier().fit(X[:600], y[:600]).policy_ == Uniform()


def test_where_all_features_are_alike_five_are_enough():
    X, y = load_digits(return_X_y=True)
    fitted = classifier().fit(X[:600], y[:600])
    assert fitted.arms_per_search_ == 5
    assert (
        fitted.model_.threshold == classifier(arms_per_search=5).fit(X[:600], y[:600]).model_.threshold
    ).all()


def test_a_fit_that_goes_on_keeps_the_number_of_arms():
    X, y = wide_table()
    warm = classifier(warm_start=True).fit(X, y)
    number = warm.arms_per_search_
    assert (
        warm.set_params(n_estimators=10).fit(X[:, ::-1] * 0.0 + np.eye(1, 200), y).arms_per_search_ == number
    )


@pytest.mark.parametrize("base", ["stump", "product"])
def test_stumps_and_products_search_two(base):
    X, y = wide_table()
    assert classifier(base=base).fit(X, y).arms_per_search_ == 2


def test_numbers_of_arms_and_significance():
    assert numbers_of_arms(1) == numbers_of_arms(8) == [2]
    assert numbers_of_arms(19) == [4]
    assert numbers_of_arms(20) == [4, 16, 20]
    assert numbers_of_arms(30) == [5, 20, 30]
    assert numbers_of_arms(80) == [5, 20, 80]
    assert numbers_of_arms(10**6)[-1] == 640
    assert mcnemar_better(30, 15)
    assert not mcnemar_better(30, 20)
    assert not mcnemar_better(0, 0)
