"""A vector of numbers as a type of Numba, and its operations as vector instructions. Importing this module tells Numba.

There is no operation that rounds twice or reorders: the results are those of the Python in `vectors`, to the last bit.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types, typing
from numba.extending import lower_builtin, models, register_model, type_callable

from abex.boosting import vectors
from abex.boosting.vectors import QUARTERS, VECTOR_BYTES, ManyVectors
from abex.kernels import bounds_checked

index = ir.IntType(32)


class VectorType(types.Type):
    """``lanes`` numbers of a type."""

    def __init__(self, number: Any, lanes: int) -> None:
        self.number, self.lanes = number, lanes
        super().__init__(f"Vector({number} x {lanes})")


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    """A vector of LLVM, which splits it as the processor needs."""

    def __init__(self, manager: Any, kind: Any) -> None:
        number = ir.FloatType() if kind.number.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(number, kind.lanes))


def vector_of(rows: Any, width: Any) -> VectorType:
    """The type of a piece of a row."""
    lanes = 8 * VECTOR_BYTES // rows.dtype.bitwidth
    return VectorType(rows.dtype, lanes * QUARTERS.get(width.instance_class, 4) // 4)


def registered(function: Any, result: Callable[..., Any]) -> Callable[[Any], Any]:
    """A decorator: lower ``function`` so; ``result`` has the types of its result and, cast to, its arguments."""
    if bounds_checked():
        return lambda lowering: lowering  # there vectors are arrays
    signature = None if isinstance(function, type(operator.add)) else inspect.signature(function)

    @type_callable(function)  # type: ignore[untyped-decorator]
    def typer(context: Any) -> Any:
        def typed(*arguments: Any) -> Any:
            found = result(*arguments)
            return found and typing.signature(found, *map(argument_type, arguments)).replace(pysig=signature)

        if signature is not None:
            typed.__signature__ = signature  # type: ignore[attr-defined]
        return typed

    def decorate(lowering: Any) -> Any:
        lower_builtin(function, types.VarArg(types.Any))(lowering)  # type: ignore[attr-defined]
        return lowering

    return decorate


def argument_type(kind: Any) -> Any:
    """Whole numbers are indices, fractions doubles."""
    kind = types.unliteral(kind)  # type: ignore[attr-defined]
    return (
        types.intp
        if isinstance(kind, types.Integer)
        else types.float64
        if isinstance(kind, types.Float)
        else kind
    )


def same_vector(*arguments: Any) -> Any:
    """The type of all arguments, if they are vectors of one type."""
    first = arguments[0]
    return first if isinstance(first, VectorType) and all(kind == first for kind in arguments) else None


def constant(kind: Any, number: Any) -> Any:
    """A vector of equal numbers."""
    return ir.Constant(kind, [ir.Constant(kind.element, number)] * kind.count)


def words_of(vector: Any) -> Any:
    """The type of a vector's bits."""
    bits = 32 if isinstance(vector.type.element, ir.FloatType) else 64
    return ir.VectorType(ir.IntType(bits), vector.type.count)


for operate, instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):

    @registered(operate, same_vector)
    def lower_arithmetic(
        context: Any, builder: Any, signature: Any, arguments: Any, instruction: str = instruction
    ) -> Any:
        """An operation on each pair of numbers."""
        return getattr(builder, instruction)(*arguments)


@registered(vectors.stand_apart, lambda: types.void)
def lower_stand_apart(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Mark the function that is being written."""
    builder.function.attributes.add("noinline")
    return context.get_dummy_value()


def place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where a piece of a row begins, and the size of a number."""
    rows, _, _, width = signature.args[:4]
    vector = vector_of(rows, width)
    array = context.make_array(rows)(context, builder, arguments[0])
    if width.instance_class is ManyVectors:
        length = builder.extract_value(array.shape, 1)
        inside = builder.mul(arguments[2], context.get_constant(types.intp, vector.lanes))
        offset = builder.add(builder.mul(arguments[1], length), inside)
    else:
        offset = builder.mul(arguments[1], context.get_constant(types.intp, vector.lanes))
    pointer = builder.gep(array.data, [offset], inbounds=True)
    return builder.bitcast(pointer, context.get_value_type(vector).as_pointer()), rows.dtype.bitwidth // 8


@registered(vectors.load, lambda rows, row, piece, width: vector_of(rows, width))
def lower_load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Read a vector."""
    pointer, size = place(context, builder, signature, arguments)
    return builder.load(pointer, align=size)


@registered(vectors.store, lambda rows, row, piece, width, vector: types.void)
def lower_store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write a vector."""
    pointer, size = place(context, builder, signature, arguments)
    builder.store(arguments[4], pointer, align=size)
    return context.get_dummy_value()


@registered(vectors.filled, lambda rows, width, number: vector_of(rows, width))
def lower_filled(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The number in all lanes."""
    kind = context.get_value_type(signature.return_type)
    number = context.cast(builder, arguments[2], types.float64, signature.return_type.number)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, index(0))
    return builder.shuffle_vector(one, one, constant(ir.VectorType(index, kind.count), 0))


def lower_bits(builder: Any, vector: Any, mask: int) -> Any:
    """The bits of a mask."""
    words = words_of(vector)
    return builder.and_(builder.bitcast(vector, words), constant(words, mask))


def sign_bit(vector: Any) -> int:
    """The bit of the sign."""
    return 1 << (int(words_of(vector).element.width) - 1)


@registered(vectors.absolute, same_vector)
def lower_absolute(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """All bits but the sign."""
    (vector,) = arguments
    return builder.bitcast(lower_bits(builder, vector, sign_bit(vector) - 1), vector.type)


@registered(vectors.copysign, same_vector)
def lower_copysign(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The bits of one and the sign of the other."""
    sizes, signs = arguments
    size = lower_bits(builder, sizes, sign_bit(sizes) - 1)
    return builder.bitcast(builder.or_(size, lower_bits(builder, signs, sign_bit(signs))), sizes.type)


@registered(vectors.maximum, same_vector)
def lower_maximum(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """One comparison, one choice."""
    a, b = arguments
    return builder.select(builder.fcmp_ordered("<", a, b), b, a)


@registered(vectors.without, lambda vector, lane: vector)
def lower_without(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Choose zero where the number of the lane is the one given."""
    vector, lane = arguments
    kind = ir.VectorType(lane.type, vector.type.count)
    numbers = ir.Constant(kind, [ir.Constant(lane.type, k) for k in range(kind.count)])
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), lane, index(0))
    same = builder.shuffle_vector(one, one, constant(ir.VectorType(index, kind.count), 0))
    chosen = builder.icmp_signed("==", same, numbers)
    return builder.select(chosen, constant(vector.type, 0.0), vector)


@registered(vectors.lane_sum, lambda vector: vector.number)
def lower_lane_sum(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Add the halves until one number is left."""
    (vector,) = arguments
    size = vector.type.count
    while size > 1:
        size //= 2
        halves = [
            ir.Constant(ir.VectorType(index, size), [index(start + k) for k in range(size)])
            for start in (0, size)
        ]
        vector = builder.fadd(*[builder.shuffle_vector(vector, vector, half) for half in halves])
    return builder.extract_element(vector, index(0))
