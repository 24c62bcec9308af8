"""Detectors of changes in the rewards of an arm, for `Restarting`.

A detector is a value; for so many arms it makes a record, and three kernels dispatch on its class: `observe` takes a reward and
tells whether it raises an alarm, `clear` forgets an arm. Each arm is watched on its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.kernels import Record, kernel, single_dispatch
from abex.kinds import Count, Mean, Total, agree
from abex.policies.naming import part_of_policies
from abex.support.parameters import HUGE, check_parameters, real, whole
from abex.support.reading import check_size

MAX_WINDOW = 10**8


class Detector(ABC):
    """Tells from the rewards of an arm that its mean has changed."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @abstractmethod
    def watch(self, n_arms: int) -> Any:
        """A record that has seen nothing."""


@single_dispatch
def observe(record: Any, arm: int, reward: float) -> bool:
    """Take in a reward of an arm; whether it raises an alarm (kernel)."""
    raise TypeError


@single_dispatch
def clear(record: Any, arm: int) -> None:
    """Forget an arm (kernel)."""
    raise TypeError


class GlrRecord(Record):
    """For each arm how many rewards there were, their sum, and the sums of the first ones at every so many."""

    counts: Count  # int64 (K,)
    totals: Total  # float64 (K,)
    sums: Total  # float64 (K, window / spacing + 1)
    delta: float
    every: int
    spacing: int

    def check(self) -> None:
        """Sums have a place."""
        agree(int(self.counts.max()) < (self.sums.shape[1] - 1) * self.spacing, "counts must fit the window")


@kernel
def negative_entropy(x: float) -> float:
    """X ln x + (1 - x) ln(1 - x)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0
    return x * math.log(x) + (1.0 - x) * math.log1p(-x)


@kernel
def glr_threshold(n: int, delta: float) -> float:
    """Beta(n, delta) = ln(3 n sqrt(n) / delta)."""
    return math.log(3.0 * n * math.sqrt(n) / delta)


@observe.register(GlrRecord)
@kernel
def observe_glr(record: GlrRecord, arm: int, reward: float) -> bool:
    """The test, at every so many rewards; when the window is full its older half is dropped."""
    n = record.counts[arm] + 1
    total = record.totals[arm] + reward
    record.counts[arm] = n
    record.totals[arm] = total
    if n % record.spacing == 0:
        record.sums[arm, n // record.spacing] = total
    if n % record.every == 0 and glr_test(record.sums[arm], n, total, record.spacing, record.delta):
        return True
    last = record.sums.shape[1] - 1
    if n == last * record.spacing:
        half = last // 2
        begin = record.sums[arm, half]
        for j in range(last - half + 1):
            record.sums[arm, j] = record.sums[arm, half + j] - begin
        record.counts[arm] -= half * record.spacing
        record.totals[arm] -= begin
    return False


@kernel
def glr_test(sums: Any, n: int, total: float, spacing: int, delta: float) -> bool:
    """Whether the rewards are far more likely with a change after some s than without.

    The divergence is at most the chi-square distance, so that
    s kl(a, q) + (n - s) kl(b, q) <= n d^2 / (q (1 - q) s (n - s)), d = S_s - s q: for nearly every s a few products tell that
    it cannot be the one, and the logarithms are left out.
    """
    q = total / n
    if q <= 0.0 or q >= 1.0:
        return False
    threshold = glr_threshold(n, delta)
    most = threshold * q * (1.0 - q) / n
    base = n * negative_entropy(q)
    for j in range(1, (n - 1) // spacing + 1):
        s = float(j * spacing)
        d = sums[j] - s * q
        if d * d >= most * s * (n - s):
            first, second = sums[j] / s, (total - sums[j]) / (n - s)
            if s * negative_entropy(first) + (n - s) * negative_entropy(second) - base >= threshold:
                return True
    return False


@clear.register(GlrRecord)
@kernel
def clear_glr(record: GlrRecord, arm: int) -> None:
    """No reward."""
    record.counts[arm] = 0
    record.totals[arm] = 0.0


@part_of_policies
@dataclass(frozen=True)
class GLR(Detector):
    r"""The Bernoulli generalised likelihood ratio test.

    An alarm after n rewards of an arm if for some s
    :math:`s\,\mathrm{kl}(\hat\mu_{1:s},\hat\mu_{1:n})+(n-s)\,\mathrm{kl}(\hat\mu_{s+1:n},\hat\mu_{1:n})\ge\ln(3n\sqrt n/\delta)`.

    Parameters
    ----------
    delta : float
        About the probability of a false alarm. The theory takes :math:`1/\sqrt{T}`.
    every, spacing : int
        The test is made after every so many rewards, for every so many s (sub-sampling; 1 and 1 is the test itself).
    window : int
        At most so many rewards of an arm are looked at; then the older half is dropped. Memory: 8 bytes for each ``spacing`` of
        them, for every arm: a million arms need a short window.

    References
    ----------
    Besson, Kaufmann, Maillard, Seznec 2022, eq. (4) and Section 3; the threshold is the one of their experiments (written from
    memory: constants not verified against the publication).

    Examples
    --------
    >>> GLR(delta=0.01)
    GLR(delta=0.01, every=10, spacing=10, window=10000)
    """

    delta: float = real(0.001, least=1e-300, most=1.0)
    every: int = whole(10, least=1, most=MAX_WINDOW)
    spacing: int = whole(10, least=1, most=MAX_WINDOW)
    window: int = whole(10_000, least=2, most=MAX_WINDOW)

    def watch(self, n_arms: int) -> GlrRecord:
        """Nothing seen."""
        places = max(self.window // self.spacing, 2) + 1
        check_size(8 * n_arms * places, f"a GLR detector of window {self.window:,} for {n_arms:,} arms")
        return GlrRecord.of_arms(
            n_arms,
            counts=np.zeros(n_arms, np.int64),
            sums=np.zeros((n_arms, places)),
            delta=self.delta,
            every=self.every,
            spacing=self.spacing,
        )


class CusumRecord(Record):
    """For each arm its rewards, the mean they are compared with, and how far they have drifted up and down from it."""

    counts: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    up: Total  # float64 (K,)
    down: Total  # float64 (K,)
    warm_up: float  # the mean is that of so many first rewards, or of all
    drift: float
    threshold: float

    def check(self) -> None:
        """Nothing more."""


@observe.register(CusumRecord)
@kernel
def observe_cusum(record: CusumRecord, arm: int, reward: float) -> bool:
    """Both sums; no alarm while the mean is being learned."""
    n = record.counts[arm] + 1.0
    record.counts[arm] = n
    if n <= record.warm_up:
        record.means[arm] += (reward - record.means[arm]) / n
        if record.warm_up < math.inf:
            return False
    apart = reward - record.means[arm]
    record.up[arm] = max(0.0, record.up[arm] + apart - record.drift)
    record.down[arm] = max(0.0, record.down[arm] - apart - record.drift)
    return bool(max(record.up[arm], record.down[arm]) > record.threshold)


@clear.register(CusumRecord)
@kernel
def clear_cusum(record: CusumRecord, arm: int) -> None:
    """No reward."""
    record.counts[arm] = 0.0
    record.means[arm] = 0.0
    record.up[arm] = 0.0
    record.down[arm] = 0.0


@part_of_policies
@dataclass(frozen=True)
class CUSUM(Detector):
    r"""Two-sided cumulative sums against the mean of the first rewards.

    With :math:`\hat u_0` the mean of the first M rewards of an arm, :math:`g^\pm\leftarrow\max(0,g^\pm\pm(x-\hat u_0)-\epsilon)`;
    an alarm when one exceeds h.

    Parameters
    ----------
    warm_up : int
        The first rewards M.
    drift : float
        The tolerance :math:`\epsilon`: smaller changes are not looked for.
    threshold : float
        The height h; :math:`\ln(T/\Upsilon)` for :math:`\Upsilon` changes in T steps.

    References
    ----------
    Liu, Lee, Shroff 2018, Algorithm 2 (CUSUM).

    Examples
    --------
    >>> CUSUM()
    CUSUM(warm_up=100, drift=0.1, threshold=10.0)
    """

    warm_up: int = whole(100, least=1, most=MAX_WINDOW)
    drift: float = real(0.1, least=0.0, most=1.0)
    threshold: float = real(10.0, above=0.0, most=HUGE)

    def watch(self, n_arms: int) -> CusumRecord:
        """Nothing seen."""
        return CusumRecord.of_arms(n_arms, **vars(self))


@part_of_policies
@dataclass(frozen=True)
class PageHinkley(Detector):
    r"""Two-sided cumulative sums against the mean of all rewards so far.

    :math:`g^\pm\leftarrow\max(0,g^\pm\pm(x_n-\bar x_n)-\epsilon)` with the running mean :math:`\bar x_n` of an arm; an alarm
    when one exceeds h.

    Parameters
    ----------
    drift : float
        The tolerance :math:`\epsilon`.
    threshold : float
        The height h.

    References
    ----------
    Page 1954; Hinkley 1971; for bandits Hartland et al. 2006, Section 3 (two-sided here).

    Examples
    --------
    >>> PageHinkley()
    PageHinkley(drift=0.05, threshold=10.0)
    """

    drift: float = real(0.05, least=0.0, most=1.0)
    threshold: float = real(10.0, above=0.0, most=HUGE)

    def watch(self, n_arms: int) -> CusumRecord:
        """Nothing seen."""
        return CusumRecord.of_arms(n_arms, **vars(self), warm_up=math.inf)
