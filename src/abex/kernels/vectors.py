"""Arrays of vectors: 64 bytes at a time (16 floats or 8 doubles), one instruction where the processor has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from abex.kernels.compiling import before_compiling, let_kernels_allocate, rare_kernel
from abex.kernels.interfaces import usable

VECTOR_BYTES = 64
Function = TypeVar("Function", bound=Callable[..., Any])

_written: list[tuple[Callable[..., Any], Callable[[Any], None], bool]] = []


def lanes_of(dtype: Any) -> int:
    """How many numbers of this type a vector holds."""
    return VECTOR_BYTES // int(np.dtype(dtype).itemsize)


def vectors(count: int, dtype: Any) -> NDArray[Any]:
    """Zeros of shape (count, lanes), aligned to the vector size."""
    lanes = lanes_of(dtype)
    raw = np.zeros((count + 1) * lanes, dtype=dtype)
    skip = (-raw.ctypes.data % VECTOR_BYTES) // raw.itemsize
    return raw[skip : skip + count * lanes].reshape(count, lanes)


def vectorised(emit: Callable[[Any], None], *, apart: bool = False) -> Callable[[Function], Function]:
    """Compile a function as ``emit`` writes it with a `vector_code.VectorBuilder`, with the same results to the last bit.

    Python runs the function as it stands; so does compiled code where vector instructions are not to be had.
    """

    def decorate(function: Function) -> Function:
        if not _written:
            before_compiling(_register)
        _written.append((function, emit, apart))
        return function

    return decorate


def _register() -> None:
    instructions = usable("vectors")
    if not instructions:
        let_kernels_allocate()
    for function, emit, apart in _written:
        if instructions:
            from abex.kernels.vector_code import lower

            lower(function, emit, apart=apart)
        else:
            rare_kernel(function)
    _written.clear()
