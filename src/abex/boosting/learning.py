"""How the classifier's parameters become a fit: recipe, labels, the run with its stops, the temperature."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.calibration import carried_temperature, fit_temperature
from abex.boosting.fitting import Fit, Recipe, first_weights, start_fit
from abex.boosting.model import KINDS, PRODUCT, TREE, Model
from abex.errors import UserError, one_of, real_number, shown, true_or_false, whole_number
from abex.policies.base import Policy, parse_policy
from abex.progress import Progress
from abex.randomness import stream

PRECISIONS = {"auto": None, "single": np.float32, "double": np.float64}
STEPS = 100  # a fit looks up so often: callbacks, validation, time, progress
LEAST_ROWS = 50  # fewer are not set aside for a temperature
CALIBRATION = 0.45  # time of the second fit, half as long on four fifths of the rows, over that of the first


class Examples(NamedTuple):
    """Features, labels as signs (n, L), and the weight of each example."""

    X: Any
    signs: NDArray[np.int8]
    weight: NDArray[np.float64]

    def rows(self, chosen: NDArray[np.int64]) -> Examples:
        """Some of them."""
        return Examples(self.X[chosen], self.signs[chosen], self.weight[chosen])


def recipe_of(estimator: Any) -> tuple[Recipe, int]:
    """What the parameters ask for, checked."""
    for name in ("early_stopping", "calibrate", "warm_start"):
        true_or_false(name, getattr(estimator, name))
    size = whole_number("n_estimators", estimator.n_estimators, least=1)
    kind = KINDS.index(one_of("base", estimator.base, KINDS))
    policy = estimator.policy
    policy = parse_policy(policy) if isinstance(policy, str) else policy
    if policy is not None and not isinstance(policy, Policy):
        raise UserError(f"policy must be a policy, its text or None, got {policy!r}")
    if policy is not None and policy.needs_graph:
        raise UserError(f"{policy} needs a feedback graph, which boosting does not have")
    precision = PRECISIONS[one_of("precision", estimator.precision, PRECISIONS)]
    if estimator.faithful is not None:
        one_of("faithful", estimator.faithful, ["multiboost"])
        if estimator.base != "stump":
            raise UserError(f"faithful='multiboost' follows stumps only, got base={estimator.base!r}")
        precision = np.float64
    recipe = Recipe(
        kind=kind,
        terms=whole_number("n_terms", estimator.n_terms, least=1, most=64) if kind == PRODUCT else 1,
        cycles=whole_number("n_cycles", estimator.n_cycles, least=1) if kind == PRODUCT else 1,
        leaves=whole_number("n_leaves", estimator.n_leaves, least=2, most=4096) if kind == TREE else 1,
        policy=policy,
        per_search=whole_number("arms_per_round", estimator.arms_per_round, least=1),
        dtype=precision,
        multiboost=estimator.faithful is not None,
    )
    return recipe, size


class Played(NamedTuple):
    """A policy as a fit has left it, and what its arms were."""

    policy: Policy[Any] | None
    arms: str
    state: Any
    rng: np.random.Generator


def goes_on(estimator: Any, recipe: Recipe) -> bool:
    """Whether the policy of the last fit can go on: not if it or its arms are others now, or the model comes from a file."""
    played = getattr(estimator, "_played", None)
    return bool(
        estimator.warm_start
        and played is not None
        and (played.policy, played.arms) == (recipe.policy, repr(estimator.arms))
    )


def check_unchanged(recipe: Recipe, old: Model) -> None:
    """With warm_start, refuse another learner than the first one."""
    first = {"base": old.kind, "n_leaves": old.votes.shape[1], "n_terms": old.feature.shape[1]}
    now = {"base": recipe.kind, "n_leaves": recipe.leaves, "n_terms": recipe.terms}
    names = [
        "base",
        *(["n_leaves"] if recipe.kind == TREE else []),
        *(["n_terms"] if recipe.kind == PRODUCT else []),
    ]
    for name in names:
        if first[name] != now[name]:
            was, wanted = ((KINDS[k[name]] if name == "base" else k[name]) for k in (first, now))
            raise UserError(
                f"with warm_start, {name} must stay {was!r}, not become {wanted!r}: set warm_start=False to fit anew"
            )


def check_readable(X: Any, y: Any) -> None:
    """Name what scikit-learn would not: labels that are missing, columns of words."""
    if hasattr(y, "isna") and np.any(y.isna()):
        raise UserError("y has missing values: leave those rows out")
    for name in X.columns if hasattr(X, "dtypes") and hasattr(X, "columns") else ():
        try:
            np.asarray(X[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise UserError(
                f"column {name!r} holds words: code it as numbers, best as one column of 0 and 1 for each category"
            ) from None


def read_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.int8], bool]:
    """The labels, their signs (n, L), and whether an example may have several."""
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import column_or_1d

    check_classification_targets(y)
    multilabel = type_of_target(y) == "multilabel-indicator"
    if multilabel:
        y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        classes = np.arange(y.shape[1])
        positive = y > 0
    else:
        classes, place = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        positive = place[:, None] == np.arange(classes.size)
    return classes, np.where(positive, 1, -1).astype(np.int8), multilabel


def hold_out(estimator: Any, seed: int, n: int) -> NDArray[np.int64]:
    """Rows for early stopping, none without it."""
    if not estimator.early_stopping:
        return np.zeros(0, np.int64)
    if n < 2:
        raise UserError("early_stopping needs at least two rows, one of them to stop by")
    share = real_number("validation_fraction", estimator.validation_fraction, above=0.0, most=0.9)
    count = min(max(1, round(share * n)), n - 1)
    return np.sort(stream(seed, "validation").permutation(n)[:count])


def begin(
    estimator: Any,
    data: Examples,
    recipe: Recipe,
    size: int,
    groups: Any,
    old: Model | None,
    seed: int,
    mapper: Any,
) -> Fit:
    """A fit ready to run; with ``old``, one that goes on from there, policy and all."""
    start = first_weights(data.signs, data.weight)
    if old is not None:
        if size < old.size:
            raise UserError(f"n_estimators must not shrink with warm_start: {size} after {old.size}")
        logs = -data.signs * old.scores(data.X, mapper)
        start = start * np.exp(logs - logs.max())
        size -= old.size
    rng, state, pulled = stream(seed, "policy"), None, 0
    if goes_on(estimator, recipe):
        rng, state, pulled = estimator._played.rng, estimator._played.state, estimator.pulled_arms_.size
    fit = start_fit(
        data.X,
        data.signs,
        start,
        recipe,
        size,
        groups=groups,
        rng=rng,
        mapper=mapper,
        state=state,
        pulled=pulled,
    )
    if pulled:
        fit.pulls.arm[:pulled], fit.pulls.reward[:pulled] = estimator.pulled_arms_, estimator.pulled_rewards_
    return fit


def run(estimator: Any, fit: Fit, held: Examples, old: Model | None, began: float) -> int:
    """Advance the fit to its end; returns how many of its classifiers to keep."""
    patience = whole_number("n_iter_no_change", estimator.n_iter_no_change, least=1)
    limit = estimator.max_seconds
    budget = None if limit is None else real_number("max_seconds", limit, above=0.0)
    calibration = CALIBRATION if estimator.calibrate and not estimator.early_stopping else 0.0
    callbacks = estimator.callbacks or ()
    callbacks = [callbacks] if callable(callbacks) else list(callbacks)
    if not all(map(callable, callbacks)):
        raise UserError(f"callbacks must be functions of (done, fit), got {shown(callbacks)}")
    size = fit.size
    step = max(1, size // STEPS) if budget is None else 1
    best, least = size, np.inf
    errors: list[float] = []
    scores = np.zeros(held.signs.shape)
    before = 0 if old is None else old.size
    if old is not None and held.signs.size:
        scores = old.scores(held.X)
        best, least = 0, error_of(scores, held.signs, estimator.multilabel_)
        errors = estimator.validation_errors_.tolist()
    started = time.monotonic()
    with Progress("boosting", size, show=None if estimator.verbose else False) as progress:
        while fit.done < size:
            count = min(step, size - fit.done)
            fit.advance(count)
            progress.advance(count)
            if estimator.early_stopping:
                scores += fit.model(fit.done - count).scores(held.X)
                errors.append(error_of(scores, held.signs, estimator.multilabel_))
                if errors[-1] < least:
                    best, least = fit.done, errors[-1]
                if fit.done - best >= patience:
                    break
            if any([bool(callback(fit.done, fit)) for callback in callbacks]):
                break
            if budget is not None:
                now = time.monotonic()
                each = (now - started) / fit.done
                reserve = calibration * (before + fit.done) * each  # what the second fit will take
                if now - began + reserve > budget:
                    break
                step = max(
                    1, min(size // STEPS, round(0.02 * budget / max(each, 1e-9)))
                )  # a fiftieth of the time
    estimator.validation_errors_ = np.array(errors)
    return min(best, fit.done) if estimator.early_stopping else fit.done


def error_of(scores: NDArray[np.float64], signs: NDArray[np.int8], multilabel: bool) -> float:
    """Share of the examples (or of the labels) that are wrong."""
    if multilabel:
        return float(np.mean((scores > 0) != (signs > 0)))
    return float(np.mean(scores.argmax(axis=1) != signs.argmax(axis=1)))


def temperature_of(
    estimator: Any,
    data: Examples,
    held: NDArray[np.int64],
    recipe: Recipe,
    groups: Any,
    seed: int,
    mapper: Any,
) -> float:
    """The temperature of the probabilities, from rows the model has not seen; see `calibration`."""
    model: Model = estimator.model_
    n = data.weight.size
    if estimator.early_stopping:
        unseen = data.rows(held)
        return fit_temperature(model.scores(unseen.X, mapper), unseen.signs, estimator.multilabel_)
    if not estimator.calibrate or n < LEAST_ROWS or model.size < 4 or data.signs.shape[1] < 2:
        return 1.0
    aside = np.sort(stream(seed, "calibration").permutation(n)[: n // 5])
    unseen, rest = data.rows(aside), data.rows(np.setdiff1d(np.arange(n), aside))
    size = model.size // 2
    side = start_fit(
        rest.X, rest.signs, first_weights(rest.signs, rest.weight), recipe, size,
        groups=groups, rng=stream(seed, "calibration", "policy"), mapper=mapper,
    )  # fmt: skip
    side.advance(size)
    smaller = side.model()
    return carried_temperature(
        smaller,
        lambda k: smaller.first(k).scores(unseen.X, mapper),
        unseen.signs,
        estimator.multilabel_,
        float(model.coefficient.sum()),
    )
