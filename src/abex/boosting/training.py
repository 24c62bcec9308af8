"""The compiled loop of boosting: ask the policy, search its features, let the learner go on.

As in `abex.simulation`, the policy's kernels are compiled into the loop: a pull costs nanoseconds. A learner is
a sequence of searches: `begin` opens it, `accept` takes what a search found and says whether there is another. Learners are
compiled once; the loop, which there is one of for every policy, calls them by their addresses.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.products import accept_term, begin_product
from abex.boosting.single import accept_stump, begin_stump
from abex.boosting.stages import PRODUCT, STUMP, TREE, record_pull, reward_of
from abex.boosting.stumps import forget, try_feature
from abex.boosting.trees import accept_split, begin_tree, try_in_leaf
from abex.kernels import address_of, call_at, compiled, foreign, kernel
from abex.policies.base import NO_SUCH_ARM, Kernels


class Learner(NamedTuple):
    """The base learner and what it keeps between two searches."""

    terms: int  # of a product
    cycles: int  # how often each term is fitted
    leaves: int  # of a tree
    smoothing: float
    at: NDArray[np.int64]  # (3,) where the learner stands
    value: NDArray[np.float64]  # (2,)
    cut: NDArray[np.int64]  # (terms or leaves, 4) as Search.cut
    rows: NDArray[np.int32]  # (n,) examples by leaf
    spare: NDArray[np.int32]  # (n,) scratch
    code: NDArray[np.uint8]  # (n,) scratch
    begin: NDArray[np.int64]  # (leaves,)
    end: NDArray[np.int64]
    parent: NDArray[np.int64]
    is_right: NDArray[np.bool_]
    gain: NDArray[np.float64]  # (terms or leaves,) of the best cut of a leaf, of a term
    constant: NDArray[np.float64]
    total: NDArray[
        np.float64
    ]  # (leaves, L + 1) signed sums of the labels, mass; padded as rows of weights are
    right: NDArray[np.float64]  # (leaves, L + 1) the same right of the best cut


def new_learner(
    kind: int, n: int, width: int, *, terms: int = 1, cycles: int = 1, leaves: int = 1,
    smoothing: float = 0.0,
) -> Learner:  # fmt: skip
    """A record for ``n`` examples with rows of ``width`` numbers."""
    examples = n if kind == TREE else 0
    return Learner(
        terms, cycles, leaves, smoothing, np.zeros(3, np.int64), np.zeros(2),
        np.zeros((max(terms, leaves), 4), np.int64), np.zeros(examples, np.int32),
        np.zeros(examples, np.int32), np.zeros(examples, np.uint8), np.zeros(leaves, np.int64), np.zeros(leaves, np.int64),
        np.zeros(leaves, np.int64), np.zeros(leaves, np.bool_), np.zeros(max(terms, leaves)), np.zeros(leaves),
        np.zeros((leaves, width)), np.zeros((leaves, width)),
    )  # fmt: skip


#: learner -> what opens it, what searches a feature, what takes the result of a search
STEPS = {
    STUMP: (begin_stump, try_feature, accept_stump),
    PRODUCT: (begin_product, try_feature, accept_term),
    TREE: (begin_tree, try_in_leaf, accept_split),
}


class Steps(NamedTuple):
    """Addresses of the three functions of a learner, which are compiled once for all policies."""

    begin: int
    search: int
    accept: int


def steps_of(
    kind: int, codes: Any, w: Any, search: Any, learner: Any, stages: Any, votes: NDArray[np.float64]
) -> Steps:
    """The learner's functions for records of these types."""
    begin, try_one, accept = STEPS[kind]
    return Steps(
        address_of(begin, learner, search, w),
        address_of(try_one, codes, 0, w, search, learner, 0.0),
        address_of(accept, 0, codes, w, search, learner, stages, votes),
    )


@kernel
def look_through(
    try_one: int, features: Any, first: int, last: int, codes: Any, w: Any, search: Any, learner: Any
) -> float:
    """Search features first..last-1 of a list by the function at ``try_one``; returns the best edge."""
    edge = 0.0
    for m in range(first, last):
        edge = call_at(try_one, (codes, features[m], w, search, learner, edge))
    return edge


@cache
def boosting_loop(kernels: Kernels) -> Any:
    """The loop, compiled once per policy; what a foreign policy selects is checked."""
    select, update = kernels
    checked = foreign(kernels)

    @compiled(*kernels)
    def boost(
        first: int, last: int, steps: Any, codes: Any, w: Any, search: Any, learner: Any, arms: Any, pulls: Any,
        stages: Any, state: Any, rng: Any, votes: Any,
    ) -> None:  # fmt: skip
        """Iterations first..last-1."""
        for t in range(first, last):
            scale = call_at(steps.begin, (learner, search, w))
            while scale > 0.0:
                forget(search, scale)
                for _ in range(arms.per_search):
                    pull = pulls.made[0]
                    arm = select(state, pull + 1, rng)
                    if checked and not 0 <= arm < arms.start.size - 1:
                        raise IndexError(NO_SUCH_ARM)
                    first_one, last_one = arms.start[arm], arms.start[arm + 1]
                    edge = look_through(
                        steps.search, arms.features, first_one, last_one, codes, w, search, learner
                    )
                    reward = reward_of(edge / scale)
                    update(state, pull + 1, arm, arm, reward, rng)
                    record_pull(pulls, arm, reward)
                scale = call_at(steps.accept, (t, codes, w, search, learner, stages, votes))

    return boost
