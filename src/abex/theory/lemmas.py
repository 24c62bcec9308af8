"""The lemmas of the paper, as printed, and corrected where that fails.

Logarithms are base 2: the paper does not say so, but the doubling and the 16 ln 2 of its gamma need it.
Steps may be Python integers of any size; nothing here overflows.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

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


# -- Lemma 4: a sub-optimal arm in a Boltzmann slot ----------------------------------------------------------


def gamma_exponent(gap: float, c: float, alpha: float) -> float:
    r"""The burn-in exponent of Lemma 4, as printed.

    .. math:: \gamma_k = \Big\{\frac{16\ln 2}{\Delta_k^2}\,\frac{2(\alpha+1)}{c}\Big\}^{1/\alpha}

    The theorems say nothing before step :math:`2(1+2c)K\,2^{\gamma_k}`. inf where it exceeds 1e308.

    >>> gamma_exponent(gap=0.25, c=0.1, alpha=0.7)
    251...
    """
    gap = real_number("gap", gap, above=0.0, most=1.0)
    c, alpha = real_number("c", c, above=0.0), real_number("alpha", alpha, above=0.0)
    log = math.log(16.0 * math.log(2.0)) - 2.0 * math.log(gap) + math.log(2.0 * (alpha + 1.0)) - math.log(c)
    return bounded_exp(log / alpha)


def log2_burn_in(gap: float, n_arms: int, c: float, alpha: float) -> float:
    r"""log2 of the step from which Lemma 4 applies, :math:`\log_2(2(1+2c)K) + \gamma_k`.

    >>> log2_burn_in(0.25, n_arms=333, c=0.1, alpha=0.7) * math.log10(2.0)   # 10^75,754 steps
    757...
    """
    return math.log2(2.0 * (1.0 + 2.0 * c) * n_arms) + gamma_exponent(gap, c, alpha)


def lemma_4_as_printed(t: int, gap: float, n_arms: int, c: float, alpha: float, eta: float) -> float | None:
    r"""Lemma 4 **as printed**: probability of a sub-optimal arm in a Boltzmann slot t.

    .. math:: p_k(t) \le e^{-\eta\Delta_k\sqrt{t}/2} + \frac{128(1+2c)^2K^2}{(\Delta_k t)^2}

    None before the burn-in. Its :math:`p_k(t)` is random; what is proved is a bound on
    :math:`\mathbb{E}[p_k(t)]`, and with :math:`\sqrt{t-1}`: see `lemma_4`.

    >>> lemma_4_as_printed(10**5, gap=0.5, n_arms=4, c=100.0, alpha=0.1, eta=1.0)
    0.0330...
    """
    return _lemma_4(t, t, gap, n_arms, c, alpha, eta)


def lemma_4(t: int, gap: float, n_arms: int, c: float, alpha: float, eta: float) -> float | None:
    r"""Lemma 4, **corrected, because** the proof bounds the expectation, with t - 1 under the root.

    .. math:: \mathbb{E}[p_k(t)] \le e^{-\eta\Delta_k\sqrt{t-1}/2} + \frac{128(1+2c)^2K^2}{(\Delta_k t)^2}

    for Boltzmann slots t with :math:`\log_2\frac{t}{2(1+2c)K}\ge\gamma_k`; None before.

    >>> lemma_4(10**5, gap=0.5, n_arms=4, c=100.0, alpha=0.1, eta=1.0)
    0.0330...
    >>> lemma_4(10**9, gap=0.25, n_arms=333, c=0.1, alpha=0.7, eta=0.4) is None
    True
    """
    return _lemma_4(t, t - 1, gap, n_arms, c, alpha, eta)


def _lemma_4(
    t: int, under_root: int, gap: float, n_arms: int, c: float, alpha: float, eta: float
) -> float | None:
    if math.log2(t) < log2_burn_in(gap, n_arms, c, alpha):
        return None
    second = 128.0 * math.exp(2.0 * (math.log((1.0 + 2.0 * c) * n_arms / gap) - math.log(t)))
    return boltzmann_leak(under_root, gap / 2.0, eta) + second


def boltzmann_leak(steps: int, margin: float, eta: float) -> float:
    r""":math:`e^{-\eta m\sqrt{s}}`: what softmax leaves, after s steps, an arm that looks m worse.

    >>> boltzmann_leak(100, margin=0.25, eta=0.4)
    0.367...
    """
    if steps <= 0 or eta * margin <= 0.0:
        return 1.0
    log_exponent = math.log(eta * margin) + 0.5 * math.log(steps)
    return math.exp(-math.exp(log_exponent)) if log_exponent < 7.0 else 0.0


def lemma_4_sharp(t: int, gap: float, observations: int, eta: float, share: float = 0.5) -> float:
    r"""Lemma 4, ours: no burn-in, no factor 8/gap^2, for any schedule that guarantees n observations.

    .. math:: \mathbb{E}[p_k(t)] \le e^{-\eta(1-\theta)\Delta_k\sqrt{t-1}} + 2\,e^{-n\theta^2\Delta_k^2/2}

    Proof. Split the gap: either both means are within :math:`\theta\Delta/2` of the truth, then the
    estimated gap is at least :math:`(1-\theta)\Delta` and softmax leaves at most the first term; or one
    is not. The paper sums Hoeffding's bound over all counts :math:`s \ge n`. But the running mean is a
    reversed martingale, so Doob's inequality for :math:`e^{\lambda(\hat\mu_s-\mu)}` gives
    :math:`P(\sup_{s\ge n}(\hat\mu_s-\mu)\ge\theta\Delta/2)\le e^{-2n(\theta\Delta/2)^2}` at once. The
    paper's split is ``share`` :math:`\theta = 1/2`; every share in (0, 1) is valid, take the best.

    >>> lemma_4_sharp(10_000, gap=0.5, observations=200, eta=1.0)
    0.0038...
    """
    share = real_number("share", share, above=0.0, most=1.0)
    exponent = (share * gap) ** 2 / 2.0
    wrong = 2.0 * math.exp(-observations * exponent)
    return min(1.0, boltzmann_leak(t - 1, (1.0 - share) * gap, eta) + wrong)


def leak_integral(a: Any, start: Any, end: Any = None) -> Any:
    r""":math:`\int_s^e e^{-a\sqrt x}dx`, up to infinity if ``end`` is None.

    With :math:`p=\sqrt s` and :math:`d=\sqrt e-\sqrt s` it is
    :math:`2e^{-ap}\big[p\,d\,\phi_0(ad)+d^2\phi_1(ad)\big]`, :math:`\phi_j(x)=\int_0^1 w^je^{-xw}dw`: terms that are positive
    and of the size of the result, where the difference of two integrals up to infinity,
    :math:`(2/a^2)(1+ap)e^{-ap}` each, loses every digit once a is small.

    >>> float(leak_integral(1e-9, 0.0, 100.0))
    99.99999...
    """
    root = np.sqrt(start)
    x = a * root
    with np.errstate(over="ignore", divide="ignore"):
        if end is None:
            return 2.0 * np.exp(-x) * (1.0 + x) / np.float64(a) / a
        width = (end - start) / (np.sqrt(end) + np.maximum(root, np.finfo(float).tiny))
        return 2.0 * np.exp(-x) * width * (root * _phi_0(a * width) + width * _phi_1(a * width))


def _phi_0(x: Any) -> Any:
    r""":math:`\int_0^1 e^{-xw}dw = (1-e^{-x})/x`."""
    small = x < 1e-8
    return np.where(small, 1.0 - x / 2.0, -np.expm1(-x) / np.where(small, 1.0, x))


def _phi_1(x: Any) -> Any:
    r""":math:`\int_0^1 we^{-xw}dw = (1-(1+x)e^{-x})/x^2`; below 1/2 by its series :math:`\sum_j(-x)^j/(j!\,(j+2))`."""
    small = x < 0.5
    y = np.where(small, x, 0.0)
    series = sum((-y) ** j / (math.factorial(j) * (j + 2)) for j in range(14))
    z = np.where(small, 1.0, x)
    return np.where(small, series, (-np.expm1(-z) - z * np.exp(-z)) / z / z)
