"""How late a reward comes: values for ``simulate(..., delay=...)``, and the kernel that draws them.

A delay of d says that the reward of decision t is known from decision t + d on. A delay of 1 is what a simulation does
without any: the reward is learned before the next decision. Nothing can be known before it was decided, so 0 counts as 1.

The delay of arm k at step t is a function of the seed, t and k alone, as its reward is: all policies of a comparison face
the same delays, whatever they pull and however many threads there are.

>>> Geometric(200.0, never=0.1)
Geometric(mean=200.0, never=0.1)
>>> as_delay("Uniform(0, 400)"), as_delay(50)
(Uniform(least=0, most=400, never=0.0), Fixed(steps=50, never=0.0))
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel
from abex.support.errors import UserError, shown
from abex.support.parameters import check_parameters, choice, parse_value, real, whole
from abex.support.randomness import next_word, unit, word_at

MAX_DELAY = 10**12  # beyond every horizon
LEARNED = ("weighed", "at close", "as they come")
SMALLEST_UNIFORM = 2.0**-53  # of 1 - u for a uniform number u of 53 bits


class Delay(ABC):
    """A distribution of delays; see the module's text for what a delay is."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    @abstractmethod
    def longest(self) -> int:
        """No delay is longer (those that never come left out)."""

    @abstractmethod
    def rows(self) -> list[tuple[int, int, float, float]]:
        """``least, most, scale, never`` of every arm, or one row for all; see `DelayTable`."""


@dataclass(frozen=True)
class Fixed(Delay):
    """Every reward is known so many decisions after its own; with probability ``never`` it never is.

    Examples
    --------
    >>> Fixed(50).longest
    50
    """

    steps: int = whole(least=0, most=MAX_DELAY)
    never: float = real(0.0, least=0.0, most=1.0)

    @property
    def longest(self) -> int:
        """The delay itself."""
        return self.steps

    def rows(self) -> list[tuple[int, int, float, float]]:
        """A single number."""
        return [(self.steps, self.steps, 0.0, self.never)]


@dataclass(frozen=True)
class Uniform(Delay):
    """A whole number from ``least`` to ``most``, all equally likely; with probability ``never`` the reward never comes.

    Examples
    --------
    >>> Uniform(0, 400).longest
    400
    """

    least: int = whole(least=0, most=MAX_DELAY)
    most: int = whole(least=0, most=MAX_DELAY)
    never: float = real(0.0, least=0.0, most=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most < self.least:
            raise UserError(f"a delay must have least <= most, got {self}")

    @property
    def longest(self) -> int:
        """The upper end."""
        return self.most

    def rows(self) -> list[tuple[int, int, float, float]]:
        """Both ends."""
        return [(self.least, self.most, 0.0, self.never)]


@dataclass(frozen=True)
class Geometric(Delay):
    """1, 2, ... with the given mean: at every step the reward comes with the same probability, unless it never comes.

    Examples
    --------
    >>> Geometric(200).longest > 1000
    True
    """

    mean: float = real(least=1.0, most=1e10)
    never: float = real(0.0, least=0.0, most=1.0)

    @property
    def scale(self) -> float:
        """Delays are 1 + floor(scale ln(1 - u)) of a uniform u; 0 where all are 1."""
        return 0.0 if self.mean <= 1.0 else 1.0 / math.log1p(-1.0 / self.mean)

    @property
    def longest(self) -> int:
        """That of the smallest number that a word of 53 bits stands for: a chance of about 1e-16."""
        return 2 + int(self.scale * math.log(SMALLEST_UNIFORM))

    def rows(self) -> list[tuple[int, int, float, float]]:
        """The scale of the logarithm."""
        return [(1, 1, self.scale, self.never)]


@dataclass(frozen=True)
class PerArm(Delay):
    """A delay of its own for each arm.

    Examples
    --------
    >>> PerArm([Fixed(1), Geometric(200)]).longest == Geometric(200).longest
    True
    """

    delays: Any

    def __post_init__(self) -> None:
        given = self.delays
        if isinstance(given, str | Delay) or not isinstance(given, Iterable):
            raise UserError(f"PerArm needs a list with a delay for each arm, got {shown(given)}")
        delays = tuple(as_delay(one) for one in given)
        if not delays or any(isinstance(one, PerArm | Conversions) for one in delays):
            raise UserError("PerArm needs a list with one delay, such as Fixed(50), for each arm")
        object.__setattr__(self, "delays", delays)

    @property
    def longest(self) -> int:
        """The longest of all arms."""
        return int(max(delay.longest for delay in self.delays))

    def rows(self) -> list[tuple[int, int, float, float]]:
        """A row for each arm."""
        return [row for delay in self.delays for row in delay.rows()]


@dataclass(frozen=True)
class Conversions(Delay):
    """Only a conversion is heard of: silence becomes an answer when the window of its decision ends.

    A reward other than ``silence`` comes with its delay, if that is within the window; any other decision is worth
    ``silence``, which is known when the window is over.

    Parameters
    ----------
    delay : Delay, str, int or list
        Of the conversions.
    window : int
        Decisions until silence counts.
    learned : {"weighed", "at close", "as they come"}
        When a policy learns. *Weighed*: a conversion when it comes, and every pending decision by how much of its answer is in
        (`abex.policies.attribution`); a policy that does not learn by weighted observations alone learns at close. *At close*:
        every decision when its window ends. *As they come*: a conversion when it comes and silence at the end of the window, so
        that recent rewards are nearly all conversions; this is what goes wrong where nobody thinks of it.
    silence : float
        The reward that silence is.

    Examples
    --------
    >>> Conversions(Geometric(20), window=1800).longest
    1800
    """

    delay: Any
    window: int = whole(least=1, most=MAX_DELAY)
    learned: str = choice("weighed", LEARNED)
    silence: float = real(0.0, least=0.0, most=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        delay = as_delay(self.delay)
        if isinstance(delay, Conversions):
            raise UserError(
                "Conversions needs the delay of conversions, such as Geometric(20), not Conversions"
            )
        object.__setattr__(self, "delay", delay)

    @property
    def longest(self) -> int:
        """The window."""
        return self.window

    def rows(self) -> list[tuple[int, int, float, float]]:
        """Those of the conversions."""
        rows: list[tuple[int, int, float, float]] = self.delay.rows()
        return rows


KINDS: dict[str, type[Delay]] = {
    cls.__name__: cls for cls in (Fixed, Uniform, Geometric, PerArm, Conversions)
}


def as_delay(delay: Any) -> Delay:
    """A delay from a value, from its text, from a whole number (`Fixed`) or from a list (`PerArm`)."""
    if isinstance(delay, Delay):
        return delay
    if isinstance(delay, str):
        if delay.strip().isdecimal():
            return Fixed(int(delay))
        found = parse_value(delay, "delay", KINDS, example="Geometric(200)")
        return found  # type: ignore[no-any-return]
    if isinstance(delay, list | tuple):
        return PerArm(delay)
    if isinstance(delay, int | np.integer) and not isinstance(delay, bool):
        return Fixed(int(delay))
    raise UserError(f"delay must be a value such as Geometric(200) or Fixed(50), got {shown(delay)}")


class DelayTable(Record):
    """The delays of one replication: each array has an entry for every arm, or one for all."""

    key: np.uint64
    least: NDArray[np.int64]
    span: NDArray[np.int64]  # most - least + 1
    scale: NDArray[np.float64]  # of a geometric delay, else 0
    never: NDArray[np.float64]  # probability that the reward never comes


def delay_table(delay: Delay, key: np.uint64, n_arms: int) -> DelayTable:
    """The delays of ``n_arms`` arms in the replication of this key."""
    rows = delay.rows()
    each = isinstance(delay, PerArm) or (isinstance(delay, Conversions) and isinstance(delay.delay, PerArm))
    if len(rows) not in (1, n_arms) or (each and len(rows) != n_arms):
        raise UserError(f"PerArm has {len(rows)} delays but there are {n_arms} arms")
    least, most, scale, never = zip(*rows, strict=True)
    low = np.array(least, np.int64)
    span = np.array(most, np.int64) - low + 1
    return DelayTable(key=key, least=low, span=span, scale=np.array(scale), never=np.array(never))


@kernel
def delay_at(delays: DelayTable, t: int, arm: int) -> int:
    """The delay of the reward of ``arm`` at step t, at least 1; -1 if it never comes."""
    k = arm if delays.least.size > 1 else 0
    word = word_at(delays.key, t, arm)
    if delays.never[k] > 0.0 and unit(next_word(word)) < delays.never[k]:
        return -1
    u = unit(word)
    if delays.scale[k] != 0.0:
        return 1 + int(delays.scale[k] * math.log(1.0 - u))
    return max(int(delays.least[k]) + int(u * delays.span[k]), 1)
