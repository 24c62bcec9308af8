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

from functools import cache
from typing import Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.kernels import before_compiling


class Scalars:
    """Whole numbers (``int``) and fractions (``float``) by name; subclasses annotate their fields."""

    __slots__ = ("address", "floats", "ints")
    fields: ClassVar[dict[str, type]] = {}
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]  # the same memory

    def __init_subclass__(cls) -> None:
        own = {name: hint for name, hint in get_type_hints(cls).items() if hint in (int, float)}
        cls.fields = own
        for place, (name, kind) in enumerate(own.items()):
            setattr(cls, name, _cell(place, kind))

    def __init__(self, **values: float) -> None:
        self.ints = np.zeros(len(self.fields), np.int64)
        self.floats = self.ints.view(np.float64)
        self.address = self.ints.ctypes.data
        for name, value in values.items():
            setattr(self, name, value)

    def asdict(self) -> dict[str, float]:
        """All numbers by name."""
        return {name: getattr(self, name) for name in self.fields}

    def __copy__(self) -> Scalars:
        return type(self)(**self.asdict())

    def __deepcopy__(self, memo: Any) -> Scalars:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.asdict())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and np.array_equal(self.ints, other.ints)  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.asdict().items())})"


def _restored(cls: type[Scalars], values: dict[str, float]) -> Scalars:
    return cls(**values)


def _cell(place: int, kind: type) -> property:
    if kind is int:

        def get(self: Scalars) -> Any:
            return self.ints.item(place)

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
    """Tell Numba that a `Scalars` object is a pointer to its numbers."""
    from llvmlite import ir  # type: ignore[import-untyped]
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

    word = ir.IntType(64)

    class ScalarsType(types.Type):  # type: ignore[misc]
        def __init__(self, cls: type[Scalars]) -> None:
            self.cls = cls
            self.kinds = {
                name: types.int64 if kind is int else types.float64 for name, kind in cls.fields.items()
            }  # type: ignore[attr-defined]
            super().__init__(f"Scalars({cls.__module__}.{cls.__qualname__}{list(self.kinds.items())})")

    type_of_class = cache(ScalarsType)

    @typeof_impl.register(Scalars)  # type: ignore[untyped-decorator]
    def typeof_scalars(value: Any, context: Any) -> Any:
        return type_of_class(type(value))

    @register_model(ScalarsType)  # type: ignore[untyped-decorator]
    class ScalarsModel(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, ir.PointerType(word))

    @unbox(ScalarsType)  # type: ignore[untyped-decorator]
    def unbox_scalars(kind: Any, value: Any, c: Any) -> Any:
        number = c.pyapi.object_getattr_string(value, "address")
        address = c.pyapi.long_as_longlong(number)
        c.pyapi.decref(number)
        return NativeValue(c.builder.inttoptr(address, ir.PointerType(word)))

    @infer_getattr  # type: ignore[untyped-decorator]
    class ScalarsAttributes(AttributeTemplate):  # type: ignore[misc]
        key = ScalarsType

        def generic_resolve(self, kind: Any, name: str) -> Any:
            return kind.kinds.get(name)

    def cell(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
        place = builder.gep(value, [ir.Constant(ir.IntType(32), list(kind.kinds).index(name))])
        return builder.bitcast(place, context.get_value_type(kind.kinds[name]).as_pointer())

    @lower_getattr_generic(ScalarsType)  # type: ignore[untyped-decorator]
    def load(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
        return builder.load(cell(context, builder, kind, value, name))

    @lower_setattr_generic(ScalarsType)  # type: ignore[untyped-decorator]
    def store(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
        kind = signature.args[0]
        number = context.cast(builder, arguments[1], signature.args[1], kind.kinds[name])
        builder.store(number, cell(context, builder, kind, arguments[0], name))
