r"""The value of a distribution :math:`\pi` over the arms from a log: what each row contributes.

With arm :math:`a_i`, probability :math:`p_i`, reward :math:`x_i` and weight :math:`w_i=\pi(a_i)/p_i` of row i, and
:math:`\hat q_k` the mean reward of arm k:

=================  =====================================================================================================
replay             mean reward of the rows kept with probability :math:`w_i/\max_j w_j` (rejection sampling)
IPS                :math:`\frac1n\sum_i w_ix_i` (inverse propensity)
SNIPS              :math:`\sum_iw_ix_i/\sum_iw_i` (self-normalised)
direct             :math:`\sum_k\pi_k\hat q_k`
doubly robust      :math:`\frac1n\sum_i\big(\sum_k\pi_k\hat q_k+w_i(x_i-\hat q_{a_i})\big)`, q from rows before
graph-IPS          :math:`\frac1n\sum_i\sum_{k\text{ observed}}\frac{\pi_k}{o_{ik}}x_{ik}`, o the probability of observation
=================  =====================================================================================================

IPS, doubly robust and graph-IPS are unbiased whenever the probabilities are right, also in logs of policies that learn, since
what a row is weighed by and compared with was known before its reward. The direct method inherits the bias of the means of a
policy that learns (it stops looking at arms that began badly).

In a batch (`abex.evaluation.batches`) :math:`\pi` and p are probabilities of being in it, and :math:`\sum_k\pi_k\hat q_k` is
divided by its size. Targets are arrays: a distribution over the arms, or for logs with batches a row for each size of
`Log.units`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.evaluation.log import Log
from abex.support.randomness import stream

Floats = NDArray[np.float64]
MAX_BLOCKS = 30  # of rows that are compared with the same means


class Contributions(NamedTuple):
    r"""What an estimate is made of: the ratio of the sums of two features of the units, summed over features.

    A unit is what was decided at once: a batch, or a row by itself. The value is
    :math:`\sum_f c_f\,\big(\sum_iy_{if}\big/\sum_iu_{if}\big)` over features f with coefficients c.
    """

    above: Floats  # (units, features): y
    below: Floats  # (units, features): u
    coefficient: Floats  # (features,)
    weights: Floats  # (units,): of mean 1, where the log could choose all that the target does
    gains: Floats  # (units,): weights times rewards
    shares: Floats  # (units,): what the effective sample size is taken of

    def value(self) -> float:
        """The estimate."""
        return float(combine(self.above.sum(axis=0), self.below.sum(axis=0), self.coefficient))

    def informative_rows(self, span: tuple[float, float]) -> float:
        """How many units the estimate rests on, effectively: those whose reward is not the least, or not the largest."""
        counts = []
        for end in span:
            share = np.abs((self.above - end * self.below) * self.coefficient).sum(axis=1)
            squares = float((share**2).sum())
            counts.append(float(share.sum()) ** 2 / squares if squares > 0.0 else 0.0)
        return min(counts)

    @property
    def effective(self) -> float:
        """Kish's effective sample size, in units."""
        squares = float((self.shares**2).sum())
        return float(self.shares.sum()) ** 2 / squares if squares > 0.0 else 0.0


def combine(above: Any, below: Any, coefficient: Floats) -> Any:
    """The value from the sums of the features, over the last axis; a feature without rows counts as 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(below > 0.0, above / below, 0.0)
    return (ratio * coefficient).sum(axis=-1)


def weights_of(log: Log, target: Floats) -> Floats:
    """The weight of each row."""
    return np.atleast_2d(target)[log.units.kind, log.arm] / log.probability  # type: ignore[no-any-return]


def _weighed(log: Log, weights: Floats, gains: Floats) -> tuple[Floats, Floats]:
    """Sums of rows by unit, as parts of the mean unit."""
    share = log.units.start.size / len(log)
    return log.units.sums(weights) * share, log.units.sums(gains) * share


def _mean_of_rows(log: Log, contribution: Floats, weights: Floats, gains: Floats) -> Contributions:
    above, below = log.units.sums(contribution), log.units.sums(np.ones(len(log)))
    pair = _weighed(log, weights, gains)
    return Contributions(above[:, None], below[:, None], np.ones(1), *pair, pair[0])


def self_normalised(weights: Floats, gains: Floats) -> Contributions:
    """The ratio of the gains of all units to their weights."""
    return Contributions(gains[:, None], weights[:, None], np.ones(1), weights, gains, weights)


def _ratio(log: Log, weights: Floats) -> Contributions:
    return self_normalised(*_weighed(log, weights, weights * log.reward))


def replay_rows(log: Log, target: Floats, seed: int = 0) -> Contributions:
    """Rejection: rows kept are as if the target had chosen them."""
    weights = weights_of(log, target)
    bound = float(weights.max(initial=0.0))
    kept = stream(seed, "replay").random(len(log)) * bound < weights
    return _ratio(log, np.where(kept, bound, 0.0))


def ips(log: Log, target: Floats) -> Contributions:
    """Inverse propensity."""
    weights = weights_of(log, target)
    return _mean_of_rows(log, weights * log.reward, weights, weights * log.reward)


def snips(log: Log, target: Floats) -> Contributions:
    """Self-normalised inverse propensity."""
    return _ratio(log, weights_of(log, target))


def direct(log: Log, target: Floats) -> Contributions:
    """The target's mean of the arms' mean rewards."""
    units, weights = log.units, weights_of(log, target)
    decided = np.bincount(units.kind, 1.0 / units.sizes[units.kind]) / len(log)
    wanted = decided @ np.atleast_2d(target)
    used = np.flatnonzero(wanted > 0.0)
    chosen = (log.arm[:, None] == used).astype(np.float64)
    counts = chosen.sum(axis=0)
    with np.errstate(divide="ignore"):
        share = np.where(counts > 0.0, wanted[used] / counts, 0.0)
    pair = _weighed(log, weights, weights * log.reward)
    return Contributions(
        units.sums(chosen * log.reward[:, None]), units.sums(chosen), wanted[used], *pair, units.sums(chosen @ share)
    )  # fmt: skip


def doubly_robust(log: Log, target: Floats) -> Contributions:
    """The direct method with the means of earlier rows, its error taken back by inverse propensity."""
    units, weights = log.units, weights_of(log, target)
    by_size = np.atleast_2d(target) / units.sizes[:, None]
    counts, sums, contribution = np.zeros(log.n_arms), np.zeros(log.n_arms), np.zeros(len(log))
    blocks = np.linspace(0, units.start.size, min(units.start.size, MAX_BLOCKS) + 1).astype(np.int64)
    edges = np.append(units.start, len(log))[blocks]
    for begin, end in pairwise(edges.tolist()):
        here = slice(begin, end)
        arm, reward = log.arm[here], log.reward[here]
        overall = float(sums.sum()) / max(float(counts.sum()), 1.0)
        q = np.where(counts > 0.0, sums / np.maximum(counts, 1.0), overall)
        contribution[here] = (by_size @ q)[units.kind[here]] + weights[here] * (reward - q[arm])
        counts += np.bincount(arm, minlength=log.n_arms)
        sums += np.bincount(arm, reward, log.n_arms)
    return _mean_of_rows(log, contribution, weights, weights * log.reward)


def graph_ips(log: Log, target: Floats) -> Contributions:
    """Every observation counts, weighed by the probability of observing."""
    observed = log.probability if log.observed is None else log.observed
    wanted = np.atleast_2d(target)
    weights = wanted[log.units.kind, log.arm] / observed
    gains = weights * log.reward
    if log.side is not None:
        row = np.repeat(np.arange(len(log)), np.diff(log.side.start))
        beside = wanted[log.units.kind[row], log.side.arm] / log.side.probability
        gains = gains + np.bincount(row, beside * log.side.reward, len(log))
        weights = weights + np.bincount(row, beside, len(log))
    return _mean_of_rows(log, gains, weights, gains)


ESTIMATORS = {
    "replay": replay_rows,
    "IPS": ips,
    "SNIPS": snips,
    "direct": direct,
    "doubly robust": doubly_robust,
    "graph-IPS": graph_ips,
}
