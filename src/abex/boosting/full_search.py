"""Full search: there is nothing to choose, every feature is searched.

Where that is much work it is done in parts: each thread looks through some of the features, with scratch of its own.

The parts depend on the data alone, and the best of the first parts is kept unless a later one is better by more than a tie: the
result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import BinnedFeatures
from abex.boosting.loop import accept_at, begin_at, look_through, record_pull, reward_of
from abex.boosting.splitter import SplitSearch, forget
from abex.boosting.weights import ExampleWeights
from abex.kernels import compiled

if TYPE_CHECKING:
    from abex.boosting.fit import Fit

PARTS = 8
MIN_WORK = 5e7  # weights times features: a few milliseconds, below which threads cost more than they bring


class SearchPart(NamedTuple):
    """Some of the features, and the record of a search through them."""

    features: NDArray[np.int64]
    search: SplitSearch


def parts_of(
    features: NDArray[np.int64], w: ExampleWeights, least: NDArray[Any], fresh: Callable[[], SplitSearch]
) -> list[SearchPart]:
    """The parts of a search through ``features``; none where it is too small. ``least`` is what all searches share."""
    if features.size < 2 or float(w.slot.size) * w.labels * features.size < MIN_WORK:
        return []
    parts = [SearchPart(part, fresh()) for part in np.array_split(features, min(PARTS, features.size))]
    for part in parts:
        part.search.least = least
    return parts


@compiled()
def search_anew(
    search_one: int, features: NDArray[np.int64], binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch,
    grower: Any, scale: float,
) -> float:  # fmt: skip
    """Forget the last search and look through all of ``features``; returns the best edge."""
    forget(search, scale)
    return look_through(search_one, features, 0, features.size, binned, w, search, grower)


def advance_in_parts(fit: Fit, count: int, certain: float) -> int:
    """Find up to ``count`` more weak learners, as the compiled loop would."""
    for t in range(fit.done, fit.done + count):
        scale = begin_at(fit.functions.begin, fit.grower, fit.search, fit.weights)
        while scale > 0.0:
            edges = list(fit.shared.mapper(partial(_look, fit, scale), fit.parts))
            best = fit.parts[0].search
            for part in fit.parts[1:]:
                if part.search.edge > best.edge + best.tolerance * scale:
                    best = part.search
            record_pull(fit.pulls, 0, reward_of(max(edges) / scale))
            scale = accept_at(
                fit.functions.accept, t, fit.binned, fit.weights, best, fit.grower, fit.learners
            )
        if fit.learners.edge[t] >= certain:
            return t + 1 - fit.done
    return count


def _look(fit: Fit, scale: float, part: SearchPart) -> float:
    found: float = search_anew(
        fit.functions.search, part.features, fit.binned, fit.weights, part.search, fit.grower, scale
    )
    return found
