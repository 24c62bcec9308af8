"""Products of stumps: h_l(x) = a v_l phi_1(x) ... phi_m(x) (Kégl and Busa-Fekete 2009).

Terms are fitted in turn: with those before it fixed, a term is the best stump for labels multiplied by
their signs. A sign is one more bit of an example's slot, and the table of factors has a negative half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import BinnedFeatures
from abex.boosting.learners import WeakLearners, coefficient_of, normaliser, record_split, record_votes
from abex.boosting.splitter import SplitSearch, mark, read_votes
from abex.boosting.weights import ExampleWeights, flush_if_full, sum_up, update
from abex.kernels import Record, compiled, kernel


class ProductGrower(Record):
    """A product under way: the splits of its terms, and which of them is searched."""

    feature: NDArray[np.int64]  # (terms,) -1: no term yet
    rank: NDArray[np.int64]
    missing_right: NDArray[np.bool_]
    gain: NDArray[np.float64]  # what a term added to the edge
    votes: NDArray[np.float64]  # (padded labels,)
    terms: int
    smoothing: float
    term: int  # the one searched
    edge: float  # of the product so far
    sign: float  # the product of all (-marked_side)


def new_product_grower(padded: int, terms: int, smoothing: float) -> ProductGrower:
    """A grower for rows of ``padded`` labels."""
    return ProductGrower(
        feature=np.zeros(terms, np.int64),
        rank=np.zeros(terms, np.int64),
        missing_right=np.zeros(terms, np.bool_),
        gain=np.zeros(terms),
        votes=np.zeros(padded),
        terms=terms,
        smoothing=smoothing,
    )


@compiled()
def begin_product(grower: ProductGrower, search: SplitSearch, w: ExampleWeights) -> float:
    """Forget the last product; returns the sum of the weights to search in."""
    flush_if_full(w)
    grower.term = 0
    grower.edge = 0.0
    grower.sign = 1.0
    for k in range(grower.terms):
        grower.feature[k] = -1
        grower.gain[k] = 0.0
    if search.lists:
        sum_up(w)
    return w.sum


@compiled()
def accept_term(
    t: int, binned: BinnedFeatures, w: ExampleWeights, search: SplitSearch, grower: ProductGrower, learners: WeakLearners
) -> float:  # fmt: skip
    """Take the stump found as the present term if it helps; returns 0 when the product is finished."""
    k = grower.term
    slack = search.tolerance * w.sum
    if search.feature >= 0 and search.edge > grower.edge + slack:
        grower.gain[k] += search.edge - grower.edge
        grower.edge = search.edge
        read_votes(search, grower.sign, grower.votes)
        grower.feature[k] = search.feature
        grower.rank[k] = search.rank
        grower.missing_right[k] = search.missing_right
        marked_side = mark(binned, search.feature, search.rank, search.missing_right, w.slot, w.stride // 2)
        grower.sign *= -marked_side
        for m in range(w.total.size):  # the signed totals under the new signs are the edges just found
            w.total[m] = -marked_side * search.best[0, m]
    grower.term = k + 1
    if grower.term == grower.terms:
        finish_product(t, w, grower, learners)
        return 0.0
    return w.sum


@kernel
def finish_product(t: int, w: ExampleWeights, grower: ProductGrower, learners: WeakLearners) -> None:
    """Record the product and put its update off."""
    if grower.edge <= 0.0:
        return
    edge = min(grower.edge / w.sum, 1.0)
    coefficient = coefficient_of(edge, grower.smoothing)
    node = 0
    for k in range(grower.terms):
        if grower.feature[k] >= 0:
            gain = grower.gain[k] / w.sum
            record_split(learners, t, node, grower.feature[k], grower.rank[k], grower.missing_right[k], gain)
            node += 1
    record_votes(learners, t, 0, grower.votes)
    learners.coefficient[t] = coefficient
    learners.edge[t] = edge
    negative = w.stride // 2
    change = negative | (1 << w.pending)
    slot = w.slot
    for i in range(slot.size):
        slot[i] ^= change if slot[i] & negative else 0
    w.sum *= normaliser(edge, coefficient)
    update(w, grower.votes, edge, coefficient, -grower.sign)
