"""The Kullback-Leibler divergence of Bernoulli distributions, and its upper confidence bound."""

from __future__ import annotations

import math

from abex.kernels import kernel


@kernel
def _curvature(u: float) -> float:
    r""":math:`u-\ln(1+u)\ge0` near 0: with :math:`s=u/(2+u)`, from :math:`\ln(1+u)=2\,\mathrm{artanh}\,s`."""
    s = u / (2.0 + u)
    x = s * s
    series = 1.0 / 3.0 + x * (1.0 / 5.0 + x * (1.0 / 7.0 + x * (1.0 / 9.0 + x * (1.0 / 11.0 + x / 13.0))))
    return 2.0 * x * (1.0 / (1.0 - s) - s * series)


@kernel
def bernoulli_kl(p: float, q: float) -> float:
    r"""Kullback-Leibler divergence of Bernoulli distributions, :math:`p\ln\frac pq + (1-p)\ln\frac{1-p}{1-q}`.

    Computed as :math:`p\,h(\frac{q-p}p)+(1-p)\,h(\frac{p-q}{1-p})` with :math:`h(u)=u-\ln(1+u)\ge0`: the terms that
    would cancel where p is close to q are left out, as their sum is 0.

    >>> bernoulli_kl(0.5, 0.75)
    0.143...
    >>> bernoulli_kl(0.5, 1.0)
    inf
    >>> bernoulli_kl(0.5, 0.5 + 1e-9)
    1.99...e-18
    """
    total = 0.0
    for x, y, shift in ((p, q, q - p), (1.0 - p, 1.0 - q, p - q)):
        if x <= 0.0:
            total += shift
        elif y <= 0.0:
            total = math.inf
        elif abs(shift) <= 0.1 * x:
            total += x * _curvature(shift / x)
        else:
            total += shift - x * (math.log(y) - math.log(x))
    return total


@kernel
def kl_upper_bound(mean: float, level: float) -> float:
    """Largest q with kl(mean, q) <= level, by Newton's method in s = -ln(1 - q).

    kl is convex in s, and both Pinsker's bound and (level + entropy) / (1 - mean) lie right of the root: from the
    smaller of them the iterates fall to it monotonically, in about five steps.

    >>> kl_upper_bound(0.5, 0.143841)
    0.7499...
    """
    if level <= 0.0 or mean >= 1.0:
        return mean
    if mean <= 0.0:
        return -math.expm1(-level)
    entropy = -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean)
    s = (level + entropy) / (1.0 - mean)
    pinsker = mean + math.sqrt(0.5 * level)
    if pinsker < 1.0:
        s = min(s, -math.log1p(-pinsker))
    for _ in range(50):
        rest = math.exp(-s)  # 1 - q
        excess = (1.0 - mean) * s - mean * math.log1p(-rest) - entropy - level
        step = excess / (1.0 - mean - mean * rest / (1.0 - rest))
        s -= step
        if step * rest < 1e-13:  # the change of q
            break
    return max(mean, -math.expm1(-s))


@kernel
def two_moment_divergence(mean: float, variance: float, goal: float, highest: float) -> float:
    r"""Least divergence of a distribution with this mean and variance on :math:`(-\infty,b]` from any with mean ``goal``.

    With :math:`r=b-m` and :math:`p=\frac v{v+r^2}` it is :math:`\mathrm{kl}(p,q)` for
    :math:`1-q=\frac{(b-\mu)r}{v+r^2}`, attained by two points of which one is b (Honda and Takemura 2012, Theorem 3).
    It is the same in any unit, falls with b, grows with the goal, and is :math:`\mathrm{kl}(m,\mu)` for Bernoulli
    distributions and :math:`b=1`. Computed as :math:`-(1-p)\ln(1-\frac gr)-p\ln(1+\frac{rg}v)` with the gap
    :math:`g=\mu-m`.

    >>> two_moment_divergence(0.5, 0.25, 0.75, 1.0) - bernoulli_kl(0.5, 0.75)
    0.0...
    >>> two_moment_divergence(0.5e-3, 0.25e-6, 0.75e-3, 1e-3) - bernoulli_kl(0.5, 0.75)
    0.0...
    >>> two_moment_divergence(0.5, 0.25, 1.0, 1.0)
    inf
    """
    gap = goal - mean
    if gap <= 0.0:
        return 0.0
    if goal >= highest:
        return math.inf
    room = highest - mean
    if gap >= room:  # by rounding
        return math.inf
    total = variance + room * room
    result = -(room * room / total) * math.log1p(-gap / room)
    ratio = math.inf if variance <= 0.0 else room * gap / variance
    if ratio < math.inf:  # a variance that tiny has no weight
        result -= (variance / total) * math.log1p(ratio)
    return max(result, 0.0)
