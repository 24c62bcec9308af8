"""Arithmetic on rows of labels: 64 bytes at a time, one vector instruction where the machine has it.

The weights of an example are a row of L numbers. Rows are padded to whole *vectors* of 64 bytes (16 floats or
8 doubles) and kept in arrays of shape (vectors, lanes); an index below counts vectors. Python runs these
functions as they stand; Numba is taught to turn each into a few vector instructions, since it cannot see
by itself that the arrays do not overlap (measured: four times slower).
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import before_compiling

VECTOR_BYTES = 64


def lanes_of(dtype: Any) -> int:
    """How many numbers of this type a vector holds."""
    return VECTOR_BYTES // int(np.dtype(dtype).itemsize)


def vectors(count: int, dtype: Any) -> NDArray[Any]:
    """Zeros of shape (count, lanes), aligned to the vector size."""
    lanes = lanes_of(dtype)
    raw = np.zeros((count + 1) * lanes, dtype=dtype)
    skip = (-raw.ctypes.data % VECTOR_BYTES) // raw.itemsize
    return raw[skip : skip + count * lanes].reshape(count, lanes)


def add(out: Any, o: int, a: Any, i: int) -> None:
    """out[o] += a[i]."""
    out[o] += a[i]


def add_row(out: Any, o: int, a: Any, i: int, n: int) -> None:
    """Row o of ``out`` += row i of ``a``, rows of n vectors."""
    out[o * n : o * n + n] += a[i * n : i * n + n]


def add_row_with_mass(out: Any, mass: Any, o: int, a: Any, i: int, n: int) -> None:
    """`add_row`, and the same of absolute values."""
    out[o * n : o * n + n] += a[i * n : i * n + n]
    mass[o * n : o * n + n] += np.abs(a[i * n : i * n + n])


def add_row_product(out: Any, o: int, a: Any, i: int, b: Any, j: int, n: int) -> None:
    """Row o of ``out`` += row i of ``a`` times row j of ``b``, rows of n vectors."""
    out[o * n : o * n + n] += a[i * n : i * n + n] * b[j * n : j * n + n]


def add_row_product_with_mass(out: Any, mass: Any, o: int, a: Any, i: int, b: Any, j: int, n: int) -> None:
    """`add_row_product`, and the same of absolute values."""
    product = a[i * n : i * n + n] * b[j * n : j * n + n]
    out[o * n : o * n + n] += product
    mass[o * n : o * n + n] += np.abs(product)


def multiply(out: Any, o: int, a: Any, i: int, b: Any, j: int) -> None:
    """out[o] = a[i] * b[j]."""
    out[o] = a[i] * b[j]


def multiply_row_floored(
    out: Any, o: int, a: Any, i: int, b: Any, j: int, floor: Any, f: int, n: int
) -> None:
    """Row o of ``out`` = row i of ``a`` times row j of ``b``, moved away from zero to at least row f of ``floor``."""
    product = a[i * n : i * n + n] * b[j * n : j * n + n]
    out[o * n : o * n + n] = np.copysign(np.maximum(np.abs(product), floor[f * n : f * n + n]), product)


def copy(out: Any, o: int, a: Any, i: int) -> None:
    """out[o] = a[i]."""
    out[o] = a[i]


def subtract(out: Any, o: int, a: Any, i: int) -> None:
    """out[o] -= a[i]."""
    out[o] -= a[i]


def cross(edges: Any, e: int, a: Any, i: int, least: Any, k: int) -> float:
    """edges[e] -= 2 a[i], for examples that change side; returns the new sum of max(|edges[e]|, least[k])."""
    edges[e] -= 2 * a[i]
    return float(np.maximum(np.abs(edges[e]), least[k]).sum())


def absolute_sum(a: Any, i: int) -> float:
    """Sum of |a[i]|."""
    return float(np.abs(a[i]).sum())


@before_compiling
def teach_numba() -> None:
    """Give Numba vector code for the functions above."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import cgutils, types, typing
    from numba.extending import lower_builtin, type_callable

    class Machine:
        """One operation under construction: loads and stores vectors."""

        def __init__(self, context: Any, builder: Any, kind: Any) -> None:
            self.builder = builder
            self.context = context
            self.number = context.get_value_type(kind.dtype)
            self.size = 4 if kind.dtype == types.float32 else 8
            self.lanes = VECTOR_BYTES // self.size
            self.vector = ir.VectorType(self.number, self.lanes)

        def place(self, kind: Any, array: Any, index: Any) -> Any:
            data = cgutils.create_struct_proxy(kind)(self.context, self.builder, value=array).data
            offset = self.builder.mul(index, ir.Constant(index.type, self.lanes))
            return self.builder.bitcast(self.builder.gep(data, [offset]), self.vector.as_pointer())

        def load(self, place: Any) -> Any:
            return self.builder.load(place, align=self.size)

        def store(self, value: Any, place: Any) -> None:
            self.builder.store(value, place, align=self.size)

        def constant(self, value: float) -> Any:
            return ir.Constant(self.vector, [ir.Constant(self.number, value)] * self.lanes)

        def magnitude(self, value: Any) -> Any:
            word = ir.VectorType(ir.IntType(8 * self.size), self.lanes)
            mask = ir.Constant(word, [ir.Constant(word.element, (1 << (8 * self.size - 1)) - 1)] * self.lanes)
            bits = self.builder.and_(self.builder.bitcast(value, word), mask)
            return self.builder.bitcast(bits, self.vector)

        def larger(self, a: Any, b: Any) -> Any:
            return self.builder.select(self.builder.fcmp_ordered("<", a, b), b, a)

        def with_sign_of(self, value: Any, size: Any) -> Any:
            word = ir.VectorType(ir.IntType(8 * self.size), self.lanes)
            sign = ir.Constant(word, [ir.Constant(word.element, 1 << (8 * self.size - 1))] * self.lanes)
            bits = self.builder.and_(self.builder.bitcast(value, word), sign)
            return self.builder.bitcast(self.builder.or_(bits, self.builder.bitcast(size, word)), self.vector)

        def total(self, value: Any) -> Any:
            """Sum of all lanes, by halves: the same order on every machine."""
            width = self.lanes
            index = ir.IntType(32)
            while width > 1:
                width //= 2
                halves = [
                    self.builder.shuffle_vector(
                        value,
                        value,
                        ir.Constant(
                            ir.VectorType(index, width), [ir.Constant(index, k + s) for k in range(width)]
                        ),
                    )
                    for s in (0, width)
                ]
                value = self.builder.fadd(*halves)
            only = self.builder.extract_element(value, ir.Constant(index, 0))
            return only if self.size == 8 else self.builder.fpext(only, ir.DoubleType())

    def operation(function: Any, pattern: str, emit: Any, returns: Any = types.void) -> None:
        """Lower ``function`` by the code of ``emit``. Its arguments: arrays (A), indices (i), vectors of a row (n)."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = signature.args
            machine = Machine(context, builder, kinds[0])

            def places(vector_of: Any) -> list[Any]:
                found, waiting = [], []
                for k, letter in enumerate(pattern):  # an index belongs to all arrays that wait for one
                    if letter == "A":
                        waiting.append(k)
                    elif letter == "i":
                        at = vector_of(arguments[k])
                        found += [machine.place(kinds[w], arguments[w], at) for w in waiting]
                        waiting = []
                return found

            if pattern[-1] != "n":
                result = emit(machine, *places(lambda index: index))
                return context.get_dummy_value() if returns is types.void else result
            count = arguments[-1]
            emit(
                machine, *places(lambda row: builder.mul(row, count))
            )  # most rows are one vector: no loop for it
            one = ir.Constant(count.type, 1)
            with (
                builder.if_then(builder.icmp_signed(">", count, one), likely=False),
                cgutils.for_range(builder, count, one) as loop,
            ):
                emit(machine, *places(lambda row: builder.add(builder.mul(row, count), loop.index)))
            return context.get_dummy_value()

        @type_callable(function)  # type: ignore[untyped-decorator]
        def typer(context: Any) -> Any:
            def signed(*args: Any) -> Any:
                kinds = [a if p == "A" else types.intp for a, p in zip(args, pattern, strict=True)]
                return typing.signature(returns, *kinds).replace(pysig=inspect.signature(function))

            signed.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
            return signed

        lower_builtin(function, types.VarArg(types.Any))(codegen)  # type: ignore[attr-defined]

    def sum_into(m: Machine, out: Any, value: Any) -> None:
        m.store(m.builder.fadd(m.load(out), value), out)

    def emit_add_with_mass(m: Machine, out: Any, mass: Any, a: Any) -> None:
        value = m.load(a)
        sum_into(m, out, value)
        sum_into(m, mass, m.magnitude(value))

    def emit_product_with_mass(m: Machine, out: Any, mass: Any, a: Any, b: Any) -> None:
        value = m.builder.fmul(m.load(a), m.load(b))
        sum_into(m, out, value)
        sum_into(m, mass, m.magnitude(value))

    def emit_multiply_floored(m: Machine, out: Any, a: Any, b: Any, floor: Any) -> None:
        value = m.builder.fmul(m.load(a), m.load(b))
        m.store(m.with_sign_of(value, m.larger(m.magnitude(value), m.load(floor))), out)

    def emit_cross(m: Machine, edges: Any, a: Any, least: Any) -> Any:
        twice = m.builder.fmul(m.load(a), m.constant(2.0))
        value = m.builder.fsub(m.load(edges), twice)
        m.store(value, edges)
        return m.total(m.larger(m.magnitude(value), m.load(least)))

    operation(add, "AiAi", lambda m, out, a: sum_into(m, out, m.load(a)))
    operation(add_row, "AiAin", lambda m, out, a: sum_into(m, out, m.load(a)))
    operation(add_row_with_mass, "AAiAin", emit_add_with_mass)
    operation(add_row_product_with_mass, "AAiAiAin", emit_product_with_mass)
    operation(
        add_row_product,
        "AiAiAin",
        lambda m, out, a, b: sum_into(m, out, m.builder.fmul(m.load(a), m.load(b))),
    )
    operation(multiply, "AiAiAi", lambda m, out, a, b: m.store(m.builder.fmul(m.load(a), m.load(b)), out))
    operation(multiply_row_floored, "AiAiAiAin", emit_multiply_floored)
    operation(copy, "AiAi", lambda m, out, a: m.store(m.load(a), out))
    operation(subtract, "AiAi", lambda m, out, a: m.store(m.builder.fsub(m.load(out), m.load(a)), out))
    operation(cross, "AiAiAi", emit_cross, types.float64)
    operation(absolute_sum, "Ai", lambda m, a: m.total(m.magnitude(m.load(a))), types.float64)
