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
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parent
UNUSED_DAYS = 14  # a stamp nobody has used for so long is deleted

_waiting: list[tuple[Callable[..., Any], bool]] = []
_lock = threading.RLock()


def kernel(function: Function) -> Function:
    """Mark ``function`` as usable inside compiled code. It stays a plain Python function."""
    _waiting.append((function, True))
    return function


def rare_kernel(function: Function) -> Function:
    """A kernel that few steps call: compiled as a function of its own, where a `kernel` becomes part of its callers.

    A call hands over every array of a record, which costs more than a short kernel does; but what is
    part of its callers is compiled once for each of them.
    """
    _waiting.append((function, False))
    return function


def compiled(*kernels: Callable[..., Any], counted: bool = True) -> Callable[[Function], Function]:
    """Compile a function that closes over ``kernels`` (without the interpreter lock, IEEE division).

    ``counted=False`` leaves out the reference counts of arrays, which cost a short step more than its work (a
    record of 20 arrays is counted at every access). It is for functions that return no array; where a kernel
    makes arrays of its own the counts come back by themselves.

    The result is kept on disk when all of ``kernels`` belong to this package; code of other packages
    and notebooks is compiled once in each process, since no stamp would tell that it has changed.
    """
    ours = all(function.__module__.split(".")[0] == __package__ for function in kernels)

    def decorate(function: Function) -> Function:
        import numba
        from numba.extending import register_jitable

        with _lock:
            while _waiting:
                marked, inline = _waiting.pop()
                register_jitable(error_model="numpy", forceinline=inline)(marked)
            folder = cache_folder() if ours else None
            with _numba_cache(folder):
                options = {"cache": folder is not None, "nogil": True, "error_model": "numpy"}
                result: Function = numba.njit(**options)(function)
                if not counted:
                    result = _uncounted(numba.njit(_nrt=False, **options)(function), result)
        return result

    return decorate


def _uncounted(fast: Any, safe: Any) -> Any:
    """``fast``, or ``safe`` where a kernel makes an array, which cannot be compiled without counts."""
    from numba.core.errors import NumbaError

    chosen = [fast]

    @wraps(safe.py_func)
    def run(*arguments: Any) -> Any:
        try:
            return chosen[0](*arguments)
        except NumbaError:  # raised by the compiler, before anything has run
            if chosen[0] is safe:
                raise
            chosen[0] = safe
            return safe(*arguments)

    return run


@cache
def cache_folder() -> Path | None:
    """Folder for this version's compiled code, or None where nothing can be written."""
    folder = user_cache() / "kernels" / source_stamp()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()
        os.utime(folder)
    except OSError:
        return None
    prune(folder.parent, keep=folder)
    return folder


def user_cache() -> Path:
    """The user's cache folder: ``$ABEX_CACHE``, else the platform's."""
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
