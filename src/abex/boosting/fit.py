"""A fit: what it is made of, how it advances, how it goes on from an earlier one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import BinnedFeatures, bin_features, largest_bin
from abex.boosting.examples import Examples
from abex.boosting.full_search import SearchPart, advance_in_parts, parts_of
from abex.boosting.learners import (
    MAX_EDGE,
    Model,
    WeakLearners,
    committee_begins,
    model_from,
    new_weak_learners,
)
from abex.boosting.loop import (
    Arms,
    GrowerFunctions,
    PolicyCall,
    Pulls,
    boosting_loop,
    functions_of,
    make_arms,
    new_pulls,
)
from abex.boosting.product import ProductGrower, new_product_grower
from abex.boosting.selection import MAX_SEEN, SEEN, Candidate
from abex.boosting.settings import KINDS, LOOKS, PRODUCT, STUMP, TREE, Settings
from abex.boosting.splitter import SplitSearch, new_split_search
from abex.boosting.stump import StumpGrower, new_stump_grower
from abex.boosting.tree import TreeGrower, new_tree_grower, restrict_to_sample
from abex.boosting.weights import ExampleWeights, first_weights, group_examples, new_weights, set_weights
from abex.policies.baselines import Uniform
from abex.policies.policy import Setting, arms_exist
from abex.support.errors import UserError
from abex.support.progress import Progress
from abex.support.randomness import stream

if TYPE_CHECKING:
    from abex.boosting.stopping import Stop

TIES = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}  # share of the weights below which edges tie
MANY = 8  # features searched per update
MANY_GROUPS = 64  # of examples with the same labels
FIRST_ROOM = 1024  # weak learners: more are given room as they come
LOOK_UP = 0.2  # seconds from one look up to the next
FASTER = 16  # times as many weak learners as before until the next one, at most
NEVER = 2.0  # an edge that there is not
SMALL = 1 << 16  # weights: up to this many doubles cost no more than floats
MULTIBOOST_SMOOTHING = 0.01  # over the number of examples


class Committees(NamedTuple):
    """Committees of learners: boosting that starts anew, from other examples (MultiBoosting).

    AdaBoost never forgives: an example that is wrong again and again, such as one with a wrong label, gains weight for ever, and
    long fits learn little else. So a committee begins with the initial weights of a random sample of the examples, the first one
    with all, and boosts from there; the classifier is the sum of all. Boosting inside a committee lowers the bias, averaging over
    committees the variance. A committee ends with so many learners, or with one that is right everywhere.

    Committees of trees see four fifths of the examples, drawn without replacement, and no more than 250,000: of a million each
    committee, the first too, sees a quarter. So every example is *out of the bag* of a fifth of the committees, by which
    probabilities are calibrated. Committees of stumps and products see all, weighed by independent draws from the exponential
    distribution (*wagging*).

    References
    ----------
    Webb 2000, "MultiBoosting: a technique for combining boosting and wagging", Machine Learning 40, Table 3. There the number of
    committees is the square root of the number of learners; here the size of one is a parameter.
    """

    size: int
    parts: bool  # it sees a part of the examples
    seed: int  # of the samples
    key: tuple[int | str, ...] = ("committee",)

    def sample(self, number: int, n: int) -> NDArray[np.float64]:
        """What the weights of ``n`` examples are multiplied by in committee ``number`` = 0, 1, ...: nothing is out of the bag.

        >>> committees = Committees(10, True, seed=1)
        >>> committees.sample(0, 6).tolist(), int(committees.sample(1, 6).sum())
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 5)
        """
        if self.sees_all(number, n):
            return np.ones(n)
        rng = stream(self.seed, *self.key, number)
        if not self.parts:
            return rng.standard_exponential(n)
        drawn = np.zeros(n)
        drawn[rng.permutation(n)[: min(ceil(SEEN * n), MAX_SEEN)]] = 1.0
        return drawn

    def sees_all(self, number: int, n: int) -> bool:
        """Whether committee ``number`` has all of ``n`` examples as they are: the first one, unless they are very many."""
        return number == 0 and not (self.parts and n > MAX_SEEN)

    def weights(self, number: int, start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights from which committee ``number`` begins, of initial ones (n, L)."""
        if self.sees_all(number, start.shape[0]):
            return start
        drawn: NDArray[np.float64] = start * self.sample(number, start.shape[0])[:, None]
        drawn /= drawn.sum()
        return drawn


class Shared(NamedTuple):
    """What all fits have in common that one fit of the estimator makes."""

    groups: list[list[int]] | None = (
        None  # the features of each arm; None: one arm for each feature that is not constant
    )
    seed: int = 0
    mapper: Any = map


class FittedPolicy(NamedTuple):
    """A policy as a fit has left it, and what was asked for."""

    asked: tuple[Any, ...]
    candidate: Candidate
    state: Any
    rng: np.random.Generator
    pulls: Pulls


@dataclass
class Fit:
    """A fit under way. `advance` is the only thing that happens to it, in a `run` again and again."""

    settings: Settings
    candidate: Candidate
    shared: Shared
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
    n_learners: int  # to be found
    pulls_each: int  # at most, for a weak learner
    start: NDArray[np.float64]  # (n, L) initial weights of the examples as given, where committees need them
    committees: Committees | None
    number: int = 0  # of the committee at hand
    inside: int = 0  # weak learners that it has
    done: int = 0
    pace: int = 1  # weak learners from one look up to the next

    def again(self, data: Examples, n_learners: int, *key: int | str) -> Fit:
        """Another fit of the same kind, to other examples."""
        fit = new_fit(data, self.settings, self.candidate, n_learners, self.shared, *key)
        fit.advance(n_learners)
        return fit

    def run(self, stop: Stop | None, *, show: bool | None = False) -> None:
        """Advance to the last learner, or until ``stop`` says so; ``show`` as in `Progress`."""
        with Progress("boosting", self.n_learners, show=show) as progress:
            while self.done < self.n_learners:
                count = min(max(1, self.n_learners // LOOKS), self.n_learners - self.done)
                self.advance(count)
                progress.advance(count)
                if stop is not None and stop.look(self, count):
                    break

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
                certain = MAX_EDGE
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
            restrict_to_sample(self.grower, self.weights, drawn)

    def _make_room(self, needed: int) -> None:
        """Room for so many weak learners: twice as much as before, not for all at once, when they are very many."""
        there = self.learners.edge.size
        if needed <= there:
            return
        more = min(self.n_learners, max(needed, 2 * there)) - there
        room = room_for(more, self.settings, self.learners.votes.shape[2])
        self.learners = self.learners.followed_by(room)
        self.pulls = self.pulls.with_room(more * self.pulls_each)

    def _advance_alone(self, count: int, certain: float) -> int:
        with arms_exist(self.candidate.policy, self.arms.start.size - 1):
            found: int = self.loop(
                self.done, self.done + count, self.functions, self.binned, self.weights, self.search, self.shadow,
                self.grower, self.arms, self.pulls, self.learners, certain,
                PolicyCall(state=self.state, rng=self.rng),
            )  # fmt: skip
        return found

    def model(self, first: int = 0) -> Model:
        """The weak learners found so far, from ``first`` on."""
        return model_from(self.settings.kind, self.learners, self.binned, self.done).part(first, self.done)


def new_fit(
    data: Examples, settings: Settings, candidate: Candidate, n_learners: int, shared: Shared, *key: int | str,
    old: Model | None = None, played: FittedPolicy | None = None, binned: BinnedFeatures | None = None,
) -> Fit:  # fmt: skip
    """Prepare a fit of ``n_learners`` to examples, whose random numbers are told from those of other fits by ``key``.

    ``old`` is the model to go on from, ``played`` its policy, if that goes on too; ``binned`` the features as another fit to the
    same examples has them.
    """
    start = first_weights(data.signs, data.weight)
    committees, number, inside = None, 0, 0
    if candidate.committee is not None:
        parted = settings.kind == TREE
        committees = Committees(candidate.committee, parted, shared.seed, (*key, "committee"))
        if old is not None:
            begins = committee_begins(old.edge, committees.size)
            number, inside = begins.size - 1, old.n_learners - int(begins[-1])
    now = current_start(data, start, committees, old, shared.mapper)
    n, labels = data.signs.shape
    tree = settings.kind == TREE
    examples = group_examples(data.signs)
    if binned is None:
        binned = binned_features(data, settings, shared.mapper)
    arms = make_arms(binned, settings, candidate, shared.groups)
    lists, wide = bool(binned.listed.any()), bool(binned.wide.any())
    at_once = flushes_at_once(arms, examples.starts.size, lists)
    track = lists and not at_once and settings.kind == STUMP
    dtype = settings.dtype or (np.float64 if labels <= 8 or n * labels <= SMALL else np.float32)
    weights = new_weights(
        examples, now, dtype, depth=1 if at_once else None, patterns=settings.leaves if tree else None,
        flips=settings.kind == PRODUCT, spare=tree or wide, bounded=tree or (wide and not track),
    )  # fmt: skip
    new_search = partial(
        new_split_search, weights, inner=largest_bin(binned), lists=lists, track=track,
        tolerance=0.0 if settings.multiboost else TIES[np.dtype(dtype)], rows=n if tree else 0,
    )  # fmt: skip
    search = shadow = new_search()
    if arms.shadows:
        shadow = new_search(rows=0)
        shadow.least, shadow.row, shadow.code = search.least, search.row, search.code
        shadow.shuffle = np.zeros(n, np.int32)
    grower = new_grower(settings, weights)
    pulls_each = settings.searches * arms.per_search
    room = min(n_learners, FIRST_ROOM)
    learners = room_for(room, settings, labels)
    pulls = (new_pulls() if played is None else played.pulls).with_room(room * pulls_each)
    setting = Setting(arms.start.size - 1, horizon=max(n_learners * pulls_each + pulls.made, 2))
    parts = [] if candidate.policy is not None else parts_of(arms.features, weights, search.least, new_search)
    policy = candidate.policy or Uniform()  # full search has a single arm
    state: Any = None if played is None else played.state
    if state is None and candidate.practice is not None:
        state = candidate.practice.carried_to(arms, setting)
    state = policy.start(setting) if state is None else state
    rng = stream(shared.seed, *(key or ("policy",))) if played is None else played.rng
    functions = functions_of(settings.kind, binned, weights, search, grower, learners)
    fit = Fit(
        settings, candidate, shared, examples.rows, binned, weights, search, shadow, grower, functions, arms, pulls, learners,
        state, rng, boosting_loop(policy.kernels()), parts, n_learners, pulls_each,
        start if committees is not None else np.zeros((0, labels)), committees, number, inside,
    )  # fmt: skip
    fit.draw()
    return fit


def binned_features(data: Examples, settings: Settings, mapper: Any) -> BinnedFeatures:
    """The features as a learner of this kind reads them, examples group by group."""
    examples, tree = group_examples(data.signs), settings.kind == TREE
    return bin_features(
        data.X, examples.rows, examples.ends, stumps=not tree, single=settings.multiboost, mapper=mapper
    )


def flushes_at_once(arms: Arms, groups: int, lists: bool) -> bool:
    """Whether weights are written back after every update rather than put off.

    With many searches between two updates it pays to have the weights at hand; so it does where totals would have to be carried
    for many groups of labels.
    """
    crowded = arms.per_search * arms.features.size > MANY * (arms.start.size - 1)
    return crowded or (lists and groups > MANY_GROUPS)


def new_grower(settings: Settings, weights: ExampleWeights) -> StumpGrower | ProductGrower | TreeGrower:
    """The grower of examples with these weights."""
    n, padded = weights.values.shape
    smoothing = MULTIBOOST_SMOOTHING / n if settings.multiboost else 0.0
    if settings.kind == STUMP:
        return new_stump_grower(padded, smoothing)
    if settings.kind == PRODUCT:
        return new_product_grower(padded, settings.terms, smoothing)
    return new_tree_grower(weights, settings.leaves, smoothing)


def room_for(count: int, settings: Settings, labels: int) -> WeakLearners:
    """Room for ``count`` weak learners."""
    nodes = {STUMP: 1, PRODUCT: settings.terms, TREE: settings.leaves - 1}[settings.kind]
    return new_weak_learners(count, nodes, settings.leaves if settings.kind == TREE else 1, labels)


def current_start(
    data: Examples, start: NDArray[np.float64], committees: Committees | None, old: Model | None, mapper: Any
) -> NDArray[np.float64]:
    """The weights from which boosting goes on after ``old``, from initial ones; all (n, L)."""
    if old is None:
        return start if committees is None else committees.weights(0, start)
    begun = 0
    if committees is not None:
        begins = committee_begins(old.edge, committees.size)
        begun, start = int(begins[-1]), committees.weights(begins.size - 1, start)
    logs = -data.signs * old.part(begun, old.n_learners).scores(data.X, mapper)
    weights: NDArray[np.float64] = start * np.exp(logs - logs.max())
    return weights


def short_fits(settings: Settings, shared: Shared, data: Examples) -> Callable[..., Fit]:
    """A maker of fits to the same examples, whose features are coded once (see `abex.boosting.selection.Trials`)."""
    binned = binned_features(data, settings, shared.mapper)

    def fit(settings: Settings, candidate: Candidate, n_learners: int, *key: int | str) -> Fit:
        return new_fit(data, settings, candidate, n_learners, shared, *key, binned=binned)

    return fit


def check_unchanged(settings: Settings, old: Model) -> None:
    """With warm_start, refuse another kind of learner than the first one."""
    pairs: list[tuple[str, Any, Any]] = [("base", KINDS[old.kind], KINDS[settings.kind])]
    if settings.kind == TREE:
        pairs.append(("n_leaves", old.votes.shape[1], settings.leaves))
    if settings.kind == PRODUCT:
        pairs.append(("n_terms", old.feature.shape[1], settings.terms))
    for name, first, now in pairs:
        if first != now:
            raise UserError(
                f"with warm_start, {name} must stay {first!r}, not become {now!r}: set warm_start=False to fit anew"
            )
