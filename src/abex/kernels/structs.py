"""Arrays and numbers by name in one piece of memory that Python and compiled code share.

A NamedTuple of arrays is handed to compiled code array by array, seven or more words each: with dozens of them that is most
of what there is to compile. A `Struct` is one pointer. Its numbers may be changed, its arrays may be written to:

>>> import numpy as np
>>> class Sums(Struct):
...     total: NDArray[np.float64]
...     count: int
>>> sums = Sums(total=np.zeros(2))
>>> sums.count += 1
>>> sums.total[0] = 0.5
>>> sums
Sums(total=array([0.5, 0. ]), count=1)

In compiled code the type of a record is its class with the types of its arrays, which are contiguous.
"""

from __future__ import annotations

from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.kernels.scalars import Scalars, number_property

MOST_DIMENSIONS = 3
TYPED = (np.ndarray, tuple)
ARRAY_WORDS = 1 + MOST_DIMENSIONS  # where an array begins, and its shape; or the numbers of a NamedTuple


class Struct(Scalars):
    """Arrays, whole numbers, fractions and truth values; subclasses annotate their fields.

    A field may also be a NamedTuple of at most four whole numbers, which is constant and whose class is part of the type in
    compiled code. Numbers named in ``constant`` cannot be changed: compiled code need not read them again after it has written
    to an array.
    """

    __slots__ = ("compiled_type", "typed")
    constant: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[dict[str, int]] = {}  # the first word of each field
    compiled_type: Any  # noted when it is first asked for: fields keep their types
    typed: dict[str, Any]  # what has a type of its own: arrays and NamedTuples

    def __init_subclass__(cls) -> None:
        cls.fields, cls.places, place = {}, {}, 0
        for name, hint in get_type_hints(cls).items():
            kind = kind_of(hint)
            if hasattr(Struct, name) or kind is None:
                continue
            cls.fields[name], cls.places[name] = kind, place
            if kind in TYPED:
                setattr(cls, name, _typed(name))
                place += ARRAY_WORDS
            else:
                number = number_property(place, kind)
                setattr(cls, name, property(number.fget) if name in cls.constant else number)
                place += 1

    def __init__(self, **values: Any) -> None:
        self.allocate(sum(ARRAY_WORDS if kind in TYPED else 1 for kind in self.fields.values()))
        self.typed = {}
        self.compiled_type = None
        missing = [name for name, kind in self.fields.items() if kind in TYPED and name not in values]
        if missing:
            raise TypeError(f"{type(self).__name__} lacks {', '.join(missing)}")
        for name, value in values.items():
            kind, place = self.fields[name], self.places[name]
            if kind is np.ndarray:
                self._keep(name, value)
            elif kind is tuple:
                self.typed[name] = value
                self.ints[place : place + len(value)] = value
            else:
                (self.floats if kind is float else self.ints)[place] = value

    def _keep(self, name: str, array: NDArray[Any]) -> None:
        if not array.flags.c_contiguous or array.ndim > MOST_DIMENSIONS:
            raise ValueError(f"{name} must be contiguous and have at most {MOST_DIMENSIONS} dimensions")
        place = self.places[name]
        self.typed[name] = array
        self.ints[place] = array.ctypes.data
        self.ints[place + 1 : place + 1 + array.ndim] = array.shape

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: value for name, value in self.typed.items() if self.fields[name] is np.ndarray}

    def replace(self, **changes: Any) -> Any:
        """A record with other values for some fields; it shares the other arrays."""
        return type(self)(**{**self.asdict(), **changes})

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__  # type: ignore[assignment]


def kind_of(hint: Any) -> Any:
    """What a field is: an array, a NamedTuple (or one of several), a number, or None."""
    if get_origin(hint) is np.ndarray:
        return np.ndarray
    if all(isinstance(one, type) and issubclass(one, tuple) for one in get_args(hint) or [hint]):
        return tuple
    return hint if hint in (int, float, bool) else None


def _typed(name: str) -> property:
    def get(self: Struct) -> Any:
        return self.typed[name]

    return property(get)
