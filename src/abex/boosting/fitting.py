"""From examples to a running fit: initial weights, arms, records, and the loop that advances them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.encoding import Codes, encode, largest_bin
from abex.boosting.full_search import Part, advance_in_parts, parts_of
from abex.boosting.model import Model, model_from
from abex.boosting.stages import PRODUCT, STUMP, TREE, Arms, Pulls, Stages, new_stages
from abex.boosting.stumps import Search, new_search
from abex.boosting.training import Learner, Steps, boosting_loop, new_learner, steps_of
from abex.boosting.weights import Weights, label_groups, new_weights, write_back
from abex.errors import UserError, shown
from abex.kernels import kernel
from abex.policies.base import Kernels, Policy, Setting, arms_exist

TIES = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}  # share of the weights below which edges tie
MANY = 8  # features searched per update
MANY_GROUPS = 64  # of examples with the same labels
FIRST_ROOM = 1 << 26  # bytes: more classifiers than fit are given room as they come
LOOK_UP = 0.2  # seconds from one look up to the next
FASTER = 16  # times as many classifiers as before until the next one, at most
SMALL = 1 << 16  # weights: up to this many doubles cost no more than floats
MULTIBOOST_SMOOTHING = 0.01  # over the number of examples


class Recipe(NamedTuple):
    """What is boosted, and how."""

    kind: int = STUMP
    terms: int = 1
    cycles: int = 1
    leaves: int = 1
    policy: Policy[Any] | None = None
    per_search: int = 1
    dtype: Any = None
    multiboost: bool = False


class NoChoice(NamedTuple):
    """State of full search: its only arm holds every feature."""

    n_arms: int


@kernel
def only_arm(state: Any, t: int, rng: Any) -> int:
    """The arm with all features."""
    return 0


@kernel
def learn_nothing(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Full search has nothing to learn."""


@dataclass
class Fit:
    """A fit under way. `advance` is the only thing that happens to it."""

    recipe: Recipe
    rows: NDArray[np.int64]  # the order of the examples inside
    codes: Codes
    weights: Weights
    search: Search
    learner: Learner
    arms: Arms
    pulls: Pulls
    stages: Stages
    state: Any
    rng: np.random.Generator
    votes: NDArray[np.float64]  # scratch
    steps: Steps
    loop: Any
    parts: list[Part]  # of a full search that is worth several threads
    mapper: Any
    size: int  # classifiers to be found
    pulls_each: int  # at most, for a classifier
    done: int = 0
    pace: int = 1  # classifiers from one look up to the next

    def advance(self, count: int) -> None:
        """Find ``count`` more classifiers.

        Compiled code does not hear Ctrl-C. So the work is done in pieces of about `LOOK_UP` seconds; into how many pieces a
        fit falls changes nothing in what it finds.
        """
        last = self.done + count
        while self.done < last:
            began = time.monotonic()
            piece = min(self.pace, last - self.done)
            self._make_room(self.done + piece)
            if self.parts:
                advance_in_parts(self, piece)
            else:
                self._advance_alone(piece)
            self.done += piece
            seconds = max(time.monotonic() - began, 1e-9)
            self.pace = max(1, min(FASTER * piece, int(piece * LOOK_UP / seconds)))

    def _make_room(self, needed: int) -> None:
        """Room for so many classifiers: twice as much as before, not for all at once, when they are very many."""
        there = self.stages.edge.size
        if needed <= there:
            return
        more = min(self.size, max(needed, 2 * there)) - there
        nodes, (leaves, labels) = self.stages.feature.shape[1], self.stages.votes.shape[1:]
        pairs: Any = zip(self.stages, new_stages(more, nodes, leaves, labels), strict=True)
        self.stages = Stages(*(np.concatenate(pair) for pair in pairs))
        arm, reward, made = self.pulls
        room = more * self.pulls_each
        self.pulls = Pulls(
            np.append(arm, np.zeros(room, arm.dtype)), np.append(reward, np.zeros(room, reward.dtype)), made
        )

    def _advance_alone(self, count: int) -> None:
        with arms_exist(self.recipe.policy, self.arms.start.size - 1):
            self.loop(
                self.done, self.done + count, self.steps, self.codes, self.weights, self.search, self.learner,
                self.arms, self.pulls, self.stages, self.state, self.rng, self.votes,
            )  # fmt: skip

    def model(self, first: int = 0) -> Model:
        """The classifiers found so far, from ``first`` on."""
        whole = model_from(self.recipe.kind, self.stages, self.codes, self.done)
        parts = {name: value[first:] for name, value in whole.arrays().items()}
        return Model(whole.kind, whole.n_features, **parts)

    def current_weights(self) -> NDArray[np.float64]:
        """Weights of the examples as given, (n, L), summing to 1."""
        w, labels = self.weights, self.stages.votes.shape[2]
        shape = (self.rows.size, -1)
        table = w.factors.reshape(-1, w.values.reshape(shape).shape[1])
        now = w.values.reshape(shape) * table[w.group * w.stride + w.slot]
        plain = np.zeros((self.rows.size, labels))
        plain[self.rows] = np.abs(now[:, :labels].astype(np.float64))
        normal: NDArray[np.float64] = plain / plain.sum()
        return normal


def start_fit(
    X: Any, signs: NDArray[np.int8], start: NDArray[np.float64], recipe: Recipe, size: int, *,
    groups: list[list[int]] | None = None, rng: np.random.Generator, mapper: Any = map,
    state: Any = None, pulled: int = 0,
) -> Fit:  # fmt: skip
    """Prepare a fit of ``size`` classifiers to labels ``signs`` and initial weights ``start``, both (n, L).

    ``groups`` are the features of each arm (None: one arm for each feature that is not constant);
    ``state`` and ``pulled`` carry a policy on from an earlier fit.
    """
    n, labels = signs.shape
    first, group = label_groups(signs)
    rows = np.argsort(group, kind="stable")
    signs, group = signs[rows], group[rows]
    first = np.searchsorted(group, np.arange(first.size))
    tree = recipe.kind == TREE
    ends = np.append(first[1:], n)
    codes = encode(X, rows, ends, lists=not tree, exact=not tree, single=recipe.multiboost, mapper=mapper)
    dtype = recipe.dtype or (np.float64 if labels <= 8 or n * labels <= SMALL else np.float32)
    arms = make_arms(codes, recipe, groups)
    # with many searches between two updates it pays to have the weights at hand; so it does where totals would have to
    # be carried for many groups of labels
    crowded = recipe.per_search * arms.features.size > MANY * (arms.start.size - 1)
    lists = bool(codes.listed.any())
    at_once = crowded or (lists and first.size > MANY_GROUPS)
    track = lists and not at_once and recipe.kind == STUMP
    wide = bool(codes.wide.any())
    weights = new_weights(
        signs, group, first, start, rows, dtype, depth=1 if at_once else None,
        patterns=recipe.leaves if tree else None, flips=recipe.kind == PRODUCT,
        spare=tree or wide, bounded=tree or (wide and not track),
    )  # fmt: skip
    write_back(weights)
    fresh = partial(
        new_search, weights.chunks, labels, dtype, inner=largest_bin(codes), lists=lists,
        track=track, tolerance=0.0 if recipe.multiboost else TIES[np.dtype(dtype)],
    )  # fmt: skip
    search = fresh()
    learner = new_learner(
        recipe.kind, n, weights.total.size, terms=recipe.terms, cycles=recipe.cycles, leaves=recipe.leaves,
        smoothing=MULTIBOOST_SMOOTHING / n if recipe.multiboost else 0.0,
    )  # fmt: skip
    pulls_each = searches_each(recipe) * recipe.per_search
    nodes = {STUMP: 1, PRODUCT: recipe.terms, TREE: recipe.leaves - 1}[recipe.kind]
    leaves = recipe.leaves if tree else 1
    first_room = min(size, max(1, FIRST_ROOM // (14 * nodes + leaves * labels + 8 * pulls_each)))
    stages = new_stages(first_room, nodes, leaves, labels)
    room = first_room * pulls_each + pulled
    pulls = Pulls(np.zeros(room, np.int32), np.zeros(room, np.float32), np.array([pulled], np.int64))
    setting = Setting(arms.start.size - 1, horizon=max(size * pulls_each + pulled, 2))
    if recipe.policy is None:
        kernels, state = Kernels(only_arm, learn_nothing), NoChoice(1)
    else:
        kernels = recipe.policy.kernels(setting)
        state = recipe.policy.start(setting) if state is None else state
    votes = np.zeros(weights.total.size)
    steps = steps_of(recipe.kind, codes, weights, search, learner, stages, votes)
    parts = parts_of(arms.features, weights, learner, search.least, fresh) if recipe.policy is None else []
    return Fit(
        recipe, rows, codes, weights, search, learner, arms, pulls, stages, state, rng, votes, steps,
        boosting_loop(kernels), parts, mapper, size, pulls_each,
    )  # fmt: skip


def searches_each(recipe: Recipe) -> int:
    """Searches for a classifier, at most."""
    return {STUMP: 1, PRODUCT: recipe.terms * recipe.cycles, TREE: 2 * recipe.leaves}[recipe.kind]


def make_arms(codes: Codes, recipe: Recipe, groups: list[list[int]] | None) -> Arms:
    """The features of each arm; constant features are left out, except where MultiBoost is followed."""
    useful = np.ones(codes.bins.size, bool) if recipe.multiboost else codes.bins > 1
    if recipe.policy is None:
        groups = [list(range(codes.bins.size))]
    elif groups is None:
        groups = [[j] for j in range(codes.bins.size) if useful[j]] or [[0]]
    kept = [[j for j in group if useful[j]] for group in groups]
    sizes = [len(group) for group in kept]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    features = np.array([j for group in kept for j in group], np.int64)
    return Arms(start, features, 1 if recipe.policy is None else recipe.per_search)


def first_weights(signs: NDArray[np.int8], sample_weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half of an example's weight on its labels, half on the others, summing to 1.

    With one label per example these are MultiBoost's 1/(2n) and 1/(2n(L - 1)); an example with no label, or
    with all, spreads its weight evenly.
    """
    labels = signs.shape[1]
    there = (signs > 0).sum(axis=1, keepdims=True).astype(np.float64)
    absent = labels - there
    with np.errstate(divide="ignore"):
        weights: NDArray[np.float64] = np.where(signs > 0, 0.5 / there, 0.5 / absent)
    weights[((there == 0) | (absent == 0)).ravel()] = 1.0 / labels
    weights *= sample_weight[:, None]
    weights /= weights.sum()
    return weights


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
