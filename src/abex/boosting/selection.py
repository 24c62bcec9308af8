r"""What is left to data: every number that chooses something statistical, and the procedure that chooses by short trials.

*Sizes* follow from the number of rows: how many learners a fit has, and how many a committee of trees.

*Features.* For a split of a tree, the root of their number, at least 2 and at most 5, chosen uniformly, is enough where most
features tell something: further ones cost time and make trees alike, which makes votes too sure. Where few of many features tell
anything, the best of five drawn at random is mostly a bad one. So of 20 arms or more, 16 trees are fitted to four fifths of the
rows (of 2,500 where there are more) and judged by the rest: with five arms chosen uniformly and with 20. If the latter is not
better and the former is wrong less than half as often as the most frequent label, most features tell something, and that is all.
Else five arms chosen by `abex.policies.Screening` are tried, then 20, 80 ... arms a search, up to all or 640, by the better of
the two. A step is taken if it corrects significantly more answers than it spoils: of :math:`b` right only after it and :math:`c`
right only before, :math:`b - c > 2\sqrt{b + c}` (McNemar 1947).

Before it is tried, `Screening` *practises*: on trees of eight leaves, each from other rows, it learns which features gain more
than their shadows (`abex.boosting.loop`), about 40 rewards for an arm. What it has learnt then is where the fit begins.

Numbers that only cost time stand beside what they switch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import isqrt, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.settings import TREE, Settings
from abex.kinds import saved
from abex.policies.policy import Policy, Setting
from abex.policies.screening import Screening
from abex.support.randomness import stream

if TYPE_CHECKING:
    from abex.boosting.examples import Examples
    from abex.boosting.fit import Fit, Shared
    from abex.boosting.loop import Arms

# -- sizes: chosen on training rows of nine tables (benchmarks/boosting_robust.py, benchmarks/boosting_defaults.py)
N_TREES, N_OTHERS = 512, 1000  # learners of a fit
MANY_ROWS = (
    500_000  # of more, trees are half as many: their time grows with rows, what they miss no longer falls
)
MIN_COMMITTEE, MAX_COMMITTEE = 16, 128  # trees of a committee
ROWS_PER_TREE = 100  # of a committee: of more rows it can learn longer before it knows wrong labels by heart

# -- committees (`abex.boosting.fit.Committees`)
SEEN = 0.8  # share of the examples that a committee of trees sees: a fifth is out of its bag
MAX_SEEN = 250_000  # examples: of more, every committee of trees sees others

# -- arms of a search, and who names them: chosen with the sizes, and on tables of few good features
TREE_ARMS, OTHER_ARMS = 5, 2  # of trees before any trial, at most; of stumps and products
MANY_ARMS = 20  # of fewer, nothing is tried
STEP = 4  # times as many arms in the next trial
MAX_ARMS = 640  # every pull is recorded
TRIAL_TREES = 16
TRIAL_ROWS, MIN_TRIAL_ROWS = 2500, 50  # more cost time, fewer tell nothing
PRACTICE = 40  # rewards for an arm
PRACTICE_LEAVES, PRACTICE_ARMS = 8, 80  # of a tree and of a search of the practice

# -- calibration (`abex.boosting.calibration`)
PRIOR = 2.0  # shape of the gamma distribution of exponents
MIN_CALIBRATION_ROWS = 10  # of fewer rows none are set aside
MAX_CALIBRATION_ROWS = 10_000  # out of the bag: more tell nothing new about one number
ENOUGH_ROWS = 1000  # held out they calibrate, and judge by their error; in a fifth they need no other fifth
FIFTHS = 5
MIN_COMMITTEES = 12  # of fewer, most rows are out of the bag of none or one: there must be many rows then
GROWTH = 0.8  # how far the trend of the last doubling goes on: measured on pendigits, USPS, letter
TREND_ROWS = 200  # that many tell half as much about a trend as all there could be
UNCALIBRATED_ROWS = 1000  # said to have shown that probabilities are right where nobody looked
MIN_CALIBRATION_FIT = 50  # learners: a model up to this size is calibrated by fits as long as itself

# -- early stopping (`abex.boosting.stopping`)
MIN_HELD = 50  # rows held out: fewer are joined by those out of the bag
RECENT = 0.5  # of the patience: losses are means over so many of the last iterations

# -- categories (`abex.boosting.categories`): SURE_ROWS chosen among eight rules on splits of a census table
CATEGORY_SMOOTHING = 10.0  # rows of the mean that are added to each category
SURE_ROWS = 20  # rows of a category that hide the label of each of them
CATEGORY_FOLDS = 5


class Candidate(NamedTuple):
    """What data choose where a parameter is "auto": who names features, how many at a time, how large a committee is."""

    policy: Policy[Any] | None = None  # None: full search
    per_search: int = 1
    committee: int | None = None  # learners; None: all are one
    practice: Practice | None = None


class Practice(NamedTuple):
    """What a policy has learnt from a few small trees, and the features of its arms there."""

    policy: Any
    state: Any
    arms: Arms

    def carried_to(self, arms: Arms, setting: Setting) -> Any:
        """The state for the arms of a fit to other rows, in which other features may vary; None where it cannot be had."""
        state = copy.deepcopy(self.state)
        before, now = self.arms.features, arms.features
        if np.array_equal(self.arms.start, arms.start) and np.array_equal(before, now):
            return state
        if before.size != self.arms.start.size - 1 or now.size != setting.n_arms:  # arms of several features
            return state if self.arms.start.size == arms.start.size else None
        if not self.policy.can_resize(state):
            return None
        kept = np.flatnonzero(np.isin(before, now))
        features = np.concatenate([before[kept], np.setdiff1d(now, before)])
        changed = self.policy.resume(setting, saved(state), kept)
        return self.policy.resume(setting, saved(changed), np.argsort(features))


def n_learners_for(settings: Settings, rows: int) -> int:
    """Learners of a fit to so many rows.

    >>> n_learners_for(Settings(TREE), 1_000), n_learners_for(Settings(TREE), 10**6), n_learners_for(Settings(), 10**6)
    (512, 256, 1000)
    """
    if settings.n_learners is not None:
        return settings.n_learners
    if settings.kind != TREE:
        return N_OTHERS
    return N_TREES // 2 if rows > MANY_ROWS else N_TREES


def committee_for(settings: Settings, rows: int) -> int | None:
    """Learners of a committee of a fit to so many rows.

    >>> [committee_for(Settings(TREE, one_committee=False), rows) for rows in (500, 5_000, 10**6)]
    [16, 50, 128]
    """
    if settings.one_committee or settings.committee is not None:
        return settings.committee
    return max(MIN_COMMITTEE, min(MAX_COMMITTEE, rows // ROWS_PER_TREE))


def numbers_of_arms(arms: int) -> list[int]:
    """Arms of a search of trees, ascending: the first number is taken where no trial says more.

    >>> numbers_of_arms(4), numbers_of_arms(16), numbers_of_arms(500), numbers_of_arms(10_000)
    ([2], [4], [5, 20, 80, 320, 500], [5, 20, 80, 320, 640])
    """
    last = min(arms, MAX_ARMS)
    found = [max(2, min(TREE_ARMS, isqrt(arms)))]
    if arms < MANY_ARMS:
        return found
    while STEP * found[-1] <= last:
        found.append(STEP * found[-1])
    return [*found, last] if last > found[-1] else found


def first_candidate(settings: Settings, arms: int, committee: int | None) -> Candidate:
    """What a fit with so many arms is before any trial."""
    per_search = settings.per_search
    if per_search is None:
        searched = numbers_of_arms(arms)[0] if settings.policy is not None else TREE_ARMS
        per_search = searched if settings.kind == TREE else OTHER_ARMS
    return Candidate(settings.policy, per_search, committee)


class Trials(NamedTuple):
    """Short fits to some rows, whose answers for others are compared."""

    settings: Settings
    fit: Callable[..., Fit]  # (settings, candidate, n_learners, *key of its random numbers) to the rows seen
    judging: Examples
    multilabel: bool
    mapper: Any

    def right(self, candidate: Candidate, *key: int | str) -> NDArray[np.bool_]:
        """Which answers of a short fit are right, of labels or of rows."""
        fit = self.fit(self.settings, candidate._replace(committee=None), TRIAL_TREES, "pilot", *key)
        fit.advance(TRIAL_TREES)
        scores, signs = fit.model().scores(self.judging.X, self.mapper), self.judging.signs
        if self.multilabel:
            return np.asarray((scores > 0) == (signs > 0))
        return np.asarray(scores.argmax(axis=1) == signs.argmax(axis=1))

    def with_more_arms(
        self, chosen: Candidate, right: NDArray[np.bool_], numbers: list[int]
    ) -> tuple[Candidate, NDArray[np.bool_]]:
        """The candidate with the last of ``numbers`` that was better than the one before; and what it has right."""
        for number in numbers:
            more = chosen._replace(per_search=number)
            now = self.right(more, number)
            if not is_better(now, right):
                break
            chosen, right = more, now
        return chosen, right


def select(
    settings: Settings, first: Candidate, arms: int, data: Examples, new_fits: Callable[[Examples], Callable[..., Fit]],
    shared: Shared, multilabel: bool,
) -> Candidate:  # fmt: skip
    """The candidate that trials on ``data`` ask for. ``new_fits`` makes short fits to the rows that it is given."""
    adaptive = settings.per_search is None and settings.kind == TREE and settings.policy is not None
    numbers = numbers_of_arms(arms)[1:] if adaptive else []
    shadows = settings.pays_by_shadows(first.policy)
    if arms < MANY_ARMS or not (numbers or settings.may_screen or shadows):
        return first  # nothing is left open
    order = stream(shared.seed, "pilot").permutation(data.weight.size)[:TRIAL_ROWS]
    if order.size < MIN_TRIAL_ROWS:
        return first
    count = -(-4 * order.size // 5)
    seen, judging = data.rows(np.sort(order[:count])), data.rows(np.sort(order[count:]))
    trials = Trials(settings, new_fits(seen), judging, multilabel, shared.mapper)
    if shadows:
        first = practised(trials.fit, settings, first)
    if not (settings.may_screen or numbers):
        return first
    before = trials.right(first, first.per_search)
    uniform, right = trials.with_more_arms(first, before, numbers[:1])
    if numbers and uniform is first and tells_much(before, judging.signs, multilabel):
        return first
    if settings.may_screen:
        screening = practised(trials.fit, settings, first._replace(policy=Screening()))
        now = trials.right(screening, "screening")
        if is_better(now, before):
            return trials.with_more_arms(screening, now, numbers)[0]
    return trials.with_more_arms(uniform, right, numbers[1:])[0] if uniform is not first else first


def practised(new_fit: Callable[..., Fit], settings: Settings, candidate: Candidate) -> Candidate:
    """The candidate with a policy that has seen small trees, each of other rows: about `PRACTICE` rewards for an arm."""
    small = settings._replace(leaves=PRACTICE_LEAVES)  # of fits of their own
    arms = new_fit(small, candidate, 1, "practice").arms.start.size - 1
    each = candidate._replace(per_search=min(arms, PRACTICE_ARMS), committee=1)
    trees = -(-PRACTICE * arms // (each.per_search * small.searches))
    fit = new_fit(small, each, trees, "practice")
    fit.advance(trees)
    return candidate._replace(practice=Practice(candidate.policy, fit.state, fit.arms))


def tells_much(right: NDArray[np.bool_], signs: NDArray[np.int8], multilabel: bool) -> bool:
    """Whether answers are wrong less than half as often as those of somebody who knows how frequent labels are.

    >>> signs = np.array([[1, -1], [1, -1], [-1, 1], [1, -1]], np.int8)  # the first label is there in three of four rows
    >>> tells_much(np.array([True] * 4), signs, False), tells_much(np.array([True, True, False, True]), signs, False)
    (True, False)
    """
    share = (signs > 0).mean(axis=0)
    usual = np.maximum(share, 1.0 - share).mean() if multilabel else share.max()
    return bool(1.0 - right.mean() < 0.5 * (1.0 - usual))


def is_better(now: NDArray[np.bool_], before: NDArray[np.bool_]) -> bool:
    """Whether answers are right now that were wrong before, significantly more than the other way round."""
    return mcnemar_better(int((now & ~before).sum()), int((before & ~now).sum()))


def mcnemar_better(corrected: int, spoilt: int) -> bool:
    """Whether so many answers are corrected, and so many spoilt, by more than chance.

    >>> mcnemar_better(9, 1), mcnemar_better(6, 4)
    (True, False)
    """
    return corrected - spoilt > 2.0 * sqrt(corrected + spoilt)
