"""A fit: what it is made of, and how it advances."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import BinnedFeatures, bin_features, largest_bin
from abex.boosting.boosting_loop import (
    Arms,
    Chooser,
    GrowerFunctions,
    Pulls,
    boosting_loop,
    functions_of,
    make_arms,
    new_pulls,
)
from abex.boosting.committees import Committees, committee_begins
from abex.boosting.full_search import FULL_SEARCH, NoChoice, SearchPart, advance_in_parts, parts_of
from abex.boosting.model import Model, model_from
from abex.boosting.parameters import BoostingParameters
from abex.boosting.product import ProductGrower, new_product_grower
from abex.boosting.splitter import SplitSearch, new_split_search
from abex.boosting.stump import StumpGrower, new_stump_grower
from abex.boosting.tree import TreeGrower, grow_on, new_tree_grower
from abex.boosting.weak_learners import CERTAIN, PRODUCT, STUMP, TREE, WeakLearners, new_weak_learners
from abex.boosting.weights import ExampleWeights, group_examples, new_weights, set_weights
from abex.policies.policy import Setting, arms_exist

TIES = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}  # share of the weights below which edges tie
MANY = 8  # features searched per update
MANY_GROUPS = 64  # of examples with the same labels
FIRST_ROOM = 1 << 26  # bytes: more weak learners than fit are given room as they come
LOOK_UP = 0.2  # seconds from one look up to the next
FASTER = 16  # times as many weak learners as before until the next one, at most
NEVER = 2.0  # an edge that there is not
SMALL = 1 << 16  # weights: up to this many doubles cost no more than floats
MULTIBOOST_SMOOTHING = 0.01  # over the number of examples


@dataclass
class Booster:
    """A fit under way. `advance` is the only thing that happens to it."""

    parameters: BoostingParameters
    rows: NDArray[np.int64]  # the order of the examples inside
    binned: BinnedFeatures
    weights: ExampleWeights
    search: SplitSearch
    shadow: SplitSearch  # searches the shadows of features; the same one where there are none
    grower: StumpGrower | ProductGrower | TreeGrower
    functions: GrowerFunctions
    arms: Arms
    pulls: Pulls
    learners: WeakLearners
    state: Any  # of the policy
    rng: np.random.Generator
    loop: Any
    parts: list[SearchPart]  # of a full search that is worth several threads
    mapper: Any
    size: int  # weak learners to be found
    pulls_each: int  # at most, for a weak learner
    start: NDArray[np.float64]  # (n, L) initial weights of the examples as given, where committees need them
    committees: Committees | None
    number: int = 0  # of the committee at hand
    inside: int = 0  # weak learners that it has
    done: int = 0
    pace: int = 1  # weak learners from one look up to the next

    def advance(self, count: int) -> None:
        """Find ``count`` more weak learners.

        Compiled code does not hear Ctrl-C. So the work is done in pieces of about `LOOK_UP` seconds; into how many pieces a
        fit falls changes nothing in what it finds.
        """
        last = self.done + count
        while self.done < last:
            began = time.monotonic()
            piece = min(self.pace, last - self.done)
            certain = NEVER
            if self.committees is not None:
                certain = CERTAIN
                if self.inside == self.committees.size:
                    self.begin_committee(self.number + 1)
                piece = min(piece, self.committees.size - self.inside)
            if self.arms.shadows:  # weights that are boosted already leave a feature less than its shadow
                self.arms.paid = self.inside == 0
                piece = 1 if self.arms.paid else piece
            self._make_room(self.done + piece)
            piece = (
                advance_in_parts(self, piece, certain) if self.parts else self._advance_alone(piece, certain)
            )
            self.inside += piece
            self.done += piece
            if self.learners.edge[self.done - 1] >= certain and self.committees is not None:
                self.inside = self.committees.size
            seconds = max(time.monotonic() - began, 1e-9)
            self.pace = max(1, min(FASTER * piece, int(piece * LOOK_UP / seconds)))

    def begin_committee(self, number: int) -> None:
        """Start anew, from the sample of the committee of this number."""
        if self.committees is not None:
            self.number, self.inside = number, 0
            set_weights(self.weights, self.committees.weights(number, self.start), self.rows)
            self.draw()

    def draw(self) -> None:
        """Let trees be grown on the sample of the committee at hand."""
        if self.committees is not None and isinstance(self.grower, TreeGrower):
            drawn = self.committees.sample(self.number, self.rows.size)[self.rows] > 0
            grow_on(self.grower, self.weights, drawn)

    def _make_room(self, needed: int) -> None:
        """Room for so many weak learners: twice as much as before, not for all at once, when they are very many."""
        there = self.learners.edge.size
        if needed <= there:
            return
        more = min(self.size, max(needed, 2 * there)) - there
        nodes, (leaves, labels) = self.learners.feature.shape[1], self.learners.votes.shape[1:]
        self.learners = self.learners.followed_by(new_weak_learners(more, nodes, leaves, labels))
        self.pulls = self.pulls.with_room(more * self.pulls_each)

    def _advance_alone(self, count: int, certain: float) -> int:
        with arms_exist(self.parameters.policy, self.arms.start.size - 1):
            found: int = self.loop(
                self.done, self.done + count, self.functions, self.binned, self.weights, self.search, self.shadow,
                self.grower, self.arms, self.pulls, self.learners, certain,
                Chooser(state=self.state, rng=self.rng),
            )  # fmt: skip
        return found

    def model(self, first: int = 0) -> Model:
        """The weak learners found so far, from ``first`` on."""
        return model_from(self.parameters.kind, self.learners, self.binned, self.done).part(first, self.done)

    def current_weights(self) -> NDArray[np.float64]:
        """Weights of the examples as given, (n, L), summing to 1."""
        w, labels = self.weights, self.learners.votes.shape[2]
        now = w.values * w.factors[w.group * w.stride + w.slot]
        plain = np.zeros((self.rows.size, labels))
        plain[self.rows] = np.abs(now[:, :labels].astype(np.float64))
        normal: NDArray[np.float64] = plain / plain.sum()
        return normal


def new_booster(
    X: Any, signs: NDArray[np.int8], start: NDArray[np.float64], parameters: BoostingParameters, size: int, *,
    groups: list[list[int]] | None = None, rng: np.random.Generator, mapper: Any = map,
    state: Any = None, pulled: int = 0, committees: Committees | None = None, old: Model | None = None,
    binned: BinnedFeatures | None = None,
) -> Booster:  # fmt: skip
    """Prepare a fit of ``size`` weak learners to labels ``signs`` and initial weights ``start``, both (n, L).

    ``groups`` are the features of each arm (None: one arm for each feature that is not constant);
    ``state`` and ``pulled`` carry a policy on from an earlier fit, ``old`` is the model to go on from, ``binned`` are the
    features as another fit to the same examples has them.
    """
    number, inside = 0, 0
    if committees is not None and old is not None:
        begins = committee_begins(old.edge, committees.size)
        number, inside = begins.size - 1, old.size - int(begins[-1])
    now = current_start(X, signs, start, committees, old, mapper)
    n, labels = signs.shape
    tree = parameters.kind == TREE
    examples = group_examples(signs)
    if binned is None:
        binned = bin_features(
            X, examples.rows, examples.ends, lists=not tree, exact=not tree, single=parameters.multiboost, mapper=mapper
        )  # fmt: skip
    arms = make_arms(binned, parameters, groups)
    lists, wide = bool(binned.listed.any()), bool(binned.wide.any())
    at_once = writes_back_at_once(arms, examples.starts.size, lists)
    track = lists and not at_once and parameters.kind == STUMP
    dtype = parameters.dtype or (np.float64 if labels <= 8 or n * labels <= SMALL else np.float32)
    weights = new_weights(
        examples, now, dtype, depth=1 if at_once else None, patterns=parameters.leaves if tree else None,
        flips=parameters.kind == PRODUCT, spare=tree or wide, bounded=tree or (wide and not track),
    )  # fmt: skip
    new_search = partial(
        new_split_search, weights, inner=largest_bin(binned), lists=lists, track=track,
        tolerance=0.0 if parameters.multiboost else TIES[np.dtype(dtype)], rows=n if tree else 0,
    )  # fmt: skip
    search = shadow = new_search()
    if parameters.shadows:
        shadow = new_search(rows=0)
        shadow.least, shadow.row, shadow.code = search.least, search.row, search.code
        shadow.shuffle = np.zeros(n, np.int32)
    grower = new_grower(parameters, weights)
    pulls_each = parameters.searches * arms.per_search
    learners, room = first_room(parameters, size, labels, pulls_each)
    setting = Setting(arms.start.size - 1, horizon=max(size * pulls_each + pulled, 2))
    if parameters.policy is None:
        kernels, state = FULL_SEARCH, NoChoice(1)
        parts = parts_of(arms.features, weights, search.least, new_search)
    else:
        kernels, parts = parameters.policy.kernels(), []
        if state is None:
            state = parameters.practice.carried_to(arms, setting) if parameters.practice else None
        state = parameters.policy.start(setting) if state is None else state
    functions = functions_of(parameters.kind, binned, weights, search, grower, learners)
    booster = Booster(
        parameters, examples.rows, binned, weights, search, shadow, grower, functions, arms,
        new_pulls(room + pulled, pulled), learners, state, rng, boosting_loop(kernels), parts, mapper, size, pulls_each,
        start if committees is not None else np.zeros((0, labels)), committees, number, inside,
    )  # fmt: skip
    booster.draw()
    return booster


def writes_back_at_once(arms: Arms, groups: int, lists: bool) -> bool:
    """Whether weights are written back after every update rather than put off.

    With many searches between two updates it pays to have the weights at hand; so it does where totals would have to be carried
    for many groups of labels.
    """
    crowded = arms.per_search * arms.features.size > MANY * (arms.start.size - 1)
    return crowded or (lists and groups > MANY_GROUPS)


def new_grower(
    parameters: BoostingParameters, weights: ExampleWeights
) -> StumpGrower | ProductGrower | TreeGrower:
    """The grower of examples with these weights."""
    n, padded = weights.values.shape
    smoothing = MULTIBOOST_SMOOTHING / n if parameters.multiboost else 0.0
    if parameters.kind == STUMP:
        return new_stump_grower(padded, smoothing)
    if parameters.kind == PRODUCT:
        return new_product_grower(padded, parameters.terms, smoothing)
    return new_tree_grower(weights, parameters.leaves, smoothing)


def first_room(
    parameters: BoostingParameters, size: int, labels: int, pulls_each: int
) -> tuple[WeakLearners, int]:
    """Room for the first weak learners, all of them unless they are very many, and for how many pulls."""
    nodes = {STUMP: 1, PRODUCT: parameters.terms, TREE: parameters.leaves - 1}[parameters.kind]
    leaves = parameters.leaves if parameters.kind == TREE else 1
    count = min(size, max(1, FIRST_ROOM // (14 * nodes + leaves * labels + 8 * pulls_each)))
    return new_weak_learners(count, nodes, leaves, labels), count * pulls_each


def current_start(
    X: Any, signs: NDArray[np.int8], start: NDArray[np.float64], committees: Committees | None, old: Model | None,
    mapper: Any,
) -> NDArray[np.float64]:  # fmt: skip
    """The weights from which boosting goes on after ``old``, from initial ones; all (n, L)."""
    if old is None:
        return start if committees is None else committees.weights(0, start)
    begun = 0
    if committees is not None:
        begins = committee_begins(old.edge, committees.size)
        begun, start = int(begins[-1]), committees.weights(begins.size - 1, start)
    logs = -signs * old.part(begun, old.size).scores(X, mapper)
    weights: NDArray[np.float64] = start * np.exp(logs - logs.max())
    return weights
