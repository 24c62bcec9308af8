"""The Kullback-Leibler divergence that governs Bernoulli arms."""

from __future__ import annotations

import math

from abex.kernels import kernel

EDGE = 1e-15  # probabilities are kept this far from 0 and 1


@kernel
def divergence(p: float, q: float) -> float:
    r""":math:`\mathrm{kl}(p,q)=p\ln\frac pq+(1-p)\ln\frac{1-p}{1-q}`.

    >>> round(divergence(0.5, 0.75), 4)
    0.1438
    """
    p = min(max(p, EDGE), 1.0 - EDGE)
    q = min(max(q, EDGE), 1.0 - EDGE)
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
