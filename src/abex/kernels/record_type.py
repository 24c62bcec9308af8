"""A `Record` in compiled code: a pointer to its words, by Numba's public extension interface. Importing this module tells Numba.

Arrays and records in the place of a field do not change while compiled code runs: reads of them are marked as invariant, so LLVM
may move them out of loops whatever the loop writes to. The arrays are *borrowed*: the record keeps them, so there is nothing in
them by which references could be counted.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_cast,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import populate_array

from abex.kernels import records
from abex.kernels.records import MAX_DIMENSIONS, ROOM, Laid, Record

word = ir.IntType(64)
pointer = ir.PointerType(word)
NUMBERS: dict[type, Any] = {int: types.int64, float: types.float64, bool: types.boolean}


class Borrowed(types.Array):
    """An array that somebody else keeps; whatever takes an array takes it."""

    def __init__(self, kind: Any) -> None:
        super().__init__(
            kind.dtype,
            kind.ndim,
            kind.layout,
            readonly=not kind.mutable,
            name=f"Borrowed({kind})",
            aligned=kind.aligned,
        )


@register_model(Borrowed)
class BorrowedModel(models.StructModel):  # type: ignore[misc]
    """The members of Numba's own model, none of which is counted."""

    def __init__(self, manager: Any, kind: Any) -> None:
        extents = types.UniTuple(types.intp, kind.ndim)  # type: ignore[attr-defined]
        members = [
            ("meminfo", types.voidptr),
            ("parent", types.voidptr),
            ("nitems", types.intp),
            ("itemsize", types.intp),
            ("data", types.CPointer(kind.dtype)),  # type: ignore[attr-defined]
            ("shape", extents),
            ("strides", extents),
        ]
        super().__init__(manager, kind, members)


@lower_cast(Borrowed, types.Array)  # type: ignore[untyped-decorator]
def as_array(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    """A variable that holds a field here and an array of its own there: no count of nobody is kept."""
    return value


class BorrowedGenerator(types.NumPyRandomGeneratorType):
    """A generator that somebody else keeps."""


@register_model(BorrowedGenerator)
class BorrowedGeneratorModel(models.StructModel):  # type: ignore[misc]
    """As `abex.kernels.records.described_generator` lays it out."""

    def __init__(self, manager: Any, kind: Any) -> None:
        source = types.NumPyRandomBitGeneratorType("bit_generator")
        super().__init__(
            manager,
            kind,
            [("bit_generator", source), ("meminfo", types.voidptr), ("parent", types.voidptr)],
        )


GENERATOR = BorrowedGenerator("Borrowed(Generator)")


class RecordType(types.Type):
    """A record of this class, `Record` or NamedTuple, whose fields that are no numbers of a `Record` have these types."""

    def __init__(self, instance_class: Any, objects: tuple[Any, ...]) -> None:
        self.instance_class, self.objects = instance_class, objects
        self._hash: int | None = None
        if issubclass(instance_class, Record):
            numbers: Any = instance_class._numbers
            places = instance_class._objects
        else:
            numbers = {}
            places = {name: ROOM * k for k, name in enumerate(instance_class._fields)}
        self.words = {name: at for name, (_, at) in numbers.items()} | places
        self.kinds = {name: NUMBERS[kind] for name, (kind, _) in numbers.items()}
        self.kinds |= dict(zip(places, objects, strict=True))
        self.changing = frozenset(numbers)
        name = f"{instance_class.__module__}.{instance_class.__qualname__}"
        super().__init__(f"Record({name}({', '.join(map(str, self.kinds.items()))}))")

    @property
    def key(self) -> Any:
        """What makes two types one."""
        return self.instance_class, self.objects

    def __hash__(self) -> int:
        if self._hash is None:  # Numba asks at every call
            self._hash = hash(self.key)
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, RecordType) and self.key == other.key)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_hash": None}  # in another process it is another one

    @property
    def mangling_args(self) -> Any:
        """A short name, for it becomes part of the names of functions, which LLVM reads and writes at every call."""
        return f"{self.instance_class.__name__}{hashlib.sha256(self.name.encode()).hexdigest()[:12]}", ()


_array_types: dict[Any, Any] = {}
_class_types: dict[type, Any] = {}  # of what has one type whatever its value
_types: dict[Any, Any] = {}  # by their parts, of which each is there once


def kind_of(value: Any, context: Any) -> Any:
    """The type of what stands in a field."""
    if isinstance(value, np.ndarray):
        key = records.sort(value)
        kind = _array_types.get(key)
        if kind is None:
            kind = _array_types[key] = once(Borrowed(typeof_impl(value, context)))
        return kind
    if isinstance(value, Record):
        return typeof_record(value, context)
    if isinstance(value, tuple):
        return kind_of_tuple(value, context)
    if isinstance(value, np.random.Generator):
        return GENERATOR
    kind = _class_types.get(type(value))
    if kind is None:
        kind = once(typeof_impl(value, context))
        if value is None or isinstance(value, bool | float | np.generic):
            _class_types[type(value)] = kind
    return kind


def once(kind: Any) -> Any:
    """Equal types are one object."""
    return _types.setdefault(kind, kind)


def kind_of_tuple(value: tuple[Any, ...], context: Any) -> Any:
    """The type of a NamedTuple by reference, or of a tuple of what may stand in fields."""
    parts = tuple([kind_of(one, context) for one in value])
    key = type(value), *map(id, parts)
    kind = _types.get(key)
    if kind is None:
        named = hasattr(value, "_fields")
        kind = once(
            RecordType(type(value), parts) if named else types.Tuple.from_types(parts)  # type: ignore[attr-defined]
        )
        _types[key] = kind
    return kind


@typeof_impl.register(Record)  # type: ignore[untyped-decorator]
def typeof_record(value: Any, context: Any) -> Any:
    """The type of a record, looked at anew when a field of any has been given another type."""
    if value._types_then != records.types_changed:
        cls = type(value)
        objects = value.__dict__
        parts = tuple([kind_of(objects[name], context) for name in cls._objects])
        key = cls, *map(id, parts)
        kind = _types.get(key)
        if kind is None:
            kind = _types[key] = once(RecordType(cls, parts))
        objects["_type"], objects["_types_then"] = kind, records.types_changed
    return value._type


@typeof_impl.register(Laid)  # type: ignore[untyped-decorator]
def typeof_laid(value: Any, context: Any) -> Any:
    """The type of a NamedTuple that is laid out."""
    if value._type is None:
        value._type = kind_of_tuple(value.record, context)
    return value._type


@register_model(RecordType)
class RecordModel(models.PrimitiveModel):  # type: ignore[misc]
    """A pointer to words of 64 bits."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, pointer)


@unbox(RecordType)  # type: ignore[untyped-decorator]
def unbox_record(kind: Any, value: Any, c: Any) -> Any:
    """Where its words are; the object keeps them while the call lasts."""
    number = c.pyapi.object_getattr_string(value, "_address")
    address = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, pointer))


@infer_getattr
class RecordAttributes(AttributeTemplate):  # type: ignore[misc]
    """The types of its fields."""

    key = RecordType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """The type of a field."""
        return kind.kinds.get(name)


@lower_getattr_generic(RecordType)  # type: ignore[untyped-decorator]
def read_field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """A number, or what stands in the place of the field."""
    place = word_at(builder, value, kind.words[name])
    if name not in kind.changing:
        return read_object(context, builder, kind.kinds[name], place)
    return read_number(context, builder, kind.kinds[name], place)


@lower_setattr_generic(RecordType)  # type: ignore[untyped-decorator]
def write_field(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    """Change a number."""
    kind = signature.args[0]
    if name not in kind.changing:
        raise TypeError(f"{name!r} of {kind.instance_class.__qualname__} is no number: it cannot be replaced")
    place = word_at(builder, arguments[0], kind.words[name])
    number = context.cast(builder, arguments[1], signature.args[1], kind.kinds[name])
    if kind.kinds[name] == types.boolean:
        number = builder.zext(number, word)
    elif kind.kinds[name] == types.float64:
        place = builder.bitcast(place, ir.PointerType(ir.DoubleType()))
    builder.store(number, place)


def word_at(builder: Any, words: Any, at: int) -> Any:
    """The place of a word."""
    return builder.gep(words, [ir.Constant(ir.IntType(32), at)], inbounds=True)


def read_number(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """A number that fills its word."""
    if kind == types.float64:
        return builder.load(builder.bitcast(place, ir.PointerType(ir.DoubleType())))
    number = builder.load(place)
    return builder.trunc(number, ir.IntType(1)) if kind == types.boolean else number


def unchanged(builder: Any, place: Any) -> Any:
    """Read what stays the same while compiled code runs."""
    found = builder.load(place)
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


def read_object(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """What `abex.kernels.records.lay` wrote at a place."""
    if isinstance(kind, types.NoneType):  # type: ignore[attr-defined]
        return context.get_dummy_value()
    if isinstance(kind, Borrowed):
        return read_array(context, builder, kind, place)
    if isinstance(kind, BorrowedGenerator):
        inside = builder.inttoptr(unchanged(builder, place), context.get_value_type(kind).as_pointer())
        return unchanged(builder, inside)
    if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
        inside = builder.inttoptr(unchanged(builder, place), pointer)
        parts = [
            read_object(context, builder, part, word_at(builder, inside, ROOM * k))
            for k, part in enumerate(kind)
        ]
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, RecordType):
        return builder.inttoptr(unchanged(builder, place), pointer)
    number = builder.bitcast(place, context.get_data_type(kind).as_pointer())
    return context.data_model_manager[kind].from_data(builder, unchanged(builder, number))


def read_array(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """An array whose address and shape stand at a place, or are described elsewhere with its strides."""
    inside = kind.layout == "C" and kind.ndim <= MAX_DIMENSIONS
    if not inside:
        place = builder.inttoptr(unchanged(builder, place), pointer)
    data = builder.inttoptr(unchanged(builder, place), context.get_data_type(kind.dtype).as_pointer())
    shape = [unchanged(builder, word_at(builder, place, 1 + axis)) for axis in range(kind.ndim)]
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size]
    if inside:
        for extent in shape[:0:-1]:
            strides.insert(0, builder.mul(extent, strides[0]))
    else:
        strides = [
            unchanged(builder, word_at(builder, place, 1 + kind.ndim + axis)) for axis in range(kind.ndim)
        ]
    array = context.make_array(kind)(context, builder)
    populate_array(array, data=data, shape=shape, strides=strides[: kind.ndim], itemsize=size, meminfo=None)
    return array._getvalue()
