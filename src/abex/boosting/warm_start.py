"""The start of a fit: anew, or from the model and the policy that the last fit left."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from abex.boosting.booster import Booster, new_booster
from abex.boosting.examples import Examples
from abex.boosting.model import Model
from abex.boosting.parameters import BoostingParameters
from abex.boosting.weak_learners import KINDS, PRODUCT, TREE
from abex.boosting.weights import first_weights
from abex.policies.policy import Policy
from abex.policies.screening import Screening
from abex.support.errors import UserError
from abex.support.randomness import stream


class PolicyProgress(NamedTuple):
    """A policy as a fit has left it, and what its arms were."""

    policy: Policy[Any] | None
    arms: str
    state: Any
    rng: np.random.Generator


def policy_continues(estimator: Any, parameters: BoostingParameters) -> bool:
    """Whether the policy of the last fit can go on: not if it or its arms are others now, or the model comes from a file."""
    played = getattr(estimator, "_played", None)
    return bool(
        estimator.warm_start
        and played is not None
        and (played.policy, played.arms) == (parameters.policy, repr(estimator.arms))
    )


def as_played(estimator: Any, parameters: BoostingParameters) -> BoostingParameters:
    """Parameters whose policy was left to trials: with what they chose in the first fit, if that is known."""
    played = getattr(estimator, "_played", None)
    policy = parameters.policy if played is None else played.policy
    return parameters._replace(policy=policy, shadows=isinstance(policy, Screening), screens=False)


def check_unchanged(parameters: BoostingParameters, old: Model) -> None:
    """With warm_start, refuse another grower than the first one."""
    first = {"base": old.kind, "n_leaves": old.votes.shape[1], "n_terms": old.feature.shape[1]}
    now = {"base": parameters.kind, "n_leaves": parameters.leaves, "n_terms": parameters.terms}
    names = [
        "base",
        *(["n_leaves"] if parameters.kind == TREE else []),
        *(["n_terms"] if parameters.kind == PRODUCT else []),
    ]
    for name in names:
        if first[name] != now[name]:
            was, wanted = ((KINDS[k[name]] if name == "base" else k[name]) for k in (first, now))
            raise UserError(
                f"with warm_start, {name} must stay {was!r}, not become {wanted!r}: set warm_start=False to fit anew"
            )


def begin(
    estimator: Any,
    data: Examples,
    parameters: BoostingParameters,
    size: int,
    groups: Any,
    old: Model | None,
    seed: int,
    mapper: Any,
) -> Booster:
    """A fit ready to run; with ``old``, one that goes on from there, policy and all."""
    start = first_weights(data.signs, data.weight)
    if old is not None:
        if size < old.size:
            raise UserError(f"n_estimators must not shrink with warm_start: {size} after {old.size}")
        size -= old.size
    rng, state, pulled = stream(seed, "policy"), None, 0
    if policy_continues(estimator, parameters):
        played = copy.deepcopy(estimator._played)  # the fit writes into it, and may not come to its end
        rng, state, pulled = played.rng, played.state, estimator.pulled_arms_.size
    fit = new_booster(
        data.X,
        data.signs,
        start,
        parameters,
        size,
        groups=groups,
        rng=rng,
        mapper=mapper,
        state=state,
        pulled=pulled,
        committees=parameters.committees_of(seed, "committee"),
        old=old,
    )
    if pulled:
        fit.pulls.arm[:pulled], fit.pulls.reward[:pulled] = estimator.pulled_arms_, estimator.pulled_rewards_
    return fit
