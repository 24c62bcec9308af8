"""What a person asks of a fit: the parameters of the classifier, checked, as one record that is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from abex.policies.baselines import Uniform
from abex.policies.naming import parse_policy
from abex.policies.policy import Policy
from abex.policies.screening import Screening
from abex.support.errors import UserError, one_of, real_number, shown, true_or_false, whole_number

STUMP, PRODUCT, TREE = 0, 1, 2
Kind = Literal["stump", "product", "tree"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_ESTIMATORS = 10**8
MAX_TERMS = 64
MAX_LEAVES = 4096
LOOKS = 100  # a fit is looked at so often: progress, and what may stop it
MAX_PULLS = 10**7  # for one classifier: the record of its pulls takes eight bytes each


class Settings(NamedTuple):
    """The parameters of a fit. What is None, but for ``policy``, is left to the data (`abex.boosting.selection`)."""

    kind: int = STUMP
    terms: int = 1  # of a product
    leaves: int = 1  # of a tree
    n_learners: int | None = None
    policy: Policy[Any] | None = None  # None: full search
    may_screen: bool = False  # the policy is left to the data: `Screening` may be better
    per_search: int | None = None  # arms of a search
    committee: int | None = None  # learners of a committee
    one_committee: bool = True  # all are one
    multiboost: bool = False
    dtype: Any = None  # of the weights; None: doubles where they cost nothing
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 100  # learners without improvement
    callbacks: tuple[Callable[[int, Any], Any], ...] = ()
    calibrate: bool = True
    warm_start: bool = False

    @property
    def searches(self) -> int:
        """Searches for a learner, at most."""
        return {STUMP: 1, PRODUCT: self.terms, TREE: 2 * self.leaves}[self.kind]

    def pays_by_shadows(self, policy: Policy[Any] | None) -> bool:
        """Whether features are paid for how they compare with their shadows."""
        return self.kind == TREE and isinstance(policy, Screening)

    @property
    def choice(self) -> tuple[Any, ...]:
        """What says who names the features, and how many at a time."""
        return self.policy, self.may_screen, self.per_search

    @property
    def may_stop(self) -> bool:
        """Whether a fit may end before its last learner."""
        return bool(self.early_stopping or self.callbacks)

    @property
    def refits(self) -> bool:
        """Whether early stopping only finds how many learners to fit to all rows: not where a later fit may go on."""
        return self.early_stopping and not self.warm_start


def checked_settings(estimator: Any) -> Settings:
    """What the parameters of an `AdaBoostMHClassifier` ask for."""
    for name in ("early_stopping", "calibrate", "warm_start"):
        true_or_false(name, getattr(estimator, name))
    kind = KINDS.index(one_of("base", estimator.base, KINDS))
    n_learners = number_or_auto("n_estimators", estimator.n_estimators, MAX_ESTIMATORS)
    policy = checked_policy(estimator.policy)
    multiboost = estimator.compatible_with is not None
    if multiboost:
        one_of("compatible_with", estimator.compatible_with, ["multiboost"])
        if kind != STUMP:
            raise UserError(f"compatible_with='multiboost' is for stumps, got base={estimator.base!r}")
    shape = Settings(
        kind,
        whole_number("n_terms", estimator.n_terms, least=1, most=MAX_TERMS) if kind == PRODUCT else 1,
        whole_number("n_leaves", estimator.n_leaves, least=2, most=MAX_LEAVES) if kind == TREE else 1,
    )
    committee, one_committee = checked_committee(estimator, kind)
    callbacks = estimator.callbacks or ()
    callbacks = (callbacks,) if callable(callbacks) else tuple(callbacks)
    if not all(map(callable, callbacks)):
        raise UserError(f"callbacks must be functions of (done, fit), got {shown(callbacks)[:80]}")
    return shape._replace(
        n_learners=n_learners,
        policy=policy,
        may_screen=is_auto(estimator.policy) and kind == TREE,
        per_search=number_or_auto("arms_per_search", estimator.arms_per_search, MAX_PULLS // shape.searches),
        committee=committee,
        one_committee=one_committee,
        multiboost=multiboost,
        dtype=np.float64 if multiboost else None,
        early_stopping=estimator.early_stopping,
        validation_fraction=real_number(
            "validation_fraction", estimator.validation_fraction, above=0.0, most=0.9
        ),
        patience=whole_number("n_iter_no_change", estimator.n_iter_no_change, least=1),
        callbacks=callbacks,
        calibrate=estimator.calibrate,
        warm_start=estimator.warm_start,
    )


def is_auto(given: Any) -> bool:
    """Whether a parameter is left to the data."""
    return isinstance(given, str) and given == "auto"


def number_or_auto(name: str, given: Any, most: int) -> int | None:
    """A whole number from 1 to ``most``, None for "auto"."""
    if is_auto(given):
        return None
    if isinstance(given, str):
        raise UserError(f"{name} must be 'auto' or a whole number, got {shown(given)[:80]}")
    return whole_number(name, given, least=1, most=most)


def checked_policy(given: Any) -> Policy[Any] | None:
    """The policy that chooses features, at first where it is left to the data; None for full search."""
    if is_auto(given):
        return Uniform()
    policy = parse_policy(given) if isinstance(given, str) else given
    if policy is not None and not isinstance(policy, Policy):
        raise UserError(f"policy must be a policy, its text or None, got {shown(policy)[:80]}")
    if policy is not None and policy.needs_graph:
        raise UserError(f"{policy} needs a feedback graph, which boosting does not have")
    return policy


def checked_committee(estimator: Any, kind: int) -> tuple[int | None, bool]:
    """Learners of a committee, None where that is left to the data; and whether all learners are one committee."""
    given = estimator.committee_size
    if given is None or (is_auto(given) and kind != TREE):
        return None, True
    size = number_or_auto("committee_size", given, MAX_ESTIMATORS)
    if size is not None and estimator.compatible_with is not None:
        raise UserError("compatible_with='multiboost' has one committee: leave committee_size out")
    return size, False
