"""The indices of upper confidence bounds, as functions of one arm's numbers."""

from __future__ import annotations

import math

from abex.kernels import kernel


@kernel
def ucb1_bound(mean: float, narrow: float, width: float) -> float:
    """UCB1: the mean plus ``width = sqrt(a ln t)`` over the root of the observations."""
    return mean + width * narrow


@kernel
def variance_bound(mean: float, pulls: float, spread: float, level: float, c: float) -> float:
    """UCB-V, with ``level = zeta ln t`` and the sum of squared deviations."""
    n = max(pulls, 1.0)
    return mean + math.sqrt(2.0 * level * spread) / n + 3.0 * c * level / n


@kernel
def moss_bound(mean: float, pulls: float, share: float, factor: float) -> float:
    """MOSS, with the steps that are an arm's share."""
    n = max(pulls, 1.0)
    return mean + (0.0 if share <= n else math.sqrt(factor * math.log(share / n) / n))


@kernel
def divergence(p: float, q: float) -> float:
    """kl(p, q) of two coins, 0 <= p <= 1 and 0 < q < 1."""
    one = p * math.log(p / q) if p > 0.0 else 0.0
    return one + ((1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0)


@kernel
def kl_upper_bound(mean: float, level: float) -> float:
    """Largest q with kl(mean, q) <= level, by Newton's method in s = -ln(1 - q).

    kl is convex in s, and both Pinsker's bound and (level + entropy) / (1 - mean) lie right of the root: from the
    smaller of them the iterates fall to it monotonically, in about five steps.
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
