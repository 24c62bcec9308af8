r"""How many features a split of a tree looks at, and who chooses them: what short trials say.

The root of their number, at least 2 and at most 5, chosen uniformly, is enough where most features tell something: further ones
cost time and make trees alike, which makes votes too sure. Where few of many features tell anything, the best of five drawn at
random is mostly a bad one. So of 20 arms or more, 16 trees are fitted to four fifths of the rows (of 2,500 where there are
more) and judged on the rest: with five arms chosen uniformly and with 20. If the latter is not better and the former is wrong
less than half as often as the most frequent label, most features tell something, and that is all. Else five arms chosen by
`abex.policies.Screening` are tried, then 20, 80 ... arms a search, up to all or 640, by the better of the two. A step is taken
if it corrects significantly more answers than it spoils: of :math:`b` right only after it and :math:`c` right only before,
:math:`b - c > 2\sqrt{b + c}` (McNemar 1947).

Before it is tried, the policy *practises*: on trees of eight leaves, each from other rows, it learns which features gain more
than their shadows (`abex.boosting.boosting_loop`), about 40 rewards for an arm. What it has learnt then is where the fit begins.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from math import isqrt, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.booster import Booster, new_booster
from abex.boosting.boosting_loop import Arms
from abex.boosting.committees import Committees
from abex.boosting.examples import Examples
from abex.boosting.parameters import TREE_ARMS, BoostingParameters
from abex.boosting.weights import first_weights
from abex.kinds import saved
from abex.policies.policy import Setting
from abex.policies.screening import Screening
from abex.support.randomness import stream

MANY_ARMS = 20  # of fewer, the first number is taken without a trial
STEP = 4  # times as many arms in the next trial
TREES = 16
MOST_ROWS = 2500
PRACTICE, PRACTICE_LEAVES, PRACTICE_ARMS = 40, 8, 80
LEAST_ROWS = 50  # fewer tell nothing
MOST_ARMS = 640  # every pull is recorded


def candidates(arms: int) -> list[int]:
    """Numbers of arms to try, ascending.

    >>> candidates(4), candidates(16), candidates(500), candidates(10_000)
    ([2], [4], [5, 20, 80, 320, 500], [5, 20, 80, 320, 640])
    """
    last = min(arms, MOST_ARMS)
    found = [max(2, min(TREE_ARMS, isqrt(arms)))]
    if arms < MANY_ARMS:
        return found
    while STEP * found[-1] <= last:
        found.append(STEP * found[-1])
    return [*found, last] if last > found[-1] else found


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


def piloted(
    data: Examples, parameters: BoostingParameters, groups: list[list[int]] | None, seed: int, mapper: Any, multilabel: bool
) -> BoostingParameters:  # fmt: skip
    """The parameters that trials on ``data`` ask for: how many arms a search of trees looks at, and who chooses them."""
    numbers = candidates(data.X.shape[1] if groups is None else len(groups))
    order = stream(seed, "pilot").permutation(data.weight.size)[:MOST_ROWS]
    few = len(numbers) == 1 or order.size < LEAST_ROWS
    if parameters.adaptive:
        parameters = parameters._replace(per_search=numbers[0])
    if few:
        return parameters
    count = -(-4 * order.size // 5)
    seen, judged = data.rows(np.sort(order[:count])), data.rows(np.sort(order[count:]))
    new = partial(
        new_booster, seen.X, seen.signs, first_weights(seen.signs, seen.weight), groups=groups, mapper=mapper
    )

    def trial(chosen: BoostingParameters, *key: int | str) -> NDArray[np.bool_]:
        fit = new(chosen, TREES, rng=stream(seed, "pilot", *key))
        fit.advance(TREES)
        scores = fit.model().scores(judged.X, mapper)
        if multilabel:
            return np.asarray((scores > 0) == (judged.signs > 0))
        return np.asarray(scores.argmax(axis=1) == judged.signs.argmax(axis=1))

    new = partial(
        new, binned=new(parameters, TREES, rng=stream(seed, "pilot")).binned
    )  # the features are coded once
    if parameters.shadows:
        parameters = practised(new, parameters, seed)
    if not (parameters.screens or parameters.adaptive):
        return parameters

    def with_more_arms(
        chosen: BoostingParameters, right: NDArray[np.bool_], numbers: list[int]
    ) -> tuple[BoostingParameters, NDArray[np.bool_]]:
        for number in numbers:
            more = chosen._replace(per_search=number)
            now = trial(more, number)
            if not improves(now, right):
                break
            chosen, right = more, now
        return chosen, right

    first = trial(parameters, parameters.per_search)
    further = numbers[1:] if parameters.adaptive else []
    uniform, right = with_more_arms(parameters, first, further[:1])
    if further and uniform is parameters and tells_much(first, judged.signs, multilabel):
        return parameters
    if parameters.screens:
        screening = practised(new, parameters._replace(policy=Screening(), shadows=True), seed)
        now = trial(screening, "screening")
        if improves(now, first):
            return with_more_arms(screening, now, further)[0]
    return with_more_arms(uniform, right, further[1:])[0] if uniform is not parameters else parameters


def practised(new: Callable[..., Booster], parameters: BoostingParameters, seed: int) -> BoostingParameters:
    """The parameters with a policy that has seen small trees, each of other rows: about `PRACTICE` rewards for an arm."""
    small = parameters._replace(leaves=PRACTICE_LEAVES)
    arms = new(small, 1, rng=stream(seed, "practice")).arms.start.size - 1
    small = small._replace(per_search=min(arms, PRACTICE_ARMS))
    trees = -(-PRACTICE * arms // (small.per_search * small.searches))
    fit = new(
        small,
        trees,
        rng=stream(seed, "practice"),
        committees=Committees(1, True, seed, ("practice", "committee")),
    )
    fit.advance(trees)
    return parameters._replace(practice=Practice(parameters.policy, fit.state, fit.arms))


def tells_much(right: NDArray[np.bool_], signs: NDArray[np.int8], multilabel: bool) -> bool:
    """Whether answers are wrong less than half as often as those of somebody who knows how frequent labels are.

    >>> signs = np.array([[1, -1], [1, -1], [-1, 1], [1, -1]], np.int8)  # the first label is there in three of four rows
    >>> tells_much(np.array([True] * 4), signs, False), tells_much(np.array([True, True, False, True]), signs, False)
    (True, False)
    """
    share = (signs > 0).mean(axis=0)
    usual = np.maximum(share, 1.0 - share).mean() if multilabel else share.max()
    return bool(1.0 - right.mean() < 0.5 * (1.0 - usual))


def improves(now: NDArray[np.bool_], before: NDArray[np.bool_]) -> bool:
    """Whether answers are right now that were wrong before, significantly more than the other way round."""
    return corrects_more(int((now & ~before).sum()), int((before & ~now).sum()))


def corrects_more(corrected: int, spoilt: int) -> bool:
    """Whether so many answers are corrected, and so many spoilt, by more than chance.

    >>> corrects_more(9, 1), corrects_more(6, 4)
    (True, False)
    """
    return corrected - spoilt > 2.0 * sqrt(corrected + spoilt)
