"""Full search in parts: each thread looks through some of the features, with scratch of its own.

The parts depend on the data alone, and the best of the first parts is kept unless a later one is better by more than a tie: the
result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.lanes import vectors
from abex.boosting.stages import record_pull, reward_of
from abex.boosting.stumps import EDGE, Search, forget
from abex.boosting.training import STEPS, Learner, look_through
from abex.boosting.weights import Weights
from abex.kernels import compiled

if TYPE_CHECKING:
    from abex.boosting.fitting import Fit

PARTS = 8
LEAST_WORK = 5e7  # weights times features: a few milliseconds, below which threads cost more than they bring


class Part(NamedTuple):
    """Features, and records that share everything with the fit's own but what a search writes."""

    features: NDArray[np.int64]
    weights: Weights
    search: Search
    learner: Learner


def parts_of(
    features: NDArray[np.int64],
    w: Weights,
    learner: Learner,
    least: NDArray[Any],
    fresh: Callable[[], Search],
) -> list[Part]:
    """The parts of a search through ``features``; none where it is too small. ``least`` is what all searches share."""
    if features.size < 2 or float(w.slot.size) * w.labels * features.size < LEAST_WORK:
        return []
    return [
        Part(
            part,
            w._replace(block=vectors(w.chunks, w.values.dtype)),
            fresh()._replace(least=least),
            learner._replace(spare=learner.spare.copy(), code=learner.code.copy()),
        )
        for part in np.array_split(features, min(PARTS, features.size))
    ]


@compiled()
def search_anew(
    try_one: int, features: Any, codes: Any, w: Any, search: Any, learner: Any, scale: float
) -> float:
    """Forget the last search and look through all of ``features``; returns the best edge."""
    forget(search, scale)
    return look_through(try_one, features, 0, features.size, codes, w, search, learner)


def advance_in_parts(fit: Fit, count: int) -> None:
    """Find ``count`` more classifiers, as the compiled loop would."""
    begin, _, accept = STEPS[fit.recipe.kind]
    for t in range(fit.done, fit.done + count):
        scale = begin(fit.learner, fit.search, fit.weights)
        while scale > 0.0:
            edges = list(fit.mapper(partial(_look, fit, scale), fit.parts))
            best = fit.parts[0].search
            for part in fit.parts[1:]:
                if part.search.best[EDGE] > best.best[EDGE] + best.tolerance * scale:
                    best = part.search
            record_pull(fit.pulls, 0, reward_of(max(edges) / scale))
            scale = accept(t, fit.codes, fit.weights, best, fit.learner, fit.stages, fit.votes)


def _look(fit: Fit, scale: float, part: Part) -> float:
    found: float = search_anew(
        fit.steps.search, part.features, fit.codes, part.weights, part.search, part.learner, scale
    )
    return found
