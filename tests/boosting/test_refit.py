"""A fit replaces what was fitted at its end, or not at all; Ctrl-C is heard while it lasts."""

from __future__ import annotations

import copy
import pickle
import signal
import threading

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from abex.boosting import AdaBoostMHClassifier
from abex.boosting import fit as fit_module
from abex.boosting.examples import Examples
from abex.boosting.fit import Shared, new_fit
from abex.boosting.selection import Candidate
from abex.boosting.settings import Settings
from abex.policies import UCB1, Uniform
from abex.support.errors import UserError
from tests.each import each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 6))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


def classifier(**parameters):
    return AdaBoostMHClassifier(**{"n_estimators": 12, "random_state": 1, "calibrate": False, **parameters})


class FaultError(Exception):
    pass


def fails(done, fit):
    raise FaultError


def interrupts(done, fit):
    raise KeyboardInterrupt


def state_of(estimator):
    return pickle.dumps({name: value for name, value in sorted(vars(estimator).items()) if name[-1] == "_"})


FAILURES = {
    "fewer columns and a callback that fails": (X[:, :2], Y, {"callbacks": fails}, FaultError),
    "fewer columns and Ctrl-C": (X[:, :2], Y, {"callbacks": interrupts}, KeyboardInterrupt),
    "other classes": (X[:, :2], Y + 5, {"callbacks": fails}, FaultError),
    "no weight": (X[:, :2], Y, {"weight": np.zeros(80)}, UserError),
    "labels that are none": (X[:, :2], np.linspace(0, 1, 80), {}, ValueError),
    "arms that are not there": (X[:, :2], Y, {"arms": [[5]]}, UserError),
    "patience that is none": (X[:, :2], Y, {"n_iter_no_change": 0}, UserError),
}


@each("failure", FAILURES)
def test_a_fit_that_fails_leaves_everything_as_it_was(failure):
    rows, labels, change, error = FAILURES[failure]
    change = dict(change)
    weight = change.pop("weight", None)
    fitted = classifier().fit(X, Y)
    before, scores = state_of(fitted), fitted.decision_function(X)
    fitted.set_params(**change)
    with pytest.raises(error):
        fitted.fit(rows, labels, weight)
    assert state_of(fitted) == before
    np.testing.assert_array_equal(fitted.decision_function(X), scores)
    with pytest.raises(ValueError, match="2 features"):
        fitted.predict(X[:, :2])
    new = classifier(**change)
    with pytest.raises(error):
        new.fit(rows, labels, weight)
    for method in ("predict", "predict_proba", "decision_function", "staged_predict"):
        with pytest.raises(NotFittedError):
            getattr(new, method)(rows)
    for ask in (
        new.policy_report,
        new.export_text,
        lambda: new.save("nowhere"),
        lambda: new.feature_importances_,
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_an_interruption_while_calibrating_leaves_everything_as_it_was(monkeypatch):
    fitted = classifier(calibrate=True).fit(X, Y)
    before = state_of(fitted)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("abex.boosting.calibration.fit_exponent", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:, :2], Y)
    assert state_of(fitted) == before


def test_a_warm_start_that_fails_does_not_move_the_policy():
    whole = classifier(policy=UCB1(), warm_start=True).fit(X, Y)
    fitted = copy.deepcopy(whole)
    fitted.set_params(n_estimators=30, callbacks=fails)
    with pytest.raises(FaultError):
        fitted.fit(X, Y)
    fitted.set_params(callbacks=None).fit(X, Y)
    whole.set_params(n_estimators=30).fit(X, Y)
    np.testing.assert_array_equal(fitted.pulled_arms_, whole.pulled_arms_)
    np.testing.assert_array_equal(fitted.decision_function(X), whole.decision_function(X))


def test_names_of_columns_go_with_the_fit_that_had_them():
    pd = pytest.importorskip("pandas")
    fitted = classifier().fit(pd.DataFrame(X, columns=list("abcdef")), Y)
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    fitted.fit(X, Y)
    assert not hasattr(fitted, "feature_names_in_")


@each("base", ["stump", "tree", "product"])
def test_a_model_does_not_read_rows_of_another_width(base):
    fitted = classifier(base=base).fit(X, Y)
    fitted.n_features_in_ = 2  # whoever changes it
    for method in ("predict", "predict_proba", "staged_decision_function"):
        with pytest.raises(UserError, match="needs 6 columns"):
            getattr(fitted, method)(X[:, :2])
    with pytest.raises(UserError, match="needs 6 columns"):
        fitted.staged_score(X[:, :2], Y)
    with pytest.raises(UserError, match="label must have"):
        fitted.model_.errors(X, np.full(80, 7), [1])
    with pytest.raises(UserError, match="ends must be"):
        fitted.model_.errors(X, Y, [13])


# -- Ctrl-C ---------------------------------------------------------------------------------------------


def stump_fit(size):
    signs = np.where(Y[:, None] == [0, 1], 1, -1).astype(np.int8)
    examples = Examples(X, signs, np.ones(80))
    return new_fit(examples, Settings(), Candidate(Uniform()), size, Shared())


def test_a_fit_looks_up_by_time_whatever_an_iteration_takes(monkeypatch):
    """By a clock of its own, on which an iteration takes as long as is said."""
    for pause in (1e-5, 3e-3, 0.5, 40.0):
        now = [0.0]
        pieces = []
        monkeypatch.setattr(fit_module, "FIRST_ROOM", 10**6)
        fit = stump_fit(10**6)

        def advance(count, certain, pause=pause, now=now, pieces=pieces):
            now[0] += pause * count
            pieces.append(count)
            return count

        monkeypatch.setattr(fit, "_advance_alone", advance)
        monkeypatch.setattr(fit, "_make_room", lambda needed: None)
        monkeypatch.setattr(fit_module.time, "monotonic", lambda now=now: now[0])
        fit.advance(10**5)
        assert sum(pieces) == fit.done == 10**5
        assert max(pieces) * pause <= max(pause, fit_module.LOOK_UP)
        assert len(pieces) <= 10**5 * pause / fit_module.LOOK_UP * 2 + 10 or max(pieces) == 1
        monkeypatch.undo()


def test_pieces_change_nothing(monkeypatch):
    whole = stump_fit(300)
    monkeypatch.setattr(fit_module, "LOOK_UP", 1e9)
    whole.advance(300)
    monkeypatch.setattr(fit_module, "LOOK_UP", 0.0)
    pieces = stump_fit(300)
    pieces.advance(300)
    assert pieces.pace == 1
    for name, array in whole.model().arrays().items():
        np.testing.assert_array_equal(pieces.model().arrays()[name], array)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need it")
def test_an_alarm_ends_a_fit_of_many_iterations_at_once():
    """A hundredth of the iterations would take a minute or more: the signal must be heard before that."""
    fitted = classifier(base="stump", n_estimators=400).fit(X, Y)
    before = state_of(fitted)
    done = []
    fitted.set_params(n_estimators=10**8, callbacks=lambda count, fit: done.append(count))

    def ring(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X, Y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    assert done == []
    assert state_of(fitted) == before
