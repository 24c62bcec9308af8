"""Parameters of policies, environments and delays: their ranges, and values as text.

A field ``eta: float = real(0.4, above=0.0)`` of a dataclass carries its range; the base classes check every declared field when
a value is made, and tests play at both ends of each range, which they find here.

The ``repr`` of such a dataclass, ``Name(parameter=value, ...)``, is read by `parse_value`, and nothing in it is evaluated.

>>> @dataclasses.dataclass(frozen=True)
... class Box:
...     inside: object = 0
>>> parse_value("Box(inside=Box([1, 2]))", "box", {"Box": Box}, example="Box(1)")
Box(inside=Box(inside=[1, 2]))
"""

from __future__ import annotations

import ast
import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from abex.support.errors import (
    UserError,
    brief,
    nearest,
    one_of,
    real_number,
    shown,
    true_or_false,
    whole_number,
)

TINY, HUGE = 1e-100, 1e100  # squares and ratios of numbers between them are numbers
MOST_STEPS = 2**62  # beyond every horizon, within 64 bits
MOST_ARMS = 2**31 - 1  # arms are stored in 32 bits
EXACT = 2**53  # whole numbers below have an exact float
KEY = "abex parameter"  # in the metadata of a dataclass field
MAX_TEXT = 100_000  # characters of a value as text
MAX_DEPTH = 8  # values within values

Find = Callable[[str], Any]  # what makes the values of a name: a class, or a partial of one; or a UserError


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


# -- values as text -----------------------------------------------------------------------------------


def parse_value(text: str, what: str, kinds: Mapping[str, Any], *, example: str, hint: str = "") -> Any:
    """The value that ``text`` writes, of one of the classes in ``kinds``; what is wrong is said in a sentence.

    Parameters
    ----------
    text : str
        ``Name`` or ``Name(1, parameter=value)``.
    what : str
        What is being read, for messages ("policy").
    kinds : dict
        The classes by name, or partials of classes; letters of either case are understood.
    example : str
        How it should look.
    hint : str
        What to say after an unknown name.
    """
    folded = {name.lower(): cls for name, cls in kinds.items()}

    def find(name: str) -> Any:
        cls = kinds.get(name) or folded.get(name.lower())
        if cls is None:
            near = nearest(brief(name), kinds)
            raise UserError(f"unknown {what} {shown(brief(name))}{near}{hint or _list(kinds)}")
        return cls

    wrong = f"cannot read the {what} {shown(brief(text, 120))}: write Name(parameter=value, ...), for example {example}"
    head, opened, rest = text.strip().partition("(")
    if len(text) > MAX_TEXT or not head.strip():
        raise UserError(wrong)
    head = head.strip()  # names of the literature, such as UCB-N, are no names to Python
    cls = find(head)
    if not opened:
        return build(cls, [], {})
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError
        return _called(cls, call, find, MAX_DEPTH)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(wrong) from None


def _list(kinds: Mapping[str, Any]) -> str:
    return f"; known: {', '.join(kinds)}" if len(kinds) < 12 else ""


def _called(cls: Any, call: ast.Call, find: Find, depth: int) -> Any:
    if depth == 0 or len({word.arg for word in call.keywords}) < len(call.keywords):
        raise ValueError
    positional = [_evaluated(argument, find, depth - 1) for argument in call.args]
    named = {str(word.arg): _evaluated(word.value, find, depth - 1) for word in call.keywords}
    return build(cls, positional, named)


def _evaluated(node: ast.expr, find: Find, depth: int) -> Any:
    """A literal, or a value within the value."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name):
            raise ValueError
        return _called(_within(node.func.id, find), node, find, depth)
    if isinstance(node, ast.Name):
        return build(_within(node.id, find), [], {})
    if isinstance(node, ast.List | ast.Tuple):
        if depth == 0:
            raise ValueError
        items = [_evaluated(item, find, depth - 1) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    return ast.literal_eval(node)


def _within(name: str, find: Find) -> Any:
    """The class of a value within a value; a name that is not even like one of ours is no value at all."""
    try:
        return find(name)
    except UserError as error:
        if "did you mean" in str(error):
            raise
        raise ValueError from None


def build(cls: Any, positional: list[Any], named: dict[str, Any]) -> Any:
    """``cls(*positional, **named)`` with an error that names a wrong parameter and the nearest right one."""
    if isinstance(cls, partial):
        return build(cls.func, positional, cls.keywords | named)
    fields = [field.name for field in dataclasses.fields(cls)]
    known = f"; it has: {', '.join(fields)}" if fields else "; it has none"
    for name in named:
        if name not in fields:
            raise UserError(
                f"{cls.__name__} has no parameter {shown(brief(name))}{nearest(brief(name), fields)}{known}"
            )
    if len(positional) > len(fields):
        raise UserError(f"{cls.__name__} has no {len(fields) + 1}. parameter{known}")
    twice = [name for name in fields[: len(positional)] if name in named]
    if twice:
        raise UserError(f"{cls.__name__} is given its parameter {twice[0]!r} twice")
    needed = [
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in needed if name not in (*fields[: len(positional)], *named)]
    if missing:
        raise UserError(f"{cls.__name__} needs its parameter {missing[0]}{known}")
    try:
        return cls(*positional, **named)
    except TypeError as error:
        raise UserError(f"cannot make {cls.__name__}: {error}") from error
