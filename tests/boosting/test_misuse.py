"""The classifier in hands that change their mind, or their data, between two calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.exceptions import NotFittedError

from abex import Bernoulli, simulate
from abex.boosting import AdaBoostMHClassifier, load
from abex.boosting import fit as fit_module
from abex.policies.baselines import ArmCount
from abex.policies.policy import Policy
from abex.support.errors import UserError
from tests.each import each

X, Y = load_digits(return_X_y=True)


def classifier(**parameters):
    return AdaBoostMHClassifier(**{"n_estimators": 20, "random_state": 1, "calibrate": False, **parameters})


# -- warm start -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["Uniform", "UCB1"])
@pytest.mark.parametrize("gains", [False, True], ids=["loses columns", "gains columns"])
def test_a_policy_goes_on_with_its_own_arms_when_other_columns_vary(policy, gains):
    fewer = X.copy()
    fewer[:, 20:] = 0.0
    first, then = (fewer, X) if gains else (X, fewer)
    warm = classifier(policy=policy, warm_start=True).fit(first, Y)
    arms = warm.arm_features_
    warm.set_params(n_estimators=60).fit(then, Y)
    assert warm.arm_features_ == arms
    assert warm.pulled_arms_.max() < len(arms)
    used = set(warm.model_.feature[20:].ravel()) - {-1}
    assert used <= {j for arm in arms for j in arm if np.ptp(then[:, j]) > 0}
    assert str(warm.policy_report())


@each("change", [{"policy": "UCB1"}, {"policy": None}, {"arms": "groups"}, {"policy": "ABE(eta=1)"}])
def test_another_policy_or_other_arms_begin_anew(change):
    warm = classifier(warm_start=True).fit(X, Y)
    warm.set_params(n_estimators=30, **change).fit(X, Y)
    assert warm.n_iter_ == 30
    assert warm.pulled_arms_.max() < len(warm.arm_features_)
    assert len(warm.policy_report().names) == len(warm.arm_features_)


def test_a_model_from_a_file_goes_on(tmp_path):
    classifier().fit(X, Y).save(tmp_path / "model.abex")
    warm = load(tmp_path / "model.abex").set_params(warm_start=True, n_estimators=40, random_state=2)
    assert warm.fit(X, Y).n_iter_ == 40
    assert (warm.model_.feature[:20] == load(tmp_path / "model.abex").model_.feature).all()
    assert (warm.model_.feature[20:] >= 0).any(axis=1).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"base": "stump"}, "base must stay 'tree'"), ({"n_leaves": 5}, "n_leaves must stay 60")],
)
def test_another_learner_is_refused(change, message):
    warm = classifier(warm_start=True).fit(X, Y)
    with pytest.raises(UserError, match=message):
        warm.set_params(n_estimators=30, **change).fit(X, Y)


def test_classes_do_not_become_labels_between_two_fits():
    two = (Y > 4).astype(int)
    warm = classifier(warm_start=True).fit(X, two)
    with pytest.raises(UserError, match="labels of the first fit"):
        warm.set_params(n_estimators=30).fit(X, np.column_stack([two, 1 - two]))


def test_a_refit_on_other_rows_learns_them():
    warm = classifier(n_estimators=100, warm_start=True, committee_size=None, n_leaves=20, arms_per_search=2)
    warm.fit(X[:900], Y[:900])
    before = warm.score(X[900:], Y[900:])
    warm.set_params(n_estimators=300).fit(X[900:], Y[900:])
    assert (warm.model_.edge[100:] > 0).all()
    assert warm.score(X[900:], Y[900:]) == 1.0 > before


def test_a_refit_that_stops_early_goes_on_from_the_best():
    warm = classifier(n_estimators=60, warm_start=True, early_stopping=True, n_iter_no_change=30).fit(X, Y)
    for _ in range(3):
        before, size, looks = warm.model_, warm.n_iter_, warm.validation_errors_.size
        warm.set_params(n_estimators=size + 40).fit(X, Y)
        assert warm.validation_errors_.size > looks
        assert warm.n_iter_ >= size
        np.testing.assert_array_equal(warm.model_.feature[:size], before.feature)


def test_what_is_no_callback_is_named():
    with pytest.raises(UserError, match="callbacks must be functions"):
        classifier(callbacks=[3]).fit(X, Y)


# -- time and room --------------------------------------------------------------------------------------


def test_room_that_grows_changes_nothing(monkeypatch):
    whole = classifier(base="stump", n_estimators=2500).fit(X, Y)
    monkeypatch.setattr(fit_module, "FIRST_ROOM", 1)
    grown = classifier(base="stump", n_estimators=2500).fit(X, Y)
    for name, value in whole.model_.arrays().items():
        np.testing.assert_array_equal(grown.model_.arrays()[name], value)
    np.testing.assert_array_equal(grown.pulled_arms_, whole.pulled_arms_)


# -- wrong input ----------------------------------------------------------------------------------------


def test_staged_scores_are_checked_and_know_labels():
    fitted = classifier().fit(X, Y)
    for wrong in ((X, Y[:5]), (X[:5], Y)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            fitted.staged_score(*wrong)
    features, labels = make_multilabel_classification(200, n_classes=3, random_state=0)
    several = classifier(n_estimators=12).fit(features, labels)
    staged = several.staged_score(features, labels, every=4)
    assert staged.shape == (3,)
    assert staged[-1] == several.score(features, labels)


@each("method", ["staged_predict", "staged_decision_function", "staged_predict_proba"])
def test_an_unfitted_classifier_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(classifier(), method)(X)


@each(
    ("parameters", "message"),
    [
        ({"early_stopping": "no"}, "early_stopping must be True or False"),
        ({"calibrate": 1}, "calibrate must be True or False"),
        ({"arms": [[1.7]]}, "arms must be"),
        ({"arms": "nonsense", "policy": None}, "arms must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(UserError, match=message):
        classifier(**parameters).fit(X, Y)


def test_one_row_cannot_be_held_out():
    with pytest.raises(UserError, match="at least two rows"):
        classifier(early_stopping=True).fit(X[:1], Y[:1])


def test_words_and_missing_labels_are_named():
    frame = pd.DataFrame({"weight": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]})
    with pytest.raises(UserError, match="column 'colour' holds words"):
        classifier().fit(frame, [0, 1, 0, 1])
    with pytest.raises(UserError, match="y has missing values"):
        classifier().fit(frame[["weight"]], pd.Series(["a", "b", None, "a"], dtype="string"))


def test_one_callback_may_stand_alone():
    assert classifier(n_estimators=200, callbacks=lambda done, fit: done >= 10).fit(X, Y).n_iter_ == 10


@dataclass(frozen=True)
class Beyond(Policy[ArmCount]):
    """Selects what is not there."""

    def start(self, setting):
        return ArmCount(n_arms=setting.n_arms)

    @staticmethod
    def select(state, t, rng):
        return state.n_arms + 5 if t == 3 else 0

    @staticmethod
    def update(state, t, arm, seen, reward, rng):
        pass


@dataclass(frozen=True)
class Below(Beyond):
    """Selects what is not there, at the other end."""

    @staticmethod
    def select(state, t, rng):
        return -1


@pytest.mark.parametrize("policy", [Beyond(), Below()], ids=str)
def test_an_arm_that_is_not_there_is_no_crash(policy):
    with pytest.raises(UserError, match=r"selected an arm that does not exist: .* from 0 to 60"):
        classifier(policy=policy).fit(X, Y)
    with pytest.raises(UserError, match=r"selected an arm that does not exist: .* from 0 to 2"):
        simulate(policy, Bernoulli([0.1, 0.2, 0.3]), horizon=10, replications=2)


@dataclass(frozen=True)
class Bound(Beyond):
    """Forgets that kernels are static."""

    def select(self, t, rng):
        return 0


def test_a_kernel_that_is_not_static_is_named():
    with pytest.raises(UserError, match=r"Bound\.select must be a static method"):
        simulate(Bound(), Bernoulli([0.1, 0.2]), horizon=10, replications=2)


def test_a_report_names_features_and_full_search_has_nothing_to_choose():
    frame = pd.DataFrame(X, columns=[f"pixel {j}" for j in range(64)])
    fitted = classifier(policy="ABE(eta=10)").fit(frame, Y)
    report = fitted.policy_report()
    assert report.names[0] == f"pixel {fitted.arm_features_[0][0]}"
    assert "most pulled: pixel" in str(report)
    assert "arm 0 of" in classifier(arms="groups").fit(X, Y).policy_report().names[0]
    assert "nothing to choose" in str(classifier(policy=None, n_estimators=2).fit(X, Y).policy_report())
