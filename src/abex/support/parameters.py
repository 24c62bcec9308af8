"""What the parameters of policies and environments may be, declared where the parameter is.

A field ``eta: float = real(0.4, above=0.0)`` of a dataclass carries its range; the base classes check every declared
field when a value is made, and tests play at both ends of each range, which they find here.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable
from typing import Any

from abex.support.errors import one_of, real_number, true_or_false, whole_number

TINY, HUGE = 1e-100, 1e100  # squares and ratios of numbers between them are numbers
MOST_STEPS = 2**62  # beyond every horizon, within 64 bits
MOST_ARMS = 2**31 - 1  # arms are stored in 32 bits
EXACT = 2**53  # whole numbers below have an exact float
KEY = "abex parameter"  # in the metadata of a dataclass field


@dataclasses.dataclass(frozen=True)
class Range:
    """The numbers that a parameter may be: finite, ``least <= x <= most`` and ``x > above``; None where ``or_none``.

    >>> Range(above=0.0, most=1.0).ends()
    (5e-324, 1.0)
    >>> Range(least=1, most=10, whole=True).ends()
    (1, 10)
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    whole: bool = False
    or_none: bool = False

    def checked(self, name: str, value: Any) -> Any:
        """``value`` as a number of Python's that kernels understand; out of range it is refused by name."""
        if value is None and self.or_none:
            return None
        if self.whole:
            return whole_number(name, value, least=int(self.least), most=int(self.most))
        number = real_number(name, value, least=self.least, most=self.most, above=self.above)
        return value if type(value) is int and abs(value) < EXACT else number

    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number that is allowed."""
        if self.whole:
            return int(self.least), int(self.most)
        highest = sys.float_info.max
        low = max(self.least, math.nextafter(self.above, math.inf), -highest)
        return low, min(self.most, highest)


@dataclasses.dataclass(frozen=True)
class OneOf:
    """One of a few words, or True or False where there are none."""

    words: tuple[str, ...] = ()

    def checked(self, name: str, value: Any) -> Any:
        """``value``; what is no such word is refused by name."""
        return one_of(name, value, self.words) if self.words else true_or_false(name, value)


def real(
    default: Any = dataclasses.MISSING,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    or_none: bool = False,
) -> Any:
    """A field for a finite number with ``least <= x <= most`` and ``x > above``."""
    return _field(default, Range(least, most, above, or_none=or_none))


def whole(default: Any = dataclasses.MISSING, *, least: int, most: int, or_none: bool = False) -> Any:
    """A field for a whole number with ``least <= x <= most``."""
    return _field(default, Range(least, most, whole=True, or_none=or_none))


def choice(default: str, words: Iterable[str]) -> Any:
    """A field for one of ``words``."""
    return _field(default, OneOf(tuple(words)))


def truth(default: bool) -> Any:
    """A field for True or False."""
    return _field(default, OneOf())


def _field(default: Any, allowed: Range | OneOf) -> Any:
    return dataclasses.field(default=default, metadata={KEY: allowed})


def declared(kind: Any) -> dict[str, Range | OneOf]:
    """What the parameters of a dataclass may be, by name; parameters that declare nothing are left out."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name: field.metadata[KEY] for field in fields if KEY in field.metadata}


def check_parameters(value: Any) -> None:
    """Refuse, by name, a parameter outside of what its field declares; numbers of other libraries become Python's."""
    for name, allowed in declared(type(value)).items():
        given = getattr(value, name)
        number = allowed.checked(name, given)
        if number is not given:
            object.__setattr__(value, name, number)
