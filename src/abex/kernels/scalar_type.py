"""A `Scalars` or `Struct` object in compiled code: a pointer to its memory. Importing this module tells Numba.

The type is defined at module level, so that the cache of compiled code can name it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from abex.kernels.scalars import Scalars
from abex.kernels.structs import Struct

word = ir.IntType(64)
NUMBERS: dict[type, Any] = {int: types.int64, float: types.float64, bool: types.boolean}


class ScalarsType(types.Type):
    """The type of a class of `Scalars`, or of a class of `Struct` with arrays and NamedTuples of these types."""

    def __init__(self, cls: type[Scalars], typed: tuple[Any, ...] = ()) -> None:
        self.cls, self.typed = cls, typed
        rest = iter(typed)
        self.kinds = {name: NUMBERS.get(kind) or next(rest) for name, kind in cls.fields.items()}
        self.constant = getattr(cls, "constant", ())
        self.places = cls.places if issubclass(cls, Struct) else {n: k for k, n in enumerate(self.kinds)}
        super().__init__(f"Scalars({cls.__module__}.{cls.__qualname__}{list(self.kinds.items())})")

    @property
    def mangling_args(self) -> Any:
        """A short name, for it becomes part of the names of functions, which LLVM reads and writes at every call."""
        return f"{self.cls.__name__}{hashlib.sha256(self.name.encode()).hexdigest()[:12]}", ()


@cache
def type_of_class(cls: Any, *typed: Any) -> ScalarsType:
    """One type for a class."""
    return ScalarsType(cls, typed)


@typeof_impl.register(Scalars)  # type: ignore[untyped-decorator]
def typeof_scalars(value: Any, context: Any) -> Any:
    """The type of an object."""
    return type_of_class(type(value))  # type: ignore[arg-type]


@typeof_impl.register(Struct)  # type: ignore[untyped-decorator]
def typeof_struct(value: Any, context: Any) -> Any:
    """The type of an object with arrays."""
    if value.compiled_type is None:
        value.compiled_type = struct_type(value, context)
    return value.compiled_type


def struct_type(value: Any, context: Any) -> Any:
    """The type of an object, by the types of its arrays."""
    typed = (value.typed[name] for name in value.fields if name in value.typed)
    kinds = [
        typeof_impl(one, context) if isinstance(one, tuple) else array_type((one.dtype, one.ndim))
        for one in typed
    ]
    return type_of_class(type(value), *kinds)  # type: ignore[arg-type]


@cache
def array_type(kind: tuple[Any, int]) -> Any:
    """The type of a contiguous array."""
    return types.Array(from_dtype(kind[0]), kind[1], "C")


@register_model(ScalarsType)
class ScalarsModel(models.PrimitiveModel):  # type: ignore[misc]
    """A pointer to words of 64 bits."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.PointerType(word))


@unbox(ScalarsType)  # type: ignore[untyped-decorator]
def unbox_scalars(kind: Any, value: Any, c: Any) -> Any:
    """The pointer of an object, which outlives the call."""
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, ir.PointerType(word)))


@infer_getattr
class ScalarsAttributes(AttributeTemplate):  # type: ignore[misc]
    """The types of its fields."""

    key = ScalarsType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """The type of a field."""
        return kind.kinds.get(name)


def cell(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """The address of a field."""
    place = builder.gep(value, [ir.Constant(ir.IntType(32), kind.places[name])])
    if kind.kinds[name] == types.float64:
        return builder.bitcast(place, ir.PointerType(ir.DoubleType()))
    return place


@lower_getattr_generic(ScalarsType)  # type: ignore[untyped-decorator]
def load(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Read a field."""
    place = cell(context, builder, kind, value, name)
    if isinstance(kind.kinds[name], types.Array):
        return load_array(context, builder, kind.kinds[name], place)
    if isinstance(kind.kinds[name], types.BaseTuple):  # type: ignore[attr-defined]
        words = (builder.gep(place, [ir.Constant(ir.IntType(32), k)]) for k in range(len(kind.kinds[name])))
        return context.make_tuple(builder, kind.kinds[name], [unchanged(builder, one) for one in words])
    number = unchanged(builder, place) if name in kind.constant else builder.load(place)
    return builder.trunc(number, ir.IntType(1)) if kind.kinds[name] == types.boolean else number


def unchanged(builder: Any, place: Any) -> Any:
    """Read what stays the same while compiled code runs."""
    found = builder.load(place)
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


def load_array(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """An array whose address and shape stand at a place."""
    pointer = context.get_data_type(kind.dtype).as_pointer()
    data = unchanged(builder, builder.bitcast(place, pointer.as_pointer()))
    words = (builder.gep(place, [ir.Constant(ir.IntType(32), 1 + k)]) for k in range(kind.ndim))
    shape = [unchanged(builder, one) for one in words]
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size]
    for extent in shape[:0:-1]:
        strides.insert(0, builder.mul(extent, strides[0]))
    array = context.make_array(kind)(context, builder)
    populate_array(
        array,
        data=data,
        shape=shape,
        strides=strides,
        itemsize=size,
        meminfo=None,
    )
    return array._getvalue()


@lower_setattr_generic(ScalarsType)  # type: ignore[untyped-decorator]
def store(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    """Write a field."""
    kind = signature.args[0]
    if name in kind.constant:
        raise TypeError(f"{name} of {kind.cls.__qualname__} is constant")
    number = context.cast(builder, arguments[1], signature.args[1], kind.kinds[name])
    if kind.kinds[name] == types.boolean:
        number = builder.zext(number, word)
    builder.store(number, cell(context, builder, kind, arguments[0], name))
