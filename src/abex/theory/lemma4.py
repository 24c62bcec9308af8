"""Lemma 4: the probability of a sub-optimal arm in a Boltzmann slot, as printed, corrected and sharpened."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.support.errors import real_number
from abex.theory.lemmas import bounded_exp


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
