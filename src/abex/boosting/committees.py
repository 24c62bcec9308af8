r"""Committees of weak learners: boosting that starts anew, from other examples.

AdaBoost never forgives: an example that is wrong again and again, such as one with a wrong label, gains weight for ever, and
long fits learn little else. *MultiBoosting* breaks a fit up into committees. Each begins with the initial weights of a random
sample of the examples, the first committee excepted, which has all of them, and boosts from there; the classifier is the sum
of all. Boosting inside a committee lowers the bias, averaging over committees the variance. A committee ends with so many weak
learners, or with one that is right everywhere: there is nothing to reweigh then.

Committees of trees see four fifths of the examples, drawn without replacement, and no more than 250,000: of a million examples
each committee, the first too, sees a quarter. Every example is then *out of the bag* of a
fifth of the committees, and probabilities are calibrated by these (`abex.boosting.calibration`). Committees of stumps and
products see all examples, weighed by independent draws from the exponential distribution (*wagging*).

References
----------
Webb 2000, "MultiBoosting: a technique for combining boosting and wagging", Machine Learning 40, Table 3. There the number
of committees follows from the number of weak learners (its square root); here the size of one is a parameter.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.weak_learners import CERTAIN
from abex.support.randomness import stream

SEEN = 0.8  # the share of the examples that a committee of trees sees
MOST_SEEN = 250_000  # examples: of more, every committee of trees sees others


def committee_begins(edge: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Where committees begin among weak learners with these edges; after them too, if the last one is complete.

    >>> committee_begins(np.array([0.5, 0.6, 0.4, 0.5, 1.0, 0.5]), 3).tolist()
    [0, 3, 5]
    """
    found = [0]
    for end in [*(np.flatnonzero(edge >= CERTAIN) + 1).tolist(), edge.size + size]:
        found += range(found[-1] + size, min(end, edge.size) + 1, size)
        if found[-1] < end <= edge.size:
            found.append(end)
    return np.array(found, np.int64)


class Committees(NamedTuple):
    """How large a committee is, whether it sees a part of the examples, and the seed and key of its sample."""

    size: int
    parts: bool
    seed: int
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
        drawn[rng.permutation(n)[: min(ceil(SEEN * n), MOST_SEEN)]] = 1.0
        return drawn

    def sees_all(self, number: int, n: int) -> bool:
        """Whether committee ``number`` has all of ``n`` examples as they are: the first one, unless they are very many."""
        return number == 0 and not (self.parts and n > MOST_SEEN)

    def weights(self, number: int, start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights from which committee ``number`` begins, of initial ones (n, L)."""
        if self.sees_all(number, start.shape[0]):
            return start
        drawn: NDArray[np.float64] = start * self.sample(number, start.shape[0])[:, None]
        drawn /= drawn.sum()
        return drawn
