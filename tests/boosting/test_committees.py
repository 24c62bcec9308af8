"""Committees: each is a fit of its own to randomly weighted examples, however the work is divided."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification, make_multilabel_classification

from abex.boosting import AdaBoostMHClassifier, calibration, stopping
from abex.boosting import fit as fit_module
from abex.boosting.examples import Examples
from abex.boosting.fit import Committees, Fit
from abex.boosting.learners import committee_begins
from abex.support.errors import UserError
from tests.each import each

X, Y = load_digits(return_X_y=True)


def classifier(**parameters):
    return AdaBoostMHClassifier(
        **{"n_estimators": 21, "random_state": 1, "calibrate": False, "committee_size": 8, **parameters}
    )


def seed_of(estimator):
    """The seed of its random numbers, the first that its random state gives."""
    return int(np.random.RandomState(estimator.random_state).randint(2**31 - 1))


@pytest.mark.parametrize("base", ["stump", "product", "tree"])
def test_a_committee_is_a_fit_to_its_sample(base):
    """With full search nothing else is random: the oracle is one plain fit for each committee."""
    rows, classes = X[:150, 20:40], Y[:150]
    together = classifier(base=base, policy=None, n_leaves=4).fit(rows, classes)
    committees = Committees(8, base == "tree", seed_of(together))
    for number in range(3):
        drawn = committees.sample(number, 150)
        first, last = 8 * number, min(8 * number + 8, 21)
        alone = classifier(base=base, policy=None, n_leaves=4, n_estimators=last - first, committee_size=None)
        expected = alone.fit(rows, classes, sample_weight=drawn).model_
        found = together.model_.part(first, last)
        np.testing.assert_array_equal(found.feature, expected.feature)
        if base != "tree":  # between values that only others have, a threshold may lie anywhere
            np.testing.assert_array_equal(found.threshold, expected.threshold)
        np.testing.assert_allclose(found.coefficient, expected.coefficient, rtol=1e-9)


def test_random_weights_are_exponential_and_differ_between_committees():
    committees = Committees(8, False, seed=3)
    one, two = (committees.weights(k, np.full((20_000, 2), 1.0))[:, 0] for k in (1, 2))
    assert one.sum() == pytest.approx(0.5)
    scaled = one / one.mean()
    assert abs(scaled.var() - 1.0) < 4 * np.sqrt(8 / 20_000)  # of the variance of exponential draws
    assert abs((scaled < np.log(2)).mean() - 0.5) < 4 * 0.5 / np.sqrt(20_000)
    assert abs(np.corrcoef(one, two)[0, 1]) < 4 / np.sqrt(20_000)


def test_trees_see_other_four_fifths_of_the_examples_in_each_committee():
    committees = Committees(8, True, seed=3)
    assert committees.sample(0, 11).tolist() == [1.0] * 11
    drawn = np.array([committees.sample(k, 1001) for k in range(1, 41)])
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert (drawn.sum(axis=1) == 801).all()
    assert abs(drawn.mean(axis=0) - 0.8).max() < 5 * 0.4 / np.sqrt(40)
    assert abs(np.corrcoef(drawn[0], drawn[1])[0, 1]) < 4 / np.sqrt(1001)


def test_examples_out_of_the_bag_never_get_weight():
    """Not even after many updates: compared with the fit to the sample alone, where they are not there."""
    rows, classes = X[:300], Y[:300]
    long = classifier(n_estimators=120, committee_size=60, n_leaves=6, policy=None).fit(rows, classes)
    seen = Committees(60, True, seed_of(long)).sample(1, 300) > 0
    alone = classifier(n_estimators=60, committee_size=None, n_leaves=6, policy=None).fit(
        rows[seen], classes[seen]
    )
    np.testing.assert_allclose(long.model_.edge[60:], alone.model_.edge, rtol=1e-6)


def test_of_very_many_examples_every_committee_sees_others_the_first_too(monkeypatch):
    """With a limit of 100 examples; the oracle is one plain fit for each sample."""
    monkeypatch.setattr(fit_module, "MAX_SEEN", 100)
    rows, classes = X[:300, 20:40], Y[:300]
    together = classifier(policy=None, n_leaves=4).fit(rows, classes)
    committees = Committees(8, True, seed_of(together))
    samples = np.array([committees.sample(number, 300) for number in range(3)])
    assert samples.sum(axis=1).tolist() == [100.0] * 3
    assert len({sample.tobytes() for sample in samples}) == 3
    for number, drawn in enumerate(samples):
        first, last = 8 * number, min(8 * number + 8, 21)
        alone = classifier(policy=None, n_leaves=4, n_estimators=last - first, committee_size=None)
        expected = alone.fit(rows, classes, sample_weight=drawn).model_
        np.testing.assert_array_equal(together.model_.part(first, last).feature, expected.feature)
        np.testing.assert_allclose(together.model_.edge[first:last], expected.edge, rtol=1e-9)
    assert Committees(8, False, seed=3).sees_all(0, 300)  # stumps see all, as they are
    assert committees.sees_all(0, 100)
    assert not committees.sees_all(0, 101)


def test_few_committees_calibrate_by_rows_out_of_the_bag_if_there_are_enough(monkeypatch):
    """Seven committees of 500 rows: a third is out of the bag of two or more."""
    rows, classes = X[:500], Y[:500]
    fits = []
    made = Fit.again
    monkeypatch.setattr(Fit, "again", lambda *a: fits.append(a) or made(*a))
    seven = classifier(n_estimators=56, n_leaves=6, calibrate=True)
    seven.fit(rows, classes)
    assert len(fits) == 5  # too few rows: fits of their own, one for each fifth
    assert seven.calibration_rows_ == 500
    monkeypatch.setattr(calibration, "ENOUGH_ROWS", 150)
    fits.clear()
    seven.fit(rows, classes)
    committees = Committees(8, True, seed_of(seven))
    absent = np.array([committees.sample(k, 500) == 0 for k in range(1, 7)]).sum(axis=0)
    assert not fits
    assert seven.calibration_rows_ == (absent >= 2).sum() > 150


def test_a_first_committee_that_is_a_sample_calibrates_too(monkeypatch):
    monkeypatch.setattr(fit_module, "MAX_SEEN", 200)
    monkeypatch.setattr(calibration, "ENOUGH_ROWS", 20)
    two = classifier(n_estimators=16, n_leaves=6, calibrate=True).fit(X[:600], Y[:600])
    committees = Committees(8, True, seed_of(two))
    absent = np.array([committees.sample(k, 600) == 0 for k in range(2)]).all(axis=0)
    assert two.calibration_rows_ == absent.sum()


def test_all_rows_are_not_copied():
    examples = Examples(X, np.zeros((len(X), 10), np.int8), np.ones(len(X)))
    assert examples.rows(np.arange(len(X))) is examples
    assert examples.rows(np.arange(len(X))[::-1]).X[0].tolist() == X[-1].tolist()


def test_a_committee_ends_where_a_tree_is_right_everywhere():
    rows, classes = X[:60], Y[:60]
    fitted = classifier(n_estimators=12, n_leaves=30, arms_per_search=8).fit(rows, classes)
    assert (fitted.model_.edge > 1 - 1e-6).all()
    assert committee_begins(fitted.model_.edge, 8).tolist() == list(range(13))
    for edge, begins in (
        ([0.5] * 8, [0, 4, 8]),
        ([0.5] * 7, [0, 4]),
        ([0.5, 0.5, 0.5, 1.0, 0.5], [0, 4]),
        ([0.5, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5], [0, 2, 3, 7]),
    ):
        assert committee_begins(np.array(edge), 4).tolist() == begins


def test_importances_are_means_over_committees():
    """Every committee begins with the whole bound: the last ones count as much as the first."""
    fitted = classifier(base="stump", n_estimators=24).fit(X[:200], Y[:200])
    alone = [fitted.model_.part(k, k + 8).importances() for k in (0, 8, 16)]
    falls = [1.0 - np.prod(np.sqrt(1.0 - fitted.model_.edge[k : k + 8] ** 2)) for k in (0, 8, 16)]
    np.testing.assert_allclose(fitted.feature_importances_, np.average(alone, axis=0, weights=falls))


def test_rows_out_of_the_bag_calibrate():
    """The oracle scores each row by the committees that have not seen it, one at a time."""
    rows, classes = X[:200], Y[:200]
    fitted = classifier(n_estimators=160, n_leaves=6, calibrate=True).fit(rows, classes)
    committees, model = Committees(8, True, seed_of(fitted)), fitted.model_
    margins = np.zeros((2, 200, 10))
    for i in range(200):
        out = [k for k in range(1, 20) if committees.sample(k, 200)[i] == 0]
        for half, chosen in enumerate((out, out[: len(out) // 2])):
            parts = [model.part(8 * k, 8 * k + 8) for k in chosen]
            votes = sum(part.scores(rows[i : i + 1])[0] for part in parts)
            margins[half, i] = votes / sum(part.coefficient.sum() for part in parts) if parts else np.nan
    known = ~np.isnan(margins[1, :, 0])
    signs = np.where(classes[known, None] == np.arange(10), 1, -1).astype(np.int8)
    whole, half = (calibration.fit_exponent(margin[known], signs, False)[0] for margin in margins)
    assert fitted.calibration_rows_ == known.sum()
    total = model.coefficient.sum()
    seen = [[committees.sample(k, 200)[i] == 0 for k in range(1, 20)] for i in np.flatnonzero(known)]
    sums = np.array([model.part(8 * k, 8 * k + 8).coefficient.sum() for k in range(1, 20)])
    doublings = np.log2(total / (np.array(seen) @ sums).mean())
    expected = calibration.carried_exponent(whole, half, doublings, int(known.sum())) / total
    assert fitted.inverse_temperature_ == pytest.approx(expected, rel=1e-6)


def test_rows_out_of_the_bag_judge_with_few_held_out(monkeypatch):
    """The oracle scores each row of the fit by the trees of the committees that have not seen it."""
    rows, classes = X[:200], Y[:200]
    losses, last = stopping.ValidationRows.losses, []
    monkeypatch.setattr(stopping.ValidationRows, "losses", lambda *a: last.append(a[0]) or losses(*a))
    stopped = classifier(n_estimators=84, n_leaves=6, early_stopping=True, warm_start=True)
    stopped.set_params(n_iter_no_change=90).fit(rows, classes)
    found, model = last[-1], stopped.model_
    held = stopping.hold_out(stopped.validation_fraction, seed_of(stopped), 200)
    inside = np.setdiff1d(np.arange(200), held)
    begins = committee_begins(model.edge, 8)
    owner = np.searchsorted(begins, np.arange(model.n_learners), "right") - 1
    committees = Committees(8, True, seed_of(stopped))
    assert found.held == 20
    assert found.totals.size == 200
    assert model.n_learners == 84
    seen = np.array([committees.sample(int(k), 180) > 0 for k in owner])
    coefficient = model.coefficient
    np.testing.assert_allclose(found.totals[:20], coefficient.sum())
    np.testing.assert_allclose(found.totals[20:], (~seen * coefficient[:, None]).sum(axis=0))
    for place, row in list(enumerate(inside))[::30]:
        votes = [model.part(t, t + 1).scores(rows[row : row + 1])[0] for t in np.flatnonzero(~seen[:, place])]
        np.testing.assert_allclose(found.scores[20 + place], sum(votes), atol=1e-9)
    for other in ({"n_iter_no_change": 30}, {"base": "stump"}, {"validation_fraction": 0.3}):
        classifier(**{"n_estimators": 20, "early_stopping": True, **other}).fit(rows, classes)
        assert last[-1].totals.size == last[-1].held


def test_weights_given_stay_in_every_committee():
    rows, classes = X[:200], Y[:200]
    weight = (np.arange(200) % 2).astype(float)
    model = classifier(policy=None, n_leaves=4).fit(rows, classes, sample_weight=weight).model_
    alone = classifier(policy=None, n_leaves=4).fit(rows[1::2], classes[1::2]).model_
    np.testing.assert_array_equal(model.feature, alone.feature)


@pytest.mark.parametrize("first", [5, 8, 13])
def test_a_fit_that_goes_on_is_the_one_long_fit(first):
    rows, classes = X[:200], Y[:200]
    whole = classifier(base="tree", n_leaves=4, policy="UCB1").fit(rows, classes)
    parts = classifier(base="tree", n_leaves=4, policy="UCB1", n_estimators=first, warm_start=True)
    parts.fit(rows, classes)
    parts.set_params(n_estimators=21).fit(rows, classes)
    np.testing.assert_array_equal(parts.model_.feature, whole.model_.feature)
    np.testing.assert_allclose(parts.model_.coefficient, whole.model_.coefficient, rtol=1e-6)


def test_committees_forgive_wrong_labels():
    rows, truth = make_classification(2_500, 20, n_informative=6, class_sep=1.5, flip_y=0.0, random_state=0)
    seen = truth[:1000].copy()
    seen[::5] = 1 - seen[::5]
    errors = [
        1.0
        - classifier(n_estimators=480, committee_size=size, n_leaves=20, arms_per_search=2)
        .fit(rows[:1000], seen)
        .score(rows[1000:], truth[1000:])
        for size in (None, 16)
    ]
    spread = np.sqrt(sum(error * (1.0 - error) for error in errors) / 1500)
    assert errors[1] < errors[0] - 4.0 * spread, errors


def test_committees_of_several_labels_calibrate_and_stop_early():
    rows, labels = make_multilabel_classification(200, n_classes=4, random_state=0)
    fitted = classifier(n_estimators=60, calibrate=True, early_stopping=True).fit(rows, labels)
    chances = fitted.predict_proba(rows)
    assert chances.shape == (200, 4)
    assert ((chances > 0.0) & (chances < 1.0)).all()


@each("size", [0, -1, 2.5, "some", True])
def test_a_wrong_size_is_named(size):
    with pytest.raises(UserError, match="committee_size"):
        classifier(committee_size=size).fit(X[:20], Y[:20])


def test_multiboost_has_one_committee():
    with pytest.raises(UserError, match="committee_size"):
        classifier(base="stump", compatible_with="multiboost").fit(X[:20], Y[:20])
