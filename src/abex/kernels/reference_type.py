"""A record by reference in compiled code: a pointer to its fields. Importing this module tells Numba.

A record cannot change, so all reads of a field give the same: they are marked as invariant, which lets LLVM move them out of
loops whatever the loop writes to.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import default_manager
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof_impl
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)

from abex.kernels.references import Reference


def short_name(kind: Any) -> str:
    """A type's name as part of those of functions, which LLVM reads and writes at every call."""
    return hashlib.sha256(kind.name.encode()).hexdigest()[:12]


class RecordType(types.Type):
    """A record of a class whose fields have these types, by reference; records among them too."""

    def __init__(self, instance_class: type, kinds: tuple[Any, ...]) -> None:
        self.instance_class = instance_class
        self.fields = tuple(instance_class._fields)  # type: ignore[attr-defined]
        self.kinds = kinds
        name = f"{instance_class.__module__}.{instance_class.__qualname__}"
        super().__init__(f"Record({name}({', '.join(map(str, kinds))}))")

    @property
    def key(self) -> Any:
        """What makes two types one."""
        return self.instance_class, self.kinds

    @property
    def mangling_args(self) -> Any:
        """A short name in those of functions."""
        return short_name(self), ()


def referred(kind: Any) -> Any:
    """The type of a record by reference, for that of one by value."""
    if isinstance(kind, types.BaseNamedTuple):  # type: ignore[attr-defined]
        return RecordType(kind.instance_class, tuple(referred(inner) for inner in kind.types))
    return kind


@typeof_impl.register(Reference)  # type: ignore[untyped-decorator]
def typeof_reference(value: Any, context: Any) -> Any:
    """The type of a reference."""
    if value.compiled_type is None:
        kind = typeof_impl(value.record, context)
        value.compiled_type = None if kind is None else referred(kind)
    return value.compiled_type


byte = ir.IntType(8)
word = ir.IntType(64)

#: The fields of what stands in records, in the order in which `abex.kernels.references` lays them out.
LAYOUTS = {
    types.Array(types.float64, 2, "C"): "meminfo parent nitems itemsize data shape strides",
    types.NumPyRandomGeneratorType("generator"): "bit_generator meminfo parent",
    types.NumPyRandomBitGeneratorType("bit_generator"): (
        "parent state_address state fnptr_next_uint64 fnptr_next_uint32 fnptr_next_double bit_generator"
    ),
}


def layouts_are_known() -> bool:
    """Whether compiled code holds arrays and generators as it did when this was written."""
    import numba.np.random.generator_core  # noqa: F401 - it defines one of them

    return all(
        tuple(default_manager[kind]._fields) == tuple(fields.split()) for kind, fields in LAYOUTS.items()
    )


@register_model(RecordType)
class RecordModel(models.PrimitiveModel):  # type: ignore[misc]
    """A pointer to the fields."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.PointerType(byte))


def words_of(context: Any, kind: Any) -> int:
    """How many words of 64 bits a field takes; records within stand where they are."""
    if isinstance(kind, RecordType):
        return sum(words_of(context, inner) for inner in kind.kinds)
    return _words(context, context.get_value_type(kind))


@cache
def _words(context: Any, kind: Any) -> int:
    return -(-int(context.get_abi_sizeof(kind)) // 8)


def place_of(context: Any, builder: Any, kind: RecordType, record: Any, index: int) -> Any:
    """The address of a field."""
    offset = 8 * sum(words_of(context, inner) for inner in kind.kinds[:index])
    place = builder.gep(record, [ir.Constant(word, offset)], inbounds=True)
    inner = kind.kinds[index]
    if isinstance(inner, RecordType):
        return place
    return builder.bitcast(place, ir.PointerType(context.get_value_type(inner)))


@unbox(RecordType)  # type: ignore[untyped-decorator]
def unbox_record(kind: Any, value: Any, c: Any) -> Any:
    """Where the fields are laid out; the reference keeps them while the call lasts."""
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, ir.PointerType(byte)))


@infer_getattr
class RecordAttributes(AttributeTemplate):  # type: ignore[misc]
    """The types of its fields."""

    key = RecordType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """The type of a field."""
        return kind.kinds[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(RecordType)  # type: ignore[untyped-decorator]
def read_field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """A field, or the place of a record within."""
    index = kind.fields.index(name)
    inner = kind.kinds[index]
    place = place_of(context, builder, kind, value, index)
    if isinstance(inner, RecordType):
        return place
    load = builder.load(place)
    load.set_metadata("invariant.load", builder.module.add_metadata([]))
    return impl_ret_borrowed(context, builder, inner, load)
