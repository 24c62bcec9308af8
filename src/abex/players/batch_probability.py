r"""The probability that an arm is in a batch of decisions made at once.

A batch is drawn arm by arm from the policy's distribution p, restricted to the arms not yet in it. **Where all arms have a
positive probability** that is by_quadrature sampling (Plackett and Luce): give arm j an exponential time of rate :math:`p_j`, and
the batch is the k arms whose times are first. So arm i is in it with probability

.. math:: \int_0^\infty p_i e^{-p_i s}\; P\Big(\sum_{j\ne i} 1[T_j<s] < k\Big)\,ds ,

where the count of others is a sum of independent coins of chances :math:`1-e^{-p_j s}`. The integral is done with :math:`s` as a
function of :math:`u=e^{-p_i s}` by the double exponential rule, which is dense at both ends, the counts by the usual recursion.

**Otherwise** (a policy that knows what it wants and breaks ties) the ways in which a batch can come about are followed one
by one, up to a limit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.players.policy_runner import PolicyRunner
from abex.support.errors import UserError

STEP, REACH = 0.04, 4.6  # of the double exponential rule
MOST_WORK = 2 * 10**9  # elementary steps of the recursion: some seconds
MOST_SETS = 2_000  # batches that are followed one by one


def inclusion_probability(replica: PolicyRunner, t: int, k: int, place: int) -> float:
    """The probability that the arm at ``place`` is among ``k`` decisions that are made at once at step t."""
    if k >= replica.n_arms:
        return 1.0
    if replica.policy.probabilities is None:
        raise UserError(f"{replica.policy} has no closed form for its probabilities")
    p = replica.probabilities(t)
    if np.count_nonzero(p > 0.0) == p.size:
        return by_quadrature(p, k, place)
    return _by_enumeration(replica, t, k, place)


def inclusion_probabilities(replica: PolicyRunner, t: int, k: int) -> NDArray[np.float64]:
    """The probability that each arm is among ``k`` decisions that are made at once at step t."""
    if k == 1:
        return replica.probabilities(t)
    return np.array([inclusion_probability(replica, t, k, place) for place in range(replica.n_arms)])


def by_quadrature(p: NDArray[np.float64], k: int, place: int) -> float:
    """The probability of being among the first ``k`` of by_quadrature sampling with positive probabilities ``p``.

    >>> round(by_quadrature(np.array([0.5, 0.3, 0.2]), 2, 0), 6)  # 0.5 + 0.3 * 0.5 / 0.7 + 0.2 * 0.5 / 0.8
    0.839286
    """
    log, weights = _nodes()
    if float(p.size) * k * log.size > MOST_WORK:
        raise UserError(
            f"the probability of being in a batch of {k} of {p.size} arms takes too long to work out"
        )
    rate = p / p[place]
    others = np.delete(rate, place)
    counts = np.zeros((k, log.size))  # probability that j others are before, for j < k
    counts[0] = 1.0
    for one in others:
        late = np.exp(one * log)  # the other is after
        counts[1:] = counts[1:] * late + counts[:-1] * (1.0 - late)
        counts[0] *= late
    return float(min(1.0, weights @ counts.sum(axis=0)))


@cache
def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the nodes in (0, 1), and their weights."""
    x = np.arange(-REACH, REACH + STEP / 2.0, STEP)
    far = np.pi * np.sinh(x)
    log, log_rest = -np.logaddexp(0.0, -far), -np.logaddexp(0.0, far)
    return log, STEP * np.pi * np.cosh(x) * np.exp(log + log_rest)


def _by_enumeration(replica: PolicyRunner, t: int, k: int, place: int) -> float:
    """By following every way in which a batch can come about; sets of arms taken, each with its probability."""
    sets: dict[frozenset[int], float] = {frozenset(): 1.0}
    found = 0.0
    for step in range(k):
        following: dict[frozenset[int], float] = {}
        for taken, chance in sets.items():
            distribution = _next(replica, t, taken, step)
            found += chance * float(distribution[place])
            for arm in np.flatnonzero(distribution):
                if arm != place:
                    grown = taken | {int(arm)}
                    following[grown] = following.get(grown, 0.0) + chance * float(distribution[arm])
        if len(following) > MOST_SETS:
            raise UserError(
                f"there are too many ways to a batch of {k}: its probabilities cannot be worked out"
            )
        sets = following
    return min(1.0, found)


def _next(replica: Any, t: int, taken: frozenset[int], step: int) -> NDArray[np.float64]:
    """The distribution of the next arm of a batch."""
    if step == 0:
        first: NDArray[np.float64] = replica.probabilities(t)
        return first
    rest = np.setdiff1d(np.arange(replica.n_arms), np.fromiter(taken, np.int64))
    distribution: NDArray[np.float64] | None = replica.restricted(rest, t)
    if distribution is None:
        distribution = np.zeros(replica.n_arms)
        distribution[rest] = replica.alone_with(rest).probabilities(t)
    return distribution
