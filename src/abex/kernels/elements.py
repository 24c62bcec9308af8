"""Single elements of contiguous arrays, read and written in six instructions where Numba writes thirty.

Numba copies the record of an array (address, shape, strides and more) to the stack, reads all of it back, and lets LLVM find
out that one address and one extent are needed: half of what LLVM gets of a kernel. Here they are taken out of the record.
Negative indices count from the end, as ever; with checks of bounds, and for anything but whole numbers that say where one
element stands, Numba does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abex.kernels.shortcuts import Replacement

DATA, SHAPE = 4, 5  # where they stand in the record of an array, see `reference_type.LAYOUTS`
MOST_DIMENSIONS = 2


def is_plain(context: Any, array: Any, index: Any) -> bool:
    """Whether whole numbers say which element of a contiguous array is meant, and nobody checks them."""
    from numba.core import types

    if context.enable_boundscheck or type(array) is not types.Array or array.layout != "C":
        return False
    if isinstance(index, types.Integer):
        return bool(array.ndim == 1)
    whole = isinstance(index, types.BaseTuple) and all(isinstance(one, types.Integer) for one in index)  # type: ignore[attr-defined]
    return whole and len(index) == array.ndim <= MOST_DIMENSIONS


def place_of(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """The address of the element at an index of this kind."""
    from numba.core import types
    from numba.np.arrayobj import fix_integer_index

    if isinstance(kind, types.Integer):
        parts = [(kind, index)]
    else:
        parts = [(one, builder.extract_value(index, axis)) for axis, one in enumerate(kind)]
    offset = None
    for axis, (part, value) in enumerate(parts):
        extent = builder.extract_value(array, [SHAPE, axis])
        along = fix_integer_index(context, builder, part, value, extent)
        offset = along if offset is None else builder.add(builder.mul(offset, extent), along)
    return builder.gep(builder.extract_value(array, DATA), [offset])


def read_directly(usual: Any) -> Callable[..., Any]:
    """``array[index]``."""
    from numba.np.arrayobj import load_item

    def lower_getitem(self: Any, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        array, kind = signature.args
        if not is_plain(self.context, array, kind) or self.typeof(value.name) != array:
            return usual(self, resty, expr, value, index, signature)
        at = self.context.cast(self.builder, self.loadvar(index.name), self.typeof(index.name), kind)
        place = place_of(self.context, self.builder, kind, self.loadvar(value.name), at)
        item = load_item(self.context, self.builder, array, place)
        return self.context.cast(self.builder, item, signature.return_type, resty)

    return lower_getitem


def write_directly(usual: Any) -> Callable[..., Any]:
    """``array[index] = value``."""
    from numba.core import types
    from numba.np.arrayobj import store_item

    def lower_setitem(self: Any, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        array, kind, value = signature.args
        if (
            not is_plain(self.context, array, kind)
            or self.typeof(target_var.name) != array
            or not isinstance(value, types.Number | types.Boolean)
        ):
            return usual(self, target_var, index_var, value_var, signature)
        context, builder = self.context, self.builder
        item = context.cast(builder, self.loadvar(value_var.name), self.typeof(value_var.name), value)
        item = context.cast(builder, item, value, array.dtype)
        at = context.cast(builder, self.loadvar(index_var.name), self.typeof(index_var.name), kind)
        place = place_of(context, builder, kind, self.loadvar(target_var.name), at)
        return store_item(context, builder, array, item, place)

    return lower_setitem


ELEMENTS: dict[tuple[str, str], Replacement] = {
    ("numba.core.lowering:Lower", "lower_getitem"): read_directly,
    ("numba.core.lowering:Lower", "lower_setitem"): write_directly,
}
