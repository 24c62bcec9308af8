"""The compiler's room: the only module that imports Numba.

A *kernel* is an ordinary Python function in the subset that Numba understands. Python runs it as it
is (a `Player`, a debugger, a test); a function decorated with `compiled` may close over kernels and is
compiled together with them. One source, two faces.

Compiled code is kept on disk under a stamp: a hash of all sources of this package. Numba's own cache
does not notice an edited kernel in another file; a stamp does.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parent
UNUSED_DAYS = 14  # a stamp nobody has used for so long is deleted

_waiting: dict[Callable[..., Any], bool] = {}  # kernel -> whether it becomes part of its callers
_waiting_dispatches: dict[Callable[..., Any], tuple[Callable[..., Any], dict[type, Callable[..., Any]]]] = {}
_registered: set[Callable[..., Any]] = set()
_lessons: list[Callable[[], None]] = []
_lock = threading.RLock()
# nobody calls a kernel through C: the wrapper would be a second copy to compile
_INLINED = {"error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True}


def kernel(function: Function) -> Function:
    """Mark ``function`` as usable inside compiled code. It stays a plain Python function."""
    _waiting[function] = True
    return function


def rare_kernel(function: Function) -> Function:
    """A kernel that few steps call: compiled as a function of its own, where a `kernel` becomes part of its callers.

    A call hands over every array of a record, which costs more than a short kernel does; but what is
    part of its callers is compiled once for each of them.
    """
    _waiting[function] = False
    return function


def single_dispatch(function: Function) -> Function:
    """A kernel that is written once for each class of record its first argument may have.

    As with `functools.singledispatch`, ``@function.register(Record)`` adds the kernel for a class, and the function itself
    serves all classes that have none. Python looks the class up at each call, compiled code when it is compiled.

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

    @wraps(function)
    def dispatch(record: Any, *arguments: Any) -> Any:
        return variants.get(type(record), function)(record, *arguments)

    def register(record_class: type) -> Callable[[Function], Function]:
        def add(variant: Function) -> Function:
            variants[record_class] = variant
            return variant

        return add

    dispatch.register = register  # type: ignore[attr-defined]
    _waiting_dispatches[dispatch] = (function, variants)
    return dispatch  # type: ignore[return-value]


def before_compiling(lesson: Callable[[], None]) -> Callable[[], None]:
    """Run ``lesson`` once, before the first compilation: it may teach Numba a function of its own."""
    _lessons.append(lesson)
    return lesson


def compiled(*kernels: Callable[..., Any], allocates: bool = False) -> Callable[[Function], Function]:
    """Compile a function that closes over ``kernels`` (without the interpreter lock, IEEE division).

    Kernels do not allocate, so they are compiled without Numba's reference counting: a state record of many arrays
    would otherwise be counted up and down at every call (140 of the 220 ns that a step of ABE took at ten arms).
    ``allocates=True`` is for functions that make arrays; foreign kernels that do are noticed.

    The result is kept on disk when all of ``kernels`` belong to this package; code of other packages
    and notebooks is compiled once in each process, since no stamp would tell that it has changed.
    """
    ours = not foreign(kernels)

    def decorate(function: Function) -> Function:
        import numba
        from numba.extending import register_jitable

        with _lock:
            while _lessons:
                _lessons.pop()()
            for unknown, inline in {**dict.fromkeys(kernels, True), **_waiting}.items():
                if unknown not in _registered:
                    register_jitable(**{**_INLINED, "forceinline": inline})(unknown)
                    _registered.add(unknown)
            _waiting.clear()
            while _waiting_dispatches:
                dispatch, (default, variants) = _waiting_dispatches.popitem()
                _register_dispatch(dispatch, default, variants)
            folder = cache_folder() if ours else None
            options = {
                "cache": folder is not None,
                "nogil": True,
                "error_model": "numpy",
                "no_cfunc_wrapper": True,
            }
            with _numba_cache(folder):
                counted = numba.njit(**options)
                lean = counted if allocates else numba.njit(_nrt=False, **options)
                result: Any = lean(function) if ours else _Foreign(lean(function), counted(function))
        return result  # type: ignore[no-any-return]

    return decorate


def _register_dispatch(
    dispatch: Callable[..., Any], default: Callable[..., Any], variants: dict[type, Callable[..., Any]]
) -> None:
    """Let compiled code find the variant of `single_dispatch` by the class of the record."""
    from numba.extending import overload

    @overload(dispatch, strict=False, jit_options=_INLINED)  # type: ignore[untyped-decorator]
    def choose(*arguments: Any) -> Any:
        return variants.get(getattr(arguments[0], "instance_class", None), default)  # type: ignore[arg-type]


def foreign(kernels: Iterable[Callable[..., Any]]) -> bool:
    """Whether one of them belongs to another package."""
    return any(function.__module__.split(".")[0] != __package__ for function in kernels)


def address_of(function: Any, *arguments: Any) -> int:
    """Where a `compiled` function for arguments like these begins, for `call_at`."""
    import numba

    kinds = tuple(numba.typeof(argument) for argument in arguments)
    found = function.get_compile_result(numba.float64(*kinds))
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def call_at(address: int, arguments: tuple[Any, ...]) -> float:
    """In compiled code: call the function at ``address``, which must be its `address_of` arguments like these.

    A function that is called by its name is optimised anew together with every caller; one that is called by its
    address is compiled once. The address is handed in, as compiled code from the disk cannot know it. Functions so called
    return a number.
    """
    raise TypeError("call_at works in compiled code alone.")


@before_compiling
def _teach_call_at() -> None:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import cgutils, types, typing
    from numba.extending import lower_builtin, type_callable

    @type_callable(call_at)  # type: ignore[untyped-decorator]
    def typer(context: Any) -> Any:
        return lambda _, given: typing.signature(types.float64, types.intp, types.unliteral(given))  # type: ignore[attr-defined]

    @lower_builtin(call_at, types.intp, types.BaseTuple)  # type: ignore[attr-defined, untyped-decorator]
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = tuple(signature.args[1])
        kind = context.call_conv.get_function_type(types.float64, kinds)
        function = builder.inttoptr(values[0], ir.PointerType(kind))
        given = cgutils.unpack_tuple(builder, values[1])
        status, result = context.call_conv.call_function(builder, function, types.float64, kinds, given)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result


class _Foreign:
    """A function over kernels of other packages: compiled lean, or with reference counting if they allocate."""

    def __init__(self, lean: Callable[..., Any], counted: Callable[..., Any]) -> None:
        self.lean, self.counted = lean, counted
        self.chosen: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self.chosen is None:
            from numba.core.errors import NumbaError

            try:
                result = self.lean(*arguments)  # fails while compiling, before anything is written
            except (NumbaError, RuntimeError):
                self.chosen = self.counted
                return self.counted(*arguments)
            self.chosen = self.lean
            return result
        return self.chosen(*arguments)


@cache
def cache_folder() -> Path | None:
    """Folder for this version's compiled code, or None where nothing can be written."""
    folder = user_cache() / "kernels" / source_stamp()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.urandom(8).hex()}"
        probe.touch()
        probe.unlink()
        os.utime(folder)
    except OSError:
        return None
    prune(folder.parent, keep=folder)
    return folder


def user_cache() -> Path:
    """The user's cache folder: ``$ABEX_CACHE``, else the platform's."""
    import platformdirs

    return Path(os.environ.get("ABEX_CACHE") or platformdirs.user_cache_dir("abex"))


@cache
def source_stamp() -> str:
    """First 16 hex digits of the SHA-256 of every source file of the package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def prune(parent: Path, keep: Path, days: float = UNUSED_DAYS) -> None:
    """Delete the stamp folders under ``parent`` that have not been used for ``days``, except ``keep``."""
    limit = time.time() - days * 86_400
    try:
        stale = [p for p in parent.iterdir() if p != keep and p.is_dir() and p.stat().st_mtime < limit]
    except OSError:
        return
    import shutil

    for folder in stale:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _numba_cache(folder: Path | None) -> Iterator[None]:
    from numba.core import config

    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder) if folder is not None else before
    try:
        yield
    finally:
        config.CACHE_DIR = before


def fast(function: Function) -> Function:
    """A kernel compiled on its own, for work outside the simulator's loop."""
    result: Function = _alone(function)
    return result


@cache
def _alone(function: Any) -> Any:
    return compiled(function, allocates=True)(function)
