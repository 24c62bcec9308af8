"""Records: arrays, numbers and other records by name, one pointer in compiled code.

A record is what a policy has learned, a world, a graph, a course of a replication. Its numbers may be changed, its arrays may be
written to, and in Python it is a plain object:

>>> import numpy as np
>>> class Sums(Record):
...     total: NDArray[np.float64]
...     count: int
>>> sums = Sums(total=np.zeros(2), count=1)
>>> sums.count += 1
>>> sums.total[0] = 0.5
>>> sums
Sums(total=array([0.5, 0. ]), count=2)

Python and compiled code share its memory: a word for each number, and for each array its address and shape. Compiled code gets
the address of that memory and keeps no count of who refers to an array, since the record does; so a kernel costs what it does,
however many arrays stand in its record. `laid_out` gives a NamedTuple of arrays and numbers to compiled code in the same way.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.kernels.compiling import before_compiling, interpreted
from abex.support.errors import UserError, nearest

NUMBERS = (int, float, bool)
MAX_DIMENSIONS = 3  # of an array whose shape stands in the record
ROOM = 1 + MAX_DIMENSIONS  # words of a field that is no number: an address, and the shape of an array


class Record:
    """Subclasses annotate their fields: ``int``, ``float`` and ``bool`` are numbers that may change.

    Other fields hold an array, a record, a NamedTuple, a `numpy.random.Generator`, or None where there is none; compiled code
    reads them and writes into arrays, Python may put another in the place. A number that is given no value is 0; others may have
    one in the class (``sampler: Any = None``). Kernels tell a part from None by `single_dispatch`.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _numbers: ClassVar[dict[str, tuple[type, int]]] = {}  # name -> its type, its word
    _objects: ClassVar[dict[str, int]] = {}  # name -> the first of its words
    _puts: ClassVar[dict[str, Callable[[Any, Any], None]]] = {}  # name of a number -> how it is changed
    _arrays: ClassVar[dict[str, Any]] = {}  # name of an array -> the type of its elements
    _n_words: ClassVar[int] = 1
    _memory: NDArray[np.int64]
    _ints: Any  # the memory as whole numbers,
    _floats: Any  # and as fractions
    _address: int
    _kept: dict[str, Any]  # what compiled code reads beside the objects themselves
    _type: Any  # in compiled code, noted when it is first asked for,
    _types_then: int  # when `types_changed` was this

    def __init_subclass__(cls) -> None:
        cls._fields, cls._numbers, cls._objects, cls._arrays, cls._puts, at = (), {}, {}, {}, {}, 0
        for name, hint in get_type_hints(cls).items():
            if name in Record.__annotations__ or get_origin(hint) is ClassVar:
                continue
            if name.startswith("_"):
                raise TypeError(f"{cls.__qualname__} cannot have a field {name!r}: choose another name")
            cls._fields += (name,)
            if hint in NUMBERS:
                cls._numbers[name] = hint, at
                get, cls._puts[name] = number_at(at, hint)
                setattr(cls, name, property(get, cls._puts[name]))
                at += 1
            else:
                cls._objects[name] = at
                at += ROOM
                if get_origin(hint) is np.ndarray:
                    (element,) = get_args(get_args(hint)[1])
                    cls._arrays[name] = float if element is Any else element
        cls._n_words = max(at, 1)

    def __init__(self, **values: Any) -> None:
        self._allocate(np.zeros(self._n_words, np.int64))
        for name, value in values.items():
            setattr(self, name, value)
        for name in self._objects:
            if name not in values:
                if not hasattr(type(self), name):
                    raise UserError(f"{type(self).__name__} needs a value for its field {name!r}")
                setattr(self, name, getattr(type(self), name))

    @classmethod
    def of_arms(cls, n_arms: int, **values: Any) -> Self:
        """A record whose arrays that are given no value hold a 0 for each of so many arms.

        >>> class Sums(Record):
        ...     total: NDArray[np.float64]
        ...     count: NDArray[np.int64]
        >>> Sums.of_arms(2, total=np.ones(2))
        Sums(total=array([1., 1.]), count=array([0, 0]))
        """
        rest = {name: np.zeros(n_arms, kind) for name, kind in cls._arrays.items() if name not in values}
        return cls(**rest, **values)

    def _allocate(self, memory: NDArray[np.int64]) -> None:
        self.__dict__.update(
            _memory=memory,
            _ints=memoryview(memory),  # type: ignore[arg-type]
            _floats=memoryview(memory.view(np.float64)),  # type: ignore[arg-type]
            _address=address_of_array(memory),
            _kept={},
            _type=None,
            _types_then=0,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        put = self._puts.get(name)
        if put is not None:
            put(self, value)
            return
        at = self._objects.get(name)
        if at is None:
            fields = fields_of(self)
            raise UserError(
                f"{type(self).__name__} has no field {name!r}{nearest(name, fields)}: it has {', '.join(fields)}"
            )
        before = self.__dict__.get(name)
        self._kept[name] = lay(self._ints, at, value, name)
        self.__dict__[name] = value
        if self._type is not None:
            note_another_type(before, value)

    def __copy__(self) -> Any:
        return self._twin(dict(self._items()))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin = self._twin({name: copy.deepcopy(value, memo) for name, value in self._items()})
        memo[id(self)] = twin
        return twin

    def _twin(self, values: dict[str, Any]) -> Any:
        twin = type(self).__new__(type(self))
        twin._allocate(self._memory.copy())
        for name in self._objects:
            setattr(twin, name, values[name])
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return dict(self._items())

    def __setstate__(self, values: dict[str, Any]) -> None:
        Record.__init__(self, **values)

    def _items(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in fields_of(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._items())})"


def fields_of(record: Any) -> tuple[str, ...]:
    """The names of the fields of a record, or of a class of records."""
    return tuple(record._fields)


def number_at(place: int, kind: type) -> tuple[Any, Any]:
    """How a number at a place of the memory is read and changed."""
    if kind is float:

        def get(self: Record) -> Any:
            return self._floats[place]

        def put(self: Record, value: Any) -> None:
            self._floats[place] = value
    elif kind is int:

        def get(self: Record) -> Any:
            return self._ints[place]

        def put(self: Record, value: Any) -> None:
            self._ints[place] = value
    else:

        def get(self: Record) -> Any:
            return self._ints[place] != 0

        def put(self: Record, value: Any) -> None:
            self._ints[place] = bool(value)

    return get, put


types_changed = 1  # so often a field of a record that compiled code has seen was given another type


def note_another_type(before: Any, value: Any) -> None:
    """Let the types of all records be looked at anew unless one array stands for another of its kind."""
    global types_changed
    if not (isinstance(value, np.ndarray) and isinstance(before, np.ndarray) and sort(before) == sort(value)):
        types_changed += 1


def sort(array: NDArray[Any]) -> tuple[Any, int, int]:
    """What decides the type of an array."""
    return array.dtype, array.ndim, array.flags.num


def address_of_array(array: NDArray[Any]) -> int:
    """Where the elements of an array begin."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]  # four times as fast
    except (TypeError, ValueError, BufferError):  # read-only, empty, or with gaps
        return array.ctypes.data


def stands_inside(array: NDArray[Any]) -> bool:
    """Whether address and shape say all; else a field has the address of a description with the strides."""
    return array.flags.c_contiguous and array.ndim <= MAX_DIMENSIONS


def lay(words: Any, at: int, value: Any, name: str) -> Any:
    """Write the words of a field that is no number of a `Record`; what must be kept with them."""
    if isinstance(value, np.ndarray):
        if stands_inside(value):
            words[at] = address_of_array(value)
            for axis in range(value.ndim):
                words[at + 1 + axis] = value.shape[axis]
            return None
        kept = np.array([value.ctypes.data, *value.shape, *value.strides], np.int64)
        words[at] = address_of_array(kept)
        return kept
    if isinstance(value, Record):
        words[at] = value._address
    elif value is None:
        words[at] = 0
    elif isinstance(value, tuple):
        inner = Laid(value, name)
        words[at] = inner._address
        return inner
    elif isinstance(value, np.random.Generator):
        kept = described_generator(value)
        words[at] = address_of_array(kept)
        return kept
    elif isinstance(value, bool | np.bool_):
        words[at] = bool(value)
    elif isinstance(value, int | float | np.number) and np.asarray(value).itemsize <= 8:
        words[at] = int.from_bytes(np.asarray(value).tobytes(), "little", signed=True)
    else:
        raise UserError(
            f"the field {name!r} holds a {type(value).__name__}: compiled code takes arrays, numbers, and records of them"
        )
    return None


class Laid:
    """A tuple for compiled code to get it by one pointer, as it does a `Record`."""

    __slots__ = ("_address", "_kept", "_memory", "_type", "record")

    def __init__(self, record: tuple[Any, ...], name: str = "") -> None:
        self.record, self._type = record, None
        self._memory = np.zeros(ROOM * len(record) or 1, np.int64)
        self._address = address_of_array(self._memory)
        words: Any = memoryview(self._memory)  # type: ignore[arg-type]
        names = getattr(record, "_fields", None) or [f"{name}[{k}]" for k in range(len(record))]
        self._kept = [lay(words, ROOM * k, value, names[k]) for k, value in enumerate(record)]


def laid_out(record: Any) -> Any:
    """A NamedTuple as compiled code takes it by one pointer; anything else, and all where nothing is compiled, as it is.

    Its fields cannot change, so it is laid out once; compiled code reads them by their names and does nothing else with it.
    """
    if not (isinstance(record, tuple) and hasattr(record, "_fields")):
        return record
    return record if interpreted() else Laid(record)


def described_generator(rng: np.random.Generator) -> NDArray[np.int64]:
    """Where its state is, and the functions that draw from it, as compiled code holds them."""
    source: Any = rng.bit_generator.ctypes
    functions = (source.next_uint64, source.next_uint32, source.next_double, source.bit_generator)
    addresses = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return np.array([0, source.state_address, source.state.value, *addresses, 0, 0], np.uint64).view(np.int64)


@before_compiling
def _register_records() -> None:
    import abex.kernels.record_type  # noqa: F401 - importing it tells Numba
