"""What is boosted, and how: the parameters of a fit, checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from abex.boosting.committees import Committees
from abex.boosting.weak_learners import KINDS, PRODUCT, STUMP, TREE
from abex.policies.baselines import Uniform
from abex.policies.naming import parse_policy
from abex.policies.policy import Policy
from abex.policies.screening import Screening
from abex.support.errors import UserError, one_of, shown, true_or_false, whole_number

MOST_ESTIMATORS = 10**8
TREES, OTHERS = 512, 1000  # weak learners, unless given
MANY_ROWS = (
    500_000  # of more, trees are half as many: their time grows with the rows, what they miss no longer falls
)
TREE_ARMS, OTHER_ARMS = 5, 2  # arms of a search, unless given; of trees before any trial, at most
LEAST_COMMITTEE, MOST_COMMITTEE = 16, 128  # trees of a committee, unless given
ROWS_PER_TREE = (
    100  # of a committee: the more rows, the longer can it learn before it learns wrong labels by heart
)
REWARDS = ("auto", "gain", "shadow")  # what a feature is paid for
MOST_PULLS = 10**7  # for one classifier: the record of its pulls takes eight bytes each


class BoostingParameters(NamedTuple):
    """What is boosted, and how."""

    kind: int = STUMP
    terms: int = 1
    leaves: int = 1
    policy: Policy[Any] | None = None
    per_search: int = 1
    adaptive: bool = False  # trials say whether more arms a search pay
    shadows: bool = False  # features are paid by how they compare with their shadows
    screens: bool = False  # trials say whether to choose features by `Screening` rather than uniformly
    practice: Any = None  # what the policy has learnt beforehand (`abex.boosting.pilot.Practice`)
    dtype: Any = None  # of the weights; None: doubles where they cost nothing
    multiboost: bool = False
    committee: int | None = None  # weak learners of a committee; None: all are one

    def committees_of(self, seed: int, *key: int | str) -> Committees | None:
        """The committees of a fit whose random weights have this seed and key."""
        return None if self.committee is None else Committees(self.committee, self.kind == TREE, seed, key)

    @property
    def searches(self) -> int:
        """Searches for a weak learner, at most."""
        return {STUMP: 1, PRODUCT: self.terms, TREE: 2 * self.leaves}[self.kind]


def checked_parameters(estimator: Any) -> tuple[BoostingParameters, int]:
    """What the parameters ask for, checked."""
    for name in ("early_stopping", "calibrate", "warm_start"):
        true_or_false(name, getattr(estimator, name))
    kind = KINDS.index(one_of("base", estimator.base, KINDS))
    size = (
        (TREES if kind == TREE else OTHERS)
        if is_auto("n_estimators", estimator.n_estimators)
        else whole_number("n_estimators", estimator.n_estimators, least=1, most=MOST_ESTIMATORS)
    )
    policy = estimator.policy
    auto_policy = isinstance(policy, str) and policy == "auto"
    policy = "Uniform" if auto_policy else policy
    policy = parse_policy(policy) if isinstance(policy, str) else policy
    if policy is not None and not isinstance(policy, Policy):
        raise UserError(f"policy must be a policy, its text or None, got {shown(policy)[:80]}")
    if policy is not None and policy.needs_graph:
        raise UserError(f"{policy} needs a feedback graph, which boosting does not have")
    if estimator.faithful is not None:
        one_of("faithful", estimator.faithful, ["multiboost"])
        if estimator.base != "stump":
            raise UserError(f"faithful='multiboost' follows stumps only, got base={estimator.base!r}")
    parameters = BoostingParameters(
        kind=kind,
        terms=whole_number("n_terms", estimator.n_terms, least=1, most=64) if kind == PRODUCT else 1,
        leaves=whole_number("n_leaves", estimator.n_leaves, least=2, most=4096) if kind == TREE else 1,
        policy=policy,
        shadows=pays_by_shadows(estimator, kind, policy),
        dtype=None if estimator.faithful is None else np.float64,
        multiboost=estimator.faithful is not None,
        committee=committee_of(estimator),
    )
    given = estimator.arms_per_search
    auto = is_auto("arms_per_search", given)
    screens = auto_policy and kind == TREE and estimator.reward != "gain"
    per_search = (
        (TREE_ARMS if kind == TREE else OTHER_ARMS)
        if auto
        else whole_number("arms_per_search", given, least=1, most=MOST_PULLS // parameters.searches)
    )
    adaptive = auto and kind == TREE and policy is not None
    return parameters._replace(per_search=per_search, adaptive=adaptive, screens=screens), size


def pays_by_shadows(estimator: Any, kind: int, policy: Policy[Any] | None) -> bool:
    """Whether features are paid by how they compare with their shadows; whoever learns nothing need not know."""
    given = one_of("reward", estimator.reward, REWARDS)
    if given == "shadow" and kind != TREE:
        raise UserError(f"reward='shadow' is for trees, got base={estimator.base!r}")
    if given == "auto":
        return kind == TREE and isinstance(policy, Screening)
    return given == "shadow" and not isinstance(policy, Uniform | None)


def is_auto(name: str, given: Any) -> bool:
    """Whether a number is left to us; another word is refused."""
    if isinstance(given, str) and given != "auto":
        raise UserError(f"{name} must be 'auto' or a whole number, got {shown(given)[:80]}")
    return isinstance(given, str)


def size_for(estimator: Any, size: int, rows: int) -> int:
    """Weak learners of a fit to so many rows: half as many trees of very many, unless a number is given.

    >>> class Default:
    ...     base, n_estimators = "tree", "auto"
    >>> size_for(Default, TREES, 1_000), size_for(Default, TREES, 10**6)
    (512, 256)
    """
    halved = estimator.base == "tree" and is_auto("n_estimators", estimator.n_estimators) and rows > MANY_ROWS
    return size // 2 if halved else size


def committee_for(estimator: Any, rows: int) -> int | None:
    """Weak learners of a committee of so many rows.

    >>> class Default:
    ...     base, committee_size, faithful = "tree", "auto", None
    >>> committee_for(Default, 500), committee_for(Default, 5_000), committee_for(Default, 10**6)
    (16, 50, 128)
    """
    least = committee_of(estimator)
    if least is None or not isinstance(estimator.committee_size, str):
        return least
    return max(least, min(MOST_COMMITTEE, rows // ROWS_PER_TREE))


def committee_of(estimator: Any) -> int | None:
    """Weak learners of a committee, None where all are one."""
    given = estimator.committee_size
    if given is None:
        return None
    if is_auto("committee_size", given):
        return LEAST_COMMITTEE if estimator.base == "tree" else None
    if estimator.faithful is not None:
        raise UserError("faithful='multiboost' has one committee: leave committee_size out")
    return whole_number("committee_size", given, least=1, most=MOST_ESTIMATORS)
