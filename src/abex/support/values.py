"""Values as text: ``Name(parameter=value, ...)``, possibly within each other, read without evaluating anything.

A policy, a delay or a detector of changes is a frozen dataclass; its ``repr`` is what is parsed here.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Box:
...     inside: object = 0
>>> parse_value("Box(inside=Box([1, 2]))", "box", {"Box": Box}, example="Box(1)")
Box(inside=Box(inside=[1, 2]))
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from abex.support.errors import UserError, brief, nearest, shown

LONGEST_TEXT = 100_000  # characters
DEEPEST = 8  # values within values

Find = Callable[[str], Any]  # what makes the values of a name: a class, or a partial of one; or a UserError


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
    if len(text) > LONGEST_TEXT:
        raise UserError(wrong)
    head, _, rest = text.strip().partition("(")
    head = head.strip()  # names of the literature, such as UCB-N, are no names to Python
    cls = find(head)
    if not rest:
        return build(cls, [], {})
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError
        return _called(cls, call, find, DEEPEST)
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
