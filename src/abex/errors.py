"""What a person did wrong, said in one sentence that names the input."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any


class UserError(ValueError):
    """A mistake in the input. The command line shows it in one line and exits with 2."""


def whole_number(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """``value`` as an int within bounds; floats such as 1e5 are taken when they are whole.

    >>> whole_number("horizon", 1e5, least=1)
    100000
    >>> whole_number("horizon", 0, least=1)
    Traceback (most recent call last):
    ...
    abex.errors.UserError: horizon must be a whole number >= 1, got 0
    """
    try:
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except (TypeError, AttributeError, OverflowError):
        number = None
    if isinstance(value, bool) or number is None or number < least:
        raise UserError(f"{name} must be a whole number >= {least}, got {shown(value)}")
    if most is not None and number > most:
        raise UserError(f"{name} must be at most {most:g}, got {shown(value)}")
    return number


def true_or_false(name: str, value: Any) -> bool:
    """``value`` if it is one of the two."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise UserError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def shown(value: Any) -> str:
    """What stands for a value in a message: its text, or the beginning of it.

    >>> shown("x" * 1000)[-10:], shown(10**5000)
    ('xxxxxxx...', 'a number of more than 4000 digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not write out numbers this long
        return "a number of more than 4000 digits"
    return text if len(text) <= 200 else f"{text[:197]}..."


def real_number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
) -> float:
    """``value`` as a finite float with least <= value <= most and value > above."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool | str) or not math.isfinite(number):
        raise UserError(f"{name} must be a finite number, got {shown(value)}")
    if not (least <= number <= most and number > above):
        bounds = [f">= {least:g}"] * (least > -math.inf) + [f"> {above:g}"] * (above > -math.inf)
        bounds += [f"<= {most:g}"] * (most < math.inf)
        raise UserError(f"{name} must be {' and '.join(bounds)}, got {value!r}")
    return number


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """``value`` if it is among ``choices``, else an error that suggests the nearest."""
    known = list(choices)
    if value not in known:
        raise UserError(f"unknown {name} {value!r}{nearest(str(value), known)}; known: {', '.join(known)}")
    return str(value)


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion such as " (did you mean 'Thompson'?)", or nothing.

    >>> nearest("Tompson", ["Thompson", "UCB1"])
    " (did you mean 'Thompson'?)"
    """
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""
