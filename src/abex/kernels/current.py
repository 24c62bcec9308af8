"""Kernels of other packages and notebooks as they are now: a changed global or helper is noticed and compiled anew.

Numba freezes what a function names when it is compiled. So a kernel that is not ours is compiled as a copy that has the present
values of its globals, one copy for each state of them: change a constant or define a helper again, and the next call compiles.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from abex.kernels.sources import NAME

DEEPEST = 20  # helpers within helpers

_copies: dict[Any, Callable[..., Any]] = {}


def with_present_globals(function: Any) -> Any:
    """The function itself if it is ours, else a copy with what it names at this moment; the same copy while that is the same."""
    if not _is_user_defined(function):
        return function
    key = fingerprint(function)
    if key not in _copies:
        _copies[key] = _copy(function, 0)
    return _copies[key]


def globals_of(function: types.FunctionType) -> Iterator[tuple[str, int | None]]:
    """The global names that a function loads, with their lines."""
    line = None
    for step in dis.get_instructions(function):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname == "LOAD_GLOBAL":
            yield str(step.argval), line


def fingerprint(function: Any, depth: int = 0) -> Any:
    """What a function is and names, by value where that is possible; equal while nothing has changed."""
    if not _is_user_defined(function) or depth > DEEPEST:
        return _value(function)
    named = {
        name: fingerprint(function.__globals__[name], depth + 1)
        for name, _ in globals_of(function)
        if name in function.__globals__
    }
    closed = tuple(fingerprint(cell.cell_contents, depth + 1) for cell in function.__closure__ or ())
    return (function, tuple(sorted(named.items())), closed)


def _value(value: Any) -> Any:
    """Something hashable that changes when the value does."""
    if isinstance(value, bool | int | float | complex | str | bytes):
        return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(_value(one) for one in value)
    return "object", id(value)


def _copy(function: types.FunctionType, depth: int) -> types.FunctionType:
    values = dict(function.__globals__)
    if depth < DEEPEST:
        for name, _ in globals_of(function):
            if _is_user_defined(values.get(name)) and values[name] is not function:
                values[name] = _kernel_copy(values[name], depth + 1)
    cells = tuple(
        types.CellType(
            _kernel_copy(cell.cell_contents, depth + 1)
            if _is_user_defined(cell.cell_contents)
            else cell.cell_contents
        )
        for cell in function.__closure__ or ()
    )
    made = types.FunctionType(function.__code__, values, function.__name__, function.__defaults__, cells)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _kernel_copy(function: Any, depth: int) -> Any:
    """The copy of a helper, a kernel if the helper is one."""
    from abex.kernels.compiling import is_kernel, kernel

    return kernel(_copy(function, depth)) if is_kernel(function) else function


def _is_user_defined(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__module__.split(".")[0] != NAME
