r"""The boosting loop, where policy and growers meet: ask the policy, search its features, let the grower go on.

As in `abex.simulation`, the policy's kernels are compiled into the loop: a pull costs nanoseconds. A grower is
a sequence of searches: `begin` opens a weak learner, `accept` takes what a search found and says whether there is another.
A function that is called by its
name is optimised anew together with every caller, one that is called by its address is compiled once: so growers are compiled
once, and the loop, which there is one of for every policy, calls them by addresses that are handed in, as compiled code from
the disk cannot know them.

A feature is paid for its *gain*, :math:`-\frac12\ln(1-\gamma^2)` as published, or by comparison with its *shadow*: the same
values, shuffled among the examples of the leaf. The gains :math:`g` and :math:`g'` of both make the reward :math:`g/(g+g')`. It
knows neither the scale of the gains, nor the depth of the leaf, nor the number of values: a feature that says nothing is paid
1/2 on average at the root of a tree, and less where trees have split it already. Shadows are compared in the first tree of
every committee, before weights are boosted: boosting leaves no feature any gain that it can find, but has never met the shadow.

References
----------
Busa-Fekete and Kégl 2010, Section 3 (gains); Kursa and Rudnicki 2010, Section 2 (shadows, there of whole forests).
"""

from __future__ import annotations

import math
from functools import cache
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import BinnedFeatures
from abex.boosting.learners import WeakLearners
from abex.boosting.product import accept_term, begin_product
from abex.boosting.selection import Candidate
from abex.boosting.settings import PRODUCT, STUMP, TREE, Settings
from abex.boosting.splitter import SplitSearch, forget, search_feature
from abex.boosting.stump import accept_stump, begin_stump
from abex.boosting.tree import accept_split, begin_tree, search_in_leaf
from abex.boosting.weights import ExampleWeights
from abex.kernels import Record, before_compiling, compiled, is_user_defined, kernel
from abex.policies.policy import NO_SUCH_ARM, Kernels
from abex.support.errors import UserError, shown


def address_of(function: Any, *arguments: Any) -> Any:
    """Where a `compiled` function for arguments like these begins, for `call_at`; it must return a double.

    It is the function itself where nothing is compiled, which `call_at` takes as well.
    """
    if not hasattr(function, "compile"):
        return function
    import numba

    kinds = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(numba.float64(*kinds))  # an int or a float is converted, unless it was compiled before
    found = function.overloads[kinds]
    if found.signature.return_type != numba.float64:
        raise TypeError(
            f"{function.py_func.__qualname__} returns {found.signature.return_type}, a call by address needs a double"
        )
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def call_at(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Call what `address_of` gave for arguments like these; addresses can be called in compiled code alone."""
    if not callable(function):
        raise TypeError("a call by address works in compiled code alone.")
    return function(*arguments)


@before_compiling
def _register_call_at() -> None:
    from llvmlite import ir
    from numba.core import cgutils, types, typing
    from numba.extending import lower_builtin, type_callable

    @type_callable(call_at)  # type: ignore[untyped-decorator]
    def typer(context: Any) -> Any:
        def typed(function: Any, given: Any) -> Any:
            if not isinstance(function, types.Integer):
                return None
            return typing.signature(types.float64, types.intp, types.unliteral(given))  # type: ignore[attr-defined]

        return typed

    @lower_builtin(call_at, types.intp, types.BaseTuple)  # type: ignore[attr-defined, untyped-decorator]
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = tuple(signature.args[1])
        kind = context.call_conv.get_function_type(types.float64, kinds)
        function = builder.inttoptr(values[0], ir.PointerType(kind))
        given = cgutils.unpack_tuple(builder, values[1])
        status, result = context.call_conv.call_function(builder, function, types.float64, kinds, given)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result


class Arms(Record):
    """What a pull searches: arm k has the features ``features[start[k]:start[k + 1]]``."""

    start: NDArray[np.int64]  # (K + 1,)
    features: NDArray[np.int64]
    per_search: int
    shadows: bool  # features are paid by how they compare with their shadows
    paid: bool  # at this time


class Pulls(Record):
    """What the policy did."""

    arm: NDArray[np.int32]
    reward: NDArray[np.float32]
    made: int

    def with_room(self, more: int) -> Pulls:
        """The same, and room for more."""
        arm = np.append(self.arm, np.zeros(more, np.int32))
        return Pulls(arm=arm, reward=np.append(self.reward, np.zeros(more, np.float32)), made=self.made)


def new_pulls() -> Pulls:
    """None yet."""
    return Pulls(arm=np.zeros(0, np.int32), reward=np.zeros(0, np.float32), made=0)


@kernel
def record_pull(pulls: Pulls, arm: int, reward: float) -> None:
    """Note what the policy chose and what it got."""
    pulls.arm[pulls.made] = arm
    pulls.reward[pulls.made] = reward
    pulls.made += 1


@kernel
def reward_of(edge: float) -> float:
    """min(1, -ln sqrt(1 - edge^2)): what a stump with this edge takes off the logarithm of the error bound."""
    if edge >= 0.95:  # the cap is reached at 0.9298
        return 1.0
    return min(1.0, -0.5 * math.log(1.0 - edge * edge))


@kernel
def shadow_reward(gain: float, shadow: float, least: float) -> float:
    """The gain over the sum of both gains, of which less than ``least`` is none; 1/2 where neither has any."""
    gain = gain if gain > least else 0.0
    shadow = shadow if shadow > least else 0.0
    return gain / (gain + shadow) if gain + shadow > 0.0 else 0.5


def feature_groups(arms: Any, n_features: int) -> list[list[int]] | None:
    """The parameter ``arms`` of the estimator as lists of features."""
    if isinstance(arms, str):
        if arms == "features":
            return None
        if arms == "groups":
            count = max(1, round(n_features**0.5))
            return [part.tolist() for part in np.array_split(np.arange(n_features), count)]
        raise UserError(f"arms must be 'features', 'groups' or lists of features, got {shown(arms)[:80]}")
    try:
        groups = [[index(j) for j in group] for group in arms]
    except (TypeError, ValueError):
        raise UserError(
            f"arms must be 'features', 'groups' or lists of features, got {shown(arms)[:80]}"
        ) from None
    if not groups or not all(groups) or not all(0 <= j < n_features for group in groups for j in group):
        raise UserError(f"arms must be non-empty lists of features between 0 and {n_features - 1}")
    return groups


def make_arms(
    binned: BinnedFeatures, settings: Settings, candidate: Candidate, groups: list[list[int]] | None
) -> Arms:
    """The features of each arm; constant features are left out, except where MultiBoost is followed."""
    useful = np.ones(binned.bins.size, bool) if settings.multiboost else binned.bins > 1
    if candidate.policy is None:
        groups = [list(range(binned.bins.size))]
    elif groups is None:
        groups = [[j] for j in range(binned.bins.size) if useful[j]] or [[0]]
    kept = [[j for j in group if useful[j]] for group in groups]
    start = np.concatenate([[0], np.cumsum([len(group) for group in kept])]).astype(np.int64)
    features = np.array([j for group in kept for j in group], np.int64)
    per_search = 1 if candidate.policy is None else candidate.per_search
    shadows = settings.pays_by_shadows(candidate.policy)
    return Arms(start=start, features=features, per_search=per_search, shadows=shadows, paid=True)


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


class PolicyCall(Record):
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
        certain: float, policy_call: PolicyCall,
    ) -> int:  # fmt: skip
        """Iterations begin..end-1, or until a weak learner has the edge ``certain``; returns how many there were."""
        shadows, paid = arms.shadows, arms.paid
        state, rng = policy_call.state, policy_call.rng
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
