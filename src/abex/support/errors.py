"""Input errors: checks of arguments, and one sentence that names the input."""

from __future__ import annotations

import difflib
import math
import operator
import os
import re
import traceback
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

ENDLESS = re.compile(r"\S{120,}")  # no word, and no path that a message needs whole
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUOTES = "\"'"
LONGEST_NAME = 200  # characters
MAX_LISTED = 110  # characters of a message up to the end of its list of choices


class UserError(ValueError):
    """A mistake in the input. The command line shows it in one line and exits with 2.

    The sentence is one line, and words of more than 120 characters in it are cut.

    >>> str(UserError("unknown policy " + "x" * 1000))[:30]
    'unknown policy xxxxxxxxxxxxxxx'
    """

    def __init__(self, sentence: object = "") -> None:
        text = "".join(mark if mark.isprintable() else " " for mark in str(sentence))
        super().__init__(ENDLESS.sub(lambda run: f"{run[0][:40]}...{run[0][-40:]}", text))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the sentence and the line of the caller's code."""
        frames = traceback.extract_tb(self.__traceback__)
        mine = list(takewhile(lambda frame: not frame.filename.startswith(_HERE), frames))
        place = [f"line {mine[-1].lineno}: {mine[-1].line}"] if mine else []
        return [*place, f"{type(self).__name__}: {self}"]


def whole_number(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """``value`` as an int within bounds; floats such as 1e5 are taken when they are whole.

    >>> whole_number("horizon", 1e5, least=1)
    100000
    >>> whole_number("horizon", 0, least=1)
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: horizon must be a whole number >= 1, got 0
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


def checked_name(what: str, name: Any) -> str:
    """``name`` as the name of something: 1 to 200 printable characters that are not all blank.

    >>> checked_name("a key", "")
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: a key must be 1 to 200 printable characters, got ''
    """
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError(f"{what} must be 1 to {LONGEST_NAME} printable characters, got {shown(name)}")
    return str(name)


def true_or_false(name: str, value: Any) -> bool:
    """``value`` if it is True or False."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise UserError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def shown(value: Any) -> str:
    """The text of a value for a message, in one line, cut where it is long.

    >>> shown("x" * 1000)[-10:], shown(10**5000)
    ('xxxxxxx...', 'a number of more than 4000 digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not write out numbers this long
        return "a number of more than 4000 digits"
    return brief(text)


def brief(text: str, most: int = 60) -> str:
    r"""One line of at most so many characters.

    >>> brief("Error: unexpected\n  token <html>"), brief("a" * 100, most=10)
    ('Error: unexpected token <html>', 'aaaaaaa...')
    """
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text[: 4 * most]).split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 3]}..."


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
        raise UserError(f"{name} must be {' and '.join(bounds)}, got {shown(value)}")
    return number


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """``value`` if it is among ``choices``, else an error that suggests the nearest."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        word = shown(value)
        head = f"unknown {name} {word}{nearest(word.strip(QUOTES), known)}; known: "
        raise UserError(head + _listed(known, MAX_LISTED - len(head)))
    return str(value)


def _listed(words: list[str], most: int) -> str:
    """The words, or as many as fit into ``most`` characters, one at least."""
    text = ", ".join(words)
    return text if len(text) <= most else f"{text[:most].rpartition(', ')[0] or words[0]}, ..."


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion such as " (did you mean 'Thompson'?)", or nothing.

    >>> nearest("Tompson", ["Thompson", "UCB1"])
    " (did you mean 'Thompson'?)"
    """
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""


def among_arms(word: object, names: Sequence[str], count: int) -> str:
    """The nearest of the names of ``count`` arms, and what arms there are.

    >>> among_arms("rad", ["red", "green"], 2)
    " (did you mean 'red'?): arms are red, green"
    """
    listed = ", ".join(names[:8]) + (f", ... ({count} in all)" if count > 8 else "")
    return f"{nearest(word, names) if isinstance(word, str) else ''}: arms are {listed}"
