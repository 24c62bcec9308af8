"""What is wrong with a kernel of one's own, in a sentence with the line, from what Numba says at length."""

from __future__ import annotations

import builtins
import inspect
import linecache
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from abex.kernels.compiling import is_kernel
from abex.kernels.current import globals_of
from abex.kernels.sources import NAME, PACKAGE
from abex.support.errors import UserError, brief

ARGUMENTS = {  # what is passed to the kernels of policies and environments
    "select": ("state", "t", "rng"),
    "update": ("state", "t", "arm", "seen", "reward", "rng"),
    "draw": ("world", "t", "arm"),
    "gap": ("world", "t", "arm"),
    "best": ("world", "t", "arm"),
}
PLACE = re.compile(r'File "([^"]+)", line (\d+)')
FAILED = "Failed in nopython mode pipeline"
UNTYPED = r"Untyped global name '(\w+)': Cannot determine Numba type of "
SIMPLER = (
    (
        r"Unknown attribute '(\w+)' of type NumPyRandomGeneratorType.*",
        r"compiled code has no rng.\1, use rng.random(), rng.integers(low, high), rng.beta(a, b), ...",
    ),
    (r"Unknown attribute '(\w+)' of type (?:Record\((?:[\w<>]+\.)*)?(\w+).*", r"\2 has no '\1'"),
    (
        UNTYPED + r"<class 'function'>",
        r"\1 is a plain function: put @kernel (from abex import kernel) above it",
    ),
    (UNTYPED + r"<class '([\w.]+)'>", r"\1 is a \2, which compiled code cannot use"),
    (r"Cannot unify .* and .* for '(\w+?)[.\d]*', defined.*", r"\1 has different types in different places"),
)


def explain(error: Exception, functions: Iterable[Any]) -> str | None:
    """The sentence about one of these functions, or of those they call; None if the mistake is not found in them."""
    users = list(dict.fromkeys(one for function in functions for one in _reached(function)))
    for function in users:
        if said := _wrong_arguments(function) or _undefined(function):
            return said
    return _from_numba(str(error), users)


def _reached(function: Any, depth: int = 0) -> Iterator[FunctionType]:
    """A function of another package, and the kernels of other packages that it calls."""
    if not isinstance(function, FunctionType) or function.__module__.split(".")[0] == NAME or depth > 20:
        return
    yield function
    for name, _ in globals_of(function):
        inner = function.__globals__.get(name)
        if inner is not function and is_kernel(inner):
            yield from _reached(inner, depth + 1)


def _wrong_arguments(function: FunctionType) -> str | None:
    wanted = ARGUMENTS.get(function.__name__)
    given = tuple(inspect.signature(function).parameters)
    if wanted is None or len(given) == len(wanted) or "." not in function.__qualname__:
        return None
    line = function.__code__.co_firstlineno
    return f"{_where(function, line)} takes ({', '.join(given)}); it must take ({', '.join(wanted)})"


def _undefined(function: FunctionType) -> str | None:
    for name, line in globals_of(function):
        if name not in function.__globals__ and not hasattr(builtins, name):
            return f"{_where(function, line)}{_quoted(function.__code__.co_filename, line)}: the name {name!r} is not defined"
    return None


def _from_numba(text: str, users: list[FunctionType]) -> str | None:
    """The innermost of Numba's reasons that lies in one of these functions."""
    parts = text.split(FAILED)
    for part in reversed(parts[1:]):
        lines = [line.strip() for line in part.splitlines()[1:] if line.strip()]
        place = PLACE.search(part)
        if not lines or place is None:
            continue
        file, line = os.path.abspath(place[1]), int(place[2])
        if Path(file).is_relative_to(PACKAGE):
            continue
        reason = lines[0]
        if reason.startswith("No implementation of function") and len(lines) > 1:
            call = next((one for one in lines if one.startswith(">>>")), lines[1])
            reason = f"there is no {brief(call.removeprefix('>>>').strip(), 100)} in compiled code"
        for pattern, simple in SIMPLER:
            reason = re.sub(f"^{pattern}$", simple, reason)
        owner = next((one for one in users if _holds(one, file, line)), None)
        where = f"line {line} of {_file(file)}" if owner is None else _where(owner, line)
        return f"{where}{_quoted(file, line)}: {brief(reason, 200)}"
    return None


def _holds(function: FunctionType, file: str, line: int) -> bool:
    """Whether a line belongs to a function."""
    code = function.__code__
    last = max((at for *_, at in code.co_lines() if at is not None), default=code.co_firstlineno)
    return os.path.abspath(code.co_filename) == file and code.co_firstlineno <= line <= last


def _where(function: FunctionType, line: int | None) -> str:
    return f"{function.__qualname__.split('<locals>.')[-1]} (line {line} of {_file(function.__code__.co_filename)})"


def _file(path: str) -> str:
    """The file's name; notebooks have none that means anything."""
    return "the cell" if "ipykernel" in path or path.startswith("<") else os.path.basename(path)


def _quoted(path: str, line: int | None) -> str:
    text = linecache.getline(path, line or 0).strip()
    return f", {brief(text, 80)!r}" if text else ""


def check_record(where: str, record: Any) -> None:
    """Refuse a state or a world that compiled code cannot take: anything but arrays, numbers, and records and tuples of them."""
    wrong = _unusable(record, "")
    if wrong is not None:
        field, kind = wrong
        kind = kind if kind == "None" else f"a {kind}"
        what = kind if not field else f"a record whose field {field!r} is {kind}"
        raise UserError(
            f"{where} returns {what}: compiled code takes a NamedTuple of NumPy arrays and numbers"
        )


def _unusable(value: Any, field: str) -> tuple[str, str] | None:
    """The first field that holds a dict, a list, a set or nothing at all, and what it holds."""
    if value is None or isinstance(value, dict | list | set):
        return field, "None" if value is None else type(value).__name__
    if isinstance(value, tuple):
        names = getattr(value, "_fields", range(len(value)))
        inner = (
            _unusable(one, f"{field}.{name}".lstrip(".")) for name, one in zip(names, value, strict=False)
        )
        return next((one for one in inner if one is not None), None)
    return None
