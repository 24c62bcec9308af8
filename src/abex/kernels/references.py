"""Records handed to compiled code by reference.

Numba hands a NamedTuple over by value: every kernel that gets a state record of twenty arrays becomes a function of
140 arguments, and most of what the compiler reads and writes is their packing and unpacking. `by_reference` wraps a record
so that compiled code gets one pointer to its fields instead, and so for the records within it. Kernels read
fields as before (``state.means[arm]``); nothing else can be done with such a record in compiled code, such as unpacking it.
"""

from __future__ import annotations

from typing import Any

from abex.kernels.compiling import before_compiling


class Reference:
    """A NamedTuple that compiled code gets by reference."""

    __slots__ = ("compiled_type", "record")

    def __init__(self, record: Any) -> None:
        self.record = record
        self.compiled_type: Any = None  # noted when it is first asked for: Numba asks at every call


def by_reference(record: Any) -> Any:
    """A NamedTuple such that a compiled function gets it by reference; anything else as it is."""
    return Reference(record) if isinstance(record, tuple) and hasattr(record, "_fields") else record


@before_compiling
def _register_records() -> None:
    import abex.kernels.reference_type  # noqa: F401 - importing it tells Numba
