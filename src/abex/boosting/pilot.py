r"""How many features a split of a tree looks at: more where short trials say that it pays.

The root of their number, at least 2 and at most 5, is enough where most features tell something: further ones cost time and make
trees alike, which makes votes too sure. Where few of many features tell anything, the best of five drawn at random is mostly
a bad one. So of 20 arms or more, 16 trees are fitted to four fifths of the rows (of 2,500 where there are more) with 5, 20, 80
... arms a search, up to all or 640, and judged on the rest. The next number is taken as long as it corrects significantly more
answers than it spoils: of :math:`b` right only with more arms and :math:`c` right only with fewer,
:math:`b - c > 2\sqrt{b + c}` (McNemar 1947).
"""

from __future__ import annotations

from itertools import pairwise
from math import isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.booster import new_booster
from abex.boosting.examples import Examples
from abex.boosting.parameters import TREE_ARMS, BoostingParameters
from abex.boosting.weights import first_weights
from abex.randomness import stream

MANY_ARMS = 20  # of fewer, the first number is taken without a trial
STEP = 4  # times as many arms in the next trial
TREES = 16
MOST_ROWS = 2500
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


def arms_worth_searching(
    data: Examples, parameters: BoostingParameters, groups: list[list[int]] | None, seed: int, mapper: Any, multilabel: bool
) -> int:  # fmt: skip
    """How many arms a search of trees is to look at, by trials on ``data``."""
    numbers = candidates(data.X.shape[1] if groups is None else len(groups))
    order = stream(seed, "pilot").permutation(data.weight.size)[:MOST_ROWS]
    if len(numbers) == 1 or order.size < LEAST_ROWS:
        return numbers[0]
    count = -(-4 * order.size // 5)
    seen, judged = data.rows(np.sort(order[:count])), data.rows(np.sort(order[count:]))
    start = first_weights(seen.signs, seen.weight)

    def trial(number: int) -> NDArray[np.bool_]:
        fit = new_booster(
            seen.X, seen.signs, start, parameters._replace(per_search=number), TREES, groups=groups,
            rng=stream(seed, "pilot", number), mapper=mapper,
        )  # fmt: skip
        fit.advance(TREES)
        scores = fit.model().scores(judged.X, mapper)
        if multilabel:
            return np.asarray((scores > 0) == (judged.signs > 0))
        return np.asarray(scores.argmax(axis=1) == judged.signs.argmax(axis=1))

    right = trial(numbers[0])
    for before, number in pairwise(numbers):
        now = trial(number)
        if not corrects_more(int((now & ~right).sum()), int((right & ~now).sum())):
            return before
        right = now
    return numbers[-1]


def corrects_more(corrected: int, spoilt: int) -> bool:
    """Whether so many answers are corrected, and so many spoilt, by more than chance.

    >>> corrects_more(9, 1), corrects_more(6, 4)
    (True, False)
    """
    return corrected - spoilt > 2.0 * sqrt(corrected + spoilt)
