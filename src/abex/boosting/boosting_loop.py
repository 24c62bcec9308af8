"""The boosting loop, where policy and growers meet: ask the policy, search its features, let the grower go on.

As in `abex.simulation`, the policy's kernels are compiled into the loop: a pull costs nanoseconds. A grower is
a sequence of searches: `begin` opens a weak learner, `accept` takes what a search found and says whether there is another.
Growers are compiled once; the loop, which there is one of for every policy, calls them by their addresses.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.arms import Arms, Pulls, record_pull, reward_of, shadow_reward
from abex.boosting.binning import BinnedFeatures
from abex.boosting.calls import address_of, call_at
from abex.boosting.product_grower import accept_term, begin_product
from abex.boosting.splitter import SplitSearch, forget, search_feature
from abex.boosting.stump_grower import accept_stump, begin_stump
from abex.boosting.tree_grower import accept_split, begin_tree, search_in_leaf
from abex.boosting.weak_learners import PRODUCT, STUMP, TREE, WeakLearners
from abex.boosting.weights import ExampleWeights
from abex.kernels import Record, compiled, is_user_defined, kernel
from abex.policies.policy import NO_SUCH_ARM, Kernels

#: kind -> what opens a weak learner, what searches a feature, what takes the result of a search
GROWERS = {
    STUMP: (begin_stump, search_feature, accept_stump),
    PRODUCT: (begin_product, search_feature, accept_term),
    TREE: (begin_tree, search_in_leaf, accept_split),
}


class GrowerFunctions(NamedTuple):
    """Addresses of the three functions of a grower, which are compiled once for all policies."""

    begin: int
    search: int
    accept: int


def functions_of(
    kind: int, binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch, grower: Any, learners: WeakLearners
) -> GrowerFunctions:  # fmt: skip
    """The grower's functions for records of these types."""
    begin, search_one, accept = GROWERS[kind]
    return GrowerFunctions(
        address_of(begin, grower, search, w),
        address_of(search_one, binned, 0, w, search, grower, 0.0),
        address_of(accept, 0, binned, w, search, grower, learners),
    )


@compiled()
def begin_at(begin: int, grower: Any, search: SplitSearch, w: ExampleWeights) -> float:
    """Call ``begin`` from Python."""
    return float(call_at(begin, (grower, search, w)))


@compiled()
def accept_at(
    accept: int, t: int, binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch, grower: Any,
    learners: WeakLearners,
) -> float:  # fmt: skip
    """Call ``accept`` from Python."""
    return float(call_at(accept, (t, binned, w, search, grower, learners)))


@kernel
def look_through(
    search_one: int, features: NDArray[np.int64], first: int, last: int, binned: BinnedFeatures, w: ExampleWeights,
    search: SplitSearch, grower: Any,
) -> float:  # fmt: skip
    """Search features first..last-1 of a list by the function at ``search_one``; returns the best edge."""
    edge = 0.0
    for m in range(first, last):
        edge = call_at(search_one, (binned, features[m], w, search, grower, edge))
    return edge


@kernel
def begin_shadows(shadow: SplitSearch, rng: Any) -> None:
    """Let the examples of the leaf at hand be shuffled anew."""
    shadow.stale = True
    shadow.random = int(rng.random() * 2.0**53)


class Chooser(Record):
    """Who chooses features: the state of the policy, and its random numbers."""

    state: Any
    rng: Any


@cache
def boosting_loop(kernels: Kernels) -> Any:
    """The loop, compiled once per policy; what a user-defined policy selects is checked."""
    select, update = kernels
    checked = is_user_defined(kernels)

    @compiled(*kernels)
    def boost(
        begin: int, end: int, functions: GrowerFunctions, binned: BinnedFeatures, w: ExampleWeights,
        search: SplitSearch, shadow: SplitSearch, grower: Any, arms: Arms, pulls: Pulls, learners: WeakLearners,
        certain: float, chooser: Chooser,
    ) -> int:  # fmt: skip
        """Iterations begin..end-1, or until a weak learner has the edge ``certain``; returns how many there were."""
        shadows, paid = arms.shadows, arms.paid
        state, rng = chooser.state, chooser.rng
        for t in range(begin, end):
            scale = call_at(functions.begin, (grower, search, w))
            while scale > 0.0:
                forget(search, scale)
                if shadows and paid:
                    begin_shadows(shadow, rng)
                for _ in range(arms.per_search):
                    pull = pulls.made
                    arm = select(state, pull + 1, rng)
                    if checked and not 0 <= arm < arms.start.size - 1:
                        raise IndexError(NO_SUCH_ARM)
                    first, last = arms.start[arm], arms.start[arm + 1]
                    edge = look_through(
                        functions.search, arms.features, first, last, binned, w, search, grower
                    )
                    if not paid:
                        continue
                    if shadows:
                        forget(shadow, scale)
                        other = look_through(
                            functions.search, arms.features, first, last, binned, w, shadow, grower
                        )
                        reward = shadow_reward(
                            edge - search.unsplit, other - search.unsplit, search.tolerance * scale
                        )
                    else:
                        reward = reward_of(edge / scale)
                    update(state, pull + 1, arm, arm, reward, rng)
                    record_pull(pulls, arm, reward)
                scale = call_at(functions.accept, (t, binned, w, search, grower, learners))
            if learners.edge[t] >= certain:
                return t + 1 - begin
        return end - begin

    return boost
