"""Stationary environments: independent rewards with fixed means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.kernels import Record, kernel
from abex.support.errors import UserError, shown
from abex.support.parameters import HUGE, TINY, real
from abex.support.randomness import gamma_from, next_word, normal_from, uniform_at, word_at

MAX_DEVIATION = 1e6  # beyond, the means after clipping, all near 1/2, are rounding


class MeansWorld(Record):
    """Means of the arms, the largest of them, the key of the rewards, and a shape parameter."""

    key: np.uint64
    means: NDArray[np.float64]
    top: float
    shape: float
    centres: NDArray[np.float64]


@kernel
def mean_gap(world: Any, t: int, arm: int) -> float:
    """Pseudo-regret: largest mean minus the mean of the pulled arm."""
    return float(world.top - world.means[arm])


@kernel
def mean_best(world: Any, t: int, arm: int) -> bool:
    """The arm's mean is the largest."""
    return bool(world.means[arm] >= world.top)


def as_means(name: str, values: Any, least: float = 0.0, most: float = 1.0) -> NDArray[np.float64]:
    """A read-only array of numbers in [least, most], at least one."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{name} must be a list of numbers, got {shown(values)}") from error
    if array.ndim != 1 or array.size == 0:
        shape = f"shape {array.shape}" if array.ndim < 5 else f"{array.ndim} lists within each other"
        raise UserError(f"{name} must be a non-empty list of numbers, got {shape}")
    inside = (array >= least) & (array <= most)
    if not bool(inside.all()):
        wrong = int(np.flatnonzero(~inside)[0])
        raise UserError(f"{name} must lie in [{least:g}, {most:g}], got {array[wrong]} for arm {wrong}")
    array.flags.writeable = False
    return array


class HasMeans(Environment):
    """An environment given by the mean of each arm, kept as a tuple."""

    means: Any
    least_mean: ClassVar[float] = 0.0
    most_mean: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        means = as_means("means", self.means, self.least_mean, self.most_mean)
        object.__setattr__(self, "means", tuple(means.tolist()))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means)


class Stationary(HasMeans):
    """Base of the environments with fixed means."""

    means: Sequence[float]

    @cached_property
    def true_means(self) -> NDArray[np.float64]:
        """Expected reward of each arm."""
        return self._centres

    def open(self, key: np.uint64, horizon: int) -> MeansWorld:
        """The means and the key."""
        means = self.true_means
        return MeansWorld(key=key, means=means, top=means.max(), shape=self.shape, centres=self._centres)

    @cached_property
    def _centres(self) -> NDArray[np.float64]:
        return as_means("means", self.means)

    @property
    def shape(self) -> float:
        """The parameter of the reward's distribution beside the mean."""
        return 0.0

    gap = staticmethod(mean_gap)
    best = staticmethod(mean_best)


@dataclass(frozen=True)
class Bernoulli(Stationary):
    """Arm k pays 1 with probability ``means[k]`` and 0 otherwise.

    Examples
    --------
    >>> Bernoulli([0.75, 0.5]).n_arms
    2
    """

    means: Sequence[float]

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """1 with the arm's probability."""
        return 1.0 if uniform_at(world.key, t, arm) < world.means[arm] else 0.0


@dataclass(frozen=True)
class Beta(Stationary):
    r"""Arm k pays a Beta-distributed reward with mean ``means[k]``.

    Its distribution is :math:`\mathrm{Beta}(s\mu_k,\,s(1-\mu_k))`.

    Parameters
    ----------
    means : sequence of float
        The means :math:`\mu_k`, strictly between 0 and 1.
    strength : float
        The sum s of the two parameters: the variance is :math:`\mu_k(1-\mu_k)/(s+1)`.

    Examples
    --------
    >>> Beta([0.3, 0.6], strength=10.0).n_arms
    2
    """

    means: Sequence[float]
    strength: float = real(2.0, least=TINY, most=HUGE)

    least_mean, most_mean = 1e-6, 1.0 - 1e-6

    @property
    def shape(self) -> float:
        """The sum of the two parameters."""
        return float(self.strength)

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """X / (X + Y) of two Gamma numbers."""
        word = word_at(world.key, t, arm)
        x = gamma_from(word, world.shape * world.means[arm])
        y = gamma_from(next_word(~word), world.shape * (1.0 - world.means[arm]))
        if x + y <= 0.0:  # both underflow where the parameters are tiny: the limit is Bernoulli
            return 1.0 if uniform_at(~world.key, t, arm) < world.means[arm] else 0.0
        return x / (x + y)


@dataclass(frozen=True)
class ClippedGaussian(Stationary):
    r"""Arm k pays a normal number clipped to [0, 1].

    Before clipping its distribution is :math:`N(m_k,\sigma^2)`.

    The regret counts the means *after* clipping,
    :math:`\mu_k=\int_0^1 \Phi\big((m_k-x)/\sigma\big)\,dx`, which are not the centres :math:`m_k`.

    Parameters
    ----------
    means : sequence of float
        The centres :math:`m_k` in [0, 1].
    deviation : float
        Standard deviation before clipping.

    Examples
    --------
    >>> ClippedGaussian([1.0], deviation=1.0).true_means.round(3).tolist()
    [0.684]
    """

    means: Sequence[float]
    deviation: float = real(0.25, least=TINY, most=MAX_DEVIATION)

    @property
    def shape(self) -> float:
        """The standard deviation."""
        return float(self.deviation)

    @cached_property
    def true_means(self) -> NDArray[np.float64]:
        """Means after clipping."""
        sigma = self.deviation

        def primitive(z: float) -> float:  # of the normal distribution function
            cdf = 0.5 * math.erfc(-z / math.sqrt(2.0))
            return z * cdf + math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)

        return np.array([sigma * (primitive(m / sigma) - primitive((m - 1.0) / sigma)) for m in self.means])

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """A clipped normal number."""
        x = world.centres[arm] + world.shape * normal_from(word_at(world.key, t, arm))
        return float(min(max(x, 0.0), 1.0))
