"""Kernels and the functions that are compiled with them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache, wraps
from types import FunctionType
from typing import Any, ParamSpec, Protocol, TypeVar

from abex.kernels.cache import KernelCache, cache_folder, functions_in
from abex.kernels.compiling_progress import kept_on_disk, watch
from abex.kernels.current import with_present_globals
from abex.kernels.sources import NAME
from abex.support.extras import installed, needed

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result", covariant=True)

_waiting: dict[Callable[..., Any], bool] = {}  # kernel -> whether it becomes part of its callers
_kernels: set[Callable[..., Any]] = set()
_registered: set[Callable[..., Any]] = set()
_dispatches: dict[Callable[..., Any], tuple[Callable[..., Any], dict[type, Callable[..., Any]]]] = {}
_lowerings: list[Callable[[], None]] = []  # run once, before anything is compiled
_lock = threading.RLock()


def kernel(function: Function) -> Function:
    """Mark ``function`` as usable inside compiled code. It stays a plain Python function."""
    _waiting[function] = True
    _kernels.add(function)
    return function


def is_kernel(function: Any) -> bool:
    """Whether a function was marked as a kernel."""
    return isinstance(function, FunctionType) and function in _kernels


def rare_kernel(function: Function) -> Function:
    """A kernel that few steps call: compiled as a function of its own, where a `kernel` becomes part of its callers.

    A call costs more than a short kernel does; but what is part of its callers is compiled once for each of them.
    """
    _waiting[function] = False
    _kernels.add(function)
    return function


class SingleDispatch(Protocol[Parameters, Result]):
    """What `single_dispatch` makes of a function."""

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        """Run the kernel for the class of the first argument."""

    def register(self, record_class: type) -> Callable[[Function], Function]:
        """A decorator that adds the kernel for a class."""


def single_dispatch(function: Callable[Parameters, Result]) -> SingleDispatch[Parameters, Result]:
    """A kernel that is written once for each class of record its first argument may have.

    As with `functools.singledispatch`, ``@function.register(Record)`` adds the kernel for a class, and the function itself
    serves all classes that have none. Python looks the class up at each call, compiled code when it is compiled. A kernel stands
    in the module of its record, or is imported there: the cache of compiled code looks there to see whether it has changed.

    >>> from typing import NamedTuple
    >>> class Square(NamedTuple):
    ...     side: float
    >>> @single_dispatch
    ... def area(shape):
    ...     return 0.0
    >>> @area.register(Square)
    ... def area_of_square(shape):
    ...     return shape.side * shape.side
    >>> area(Square(3.0)), area((3.0,))
    (9.0, 0.0)
    """
    variants: dict[type, Callable[..., Any]] = {}

    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    words = ", ".join(names)  # spelled out, a call costs half of what it does with *arguments
    code = f"lambda find, default: lambda {words}: find(type({names[0]}), default)({words})"
    dispatch = wraps(function)(eval(code)(variants.get, function))

    def register(record_class: type) -> Callable[[Function], Function]:
        def add(variant: Function) -> Function:
            home = sys.modules[record_class.__module__]
            if variant.__module__ != home.__name__ and getattr(home, variant.__name__, None) is not variant:
                raise TypeError(
                    f"{variant.__qualname__} must stand in the module of {record_class.__qualname__}, or be imported there"
                )
            variants[record_class] = variant
            return variant

        return add

    dispatch.register = register  # type: ignore[attr-defined]
    _dispatches[dispatch] = (function, variants)
    return dispatch  # type: ignore[return-value]


def before_compiling(register: Callable[[], None]) -> Callable[[], None]:
    """Run ``register`` once before the first compilation: it may register lowerings with Numba."""
    _lowerings.append(register)
    return register


@cache
def bounds_checked() -> bool:
    """Whether compiled code checks the bounds of arrays (``ABEX_BOUNDS=1``); vectors have none, so they are arrays then."""
    return os.environ.get("ABEX_BOUNDS", "") not in ("", "0")


@cache
def interpreted() -> bool:
    """Whether nothing is to be compiled: ``NUMBA_DISABLE_JIT=1``, for a debugger to see Python."""
    import numba

    return bool(numba.config.DISABLE_JIT)


def compiled(*kernels: Callable[..., Any]) -> Callable[[Function], Function]:
    """Compile a function that closes over ``kernels``, to run without the interpreter lock.

    Our kernels divide as IEEE 754 says; those of other packages raise ZeroDivisionError, as Python does.

    The result is kept on disk when the function and all kernels belong to this package; code of other packages
    and notebooks is compiled once in each process, since no stamp would tell that it has changed.
    """

    def decorate(function: Function) -> Function:
        with _lock:
            with needed():
                import numba

            if interpreted():
                return function
            watch()
            _register(kernels)
            result = numba.njit(**_options(function), nogil=True)(function)
            _keep(result, kernels)
        return result  # type: ignore[no-any-return]

    return decorate


def compile_alone(function: Function) -> Function:
    """A kernel compiled on its own, for work outside the simulator's loop; as it is where there is no Numba."""
    result: Function = _alone(with_present_globals(function)) if can_compile() else function
    return result


def entry_of(function: Any, *arguments: Any) -> Any:
    """A `compiled` function for arguments of these types alone, as Python calls it.

    Numba looks at every argument at each call: 5 us for a record and a generator, where a kernel may run for 1. An entry takes
    for granted what it was made for, so hand it no others.
    """
    if not hasattr(function, "compile"):
        return function  # it is not compiled
    import numba

    return function.compile(tuple(numba.typeof(argument) for argument in arguments))


@cache
def can_compile() -> bool:
    """Whether Numba is there, which comes with the extras ``simulate`` and ``boosting``."""
    return installed("numba")


@cache
def _alone(function: Any) -> Any:
    return compiled(function)(function)


def is_user_defined(kernels: Iterable[Callable[..., Any]]) -> bool:
    """Whether one of them, or of those they close over, belongs to another package."""
    return any(function.__module__.split(".")[0] != NAME for function in functions_in(kernels))


def _register(kernels: Iterable[Callable[..., Any]]) -> None:
    """Make all kernels known to Numba that it does not know yet."""
    from numba.extending import register_jitable

    while _lowerings:
        _lowerings.pop()()
    for unknown, inline in {**dict.fromkeys(kernels, True), **_waiting}.items():
        if unknown not in _registered:
            register_jitable(**_kernel_options(unknown, inline=inline))(unknown)
            _registered.add(unknown)
    _waiting.clear()
    while _dispatches:
        dispatch, (default, variants) = _dispatches.popitem()
        _register_dispatch(dispatch, default, variants)


def _register_dispatch(
    dispatch: Callable[..., Any], default: Callable[..., Any], variants: dict[type, Callable[..., Any]]
) -> None:
    """Let compiled code find the variant of `single_dispatch` by the class of the record."""
    from numba.extending import overload

    @overload(dispatch, strict=False, jit_options=_kernel_options(dispatch, inline=True))  # type: ignore[untyped-decorator]
    def choose(*arguments: Any) -> Any:
        return variants.get(getattr(arguments[0], "instance_class", None), default)  # type: ignore[arg-type]


def _kernel_options(function: Callable[..., Any], *, inline: bool) -> dict[str, Any]:
    """How a kernel is compiled inside its callers, of which it becomes a part or not."""
    return {**_options(function), "forceinline": inline}


def _options(function: Callable[..., Any]) -> dict[str, Any]:
    """How the compiler is called; nobody calls through C, for which there would be a second copy to compile."""
    return {
        "error_model": "python" if is_user_defined([function]) else "numpy",
        "no_cfunc_wrapper": True,
        "boundscheck": bounds_checked(),
    }


def _keep(function: Any, kernels: Iterable[Callable[..., Any]]) -> None:
    """Let a compiled function of this package be kept on disk."""
    if is_user_defined(functions_in([function.py_func, *kernels])) or not hasattr(function, "_cache"):
        return
    folder = cache_folder()
    if folder is not None:
        function._cache = KernelCache(folder, function.py_func, kernels, f"bounds {bounds_checked()}")
        kept_on_disk.add(function)
