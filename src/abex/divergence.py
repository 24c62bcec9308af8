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
