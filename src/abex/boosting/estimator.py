"""AdaBoost.MH as a scikit-learn classifier whose features are chosen by a bandit policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.calibration import UNCALIBRATED, Calibration, HeldOut, calibrate, probabilities
from abex.boosting.categories import categorical_columns, positions_of, with_codes, with_known_codes
from abex.boosting.examples import (
    Examples,
    check_readable,
    check_sparse,
    read_labels,
    read_weights,
    warn_of_identifiers,
    weighted_by_class,
)
from abex.boosting.fit import FittedPolicy, Shared, check_unchanged, new_fit, short_fits
from abex.boosting.forest import Forest, forest_of
from abex.boosting.learners import Model, committee_begins
from abex.boosting.loop import Pulls, feature_groups
from abex.boosting.model_text import text_of
from abex.boosting.policy_report import PolicyReport, policy_report
from abex.boosting.selection import (
    committee_for,
    first_candidate,
    n_learners_for,
    select,
)
from abex.boosting.settings import checked_settings
from abex.boosting.shap_values import ShapValues, shap_values, trees_for_shap
from abex.boosting.stopping import Stop, ValidationRows, hold_out
from abex.policies.policy import Policy
from abex.support.errors import UserError, whole_number
from abex.support.extras import needed

with needed("boosting"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import (
        check_array,
        check_consistent_length,
        check_is_fitted,
        check_X_y,
        validate_data,
    )


class AdaBoostMHClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Boosted stumps, trees or products of stumps over many labels, their features chosen by a policy.

    AdaBoost.MH minimises :math:`\sum_{i,l} w_{il}\,e^{-Y_{il} f_l(x_i)}` by a sum
    :math:`f = \sum_t a_t\,v_t\,\varphi_t` of classifiers with votes :math:`v_t\in\{-1,+1\}^L`. Each inner stump asks
    the policy for a feature and pays it for its *gain*, :math:`\min(1, -\frac12\ln(1-\gamma^2))` with :math:`\gamma` the edge of
    its best stump. In trees `Screening` is paid for :math:`g/(g+g')` instead, what the feature adds to the edge over the sum of
    this and what its values shuffled among the rows would add, in the first tree of every committee.

    Parameters
    ----------
    n_estimators : "auto" or int
        Number of classifiers. "auto" is 512 trees (256 of more than 500,000 rows), or 1,000 stumps or products.
    policy : "auto", abex policy, str or None
        Who chooses the features: a policy, its text such as ``"ABE(eta=0.1)"``, or None for full search. "auto" is uniform
        choice, for trees of 20 features or more ``Screening()`` where short trials say that it pays (`abex.boosting.selection`).
    base : {"tree", "product", "stump"}
        The base learner.
    n_leaves, n_terms : int
        Leaves of a tree; terms of a product.
    arms : "features", "groups" or lists of features
        What an arm is: a feature, a run of about sqrt(d) neighbouring features, or the lists given. Full search has no use
        for them.
    arms_per_search : "auto" or int
        How many arms the policy names for one inner stump; the best feature among them is taken. "auto" is 2 for stumps and
        products; for trees the root of the number of arms up to 5, or as many more as `abex.boosting.selection` finds.
    committee_size : "auto", int or None
        Weak learners of a committee: after so many, boosting starts anew from other examples (MultiBoosting,
        `abex.boosting.fit.Committees`), which makes it robust to wrong labels. "auto" is one for 100 rows, from 16 to 128, for
        trees. None has one committee, AdaBoost.MH as published; so does "auto" for stumps and products.
    compatible_with : {None, "multiboost"}
        Follow the C++ package MultiBoost step by step: its smoothing, thresholds in float32, no tie rule,
        constant features as arms. Stumps only.
    early_stopping : bool
        Stop when the logarithmic loss on ``validation_fraction`` of the rows has not improved for ``n_iter_no_change``
        iterations; it is averaged over half as many, and does not judge fits that are shorter. With fewer than 50 such rows those
        out of the bag of short committees judge too; with a thousand or more it is the error that counts, for fits of any length,
        and between equal errors the loss.
        As many classifiers as were best are then fitted to all rows, unless with ``warm_start``, or where a callback has ended
        the fit.
    calibrate : bool
        Fit the temperature of `predict_proba` on rows set aside. A dozen committees of trees have them at no cost, for a fifth
        of them has not seen a row, and so have fewer committees of many rows. Else a second, half as long fit on four fifths of
        the rows is made; of fewer than 5,000 rows further fifths are set aside in turn, of fewer than 1,000 all. A thousand
        validation rows of early stopping serve as they are. Without, the temperature is 1, as if a thousand rows had said so.
    class_weight : dict, "balanced" or None
        Factors of the weights of the rows of each class, 1 for classes that are not named; "balanced": all weigh the same.
    categorical_features : "from_dtype", list, mask or None
        Columns of categories, by position, by name or as a mask; "from_dtype": the columns of a pandas or polars table whose
        type is category. See `abex.boosting.categories`.
    warm_start : bool
        Whether `fit` goes on from the last one when ``n_estimators`` has grown. The policy goes on too, with the arms it had,
        unless it or ``arms`` has changed.
    n_jobs : int or None
        Threads for coding the features, for full search on large data, and for prediction. Results do not depend on it.
    random_state : int, RandomState or None
    callbacks : list of callables
        Each is called as ``callback(done, fit)`` about a hundred times; a true answer stops the fit. One may stand alone.
    verbose : int
        Whether to show a progress bar.

    Attributes
    ----------
    classes_, n_classes_ : labels
        In ascending order, as the columns of `predict_proba`.
    n_features_in_, feature_names_in_ : int, array
        The columns, and their names where ``X`` was a table; `predict` wants them under the same names in the same order.
    model_ : Model
        The classifiers, see `abex.boosting.learners.Model`.
    n_iter_ : int
        How many there are.
    policy_, arms_per_search_, committee_size_ : Policy or None, int, int or None
        Who chose the features, how many arms a search looked at, and how large a committee was.
    validation_errors_ : array
        With early stopping, the error on the validation rows after each hundredth of the iterations.
    inverse_temperature_, calibration_rows_ : float, int
        What `predict_proba` multiplies scores by, see `abex.boosting.calibration`, and the number of rows it rests on.
    categories_ : tuple of Category
        The categorical columns: what categories they have, and their codes.
    feature_importances_, importances_ : (d,) array, pandas Series
        Share of the fall of the error bound that came from the splits of each feature; the same by name, the largest first.

    References
    ----------
    Schapire and Singer 1999, Section 3; Busa-Fekete and Kégl 2010; Kégl and Busa-Fekete 2009 (products).

    Notes
    -----
    The defaults of trees (512 of 60 leaves, 5 features a split, committees) were chosen on training rows of nine tables
    by a rule fixed beforehand: the least error at 0, 10 and 20 % of wrong labels among settings that lose at most 3 % on clean
    ones (``benchmarks/boosting_robust.py``). AdaBoost.MH as published, with the defaults chosen for it
    (``benchmarks/boosting_defaults.py``), is ``n_estimators=1000, n_leaves=20, arms_per_search=2, committee_size=None``.
    With fewer than 25 features a split looks at fewer than five: errors on the same rows do not tell the two apart, probabilities
    are better.

    Missing values (NaN) are a value of their own: a split sends them to the side that is better for it. A category that was not
    there in the fit goes where missing values go.

    `predict` and `predict_proba` answer with arrays, as scikit-learn's classifiers do and its tools expect, `predict_frame` with
    a table. A column that names rows, and a single class, make a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> fitted = AdaBoostMHClassifier(n_estimators=20, base="stump", random_state=0).fit(X, y)
    >>> bool(fitted.score(X, y) > 0.95)
    True
    """

    model_: Model
    classes_: NDArray[Any]

    def __init__(
        self,
        n_estimators: int | str = "auto",
        policy: Policy[Any] | str | None = "auto",
        *,
        base: str = "tree",
        n_leaves: int = 60,
        n_terms: int = 3,
        arms: Any = "features",
        arms_per_search: int | str = "auto",
        committee_size: int | str | None = "auto",
        compatible_with: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 100,
        calibrate: bool = True,
        class_weight: Any = None,
        categorical_features: Any = "from_dtype",
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
        self.arms = arms
        self.arms_per_search = arms_per_search
        self.committee_size = committee_size
        self.compatible_with = compatible_with
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks
        self.verbose = verbose

    # -- learning -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaBoostMHClassifier:
        """Boost. ``y``: classes (n,), or an indicator matrix (n, L) of labels.

        A fit that is refused, fails or is interrupted leaves the classifier as it was.
        """
        settings = checked_settings(self)
        old: Model | None = self.model_ if settings.warm_start and hasattr(self, "model_") else None
        if old is not None:
            check_unchanged(settings, old)
        data, labels = self._read(X, y, sample_weight, old)
        rows, multilabel = data.weight.size, labels["multilabel_"]
        before = 0 if old is None else old.n_learners
        n_learners = n_learners_for(settings, rows) - before
        if n_learners < 0:
            raise UserError(
                f"n_estimators must not shrink with warm_start: {n_learners + before} after {before}"
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        held = np.zeros(0, np.int64)
        if settings.early_stopping:
            held = hold_out(settings.validation_fraction, seed, rows)
        train = data.rows(np.setdiff1d(np.arange(rows), held))
        groups = feature_groups(self.arms, data.X.shape[1])
        asked = (*settings.choice, repr(self.arms))
        played: FittedPolicy | None = getattr(self, "_played_", None) if old is not None else None
        goes_on = played is not None and played.asked == asked
        with self._threads() as mapper:
            if played is not None and goes_on:
                groups = self.arm_features_
                played = copy.deepcopy(played)  # the fit writes into it, and may not come to its end
                candidate, shared = played.candidate, Shared(groups, seed, mapper)
            else:
                played, shared = None, Shared(groups, seed, mapper)
                arms = data.X.shape[1] if groups is None else len(groups)
                committee = committee_for(settings, rows) if old is None else self.committee_size_
                candidate = first_candidate(settings, arms, committee)
                fits = partial(short_fits, settings, shared)
                candidate = select(settings, candidate, arms, train, fits, shared, multilabel)
            fit = new_fit(train, settings, candidate, n_learners, shared, old=old, played=played)
            stop = None
            if settings.may_stop:
                validation = ValidationRows(data, held, settings, candidate, old)
                errors = self.validation_errors_ if old is not None and settings.early_stopping else ()
                stop = Stop(settings, validation, n_learners, before, errors, multilabel)
            fit.run(stop, show=None if self.verbose else False)
            kept = fit.done if stop is None else stop.kept(fit)
            found = fit.model().part(0, kept)
            model = stopped = found if old is None else old.followed_by(found)
            if stop is not None and settings.refits and not stop.called_off:
                fit = fit.again(data, kept)
                model = fit.model()
            how = UNCALIBRATED
            if settings.calibrate:
                how = calibrate(model, HeldOut(held, stopped, before), data, fit, multilabel)
        parts = np.split(fit.arms.features, fit.arms.start[1:-1])
        arm, reward = (made[: fit.pulls.made].copy() for made in (fit.pulls.arm, fit.pulls.reward))
        pulls = Pulls(arm=arm, reward=reward, made=fit.pulls.made)
        self._replace_fitted(
            **labels,
            n_features_in_=model.n_features,
            model_=model,
            n_iter_=model.n_learners,
            arms_per_search_=candidate.per_search,
            policy_=candidate.policy,
            committee_size_=candidate.committee,
            inverse_temperature_=how.temperature,
            calibration_rows_=how.rows,
            pulled_arms_=arm,
            pulled_rewards_=reward,
            arm_features_=groups if goes_on else [part.tolist() for part in parts],
            validation_errors_=np.array([] if stop is None else stop.errors),
            _played_=FittedPolicy(asked, candidate._replace(practice=None), fit.state, fit.rng, pulls),
        )
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any, old: Model | None) -> tuple[Examples, dict[str, Any]]:
        """The examples of a fit, checked; and what is known of their labels and columns, as fitted attributes."""
        check_sparse("X", X)
        columns = categorical_columns(X, self.categorical_features)
        known = self.categories_ if old is not None else None
        if known is not None and columns != [category.column for category in known]:
            raise UserError("with warm_start, X must have the categorical columns of the first fit")
        notes = copy.copy(self)  # scikit-learn notes the columns on the estimator it is given
        validate_data(notes, X, y, reset=old is None, skip_check_array=True)
        table = X
        X, levels = positions_of(X, columns, known)
        check_readable(X, y)
        warn_of_identifiers(table)
        X, y = check_X_y(
            X, y, accept_sparse=["csc"], ensure_all_finite="allow-nan", multi_output=True, estimator=self
        )
        classes, signs, multilabel = read_labels(y)
        if old is not None and (multilabel != self.multilabel_ or not np.array_equal(classes, self.classes_)):
            raise UserError("with warm_start, y must have the labels of the first fit")
        given = read_weights(sample_weight, X)
        given = weighted_by_class(given, self.class_weight, classes, signs, multilabel)
        examples = Examples(X, signs, given).rows(np.flatnonzero(given > 0))
        data, categories = with_codes(examples, columns, levels, known)
        fitted = {
            "classes_": classes,
            "n_classes_": classes.size,
            "multilabel_": multilabel,
            "categories_": categories,
        }
        names = getattr(notes, "feature_names_in_", None)
        return data, fitted if names is None else {**fitted, "feature_names_in_": names}

    def _replace_fitted(self, **fitted: Any) -> None:
        """Forget the last fit and take this one, in one assignment: whoever looks sees the one or the other."""
        parameters = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = {**parameters, **fitted}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    # -- answering ------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores f_l(x), (n, L); for two classes their difference, (n,)."""
        return self._shaped(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes (n,), or an indicator matrix (n, L)."""
        return self._decided(self._scores(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Calibrated probabilities, (n, L), none of them more certain than the ``calibration_rows_`` allow."""
        return self._chances(self._scores(X))

    def predict_frame(self, X: Any) -> Any:
        """Answers as a pandas data frame, with the index of ``X`` if it has one: ``predicted``, ``probability c`` of each class.

        Examples
        --------
        >>> import pandas as pd
        >>> X, y = pd.DataFrame({"size": [1.0, 2.0, 8.0, 9.0]}, index=list("abcd")), ["small", "small", "large", "large"]
        >>> found = AdaBoostMHClassifier(n_estimators=10, base="stump", random_state=0).fit(X, y).predict_frame(X[1:3])
        >>> found["predicted"].to_dict(), list(found.columns)
        ({'b': 'small', 'c': 'large'}, ['predicted', 'probability large', 'probability small'])
        """
        with needed("data"):
            import pandas as pd

        scores = self._scores(X)
        index = X.index if hasattr(X, "iloc") else None
        names = [f"predicted {label}" for label in self.classes_] if self.multilabel_ else ["predicted"]
        chances = [f"probability {name}" for name in self.classes_]
        decided = pd.DataFrame(self._decided(scores), index, names)
        return decided.join(pd.DataFrame(self._chances(scores), index, chances))

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`decision_function` after each classifier."""
        return map(self._shaped, self._staged(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """`predict` after each classifier."""
        return map(self._decided, self._staged(X))

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`predict_proba` after each classifier, at the temperature of the whole model."""
        return map(self._chances, self._staged(X))

    def staged_score(self, X: Any, y: Any, every: int = 1) -> NDArray[np.float64]:
        """Accuracy after ``every``, ``2 every``, ... classifiers, as `score` has it; compiled for classes."""
        X = self.coded(X)
        every = whole_number("every", every, least=1)
        check_sparse("y", y)
        check_consistent_length(X, y)
        if self.multilabel_:
            stages = map(self._decided, self.model_.staged_scores(X))
            return np.array([np.mean((stage == y).all(axis=1)) for stage in stages][every - 1 :: every])
        place = np.searchsorted(self.classes_, y).clip(max=self.n_classes_ - 1)
        if not np.array_equal(self.classes_[place], y):
            raise UserError("y has a class that was not there when the model was fitted")
        with self._threads() as mapper:
            ends = np.arange(every, self.n_iter_ + 1, every)
            wrong = sum(part.sum(axis=1) for part in self.model_.errors(X, place, ends, mapper))
        accuracy: NDArray[np.float64] = 1.0 - wrong / X.shape[0]
        return accuracy

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        r"""Share of the fall of the error bound that came from the splits of each feature, (d,).

        The training error is at most a constant times :math:`\prod_t\sqrt{1-\gamma_t^2}`. Classifier t takes its share
        of the fall of this product; its splits divide it in proportion to their gains: what the split of a leaf
        added to the edge of its tree, or a term to that of its product. A stump has one split. Every committee has a
        product of its own.
        """
        check_is_fitted(self)
        size = self.committee_size_
        return self.model_.importances(None if size is None else committee_begins(self.model_.edge, size))

    @property
    def importances_(self) -> Any:
        """`feature_importances_` under the names of the features, a pandas Series, the largest first."""
        with needed("data"):
            import pandas as pd

        share = pd.Series(self.feature_importances_, self._feature_names(), name="importance")
        return share.sort_values(ascending=False, kind="stable")

    def policy_report(self, windows: int = 10) -> PolicyReport:
        """How the policy spent its pulls: entropy of the choice, share of each arm, reward over time."""
        check_is_fitted(self)
        features = self._feature_names()
        names = [
            features[arm[0]] if len(arm) == 1 else f"arm {k} of {len(arm)} features"
            for k, arm in enumerate(self.arm_features_)
        ]
        return policy_report(self.pulled_arms_, self.pulled_rewards_, len(names), windows, names)

    def shap_values(self, X: Any, background: Any) -> ShapValues:
        """Shapley values of the features: how far each moved the scores of a row from their mean over a background.

        Exact for stumps, products and trees; unknown features are those of background rows (`abex.boosting.shap_values`).
        Path-dependent values come from the package shap, see `to_shap`.

        Parameters
        ----------
        X : (n, d) rows to explain
        background : (m, d) rows
            What is usual: some rows of the fit. A model does not keep rows. Time grows with their number.

        Returns
        -------
        ShapValues
            ``values`` (n, d, L) and ``base`` (L,), for two classes (n, d) and a number: ``values.sum(axis=1) + base``
            is `decision_function`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> fitted = AdaBoostMHClassifier(n_estimators=20, random_state=0).fit(X, y)
        >>> values, base = fitted.shap_values(X[:5], background=X)
        >>> bool(abs(values.sum(axis=1) + base - fitted.decision_function(X[:5])).max() < 1e-9)
        True
        """
        X, background = self.coded(X), self.coded(background)
        with self._threads() as mapper:
            values, base = shap_values(forest_of(self.model_), X, background, mapper)
        if self.n_classes_ == 2 and not self.multilabel_:
            return ShapValues(values[:, :, 1] - values[:, :, 0], float(base[1] - base[0]))
        return ShapValues(values, base)

    def to_shap(self, background: Any) -> dict[str, Any]:
        """The trees as ``shap.TreeExplainer`` takes them, one output for each label; ``background`` rows weigh the branches.

        It explains rows as `coded` gives them.
        """
        return trees_for_shap(forest_of(self.model_), self.coded(background))

    def coded(self, X: Any) -> Any:
        """Rows as the model reads them: numbers, in the place of a category its code."""
        check_is_fitted(self)
        check_sparse("X", X)
        if not self.categories_:
            return validate_data(self, X, accept_sparse=["csr"], ensure_all_finite="allow-nan", reset=False)
        validate_data(self, X, reset=False, skip_check_array=True)
        return check_array(
            with_known_codes(X, self.categories_), ensure_all_finite="allow-nan", estimator=self
        )

    def to_onnx(self) -> Any:
        """The model as an `onnx.ModelProto`: input ``X`` (n, d) of doubles; outputs ``label``, ``probabilities``, ``scores``.

        Probabilities are calibrated. A category is given by its position in ``categories_``. Needs the extra ``export``.
        """
        from abex.boosting.onnx_export import onnx_model

        check_is_fitted(self)
        return onnx_model(self)

    @property
    def forest_(self) -> Forest:
        """The classifiers as binary trees in plain arrays, for programs that ONNX does not reach (docs/export_model.md)."""
        check_is_fitted(self)
        return forest_of(self.model_)

    def export_text(self) -> str:
        """The model as readable text."""
        check_is_fitted(self)
        return text_of(
            self.model_, self._feature_names(), [str(name) for name in self.classes_], self.categories_
        )

    def save(self, path: Any) -> None:
        """Write the fitted model to a file of plain arrays, see `abex.boosting.load`."""
        from abex.boosting.model_file import save

        save(self, path)

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return [str(name) for name in names]

    def _staged(self, X: Any) -> Iterator[NDArray[np.float64]]:
        X = self.coded(X)
        return self.model_.staged_scores(X)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        X = self.coded(X)
        with self._threads() as mapper:
            return self.model_.scores(X, mapper)

    def _chances(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        how = Calibration(self.inverse_temperature_, self.calibration_rows_)
        return probabilities(scores, self.model_.total, how, self.multilabel_)

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
        with needed("boosting"):
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
