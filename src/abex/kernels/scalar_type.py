"""A `Scalars` object in compiled code: a pointer to its memory. Importing this module tells Numba.

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

from abex.kernels.scalars import Scalars

word = ir.IntType(64)
NUMBERS: dict[type, Any] = {int: types.int64, float: types.float64}


class ScalarsType(types.Type):
    """The type of a class of `Scalars`."""

    def __init__(self, cls: type[Scalars]) -> None:
        self.cls = cls
        self.kinds = {name: NUMBERS[kind] for name, kind in cls.fields.items()}
        self.places = {name: k for k, name in enumerate(self.kinds)}
        super().__init__(f"Scalars({cls.__module__}.{cls.__qualname__}{list(self.kinds.items())})")

    @property
    def mangling_args(self) -> Any:
        """A short name, for it becomes part of the names of functions, which LLVM reads and writes at every call."""
        return f"{self.cls.__name__}{hashlib.sha256(self.name.encode()).hexdigest()[:12]}", ()


@cache
def type_of_class(cls: Any) -> ScalarsType:
    """One type for a class."""
    return ScalarsType(cls)


@typeof_impl.register(Scalars)  # type: ignore[untyped-decorator]
def typeof_scalars(value: Any, context: Any) -> Any:
    """The type of an object."""
    return type_of_class(type(value))  # type: ignore[arg-type]


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
    return builder.load(cell(context, builder, kind, value, name))


@lower_setattr_generic(ScalarsType)  # type: ignore[untyped-decorator]
def store(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    """Write a field."""
    kind = signature.args[0]
    number = context.cast(builder, arguments[1], signature.args[1], kind.kinds[name])
    builder.store(number, cell(context, builder, kind, arguments[0], name))
