"""AdaBoost.MH as a scikit-learn classifier whose features are chosen by a bandit policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from abex.boosting.calibration import carried_temperature, fit_temperature, probabilities
from abex.boosting.fitting import Fit, Recipe, feature_groups, first_weights, start_fit
from abex.boosting.model import KINDS, Model, text_of
from abex.boosting.reporting import PolicyReport, policy_report
from abex.boosting.stages import PRODUCT, TREE
from abex.errors import UserError, one_of, real_number, whole_number
from abex.policies.base import Policy, parse_policy
from abex.progress import Progress
from abex.randomness import stream

PRECISIONS = {"auto": None, "single": np.float32, "double": np.float64}
STEPS = 100  # a fit looks up so often: callbacks, validation, time, progress


class AdaBoostMHClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Boosted stumps, trees or products of stumps over many labels, their features chosen by a policy.

    AdaBoost.MH minimises :math:`\sum_{i,l} w_{il}\,e^{-Y_{il} f_l(x_i)}` by a sum
    :math:`f = \sum_t a_t\,v_t\,\varphi_t` of classifiers with votes :math:`v_t\in\{-1,+1\}^L`. Each inner stump asks
    the policy for a feature and pays it :math:`\min(1, -\frac12\ln(1-\gamma^2))`, :math:`\gamma` the stump's
    edge.

    Parameters
    ----------
    n_estimators : int
        Number of classifiers.
    policy : abex policy, str or None
        Who chooses the features: a policy, its text such as ``"ABE(eta=10)"``, or None for full search.
    base : {"tree", "product", "stump"}
        The base learner.
    n_leaves, n_terms, n_cycles : int
        Leaves of a tree; terms of a product and how often each is fitted.
    arms : "features", "groups" or lists of features
        What an arm is: a feature, a run of about sqrt(d) neighbouring features, or the lists given.
    arms_per_round : int
        How many arms the policy names for one inner stump; the best feature among them is taken.
    precision : {"auto", "single", "double"}
        Of the weights; auto takes doubles where they cost nothing.
    faithful : {None, "multiboost"}
        Follow the C++ package MultiBoost step by step: its smoothing, cuts in float32, no tie rule,
        constant features as arms. Stumps only.
    early_stopping : bool
        Stop when the error on ``validation_fraction`` of the rows has not improved for ``n_iter_no_change``
        iterations, and keep the best.
    max_seconds : float or None
        Stop when the fit has lasted so long.
    calibrate : bool
        Fit the temperature of `predict_proba` on rows set aside, by a second, half as long fit on four fifths of
        the rows (with early stopping, on the validation rows and at no cost). Without, the temperature is 1.
    warm_start : bool
        Whether `fit` goes on from the last one when ``n_estimators`` has grown.
    n_jobs : int or None
        Threads for coding the features and for prediction. Results do not depend on it.
    random_state : int, RandomState or None
    callbacks : list of callables
        Each is called as ``callback(done, fit)`` about a hundred times; a true answer stops the fit.
    verbose : int
        Whether to show a progress bar.

    Attributes
    ----------
    classes_, n_classes_ : labels
    model_ : Model
        The classifiers, see `abex.boosting.model.Model`.
    n_iter_ : int
        How many there are.
    validation_errors_ : array
        With early stopping, the error after each hundredth of the iterations.
    feature_importances_ : (d,) array
        Share of the fall of the error bound that came from each feature.

    References
    ----------
    Schapire and Singer 1999, Section 3; Busa-Fekete and Kégl 2010; Kégl and Busa-Fekete 2009 (products).

    Notes
    -----
    Missing values (NaN) are a value of their own: a cut sends them to the side that is better for it. Categorical
    columns are to be coded as numbers first; one column per category is cut best.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostMHClassifier(n_estimators=20, base="stump", random_state=0).fit(X, y).score(X, y)
    0.96
    """

    def __init__(
        self,
        n_estimators: int = 500,
        policy: Policy[Any] | str | None = "Uniform",
        *,
        base: str = "tree",
        n_leaves: int = 20,
        n_terms: int = 3,
        n_cycles: int = 1,
        arms: Any = "features",
        arms_per_round: int = 4,
        precision: str = "auto",
        faithful: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 50,
        max_seconds: float | None = None,
        calibrate: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.policy = policy
        self.base = base
        self.n_leaves = n_leaves
        self.n_terms = n_terms
        self.n_cycles = n_cycles
        self.arms = arms
        self.arms_per_round = arms_per_round
        self.precision = precision
        self.faithful = faithful
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_seconds = max_seconds
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks
        self.verbose = verbose

    # -- learning -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaBoostMHClassifier:
        """Boost. ``y``: classes (n,), or an indicator matrix (n, L) of labels."""
        began = time.monotonic()
        recipe, size = self._recipe()
        again = self.warm_start and hasattr(self, "model_")
        X, y = validate_data(
            self, X, y, accept_sparse=["csc"], dtype="numeric", ensure_all_finite="allow-nan",
            multi_output=True, reset=not again,
        )  # fmt: skip
        signs = self._read_labels(y, again)
        given = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if not given.any():
            raise UserError("sample_weight must not be zero everywhere")
        keep = np.flatnonzero(given > 0)
        X, signs, given = X[keep], signs[keep], given[keep]
        old = self.model_ if again else None
        more = size - (old.size if old is not None else 0)
        if more < 0:
            raise UserError(f"n_estimators must not shrink with warm_start: {size} after {size - more}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        held = self._hold_out(seed, X.shape[0])
        train = np.setdiff1d(np.arange(X.shape[0]), held)
        with self._threads() as mapper:
            start = first_weights(signs[train], given[train])
            if old is not None:
                start = start * np.exp(_capped(-signs[train] * old.scores(X[train], mapper)))
            groups = None if recipe.policy is None else feature_groups(self.arms, X.shape[1])
            state, rng, pulled = self._policy_so_far(seed, again)
            fit = start_fit(
                X[train], signs[train], start, recipe, more,
                groups=groups, rng=rng, mapper=mapper, state=state, pulled=len(pulled[0]),
            )  # fmt: skip
            fit.pulls.arm[: len(pulled[0])], fit.pulls.reward[: len(pulled[0])] = pulled
            best = self._run(fit, more, X[held], signs[held], old, began)
        model = fit.model().first(best)
        self.model_: Model = model if old is None else old.followed_by(model)
        self.n_iter_ = self.model_.size
        self.pulled_arms_ = fit.pulls.arm[: fit.pulls.made[0]].copy()
        self.pulled_rewards_ = fit.pulls.reward[: fit.pulls.made[0]].copy()
        self.arm_features_ = [part.tolist() for part in np.split(fit.arms.features, fit.arms.start[1:-1])]
        self._policy_state, self._rng = fit.state, fit.rng
        self._calibrate(X, signs, given, held, recipe, groups, seed)
        return self

    def _recipe(self) -> tuple[Recipe, int]:
        size = whole_number("n_estimators", self.n_estimators, least=1)
        kind = KINDS.index(one_of("base", self.base, KINDS))
        policy = parse_policy(self.policy) if isinstance(self.policy, str) else self.policy
        if policy is not None and not isinstance(policy, Policy):
            raise UserError(f"policy must be a policy, its text or None, got {policy!r}")
        if policy is not None and policy.needs_graph:
            raise UserError(f"{policy} needs a feedback graph, which boosting does not have")
        precision = PRECISIONS[one_of("precision", self.precision, PRECISIONS)]
        if self.faithful is not None:
            one_of("faithful", self.faithful, ["multiboost"])
            if self.base != "stump":
                raise UserError(f"faithful='multiboost' follows stumps only, got base={self.base!r}")
            precision = np.float64
        recipe = Recipe(
            kind=kind,
            terms=whole_number("n_terms", self.n_terms, least=1, most=64) if kind == PRODUCT else 1,
            cycles=whole_number("n_cycles", self.n_cycles, least=1) if kind == PRODUCT else 1,
            leaves=whole_number("n_leaves", self.n_leaves, least=2, most=4096) if kind == TREE else 1,
            policy=policy,
            per_search=whole_number("arms_per_round", self.arms_per_round, least=1),
            dtype=precision,
            multiboost=self.faithful is not None,
        )
        return recipe, size

    def _read_labels(self, y: Any, again: bool) -> NDArray[np.int8]:
        check_classification_targets(y)
        self.multilabel_ = type_of_target(y) == "multilabel-indicator"
        if self.multilabel_:
            y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
            classes = np.arange(y.shape[1])
            positive = y > 0
        else:
            classes, place = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            positive = place[:, None] == np.arange(classes.size)
        if again and not np.array_equal(classes, self.classes_):
            raise UserError("with warm_start, y must have the labels of the first fit")
        self.classes_ = classes
        self.n_classes_ = classes.size
        return np.where(positive, 1, -1).astype(np.int8)

    def _hold_out(self, seed: int, n: int) -> NDArray[np.int64]:
        if not self.early_stopping:
            return np.zeros(0, np.int64)
        share = real_number("validation_fraction", self.validation_fraction, above=0.0, most=0.9)
        count = min(max(1, round(share * n)), n - 1)
        return np.sort(stream(seed, "validation").permutation(n)[:count])

    def _policy_so_far(self, seed: int, again: bool) -> tuple[Any, np.random.Generator, tuple[Any, Any]]:
        if again:
            return self._policy_state, self._rng, (self.pulled_arms_, self.pulled_rewards_)
        return None, stream(seed, "policy"), (np.zeros(0, np.int32), np.zeros(0, np.float32))

    def _run(
        self, fit: Fit, size: int, X: Any, signs: NDArray[np.int8], old: Model | None, began: float
    ) -> int:
        """Advance the fit to its end; returns how many of its classifiers to keep."""
        patience = whole_number("n_iter_no_change", self.n_iter_no_change, least=1)
        budget = None if self.max_seconds is None else real_number("max_seconds", self.max_seconds, above=0.0)
        step = max(1, size // STEPS)
        best, least = size, np.inf
        errors: list[float] = []
        scores = old.scores(X) if old is not None else np.zeros(signs.shape)
        with Progress("boosting", size, show=bool(self.verbose)) as progress:
            while fit.done < size:
                count = min(step, size - fit.done)
                fit.advance(count)
                progress.advance(count)
                if self.early_stopping:
                    scores += fit.model(fit.done - count).scores(X)
                    errors.append(self._error(scores, signs))
                    if errors[-1] < least:
                        best, least = fit.done, errors[-1]
                    if fit.done - best >= patience:
                        break
                stop = [bool(callback(fit.done, fit)) for callback in self.callbacks or ()]
                if any(stop) or (budget is not None and time.monotonic() - began > budget):
                    break
        self.validation_errors_ = np.array(errors)
        return best if self.early_stopping else fit.done

    def _error(self, scores: NDArray[np.float64], signs: NDArray[np.int8]) -> float:
        if self.multilabel_:
            return float(np.mean((scores > 0) != (signs > 0)))
        return float(np.mean(scores.argmax(axis=1) != signs.argmax(axis=1)))

    def _calibrate(
        self, X: Any, signs: Any, given: Any, held: Any, recipe: Recipe, groups: Any, seed: int
    ) -> None:
        self.temperature_ = 1.0
        n = X.shape[0]
        if self.early_stopping:
            self.temperature_ = fit_temperature(self.model_.scores(X[held]), signs[held], self.multilabel_)
        elif self.calibrate and n >= 50 and self.model_.size >= 4 and signs.shape[1] > 1:
            aside = np.sort(stream(seed, "calibration").permutation(n)[: n // 5])
            train = np.setdiff1d(np.arange(n), aside)
            size = self.model_.size // 2
            with self._threads() as mapper:
                side = start_fit(
                    X[train], signs[train], first_weights(signs[train], given[train]), recipe, size,
                    groups=groups, rng=stream(seed, "calibration", "policy"), mapper=mapper,
                )  # fmt: skip
                side.advance(size)
            model = side.model()
            self.temperature_ = carried_temperature(
                model,
                lambda k: model.first(k).scores(X[aside]),
                signs[aside],
                self.multilabel_,
                float(self.model_.coefficient.sum()),
            )

    # -- answering ------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores f_l(x), (n, L); for two classes their difference, (n,)."""
        return self._shaped(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes (n,), or an indicator matrix (n, L)."""
        return self._decided(self._scores(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Calibrated probabilities, (n, L)."""
        return probabilities(self._scores(X), self.temperature_, self.multilabel_)

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`decision_function` after each classifier."""
        return (self._shaped(scores) for scores in self.model_.staged_scores(self._checked(X)))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """`predict` after each classifier."""
        return (self._decided(scores) for scores in self.model_.staged_scores(self._checked(X)))

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`predict_proba` after each classifier, at the temperature of the whole model."""
        return (
            probabilities(scores, self.temperature_, self.multilabel_)
            for scores in self.model_.staged_scores(self._checked(X))
        )

    def staged_score(self, X: Any, y: Any, every: int = 1) -> NDArray[np.float64]:
        """Accuracy after ``every``, ``2 every``, ... classifiers: compiled, for learning curves of classes."""
        X = self._checked(X)
        place = np.searchsorted(self.classes_, y).clip(max=self.n_classes_ - 1)
        if not np.array_equal(self.classes_[place], y):
            raise UserError("y has a class that was not there when the model was fitted")
        with self._threads() as mapper:
            wrong = self.model_.error_counts(X, place, every=every, mapper=mapper)
        return 1.0 - wrong / X.shape[0]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of the fall of the error bound, -ln sqrt(1 - edge^2), that came from each feature."""
        check_is_fitted(self)
        model = self.model_
        there = model.feature >= 0
        gain = -0.5 * np.log1p(-np.minimum(model.edge, 1 - 1e-7) ** 2) / np.maximum(1, there.sum(axis=1))
        shares = np.broadcast_to(gain[:, None], there.shape)[there]
        importance = np.bincount(model.feature[there], weights=shares, minlength=model.n_features)
        return importance / (importance.sum() or 1.0)

    def policy_report(self, windows: int = 10) -> PolicyReport:
        """How the policy spent its pulls: entropy of the choice, share of each arm, reward over time."""
        check_is_fitted(self)
        return policy_report(self.pulled_arms_, self.pulled_rewards_, len(self.arm_features_), windows)

    def export_text(self) -> str:
        """The model as readable text."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return text_of(self.model_, [str(name) for name in names], [str(name) for name in self.classes_])

    def save(self, path: Any) -> None:
        """Write the fitted model to a file of plain arrays and JSON, see `abex.boosting.load`."""
        from abex.boosting.saving import save

        save(self, path)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse=["csr"], dtype="numeric", ensure_all_finite="allow-nan", reset=False
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        X = self._checked(X)
        with self._threads() as mapper:
            return self.model_.scores(X, mapper)

    def _shaped(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.n_classes_ == 2 and not self.multilabel_:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _decided(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        if self.multilabel_:
            return (scores > 0).astype(np.int64)
        chosen: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return chosen

    @contextmanager
    def _threads(self) -> Iterator[Callable[..., Any]]:
        from joblib import effective_n_jobs

        count = effective_n_jobs(self.n_jobs)
        if count == 1:
            yield map
        else:
            with ThreadPoolExecutor(count) as pool:
                yield pool.map

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _capped(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of weights with the largest at 0."""
    shifted: NDArray[np.float64] = logs - logs.max()
    return shifted
