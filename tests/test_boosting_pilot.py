"""How many features a split looks at: few where most features tell something, many where few do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification

from abex.boosting import AdaBoostMHClassifier
from abex.boosting.pilot import candidates, corrects_more


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
    auto = classifier().fit(X[:800], y[:800])
    five = classifier(arms_per_search=5).fit(X[:800], y[:800])
    assert auto.arms_per_search_ >= 20
    spread = np.sqrt(0.25 / 400)
    assert auto.score(X[800:], y[800:]) > five.score(X[800:], y[800:]) + 4 * spread
    assert auto.pulled_arms_.size > 3 * five.pulled_arms_.size


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
    assert candidates(1) == candidates(8) == [2]
    assert candidates(19) == [4]
    assert candidates(20) == [4, 16, 20]
    assert candidates(30) == [5, 20, 30]
    assert candidates(80) == [5, 20, 80]
    assert candidates(10**6)[-1] == 640
    assert corrects_more(30, 15)
    assert not corrects_more(30, 20)
    assert not corrects_more(0, 0)
