"""Categorical columns and class weights."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from abex.boosting import AdaBoostMHClassifier, load
from abex.boosting.categories import codes_of
from abex.boosting.selection import CATEGORY_FOLDS, CATEGORY_SMOOTHING, SURE_ROWS
from abex.cli import main
from abex.support.errors import UserError
from tests.each import each

RNG = np.random.default_rng(8)
N = 600
COLOUR = RNG.choice(["red", "green", "blue", "violet"], N).astype(object)
COLOUR[RNG.random(N) < 0.1] = None
NUMBER = RNG.normal(size=N)
SIZE = RNG.choice([3.0, 7.0, 9.0, 11.0], N)
SIZE[::13] = np.nan
Y = ((COLOUR == "red") | ((COLOUR == "blue") & (NUMBER > 0)) | (SIZE == 7)).astype(int)
Y += (SIZE == 9) & (NUMBER > 1)
TABLE = pd.DataFrame({"number": NUMBER, "colour": pd.Categorical(COLOUR), "size": SIZE})
SMALL = {"n_estimators": 40, "random_state": 0}


def classifier(**parameters):
    return AdaBoostMHClassifier(**{**SMALL, **parameters})


def test_every_way_to_name_categories_is_the_same():
    words = np.stack([NUMBER.astype(object), COLOUR, SIZE.astype(object)], axis=1)
    polar = pl.DataFrame(
        {"number": NUMBER, "colour": pl.Series(COLOUR.tolist(), dtype=pl.Categorical), "size": SIZE}
    )
    enum = polar.with_columns(
        pl.Series("colour", COLOUR.tolist(), dtype=pl.Enum(["violet", "red", "green", "blue"]))
    )
    strings = TABLE.assign(colour=COLOUR)
    wanted = classifier(categorical_features=["colour", "size"]).fit(TABLE, Y).predict_proba(TABLE)
    for given, named in (
        (TABLE, [1, 2]), (TABLE, [False, True, True]), (TABLE, np.array([2, 1])), (strings, ["size", "colour"]),
        (words, [1, 2]), (words.tolist(), [1, 2]), (polar, ["colour", "size"]), (enum, [False, True, True]),
    ):  # fmt: skip
        found = classifier(categorical_features=named).fit(given, Y)
        np.testing.assert_array_equal(found.predict_proba(given), wanted)
    for given in (TABLE, polar, enum):
        assert [c.column for c in classifier().fit(given, Y).categories_] == [1]


def test_splits_are_sets_of_categories():
    """Labels that no order of the words tells are learnt by one split."""
    letters = np.array(list("abcdef"))[RNG.integers(0, 6, N)]
    y = np.isin(letters, ["a", "d", "e"])
    found = classifier(n_estimators=1, n_leaves=2, categorical_features=[0], calibrate=False)
    assert found.fit(letters[:, None].astype(object), y).score(letters[:, None].astype(object), y) == 1.0


def test_codes_are_smoothed_rates_on_their_first_principal_component():
    position = RNG.integers(0, 5, N).astype(float)
    position[:7] = np.nan
    there = np.stack([position == 1, (position == 2) | (RNG.random(N) < 0.3), RNG.random(N) < 0.5], axis=1)
    weight = np.ones(N)
    codes, rows = codes_of(position, 5, there, weight, np.arange(N) % CATEGORY_FOLDS)
    mean = there[7:].mean(axis=0)
    rates = np.array([
        (there[position == c].sum(axis=0) + CATEGORY_SMOOTHING * mean) / ((position == c).sum() + CATEGORY_SMOOTHING) - mean
        for c in range(5)
    ])  # fmt: skip
    counts = np.bincount(position[7:].astype(int))
    axis = np.linalg.svd(np.sqrt(counts)[:, None] * rates)[2][0]
    np.testing.assert_allclose(abs(codes), abs(rates @ axis), atol=1e-12)
    assert np.isnan(rows[:7]).all()
    np.testing.assert_array_equal(rows[7:], codes[position[7:].astype(int)])


def test_rare_categories_do_not_tell_the_label_of_their_own_row():
    """A row alone in its category has the mean of all, whatever its label; categories with enough rows have one code."""
    position = np.concatenate([np.arange(50.0), np.full(SURE_ROWS, 50.0)])
    there = np.stack([np.arange(position.size) % 2 == 0, np.arange(position.size) % 2 == 1], axis=1)
    _, rows = codes_of(position, 51, there, np.ones(position.size), np.arange(position.size) % CATEGORY_FOLDS)
    assert np.unique(rows[:50]).tolist() == [0.0]
    assert np.unique(rows[50:]).size == 1


def test_a_column_of_names_is_not_learnt_by_heart():
    rows, names = RNG.normal(size=(N, 1)), RNG.permutation(N).astype(float)
    y = (rows[:, 0] + RNG.normal(size=N) > 0).astype(int)
    X = np.column_stack([rows, names])
    plain = classifier(n_leaves=4, calibrate=False).fit(rows[:300], y[:300]).score(rows[300:], y[300:])
    found = classifier(n_leaves=4, calibrate=False, categorical_features=[1]).fit(X[:300], y[:300])
    error = np.sqrt(2 * 0.25 / 300)  # of the difference of two shares of 300 rows, at most
    assert found.score(X[300:], y[300:]) > plain - 3 * error
    assert found.feature_importances_[1] < 0.1


def test_what_was_not_there_goes_where_missing_values_go():
    found = classifier().fit(TABLE, Y)
    unseen, blank = TABLE.assign(colour="black"), TABLE.assign(colour=pd.Categorical([None] * N, ["red"]))
    np.testing.assert_array_equal(found.predict_proba(unseen), found.predict_proba(blank))
    assert (found.predict_proba(unseen) != found.predict_proba(TABLE.assign(colour="red"))).any()


def test_a_table_is_answered_by_a_table():
    found = classifier().fit(TABLE, Y)
    shuffled = TABLE.sample(30, random_state=0)
    answers = found.predict_frame(shuffled)
    assert answers.index.equals(shuffled.index)
    assert answers.columns.tolist() == ["predicted", "probability 0", "probability 1", "probability 2"]
    np.testing.assert_array_equal(answers["predicted"], found.predict(shuffled))
    np.testing.assert_array_equal(answers.iloc[:, 1:], found.predict_proba(shuffled))
    assert found.predict_frame(pl.from_pandas(shuffled)).equals(answers.reset_index(drop=True))
    several = classifier(categorical_features=None).fit(
        NUMBER[:, None], np.stack([Y == 0, Y == 1], axis=1).astype(int)
    )
    answers = several.predict_frame(NUMBER[:5, None])
    assert answers.columns.tolist() == ["predicted 0", "predicted 1", "probability 0", "probability 1"]
    np.testing.assert_array_equal(answers[["predicted 0", "predicted 1"]], several.predict(NUMBER[:5, None]))


def test_importances_have_the_names_of_the_columns():
    found = classifier().fit(TABLE, Y)
    assert sorted(found.importances_.index) == sorted(TABLE.columns)
    assert found.importances_.is_monotonic_decreasing
    np.testing.assert_array_equal(found.importances_[TABLE.columns], found.feature_importances_)
    assert sorted(classifier().fit(NUMBER[:, None], Y).importances_.index) == ["x0"]


def test_what_names_rows_and_a_single_class_are_warned_of():
    names = pd.Categorical([f"c{row}" for row in range(N)])
    for column in (names, np.arange(N)[::-1], np.arange(N) * 1.0):
        with pytest.warns(UserWarning, match="column 'who' names the rows"):
            classifier(n_estimators=1, calibrate=False).fit(TABLE.assign(who=column), Y)
    with pytest.warns(UserWarning, match="every row is of the class 7"):
        classifier(n_estimators=1, calibrate=False).fit(TABLE, np.full(N, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(n_estimators=1, calibrate=False).fit(
            TABLE.assign(twice=np.arange(N) // 2, far=np.arange(N) * 3), Y
        )
        classifier(n_estimators=1, calibrate=False).fit(TABLE[:19].assign(few=np.arange(19)), Y[:19])


def test_files_keep_the_categories(tmp_path):
    found = classifier(categorical_features=["colour", "size"], class_weight={0: 2.0, 2: 0.5}).fit(TABLE, Y)
    found.save(tmp_path / "model.abex")
    again = load(tmp_path / "model.abex")
    np.testing.assert_array_equal(again.predict_proba(TABLE), found.predict_proba(TABLE))
    assert again.class_weight == {0: 2.0, 2: 0.5}
    again.set_params(random_state=0).fit(TABLE, Y)
    np.testing.assert_array_equal(again.predict_proba(TABLE), found.predict_proba(TABLE))


def test_going_on_is_going_at_once():
    options = {"categorical_features": ["colour", "size"], "calibrate": False}
    begun = classifier(n_estimators=15, warm_start=True, **options).fit(TABLE, Y)
    begun.set_params(n_estimators=40).fit(TABLE, Y)
    np.testing.assert_allclose(
        begun.decision_function(TABLE),
        classifier(**options).fit(TABLE, Y).decision_function(TABLE),
        atol=1e-8,
    )
    with pytest.raises(UserError, match="categorical columns of the first fit"):
        begun.set_params(categorical_features=["colour"]).fit(TABLE.assign(colour=COLOUR), Y)


def test_words_of_a_file_reach_a_model_of_categories(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = classifier().fit(TABLE, Y)
    found.save("model.abex")
    TABLE.to_csv("rows.csv", index=False)
    main(["boost", "predict", "model.abex", "rows.csv", "--out", "answers.csv"])
    assert pd.read_csv("answers.csv")["predicted"].tolist() == found.predict(TABLE).tolist()


@each(
    ("wanted", "sentence"),
    [
        ("colour", "categorical_features must be"), (5, "categorical_features must be"), ([1.5], "names the column 1.5"),
        (["shape"], "names the column 'shape'"), ([9], "names the column 9"), ([True], "a mask of 1 columns"),
    ],
)  # fmt: skip
def test_columns_that_are_not_there_are_named(wanted, sentence):
    with pytest.raises(UserError, match=sentence):
        classifier(categorical_features=wanted).fit(TABLE, Y)


def test_what_cannot_be_a_category_is_named():
    from scipy.sparse import csr_matrix

    with pytest.raises(UserError, match="column 1 must have words or numbers"):
        classifier(categorical_features=[1]).fit(
            np.array([[1.0, "a"], [2.0, 3.0]] * 20, dtype=object), [0, 1] * 20
        )
    with pytest.raises(UserError, match="column 0 holds words"):
        classifier(categorical_features=[1]).fit(
            np.array([["x", "a"], ["y", "b"]] * 20, dtype=object), [0, 1] * 20
        )
    with pytest.raises(UserError, match="sparse"):
        classifier(categorical_features=[0]).fit(csr_matrix(np.eye(20)), [0, 1] * 10)


# -- class weights --------------------------------------------------------------------------------------


def test_balanced_is_what_scikit_learn_calls_so():
    rows = NUMBER[:, None]
    ours = classifier(class_weight="balanced", calibrate=False).fit(rows, Y)
    same = classifier(calibrate=False).fit(rows, Y, sample_weight=compute_sample_weight("balanced", Y))
    np.testing.assert_allclose(ours.decision_function(rows), same.decision_function(rows), atol=1e-9)


def test_class_weights_multiply_those_of_the_rows():
    rows, weight = NUMBER[:, None], RNG.uniform(0.5, 2.0, N)
    words = np.array(["apple", "lemon", "pear"])[Y]
    ours = classifier(class_weight={"lemon": 4.0}, calibrate=False).fit(rows, words, weight)
    same = classifier(calibrate=False).fit(rows, words, weight * np.where(words == "lemon", 4.0, 1.0))
    np.testing.assert_array_equal(ours.decision_function(rows), same.decision_function(rows))


def test_rare_classes_are_found_when_balanced():
    rows = RNG.normal(size=(2000, 3))
    rare = (rows[:, 0] + RNG.normal(size=2000) > 2.6).astype(int)
    recall = [
        classifier(class_weight=weight, n_leaves=4).fit(rows[:1000], rare[:1000]).predict(rows[1000:])[rare[1000:] == 1].mean()
        for weight in (None, "balanced")
    ]  # fmt: skip
    assert recall[1] > recall[0] + 0.1


@each(
    ("weight", "sentence"),
    [
        ("even", "class_weight must be"),
        ([1, 2], "class_weight must be"),
        ({7: 1.0}, "names the class 7, which y does not have: its classes are 0, 1, 2"),
        ({0: -1.0}, "class_weight of 0"),
        ({0: np.nan}, "class_weight of 0"),
        ({0: 0.0, 1: 0.0, 2: 0.0}, "must leave a positive"),
    ],
)
def test_class_weights_that_cannot_be_are_named(weight, sentence):
    with pytest.raises(UserError, match=sentence):
        classifier(class_weight=weight).fit(NUMBER[:, None], Y)


def test_several_labels_have_no_class_weights():
    with pytest.raises(UserError, match="one class for each row"):
        classifier(class_weight="balanced").fit(NUMBER[:, None], np.stack([Y > 0, Y > 1], axis=1).astype(int))
