"""The lemmas of the paper, as printed, and corrected where that fails.

Logarithms are base 2: the paper does not say so, but the doubling and the 16 ln 2 of its gamma need it.
Steps may be Python integers of any size; nothing here overflows.
"""

from __future__ import annotations

import math
from functools import cache

from abex.support.errors import real_number, whole_number


def _log2_ratio(t: int, n_arms: int, factor: float) -> float:
    """log2(t / (factor K)), for integers of any size."""
    t = whole_number("t", t, least=1)
    return math.log2(t) - math.log2(factor * n_arms)


def lemma_1_lower_as_printed(t: int, n_arms: int, c: float) -> float:
    r"""Lemma 1, lower bound on the outer iteration of step t, **as printed**.

    .. math:: i_t \ge \log_2\frac{t}{2(1 + 2c)K}

    The statement says "for any :math:`\alpha > 0`", the proof assumes :math:`\alpha \le 1`. It holds for
    all c and t if and only if :math:`\alpha \le` `largest_alpha()` = 2.606 (see there).

    >>> lemma_1_lower_as_printed(10**6, n_arms=16, c=1.0)
    13.34...
    """
    return _log2_ratio(t, n_arms, 2.0 * (1.0 + 2.0 * c))


def lemma_1_lower(t: int, n_arms: int, c: float, alpha: float) -> float:
    r"""Lemma 1, lower bound, **corrected, because** the printed one fails for large alpha.

    .. math:: i_t \ge \log_2\frac{t}{2(1 + c\,A_\alpha)K},\qquad
              A_\alpha = \max_i 2^{-i-1}\sum_{k\le i}k^\alpha

    It holds for every :math:`\alpha \ge 0` (for ``floor`` and ``carry``), and is tighter: the paper has 2
    in the place of :math:`A_\alpha`, which is at most 3/8 for :math:`\alpha \le 1`.

    >>> lemma_1_lower(10**6, n_arms=16, c=1.0, alpha=1.0)
    14.47...
    """
    return _log2_ratio(t, n_arms, 2.0 * (1.0 + c * exploration_overhead(alpha)))


def lemma_1_upper(t: int, n_arms: int) -> float:
    r"""Lemma 1, upper bound on the outer iteration of step t, **as printed**; true for all c and alpha.

    .. math:: i_t \le \log_2\Big(\frac{t}{K} + 2\Big)

    >>> lemma_1_upper(10**6, n_arms=16)
    15.93...
    """
    t = whole_number("t", t, least=1)
    return math.log2(t + 2 * n_arms) - math.log2(n_arms)


@cache
def exploration_overhead(alpha: float) -> float:
    r""":math:`A_\alpha = \max_i 2^{-i-1}\sum_{k=1}^{i}k^\alpha`, exploration per Boltzmann slot.

    >>> exploration_overhead(1.0), exploration_overhead(0.0)
    (0.375, 0.25)
    """
    alpha = real_number("alpha", alpha, least=0.0, most=100.0)
    total, best = 0.0, 0.0
    for i in range(1, 64 + int(4.0 * alpha)):  # the maximum lies near i = alpha / ln 2
        total += float(i) ** alpha
        best = max(best, total * 0.5 ** (i + 1))
    return best


@cache
def largest_alpha() -> float:
    r"""The largest alpha for which Lemma 1 holds as printed for every c and t: :math:`A_\alpha = 2`.

    At the end of epoch i the printed bound says
    :math:`\sum_{k\le i}\lfloor c k^\alpha\rfloor \le 4c\,2^i + 2`. Dividing by c and letting c grow
    leaves :math:`\sum_{k\le i}k^\alpha \le 4\cdot 2^i`: necessary, and sufficient for every c.

    >>> round(largest_alpha(), 4)
    2.6062
    """
    low, high = 2.0, 3.0
    while high - low > 1e-12:
        middle = (low + high) / 2.0
        low, high = (middle, high) if exploration_overhead(middle) <= 2.0 else (low, middle)
    return low


def lemma_2_threshold(c: float, alpha: float) -> float:
    r"""What :math:`\log_2\frac{t}{2(1+2c)K}` must reach for Lemmas 2 and 5.

    .. math:: (2(\alpha+1)/c)^{1/\alpha}

    >>> lemma_2_threshold(c=2.0, alpha=1.0)
    2.0
    """
    c, alpha = real_number("c", c, above=0.0), real_number("alpha", alpha, above=0.0)
    return bounded_exp((math.log(2.0 * (alpha + 1.0)) - math.log(c)) / alpha)


def lemma_2(t: int, n_arms: int, c: float, alpha: float) -> float | None:
    r"""Lemma 2 (Lemma 5 on graphs), **as printed**: observations of *every* arm by a Boltzmann slot t.

    .. math:: \tau_k(t) \ge \frac{c}{2}\,\frac{\ell^{\alpha+1}}{\alpha+1},\qquad
              \ell = \log_2\frac{t}{2(1+2c)K}

    None where the lemma says nothing: before :math:`\ell \ge (2(\alpha+1)/c)^{1/\alpha}`. It inherits
    Lemma 1's range of alpha. (With ``floor`` or ``ceil``; see `lemma_2_carry`.)

    >>> lemma_2(10**6, n_arms=16, c=4.0, alpha=1.0)
    138.3...
    >>> lemma_2(10**6, n_arms=16, c=0.1, alpha=0.7) is None
    True
    """
    ell = lemma_1_lower_as_printed(t, n_arms, c)
    if ell < lemma_2_threshold(c, alpha):
        return None
    return c / 2.0 * math.pow(ell, alpha + 1.0) / (alpha + 1.0)


lemma_5 = lemma_2


def lemma_2_carry(t: int, n_arms: int, c: float, alpha: float) -> float:
    r"""Lemma 2 for ``rounding="carry"``, ours: no threshold, twice the pulls.

    .. math:: \tau_k(t) \ge \frac{c\,\ell^{\alpha+1}}{\alpha+1} - 1,\qquad
              \ell = \Big(\log_2\frac{t}{2(1+c\,A_\alpha)K}\Big)_+

    Carrying loses less than one sweep over all epochs together, :math:`\lfloor\sum_j c j^\alpha\rfloor`,
    where the paper's floor may lose one in each. So small c explores, too.

    >>> lemma_2_carry(10**6, n_arms=16, c=0.1, alpha=0.7)
    4.79...
    """
    ell = max(0.0, lemma_1_lower(t, n_arms, c, alpha))
    return c * math.pow(ell, alpha + 1.0) / (alpha + 1.0) - 1.0


def lemma_3(horizon: int, n_arms: int, c: float, alpha: float) -> float:
    r"""Lemma 3, **as printed**: exploration pulls of one arm by the horizon (Lemma 6: of an arm of xi).

    .. math:: \tau'_k(T) \le c\,\frac{\{\log_2(T/K + 2) + 1\}^{\alpha+1}}{\alpha+1}

    True for ``floor`` and, with the rest of a sweep, for ``carry``: :math:`\tau'_k \le \lceil\cdot\rceil`.

    >>> lemma_3(10**6, n_arms=16, c=1.0, alpha=1.0)
    143.3...
    """
    return c * math.pow(lemma_1_upper(horizon, n_arms) + 1.0, alpha + 1.0) / (alpha + 1.0)


lemma_6 = lemma_3


def lemma_3_sharp(horizon: int, n_arms: int, c: float, alpha: float) -> float:
    r"""Lemma 3 with the sum instead of the integral, ours.

    .. math:: \tau'_k(T) \le \sum_{j\le\log_2(T/K+2)} c\,j^\alpha

    >>> lemma_3_sharp(10**6, n_arms=16, c=1.0, alpha=1.0)
    120.0
    """
    last = math.floor(lemma_1_upper(horizon, n_arms) + 1e-12)
    return c * math.fsum(float(j) ** alpha for j in range(1, last + 1))


def bounded_exp(log: float) -> float:
    """``exp(log)``, inf where it exceeds 1e308."""
    return math.exp(log) if log < 709.0 else math.inf
