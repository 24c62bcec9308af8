r"""How sure a value is: intervals from the likelihood of weights and rewards, as in betting on them.

**The bet.** Somebody who believes that a value V is more than v, and sees numbers :math:`y_i\ge0` of mean V one after the
other, stakes a share f of what he has on each: it grows by :math:`1-f+f\,y_i/v`. If V is at most v, then whatever he does he
becomes :math:`e^g` times as rich with probability at most :math:`e^{-g}` (Ville). The lower end is the largest v at which the
best share in hindsight would have made

.. math:: g(v)=\max_{0\le f\le1}\sum_i\ln\big(1-f+f\,y_i/v\big)

of it. The same g is the logarithm of the empirical likelihood ratio (Owen 2001, Section 2) where a mass that was never seen may
lie anywhere above. So two thresholds make two intervals:

* **for one look** at a log whose probabilities never change (`Log.is_steady`), so that its rows are independent and alike:
  :math:`g=z^2/2`, z the normal quantile, of the contributions of the estimator itself;
* **at every moment**, for logs of any policy that learns, whatever the weights:
  :math:`g=\ln\frac2\delta+\ln\big(2\sqrt{n+1}\big)`. Cover's universal portfolio uses no hindsight and is poorer than the best
  share by that factor :math:`2\sqrt{n+1}` at most (Cover and Ordentlich 1996). So the interval holds with probability
  :math:`1-\delta` for every n and at all of them together (Orabona and Jun 2024). Where the probabilities of all arms are known,
  `abex.evaluation.sequence` has a narrower one.

**The numbers at every moment.** With rewards scaled to [0, 1], weights w and gains wx, the lower end is that of :math:`y=wx`, and
the upper one mirrors it: 1 minus the lower end of :math:`y=w(1-x)`. Where weights were too small by chance, because large ones
did not come, the two draw apart by what is missing: nobody knows what it would have paid. The same holds where the log never
tries what the policy would.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from abex.evaluation.estimators import Contributions, Floats

PRECISION = 1e-6  # of the threshold
MAX_STEPS = 60

Interval = tuple[float, float]


def for_one_look(given: Contributions, span: Interval, level: float) -> Interval:
    """The interval of the likelihood ratio, of a log whose probabilities never change; it contains the estimate."""
    threshold, z = NormalDist().inv_cdf(0.5 + level / 2.0) ** 2 / 2.0, influence(given)
    if np.ptp(z) <= 1e-12 * (span[1] - span[0]):  # not a single click, say: likelihood knows nothing
        return at_every_moment(given, span, level)
    least, most, value = float(z.min()), float(z.max()), given.value()
    low, high = least + least_mean(z - least, threshold), most - least_mean(most - z, threshold)
    return within(min(low, value), max(high, value), span)


def at_every_moment(given: Contributions, span: Interval, level: float) -> Interval:
    """The interval that holds for every number of rows and every policy that made the log, from weights of mean 1 and gains."""
    threshold = math.log(2.0 / (1.0 - level)) + math.log(2.0 * math.sqrt(given.weights.size + 1.0))
    above = np.maximum(given.gains - span[0] * given.weights, 0.0)
    below = np.maximum(span[1] * given.weights - given.gains, 0.0)
    ends = span[0] + least_mean(above, threshold), span[1] - least_mean(below, threshold)
    return within(min(ends), max(ends), span)


def least_mean(values: Floats, threshold: float) -> float:
    r"""The least mean v of numbers :math:`y\ge0` that nobody grew rich by betting against: there g is ``threshold``.

    With the odds :math:`\theta=f/(v(1-f))` as parameter both are explicit,
    :math:`v=\sum\frac{y}{1+\theta y}\big/\sum\frac1{1+\theta y}` and :math:`g=\sum\ln\frac{1+\theta y}{1+\theta v}`, which rises.

    >>> round(least_mean(np.ones(100), 3.0), 4), round(float(np.exp(-3.0 / 100)), 4)
    (0.9704, 0.9704)
    """
    scale = float(values.mean()) if values.size else 0.0
    if scale <= 0.0:
        return 0.0
    y = values / scale
    if y.min() > 0.0:  # then the whole stake, f = 1, may not be enough
        everything = float(np.log(y).sum())
        harmonic = 1.0 / float((1.0 / y).mean())
        if everything - y.size * math.log(harmonic) <= threshold:
            return scale * math.exp((everything - threshold) / y.size)
    wanted, slope, v = (
        math.log(threshold),
        2.0,
        1.0,
    )  # g is about theta squared: its logarithm is nearly a line
    place, low, high = 0.5 * math.log(2.0 * threshold / float(((y - 1.0) ** 2).sum())), -math.inf, math.inf
    before: tuple[float, float] | None = None
    for _ in range(MAX_STEPS):
        theta = math.exp(place)
        rest = 1.0 + theta * y
        v = float((y / rest).sum() / (1.0 / rest).sum())
        growth = float(np.log(rest).sum()) - y.size * math.log1p(theta * v)
        if abs(growth - threshold) <= PRECISION * threshold:
            break
        height = math.log(max(growth, 1e-300))
        low, high = (place, high) if growth < threshold else (low, place)
        if before is not None and place != before[0]:
            slope = max((height - before[1]) / (place - before[0]), 0.05)
        before = place, height
        place += (wanted - height) / slope
        if not low < place < high:
            place = (low + high) / 2.0
    return scale * v


def within(low: float, high: float, span: Interval) -> Interval:
    """An interval for what lies between the least and the largest reward."""
    return min(max(low, span[0]), span[1]), max(min(high, span[1]), span[0])


def influence(given: Contributions) -> Floats:
    """The contribution of each unit to the estimate, to first order."""
    n = given.above.shape[0]
    below = given.below.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(below > 0.0, given.above.sum(axis=0) / below, 0.0)
        scale = np.where(below > 0.0, given.coefficient * n / below, 0.0)
    return given.value() + ((given.above - ratio * given.below) * scale).sum(axis=1)  # type: ignore[no-any-return]
