"""Named numbers that kernels may change.

A state record is a NamedTuple: its arrays can be written to, its numbers cannot. Counters, clocks and other single numbers that
change while a policy plays are fields of a `Scalars` class:

>>> class Clock(Scalars):
...     epoch: int
...     due: float
>>> clock = Clock(epoch=1)
>>> clock.epoch += 1
>>> clock
Clock(epoch=2, due=0.0)

Python and compiled code share its memory, eight bytes a number. In compiled code it is one pointer, so it costs less to hand
over than an array does.
"""

from __future__ import annotations

from typing import Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.kernels.compiling import before_compiling


class _WithoutDict(type):
    """Subclasses have the fields they annotate and no others: a misspelt one is an error."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        return super().__new__(cls, name, bases, {"__slots__": (), **namespace})


class Scalars(metaclass=_WithoutDict):
    """Whole numbers (``int``) and fractions (``float``) by name; subclasses annotate their fields."""

    __slots__ = ("address", "floats", "ints")
    fields: ClassVar[dict[str, type]] = {}
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]  # the same memory

    def __init_subclass__(cls) -> None:
        own = {name: hint for name, hint in get_type_hints(cls).items() if hint in (int, float)}
        cls.fields = own
        for place, (name, kind) in enumerate(own.items()):
            setattr(cls, name, number_property(place, kind))

    def __init__(self, **values: float) -> None:
        self.allocate(len(self.fields))
        for name, value in values.items():
            setattr(self, name, value)

    def allocate(self, words: int) -> None:
        """Make room."""
        self.ints = np.zeros(words, np.int64)
        self.floats = self.ints.view(np.float64)
        self.address = self.ints.ctypes.data

    def asdict(self) -> dict[str, Any]:
        """All numbers by name."""
        return {name: getattr(self, name) for name in self.fields}

    def __copy__(self) -> Scalars:
        return type(self)(**self.asdict())

    def __deepcopy__(self, memo: Any) -> Scalars:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.asdict())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and np.array_equal(self.ints, other.ints)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.asdict().items())})"


def _restored(cls: type[Scalars], values: dict[str, float]) -> Scalars:
    return cls(**values)


def number_property(place: int, kind: type) -> property:
    """A number at a place of the memory."""
    if kind is not float:

        def get(self: Scalars) -> Any:
            return kind(self.ints.item(place))

        def put(self: Scalars, value: Any) -> None:
            self.ints[place] = value
    else:

        def get(self: Scalars) -> Any:
            return self.floats.item(place)

        def put(self: Scalars, value: Any) -> None:
            self.floats[place] = value

    return property(get, put)


@before_compiling
def _register_scalars() -> None:
    import abex.kernels.scalar_type  # noqa: F401 - importing it tells Numba
