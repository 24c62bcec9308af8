"""Vectors for kernels: 64 bytes at a time (16 floats or 8 doubles), one instruction where the processor has it.

A row of an array of shape (rows, numbers), padded to whole vectors by `new_rows`, is one vector value where it is 64 or 128
bytes long; longer rows are passed over in pieces of 64 bytes, rows of a few numbers are half or a quarter of a vector. The
*width* of the rows says which, and its class is part of the types that code is compiled for. A loop over rows is written
once, for all widths:

>>> rows = new_rows(2, 10, np.float64)
>>> rows[:, :10] = 1.5
>>> width = width_of(10, np.float64)
>>> for piece in range(pieces(width)):
...     store(rows, 0, piece, width, load(rows, 0, piece, width) * load(rows, 1, piece, width))
>>> float(rows[0, 9]), rows.shape, width
(2.25, (2, 16), TwoVectors(pieces=1))

In Python a vector is a NumPy array. In compiled code it is a value in registers, a type of Numba whose operations are vector
instructions, so that nothing it is computed from can overlap with what is written; with checks of bounds it is an array there
too. No operation rounds twice or reorders: results are those of the Python, to the last bit. Vectors are values: write
``total = total + vector``, not ``+=``.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import types, typing
from numba.extending import lower_builtin, models, register_model, type_callable
from numpy.typing import NDArray

from abex.kernels import before_compiling, bounds_checked, kernel, rare_kernel, single_dispatch

VECTOR_BYTES = 64
Vector = Any  # an array of numbers in Python
Function = TypeVar("Function", bound=Callable[..., Any])

OPERATIONS: list[Callable[..., Any]] = []


class QuarterVector(NamedTuple):
    """Rows of a quarter of a vector."""

    pieces: int = 1


class HalfVector(NamedTuple):
    """Rows of half a vector."""

    pieces: int = 1


class OneVector(NamedTuple):
    """Rows of one vector."""

    pieces: int = 1


class TwoVectors(NamedTuple):
    """Rows of two vectors, which are computed with together."""

    pieces: int = 1


class ManyVectors(NamedTuple):
    """Rows of more, one vector a piece."""

    pieces: int


Width = QuarterVector | HalfVector | OneVector | TwoVectors | ManyVectors
#: widths of rows that are one vector value -> quarters of a vector they hold
QUARTERS: dict[type, int] = {QuarterVector: 1, HalfVector: 2, OneVector: 4, TwoVectors: 8}


def lanes_of(dtype: Any) -> int:
    """How many numbers of this type a vector holds."""
    return VECTOR_BYTES // int(np.dtype(dtype).itemsize)


def width_of(numbers: int, dtype: Any) -> Width:
    """The width of rows that hold so many numbers.

    >>> [type(width_of(numbers, np.float64)).__name__ for numbers in (2, 3, 5)]
    ['QuarterVector', 'HalfVector', 'OneVector']
    """
    lanes = lanes_of(dtype)
    for kind, quarters in QUARTERS.items():
        if 4 * numbers <= quarters * lanes:
            return kind()  # type: ignore[no-any-return]
    return ManyVectors(-(-numbers // lanes))


def new_rows(count: int, numbers: int, dtype: Any) -> NDArray[Any]:
    """Zeros: ``count`` rows of so many numbers, padded to their `width_of` and aligned to a vector's size."""
    lanes, width = lanes_of(dtype), width_of(numbers, dtype)
    padded = lanes * width.pieces if isinstance(width, ManyVectors) else lanes * QUARTERS[type(width)] // 4
    raw = np.zeros(count * padded + lanes, dtype=dtype)
    skip = (-raw.ctypes.data % VECTOR_BYTES) // raw.itemsize
    return raw[skip : skip + count * padded].reshape(count, padded)


def operation(function: Function) -> Function:
    """An operation on vectors: Python runs it as it stands, compiled code as its lowering below has it."""
    OPERATIONS.append(function)
    return function


@operation
def stand_apart() -> None:
    """Within a rare kernel: it is not made part of its callers. A loop inside a long function has no registers left."""


@single_dispatch
def pieces(width: Any) -> int:
    """How many pieces a row is passed over in."""
    return 1


@pieces.register(ManyVectors)
@kernel
def pieces_of_many(width: ManyVectors) -> int:
    """One vector a piece."""
    return width.pieces


@operation
def load(rows: NDArray[Any], row: int, piece: int, width: Width) -> Vector:
    """A piece of a row."""
    size = rows.shape[1] // width.pieces
    return rows[row, piece * size : (piece + 1) * size].copy()


@operation
def store(rows: NDArray[Any], row: int, piece: int, width: Width, vector: Vector) -> None:
    """Set a piece of a row."""
    size = rows.shape[1] // width.pieces
    rows[row, piece * size : (piece + 1) * size] = vector


@operation
def filled(rows: NDArray[Any], width: Width, number: float) -> Vector:
    """A piece of equal numbers, of the type that the rows have."""
    return np.full(rows.shape[1] // width.pieces, number, rows.dtype)


@operation
def absolute(vector: Vector) -> Vector:
    """Absolute values."""
    return np.abs(vector)


@operation
def maximum(a: Vector, b: Vector) -> Vector:
    """The larger numbers of two vectors."""
    return np.maximum(a, b)


@operation
def copysign(sizes: Vector, signs: Vector) -> Vector:
    """The sizes of one vector with the signs of another."""
    return np.copysign(sizes, signs)


@operation
def without(vector: Vector, lane: int) -> Vector:
    """The vector with a zero for number ``lane``, if it has one."""
    result = vector.copy()
    if 0 <= lane < result.size:
        result[lane] = 0.0
    return result


@operation
def lane_sum(vector: Vector) -> Any:
    """The sum of all numbers, by halves: in the same order on every machine.

    >>> float(lane_sum(np.arange(16.0)))
    120.0
    """
    size = vector.size
    while size > 1:
        size //= 2
        vector = vector[:size] + vector[size : 2 * size]
    return vector[0]


# -- in compiled code ---------------------------------------------------------------------------------

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


def splat(builder: Any, kind: Any, number: Any) -> Any:
    """A vector of equal numbers, known when the code runs."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, index(0))
    return builder.shuffle_vector(one, one, constant(ir.VectorType(index, kind.count), 0))


for operate, instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):

    @registered(operate, same_vector)
    def lower_arithmetic(
        context: Any, builder: Any, signature: Any, arguments: Any, instruction: str = instruction
    ) -> Any:
        """An operation on each pair of numbers."""
        return getattr(builder, instruction)(*arguments)


@registered(stand_apart, lambda: types.void)
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


@registered(load, lambda rows, row, piece, width: vector_of(rows, width))
def lower_load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Read a vector."""
    pointer, size = place(context, builder, signature, arguments)
    return builder.load(pointer, align=size)


@registered(store, lambda rows, row, piece, width, vector: types.void)
def lower_store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write a vector."""
    pointer, size = place(context, builder, signature, arguments)
    builder.store(arguments[4], pointer, align=size)
    return context.get_dummy_value()


@registered(filled, lambda rows, width, number: vector_of(rows, width))
def lower_filled(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The number in all lanes."""
    kind = context.get_value_type(signature.return_type)
    number = context.cast(builder, arguments[2], types.float64, signature.return_type.number)
    return splat(builder, kind, number)


def call_intrinsic(builder: Any, name: str, arguments: Any) -> Any:
    """An operation that LLVM has for vectors."""
    kind = arguments[0].type
    bits = 32 if isinstance(kind.element, ir.FloatType) else 64
    typed = ir.FunctionType(kind, [kind] * len(arguments))
    function = builder.module.declare_intrinsic(f"llvm.{name}.v{kind.count}f{bits}", (), typed)
    return builder.call(function, arguments)


@registered(absolute, same_vector)
def lower_absolute(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Absolute values."""
    return call_intrinsic(builder, "fabs", arguments)


@registered(copysign, same_vector)
def lower_copysign(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The sizes of one with the signs of the other."""
    return call_intrinsic(builder, "copysign", arguments)


@registered(maximum, same_vector)
def lower_maximum(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """One comparison, one choice."""
    a, b = arguments
    return builder.select(builder.fcmp_ordered("<", a, b), b, a)


@registered(without, lambda vector, lane: vector)
def lower_without(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Choose zero where the number of the lane is the one given."""
    vector, lane = arguments
    kind = ir.VectorType(lane.type, vector.type.count)
    numbers = ir.Constant(kind, [ir.Constant(lane.type, k) for k in range(kind.count)])
    chosen = builder.icmp_signed("==", splat(builder, kind, lane), numbers)
    return builder.select(chosen, constant(vector.type, 0.0), vector)


@registered(lane_sum, lambda vector: vector.number)
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


@before_compiling
def _compile_as_arrays() -> None:
    if bounds_checked():
        for function in OPERATIONS:
            rare_kernel(function)
