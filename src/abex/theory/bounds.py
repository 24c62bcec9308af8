"""The paper's regret bounds, as printed and with every constant, and one of ours that is not empty.

The theorems' burn-in reaches 10^75,754 steps at the paper's own parameters, so a bound is a sum of terms
one of which is kept as a logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, real_number, whole_number
from abex.theory.lemmas import leak_integral, lemma_3, log2_burn_in
from abex.theory.schedule import Schedule

SHARES = np.linspace(0.05, 0.95, 19)  # how the gap may be split in `lemma_4_sharp`; each is valid
MAX_STEPS = 10**308  # steps that a float can count


@dataclass(frozen=True)
class Bound:
    """Regret (or pulls) at most ``exploration`` + 10 ** ``log10_burn_in`` + ``tail``."""

    exploration: float
    log10_burn_in: float
    tail: float

    @property
    def log10(self) -> float:
        """log10 of the sum."""
        rest = self.exploration + self.tail
        if rest <= 0.0:
            return self.log10_burn_in
        high, low = max(self.log10_burn_in, math.log10(rest)), min(self.log10_burn_in, math.log10(rest))
        return high + math.log10(1.0 + 10.0 ** max(low - high, -300.0)) if high < math.inf else math.inf

    @property
    def value(self) -> float:
        """The sum, inf where it exceeds 1e308."""
        return float(10.0**self.log10) if self.log10 < 308.0 else math.inf


def corollary_1_as_printed(gap: float, n_arms: int, c: float, alpha: float, hidden: float = 1.0) -> Bound:
    r"""Corollary 1 **as printed**: Boltzmann pulls of a sub-optimal arm, up to any horizon.

    .. math:: \mathbb{E}[\tau''_k(T)] \le O\Big(\frac{c^2K^2}{\Delta_k^2}\Big) + 2(1+2c)K\,2^{\gamma_k}

    ``hidden`` stands for the constant in O(), which the paper does not give. As printed the O-term
    vanishes for small c and knows nothing of eta; neither is true, see `corollary_1`.

    >>> corollary_1_as_printed(0.5, n_arms=4, c=100.0, alpha=0.1).log10_burn_in
    3.44...
    """
    log10_burn_in = log2_burn_in(gap, n_arms, c, alpha) * math.log10(2.0)
    return Bound(0.0, log10_burn_in, hidden * (c * n_arms / gap) ** 2)


def corollary_1(gap: float, n_arms: int, c: float, alpha: float, eta: float) -> Bound:
    r"""Corollary 1, **corrected, because** the printed O-term vanishes with c and hides eta.

    With :math:`t_0 = 2(1+2c)K\,2^{\gamma_k}`, :math:`s = \sqrt{128}(1+2c)K/\Delta_k`,
    :math:`b = \max(t_0, s)` and :math:`a = \eta\Delta_k/2`,

    .. math:: \mathbb{E}[\tau''_k(T)] \le b + 1 + \frac{s^2}{b}
              + \frac{2}{a^2}\big(1+a\sqrt{b-1}\big)e^{-a\sqrt{b-1}}

    The first :math:`\lceil b\rceil` slots count in full (before s Lemma 4 says no more than 1); then
    :math:`\sum_{t>b}(s/t)^2\le s^2/b` and
    :math:`\sum_{t>b+1}e^{-a\sqrt{t-1}}\le\int_{b-1}^\infty e^{-a\sqrt x}dx`. With :math:`b = t_0` the
    third term is :math:`64(1+2c)K/(\Delta_k^2 2^{\gamma_k})`, not :math:`O(c^2K^2/\Delta_k^2)`.

    >>> corollary_1(0.5, n_arms=4, c=100.0, alpha=0.1, eta=0.4).value
    36385...
    """
    eta = real_number("eta", eta, above=0.0)
    scale = math.sqrt(128.0) * (1.0 + 2.0 * c) * n_arms / gap
    log10_start = max(log2_burn_in(gap, n_arms, c, alpha) * math.log10(2.0), math.log10(scale))
    if log10_start > 300.0:
        return Bound(0.0, log10_start, 1.0)
    start = 10.0**log10_start
    leak = float(leak_integral(eta * gap / 2.0, start - 1.0))
    return Bound(0.0, log10_start, 1.0 + scale / start * scale + leak)


def theorem_1_as_printed(
    gaps: Iterable[float], horizon: int, c: float, alpha: float, hidden: float = 1.0
) -> Bound:
    r"""Theorem 1 **as printed**, ``hidden`` in the place of O()'s constant.

    .. math:: \mathbb{E}[R(T)] \le \sum_{k\ne1}
              \Big\{c\,\Delta_k\frac{\{\log_2(T/K+2)+1\}^{\alpha+1}}{\alpha+1}
              + 2(1+2c)K\,2^{\gamma_k}\Delta_k + O\Big(\frac{c^2K^2}{\Delta_k}\Big)\Big\}

    ``gaps`` are those of the K - 1 sub-optimal arms.

    >>> theorem_1_as_printed([0.25] * 332, 10**6, c=0.1, alpha=0.7).log10
    757...
    """
    leak = partial(corollary_1_as_printed, c=c, alpha=alpha, hidden=hidden)
    return _total(gaps, None, leak, horizon, c, alpha)


def theorem_1(gaps: Iterable[float], horizon: int, c: float, alpha: float, eta: float) -> Bound:
    r"""Theorem 1, **corrected, because** of Corollary 1; every constant explicit, ``rounding="floor"``.

    .. math:: \mathbb{E}[R(T)] \le \sum_{k\ne1}\Delta_k\Big\{c\frac{\{\log_2(T/K+2)+1\}^{\alpha+1}}{\alpha+1}
              + \text{Corollary 1}\Big\}

    The sum over k of :math:`K 2^{\gamma_k}` is of order K^2: "O(K log^{1+alpha} T)" holds for fixed K and T
    to infinity only.

    >>> bound = theorem_1([0.5] * 3, 10**5, c=100.0, alpha=0.1, eta=0.4)
    >>> round(bound.exploration), round(bound.value)
    (2802, 57381)
    """
    return _total(gaps, None, partial(corollary_1, c=c, alpha=alpha, eta=eta), horizon, c, alpha)


def theorem_2(
    gaps: Iterable[float], swept: Iterable[float], horizon: int, c: float, alpha: float, eta: float
) -> Bound:
    r"""Theorem 2 (graph feedback), **corrected, because** of Corollary 1; every constant explicit.

    .. math:: \mathbb{E}[R(T)] \le \sum_{k\in\xi,k\ne1}
              c\,\Delta_k\frac{\{\log_2(T/K+2)+1\}^{\alpha+1}}{\alpha+1}
              + \sum_{k\ne1}\Delta_k\cdot\text{Corollary 1}

    ``swept`` are the gaps of the sub-optimal arms in xi. Corollary: O(beta(G) log^{1+alpha} T), from
    :math:`|\xi|\le\beta(G)`, which holds for undirected graphs only; in a digraph :math:`|\xi|` is at
    most the largest acyclic induced subgraph.

    >>> theorem_2([0.5] * 3, [0.5], 10**5, c=100.0, alpha=0.1, eta=0.4).exploration
    933...
    """
    return _total(gaps, swept, partial(corollary_1, c=c, alpha=alpha, eta=eta), horizon, c, alpha)


def theorem_2_as_printed(
    gaps: Iterable[float], swept: Iterable[float], horizon: int, c: float, alpha: float, hidden: float = 1.0
) -> Bound:
    r"""Theorem 2 **as printed**, ``hidden`` in the place of O()'s constant in :math:`O(c^2K^2/\Delta_k)`.

    >>> theorem_2_as_printed([0.5] * 3, [0.5], 10**5, c=100.0, alpha=0.1).exploration
    933...
    """
    leak = partial(corollary_1_as_printed, c=c, alpha=alpha, hidden=hidden)
    return _total(gaps, swept, leak, horizon, c, alpha)


def _total(
    gaps: Iterable[float],
    swept: Iterable[float] | None,
    leak: Callable[[float, int], Bound],
    horizon: int,
    c: float,
    alpha: float,
) -> Bound:
    """Sum over the arms; ``swept`` are the gaps of those explored (None: all), ``leak`` is the rest for a gap and K."""
    gaps = check_gaps(gaps)
    pulled = gaps if swept is None else np.asarray(list(swept), dtype=np.float64)
    values, counts = np.unique(gaps, return_counts=True)
    boltzmann = [leak(gap, gaps.size + 1) for gap in values]
    exploration = float(pulled.sum()) * lemma_3(horizon, gaps.size + 1, c, alpha)
    logs = np.array([bound.log10_burn_in for bound in boltzmann]) + np.log10(values * counts)
    top = float(logs.max())
    burn_in = top + math.log10(float(np.sum(10.0 ** (logs - top)))) if math.isfinite(top) else top
    tail = float(np.sum(values * counts * np.array([bound.tail for bound in boltzmann])))
    return Bound(exploration, burn_in, tail)


def log10_first_informative_step(gaps: Iterable[float], c: float, alpha: float, eta: float) -> float:
    r"""log10 of the horizon from which Theorem 1, corrected, says more than "every step is lost".

    >>> log10_first_informative_step([0.25] * 332, c=0.1, alpha=0.7, eta=0.4)
    757...
    >>> log10_first_informative_step([0.5] * 3, c=100.0, alpha=0.1, eta=0.4)
    5.06...
    """
    gaps = check_gaps(gaps)
    fixed = theorem_1(gaps, 1, c, alpha, eta)
    if not math.isfinite(fixed.log10):
        return math.inf
    n_arms, largest, total = gaps.size + 1, float(gaps.max()), float(gaps.sum())
    low, high = 0.0, max(fixed.log10 + 50.0, 100.0)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        epochs = max(1.0, middle / math.log10(2.0) - math.log2(n_arms)) + 1.0  # log2(T / K + 2) nearly
        exploration = total * c * (epochs + 1.0) ** (alpha + 1.0) / (alpha + 1.0)
        says_more = Bound(exploration, fixed.log10_burn_in, fixed.tail).log10 < middle + math.log10(largest)
        low, high = (low, middle) if says_more else (middle, high)
    return high


def finite_time_bound(gaps: Iterable[float], horizon: int, schedule: Schedule, eta: float) -> float:
    r"""A regret bound of ours for any rounding and any horizon: the exact schedule with `lemma_4_sharp`.

    .. math:: \mathbb{E}[R(T)] \le \sum_{i\le i_T}\Big[\sum_k\Delta_k e_{i,k}
              + \min\Big\{L_i\max_k\Delta_k,\ \sum_k\Delta_k\min_\theta\big(2L_i e^{-n_i\theta^2\Delta_k^2/2}
              + \sum_{t\in\text{phase }i}e^{-\eta(1-\theta)\Delta_k\sqrt{t-1}}\big)\Big\}\Big]

    where epoch i has :math:`e_{i,k}` exploration pulls of arm k and :math:`L_i` Boltzmann slots up to T,
    and every arm has been observed :math:`n_i` times before them. In a graph all pulls of a sweep are
    charged the largest gap.

    >>> bandit = Schedule(n_arms=4, c=8.0, alpha=0.5, rounding="carry")
    >>> round(finite_time_bound([0.5] * 3, 10**5, bandit, eta=1.0))
    521
    """
    gaps = check_gaps(gaps)
    if gaps.size + 1 != schedule.n_arms:
        raise UserError(f"gaps must be those of {schedule.n_arms - 1} sub-optimal arms, got {gaps.size}")
    horizon = whole_number("horizon", horizon, least=1, most=MAX_STEPS)
    eta = real_number("eta", eta, above=0.0)
    values, counts = np.unique(gaps, return_counts=True)
    weights, largest = values * counts, float(values[-1])
    regret = 0.0
    for epoch in schedule.epochs():
        if epoch.first > horizon:
            break
        slots = min(epoch.boltzmann, horizon - epoch.last_exploration)
        if slots > 0:
            first = float(epoch.last_exploration)  # t - 1 for the first Boltzmann slot t
            observations = (epoch.explored_before + epoch.exploration) // schedule.sweep
            exponent = values[:, None] * (1.0 - SHARES) * eta
            leak = np.exp(-exponent * math.sqrt(first)) + leak_integral(exponent, first, first + slots - 1.0)
            misjudged = 2.0 * slots * np.exp(-observations * (values[:, None] * SHARES) ** 2 / 2.0)
            regret += min(slots * largest, float(weights @ np.min(leak + misjudged, axis=1)))
    explored = schedule.exploration_slots(horizon)
    if schedule.covers is None:
        regret += float(weights.sum()) * -(-explored // schedule.sweep)
    else:
        regret += largest * explored
    return min(regret, horizon * largest)


def check_gaps(gaps: Iterable[float]) -> NDArray[np.float64]:
    """The gaps of the sub-optimal arms as an array: at least one, each in (0, 1]."""
    array = np.asarray(gaps if isinstance(gaps, np.ndarray) else list(gaps), dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not bool(np.all((array > 0.0) & (array <= 1.0))):
        raise UserError(f"gaps must be numbers in (0, 1], one for each sub-optimal arm, got {gaps!r}")
    return array
