"""Which interfaces of Numba that are not public may be used.

Speed comes from two of them: calls of compiled functions by their addresses (``addresses``), and a type for vector instructions
(``vectors``). Each is tried on a tiny case with a known answer before
it is used for the first time; the outcome is remembered on disk for these versions and this processor. If the answer is wrong, or
this version of Numba is not one that our tests run on, the public way is taken, with one warning: slower, and as right.

``ABEX_PLAIN=1`` takes the public way everywhere, ``ABEX_PLAIN=vectors,addresses`` for those named. ``ABEX_BOUNDS=1`` compiles
everything with checks of array bounds; vector instructions have none, so it goes without them. With ``NUMBA_DISABLE_JIT=1``
nothing is compiled, so nothing is tried and nothing used.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from abex.kernels.cache import CompilerWarning, cache_folder, environment, read_entry, write_entry
from abex.kernels.sources import stamp_of

OLDEST, BEYOND = (0, 61), (0, 69)  # versions of Numba that the tests run on, as in pyproject.toml


@cache
def bounds_checked() -> bool:
    """Whether compiled code checks the bounds of arrays."""
    return os.environ.get("ABEX_BOUNDS", "") not in ("", "0")


@cache
def interpreted() -> bool:
    """Whether nothing is to be compiled: ``NUMBA_DISABLE_JIT=1``, for a debugger to see Python."""
    import numba

    return bool(numba.config.DISABLE_JIT)


@cache
def usable(name: str) -> bool:
    """Whether ``addresses`` or ``vectors`` may be used here."""
    if interpreted() or (name == "vectors" and bounds_checked()):
        return False
    plain = os.environ.get("ABEX_PLAIN", "")
    if plain == "1" or name in plain.split(","):
        return False
    if not version_is_tested():
        return False
    if _remembered(name):
        return True
    try:
        works = TRIALS[name]()
    except Exception:
        works = False
    if works:
        _remember(name)
    else:
        import numba

        _slower(f"its interface for {name} does not work here (Numba {numba.__version__})")
    return works


@cache
def version_is_tested() -> bool:
    """Whether our tests run on this version of Numba; a warning if they do not."""
    import numba

    version = tuple(int(part) for part in numba.__version__.split(".")[:2])
    if OLDEST <= version < BEYOND:
        return True
    oldest, beyond = (".".join(map(str, bound)) for bound in (OLDEST, BEYOND))
    _slower(f"version {numba.__version__} is untested (install numba>={oldest},<{beyond})")
    return False


def _slower(reason: str) -> None:
    warnings.warn(
        f"only the public interfaces of Numba are used: {reason}; this is slower",
        CompilerWarning,
        stacklevel=3,
    )


def _remembered(name: str) -> bool:
    folder = cache_folder()
    return folder is not None and read_entry(folder / f"tried-{name}-{_key().hex()[:32]}", _key()) is not None


def _remember(name: str) -> None:
    folder = cache_folder()
    if folder is None:
        return
    try:
        write_entry(folder / f"tried-{name}-{_key().hex()[:32]}", _key(), b"")
    except OSError:
        return  # it will be tried again


@cache
def _key() -> bytes:
    return hashlib.sha256(f"{environment()} {stamp_of([])}".encode()).digest()


class _Record(NamedTuple):
    values: Any
    factor: float


def _lean() -> dict[str, Any]:
    """How the other two are tried: as they will be used, which is also compiled sooner."""
    return {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def _try_addresses() -> bool:
    """A function called by its address gets its arguments, returns a double, and passes its exception on."""
    import numba
    import numpy as np

    from abex.kernels.calls import address, call_at

    options = _lean()

    @numba.njit(**options)  # type: ignore[untyped-decorator]
    def item(record: Any, at: int) -> float:
        if at >= record.values.size:
            raise IndexError("beyond")
        return record.values[at] * record.factor  # type: ignore[no-any-return]

    @numba.njit(**options)  # type: ignore[untyped-decorator]
    def through(address: int, record: Any, at: int) -> Any:
        return call_at(address, (record, at))

    record = _Record(np.arange(3.0), 0.25)
    place = address(item, record, 0)
    try:
        through(place, record, 3)
    except IndexError as error:
        return bool(through(place, record, 2) == 0.5 and str(error) == "beyond")
    return False


def _try_vectors() -> bool:
    """Arithmetic on rows of three vectors gives what its Python does, to the last bit."""
    import numba
    import numpy as np

    import abex.kernels.vector_type  # noqa: F401 - importing it tells Numba
    from abex.kernels import vectors as v

    def combine(out: Any, a: Any, width: Any) -> Any:
        total = 0.0
        for piece in range(v.pieces(width)):
            first, second = v.load(a, 0, piece, width), v.load(a, 1, piece, width)
            larger = v.maximum(v.absolute(first - second), v.filled(a, width, 1.5))
            v.store(out, 1, piece, width, v.copysign(larger, first) * second + v.without(first, 3))
            total += v.lane_sum(v.load(out, 1, piece, width))
        return total

    compiled = numba.njit(**_lean())(combine)
    a, ours, plain = (v.new_rows(2, 40, np.float32) for _ in range(3))  # three pieces a row
    a[:] = np.sin(np.arange(a.size)).reshape(a.shape) * 3.0
    width = v.width_of(40, np.float32)
    return bool(compiled(ours, a, width) == combine(plain, a, width)) and not (ours != plain).any()


TRIALS: dict[str, Callable[[], bool]] = {
    "addresses": _try_addresses,
    "vectors": _try_vectors,
}
