"""Products of stumps: h_l(x) = a v_l phi_1(x) ... phi_m(x) (Kégl and Busa-Fekete 2009).

Terms are fitted in turn: with the other terms fixed, a term is the best stump for labels multiplied by
their signs. A sign is one more bit of an example's slot, and the table of factors has a negative half.
"""

from __future__ import annotations

from typing import Any

from abex.boosting.stages import coefficient_of, normaliser, read_votes, record_cut, record_votes
from abex.boosting.stumps import EDGE, FEATURE, MISSING_RIGHT, RANK, mark
from abex.boosting.weights import NOW, sum_up, update
from abex.kernels import compiled, kernel

TERM, CYCLE = 0, 1  # places in Learner.at
PRODUCT_EDGE, SIGN = 0, 1  # places in Learner.value; SIGN: the product of all (-flagged)


@compiled()
def begin_product(learner: Any, search: Any, w: Any) -> float:
    """Forget the last product; returns the sum of the weights to search in."""
    learner.at[TERM] = 0
    learner.at[CYCLE] = 0
    learner.value[PRODUCT_EDGE] = 0.0
    learner.value[SIGN] = 1.0
    for k in range(learner.terms):
        learner.cut[k, FEATURE] = -1
        learner.gain[k] = 0.0
    if search.lists:
        sum_up(w)
    return float(w.numbers[NOW])


@compiled()
def accept_term(t: int, codes: Any, w: Any, search: Any, learner: Any, stages: Any, votes: Any) -> float:
    """Take the stump found as the present term if it helps; returns 0 when the product is finished."""
    k = learner.at[TERM]
    slack = search.tolerance * w.numbers[NOW]
    if search.cut[FEATURE] >= 0 and search.best[EDGE] > learner.value[PRODUCT_EDGE] + slack:
        learner.gain[k] += search.best[EDGE] - learner.value[PRODUCT_EDGE]
        learner.value[PRODUCT_EDGE] = search.best[EDGE]
        read_votes(search, w.chunks, learner.value[SIGN], votes)
        for m in range(4):
            learner.cut[k, m] = search.cut[m]
        flagged = toggle(codes, w, learner, k)
        lanes = w.values.shape[1]
        for m in range(w.total.size):  # the signed totals under the new signs are the edges just found
            w.total[m] = -flagged * search.edges[2 * w.chunks + m // lanes, m % lanes]
    elif learner.cut[k, FEATURE] >= 0:
        toggle(codes, w, learner, k)
        if search.lists:
            sum_up(w)
    learner.at[TERM] = k + 1
    if k + 1 == learner.terms:
        learner.at[TERM] = 0
        learner.at[CYCLE] += 1
        if learner.at[CYCLE] == learner.cycles:
            finish_product(t, w, search, learner, stages, votes)
            return 0.0
    k = learner.at[TERM]
    if learner.cut[k, FEATURE] >= 0:
        toggle(codes, w, learner, k)
        if search.lists:
            sum_up(w)
    return float(w.numbers[NOW])


@kernel
def toggle(codes: Any, w: Any, learner: Any, k: int) -> float:
    """Multiply the signs of all examples by term k (twice is once undone); returns `mark`'s side."""
    cut = learner.cut[k]
    flagged = mark(codes, cut[FEATURE], cut[RANK], cut[MISSING_RIGHT], w.slot, w.stride // 2)
    learner.value[SIGN] *= -flagged
    return float(flagged)


@kernel
def finish_product(t: int, w: Any, search: Any, learner: Any, stages: Any, votes: Any) -> None:
    """Record the product and put its update off."""
    if learner.value[PRODUCT_EDGE] <= 0.0:
        return
    edge = min(learner.value[PRODUCT_EDGE] / w.numbers[NOW], 1.0)
    coefficient = coefficient_of(edge, learner.smoothing)
    node = 0
    for k in range(learner.terms):
        if learner.cut[k, FEATURE] >= 0:
            record_cut(stages, t, node, learner.cut[k], learner.gain[k] / w.numbers[NOW])
            node += 1
    record_votes(stages, t, 0, votes)
    stages.coefficient[t] = coefficient
    stages.edge[t] = edge
    negative = w.stride // 2
    change = negative | (1 << w.counts[0])
    for i in range(w.slot.size):
        w.slot[i] ^= change if w.slot[i] & negative else 0
    w.numbers[NOW] *= normaliser(edge, coefficient)
    update(w, votes, edge, coefficient, -learner.value[SIGN])
