r"""The value of a distribution :math:`\pi` over the arms from a log: what each row contributes.

With arm :math:`a_i`, probability :math:`p_i`, reward :math:`x_i` and weight :math:`w_i=\pi(a_i)/p_i` of row i, and
:math:`\hat q_k` the mean reward of arm k:

=================  =====================================================================================================
replay             mean reward of the rows kept with probability :math:`w_i/\max_j w_j` (rejection sampling)
IPS                :math:`\frac1n\sum_i w_ix_i` (inverse propensity)
SNIPS              :math:`\sum_iw_ix_i/\sum_iw_i` (self-normalised)
direct             :math:`\sum_k\pi_k\hat q_k`
doubly robust      :math:`\frac1n\sum_i\big(\sum_k\pi_k\hat q_k+w_i(x_i-\hat q_{a_i})\big)`, q from the other half of the rows
graph-IPS          :math:`\frac1n\sum_i\sum_{k\text{ observed}}\frac{\pi_k}{o_{ik}}x_{ik}`, o the probability of observation
=================  =====================================================================================================

IPS and graph-IPS are unbiased whenever the probabilities are right, also in logs of policies that learn; so is doubly
robust where rows are independent given the past. The direct method inherits the bias of the means of a policy that
learns (it stops looking at arms that began badly).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.evaluation.log import Log
from abex.randomness import stream

Floats = NDArray[np.float64]


class Contributions(NamedTuple):
    r"""What an estimate is made of: the ratio of the sums of two features of the rows, summed over arms.

    The value is :math:`\sum_f c_f\,\big(\sum_iy_{if}\big/\sum_iu_{if}\big)` over features f with coefficients c.
    """

    above: Floats  # (rows, features): y
    below: Floats  # (rows, features): u
    coefficient: Floats  # (features,)
    weights: Floats  # (rows,): what the effective sample size is taken of
    largest: float  # the largest contribution that a row can have, for a reward of 1

    def value(self) -> float:
        """The estimate."""
        return float(combine(self.above.sum(axis=0), self.below.sum(axis=0), self.coefficient))

    def telling(self, span: tuple[float, float]) -> float:
        """How many rows the estimate rests on, effectively: those whose reward is not the least, or not the largest."""
        counts = []
        for end in span:
            share = np.abs((self.above - end * self.below) * self.coefficient).sum(axis=1)
            squares = float((share**2).sum())
            counts.append(float(share.sum()) ** 2 / squares if squares > 0.0 else 0.0)
        return min(counts)

    @property
    def effective(self) -> float:
        """Kish's effective sample size of the weights."""
        squares = float((self.weights**2).sum())
        return float(self.weights.sum()) ** 2 / squares if squares > 0.0 else 0.0


def combine(above: Any, below: Any, coefficient: Floats) -> Any:
    """The value from the sums of the features, over the last axis; a feature without rows counts as 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(below > 0.0, above / below, 0.0)
    return (ratio * coefficient).sum(axis=-1)


def _mean_of_rows(contribution: Floats, weights: Floats) -> Contributions:
    largest = float(weights.max(initial=0.0))
    return Contributions(contribution[:, None], np.ones((contribution.size, 1)), np.ones(1), weights, largest)


def weights_of(log: Log, target: Floats) -> Floats:
    """The weight of each row."""
    return target[log.arm] / log.probability  # type: ignore[no-any-return]


def replay_rows(log: Log, target: Floats, seed: int = 0) -> Contributions:
    """Rejection: rows kept are as if the target had chosen them."""
    weights = weights_of(log, target)
    bound = weights.max(initial=0.0)
    kept = (
        stream(seed, "replay").random(len(log)) * bound < weights if bound > 0.0 else np.zeros(len(log), bool)
    )
    kept_rows = kept.astype(np.float64)
    largest = len(log) / max(float(kept_rows.sum()), 1.0)
    return Contributions(
        (kept_rows * log.reward)[:, None], kept_rows[:, None], np.ones(1), kept_rows, largest
    )


def ips(log: Log, target: Floats) -> Contributions:
    """Inverse propensity."""
    weights = weights_of(log, target)
    return _mean_of_rows(weights * log.reward, weights)


def snips(log: Log, target: Floats) -> Contributions:
    """Self-normalised inverse propensity."""
    weights = weights_of(log, target)
    return Contributions(
        (weights * log.reward)[:, None],
        weights[:, None],
        np.ones(1),
        weights,
        float(weights.max(initial=0.0)),
    )


def direct(log: Log, target: Floats) -> Contributions:
    """The target's mean of the arms' mean rewards."""
    used = np.flatnonzero(target > 0.0)
    chosen = (log.arm[:, None] == used).astype(np.float64)
    counts = chosen.sum(axis=0)
    with np.errstate(divide="ignore"):
        share = np.where(counts > 0.0, target[used] / counts, 0.0)
    weights = chosen @ share
    return Contributions(
        chosen * log.reward[:, None],
        chosen,
        target[used],
        weights,
        len(log) * float(weights.max(initial=0.0)),
    )


def doubly_robust(log: Log, target: Floats) -> Contributions:
    """The direct method, its error on the other half of the rows taken back by inverse propensity."""
    weights, contribution = weights_of(log, target), np.zeros(len(log))
    half = np.arange(len(log)) % 2
    for part in (0, 1):
        here, there = half == part, half != part
        counts = np.bincount(log.arm[there], minlength=log.n_arms)
        sums = np.bincount(log.arm[there], log.reward[there], log.n_arms)
        overall = float(log.reward[there].mean()) if there.any() else 0.0
        q = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
        contribution[here] = target @ q + weights[here] * (log.reward[here] - q[log.arm[here]])
    return _mean_of_rows(contribution, weights)


def graph_ips(log: Log, target: Floats) -> Contributions:
    """Every observation counts, weighed by the probability of observing."""
    observed = log.probability if log.observed is None else log.observed
    own = target[log.arm] / observed
    contribution, weights = own * log.reward, own.copy()
    if log.side is not None:
        row = np.repeat(np.arange(len(log)), np.diff(log.side.start))
        beside = target[log.side.arm] / log.side.probability
        contribution = contribution + np.bincount(row, beside * log.side.reward, len(log))
        weights = weights + np.bincount(row, beside, len(log))
    return _mean_of_rows(contribution, weights)


ESTIMATORS = {
    "replay": replay_rows,
    "IPS": ips,
    "SNIPS": snips,
    "direct": direct,
    "doubly robust": doubly_robust,
    "graph-IPS": graph_ips,
}
