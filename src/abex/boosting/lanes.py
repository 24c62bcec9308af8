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


def add_with_mass(out: Any, mass: Any, o: int, a: Any, i: int) -> None:
    """out[o] += a[i] and mass[o] += |a[i]|."""
    out[o] += a[i]
    mass[o] += np.abs(a[i])


def add_product(out: Any, o: int, a: Any, i: int, b: Any, j: int) -> None:
    """out[o] += a[i] * b[j]."""
    out[o] += a[i] * b[j]


def add_product_with_mass(out: Any, mass: Any, o: int, a: Any, i: int, b: Any, j: int) -> None:
    """out[o] += a[i] * b[j] and mass[o] += |a[i] * b[j]|."""
    product = a[i] * b[j]
    out[o] += product
    mass[o] += np.abs(product)


def multiply(out: Any, o: int, a: Any, i: int, b: Any, j: int) -> None:
    """out[o] = a[i] * b[j]."""
    out[o] = a[i] * b[j]


def multiply_floored(out: Any, o: int, a: Any, i: int, b: Any, j: int, floor: Any, f: int) -> None:
    """out[o] = a[i] * b[j], moved away from zero to at least floor[f] (the sign is kept)."""
    product = a[i] * b[j]
    out[o] = np.copysign(np.maximum(np.abs(product), floor[f]), product)


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
        """Lower ``function``, whose arguments are arrays (A) and indices (i), by the code of ``emit``."""
        n = len(pattern)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = signature.args
            machine = Machine(context, builder, kinds[0])
            places = []
            waiting = []
            for k in range(n):  # an index belongs to all arrays that stand before it without one
                if pattern[k] == "A":
                    waiting.append(k)
                else:
                    places += [machine.place(kinds[w], arguments[w], arguments[k]) for w in waiting]
                    waiting = []
            result = emit(machine, *places)
            return context.get_dummy_value() if returns is types.void else result

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
    operation(add_with_mass, "AAiAi", emit_add_with_mass)
    operation(
        add_product, "AiAiAi", lambda m, out, a, b: sum_into(m, out, m.builder.fmul(m.load(a), m.load(b)))
    )
    operation(add_product_with_mass, "AAiAiAi", emit_product_with_mass)
    operation(multiply, "AiAiAi", lambda m, out, a, b: m.store(m.builder.fmul(m.load(a), m.load(b)), out))
    operation(multiply_floored, "AiAiAiAi", emit_multiply_floored)
    operation(copy, "AiAi", lambda m, out, a: m.store(m.load(a), out))
    operation(subtract, "AiAi", lambda m, out, a: m.store(m.builder.fsub(m.load(out), m.load(a)), out))
    operation(cross, "AiAiAi", emit_cross, types.float64)
    operation(absolute_sum, "Ai", lambda m, a: m.total(m.magnitude(m.load(a))), types.float64)
