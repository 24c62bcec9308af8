"""How the classifier's parameters become a fit: the recipe, the rows held out, the start."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.examples import Examples
from abex.boosting.fitting import Fit, Recipe, first_weights, searches_each, start_fit
from abex.boosting.model import KINDS, PRODUCT, TREE, Model
from abex.errors import UserError, one_of, real_number, shown, true_or_false, whole_number
from abex.policies.base import Policy, parse_policy
from abex.randomness import stream

PRECISIONS = {"auto": None, "single": np.float32, "double": np.float64}
MOST_ESTIMATORS = 10**8
MOST_CYCLES = 1000
MOST_PULLS = 10**7  # for one classifier: the record of its pulls takes eight bytes each


def recipe_of(estimator: Any) -> tuple[Recipe, int]:
    """What the parameters ask for, checked."""
    for name in ("early_stopping", "calibrate", "warm_start"):
        true_or_false(name, getattr(estimator, name))
    size = whole_number("n_estimators", estimator.n_estimators, least=1, most=MOST_ESTIMATORS)
    kind = KINDS.index(one_of("base", estimator.base, KINDS))
    policy = estimator.policy
    policy = parse_policy(policy) if isinstance(policy, str) else policy
    if policy is not None and not isinstance(policy, Policy):
        raise UserError(f"policy must be a policy, its text or None, got {shown(policy)[:80]}")
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
        cycles=whole_number("n_cycles", estimator.n_cycles, least=1, most=MOST_CYCLES)
        if kind == PRODUCT
        else 1,
        leaves=whole_number("n_leaves", estimator.n_leaves, least=2, most=4096) if kind == TREE else 1,
        policy=policy,
        dtype=precision,
        multiboost=estimator.faithful is not None,
    )
    most = MOST_PULLS // searches_each(recipe)
    return recipe._replace(
        per_search=whole_number("arms_per_round", estimator.arms_per_round, least=1, most=most)
    ), size


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
        played = copy.deepcopy(estimator._played)  # the fit writes into it, and may not come to its end
        rng, state, pulled = played.rng, played.state, estimator.pulled_arms_.size
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
