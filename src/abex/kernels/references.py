"""Records handed to compiled code by reference.

Numba hands a NamedTuple over by value: every kernel that gets a state record of twenty arrays becomes a function of
140 arguments, and most of what the compiler reads and writes is their packing and unpacking. `by_reference` wraps a record
so that compiled code gets one pointer to its fields instead, and so for the records within it. Kernels read
fields as before (``state.means[arm]``); nothing else can be done with such a record in compiled code, such as unpacking it.

The fields are laid out here, once for each record, as compiled code has them in its registers. If compiled code took them
from the Python objects itself, that would be most of what is compiled, twelve thousand bytes of machine code for twelve arrays,
and it would be done again at every call.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from abex.kernels.compiling import before_compiling
from abex.kernels.interfaces import layouts_known
from abex.kernels.scalars import Scalars

WORD = 8  # bytes


class Reference:
    """A NamedTuple that compiled code gets by reference."""

    __slots__ = ("address", "compiled_type", "memory", "record")

    def __init__(self, record: Any) -> None:
        self.record = record
        self.memory = np.frombuffer(b"".join(laid_out(record)) or bytes(WORD), np.uint8)
        self.address = self.memory.ctypes.data
        self.compiled_type: Any = None  # noted when it is first asked for: Numba asks at every call


def by_reference(record: Any) -> Any:
    """A NamedTuple of arrays, numbers, generators, `Scalars` and such records, for compiled code to get it by reference.

    Anything else is given back as it is, and so are records where the layout of arrays in compiled code is not known.
    """
    if not (isinstance(record, tuple) and hasattr(record, "_fields") and layouts_known()):
        return record
    try:
        return Reference(record)
    except NotImplementedError:
        return record


def laid_out(value: Any) -> Iterator[bytes]:
    """The words of what stands in a record, as compiled code holds them."""
    if isinstance(value, np.ndarray):
        # nobody counts references to it: the record keeps it
        words = (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        yield struct.pack(f"{len(words)}q", *words)
    elif isinstance(value, tuple):
        for one in value:
            if not hasattr(value, "_fields") and isinstance(one, bool | np.generic):
                raise NotImplementedError("numbers of less than a word stand side by side in a tuple")
            yield from laid_out(one)
    elif isinstance(value, Scalars):
        yield struct.pack("q", value.address)
    elif isinstance(value, np.random.Generator):
        yield from generator_laid_out(value)
    elif isinstance(value, bool | np.bool_):
        yield struct.pack("q", bool(value))
    elif isinstance(value, int):
        yield struct.pack("q" if value < 1 << 63 else "Q", value)
    elif isinstance(value, float | np.number):
        number = np.asarray(value).tobytes()
        yield number.ljust(-len(number) % WORD + len(number), b"\0")
    else:
        raise NotImplementedError(f"a {type(value).__name__} is handed over by value")


def generator_laid_out(rng: np.random.Generator) -> Iterator[bytes]:
    """Where its state is, and the functions that draw from it."""
    source: Any = rng.bit_generator.ctypes
    functions = (source.next_uint64, source.next_uint32, source.next_double, source.bit_generator)
    addresses = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    yield struct.pack("9q", 0, source.state_address, source.state.value, *addresses, 0, 0)


@before_compiling
def _register_records() -> None:
    import abex.kernels.reference_type  # noqa: F401 - importing it tells Numba
