"""Functions written as vector instructions: a builder of loops over vectors, and their registration with Numba."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.extending import lower_builtin, type_callable

from abex.kernels.vectors import VECTOR_BYTES


class VectorBuilder:
    """One function under construction: its arguments by name, and vectors to load, compute and store."""

    def __init__(self, builder: Any, number: Any, values: dict[str, Any]) -> None:
        self.builder = builder
        self.values = values  # arrays are pointers to their numbers
        self.number = number
        self.size = 4 if isinstance(number, ir.FloatType) else 8
        self.lanes = VECTOR_BYTES // self.size
        self.vector = ir.VectorType(number, self.lanes)
        self.word = ir.VectorType(ir.IntType(8 * self.size), self.lanes)
        self.index_type = next(
            value.type for value in values.values() if not isinstance(value.type, ir.PointerType)
        )

    def index(self, value: int) -> Any:
        """A whole number, as an index."""
        return ir.Constant(self.index_type, value)

    def register(self) -> Any:
        """Room for a vector that the compiler keeps in a register."""
        return cgutils.alloca_once(self.builder, self.vector)

    def place(self, name: str, index: Any) -> Any:
        """Where vector ``index`` of an array is."""
        offset = self.builder.mul(index, ir.Constant(index.type, self.lanes))
        place = self.builder.gep(self.values[name], [offset], inbounds=True)
        return self.builder.bitcast(place, self.vector.as_pointer())

    def load(self, name: str, index: Any) -> Any:
        """Vector ``index`` of an array."""
        return self.builder.load(self.place(name, index), align=self.size)

    def store(self, value: Any, name: str, index: Any) -> None:
        """Set vector ``index`` of an array."""
        self.builder.store(value, self.place(name, index), align=self.size)

    def add_to(self, name: str, index: Any, value: Any) -> None:
        """Add to vector ``index`` of an array."""
        self.store(self.builder.fadd(self.load(name, index), value), name, index)

    def item(self, name: str, index: Any) -> Any:
        """Element ``index`` of an array of small integers, as an index (none is negative)."""
        element = self.builder.load(self.builder.gep(self.values[name], [index], inbounds=True))
        return element if element.type == index.type else self.builder.zext(element, index.type)

    def constant(self, value: float) -> Any:
        """A vector of equal numbers."""
        return ir.Constant(self.vector, [ir.Constant(self.number, value)] * self.lanes)

    def magnitude(self, value: Any) -> Any:
        """|value|."""
        mask = ir.Constant(
            self.word, [ir.Constant(self.word.element, (1 << (8 * self.size - 1)) - 1)] * self.lanes
        )
        return self.builder.bitcast(
            self.builder.and_(self.builder.bitcast(value, self.word), mask), self.vector
        )

    def larger(self, a: Any, b: Any) -> Any:
        """Maximum, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), b, a)

    def with_sign_of(self, value: Any, size: Any) -> Any:
        """``size`` with the signs of ``value``."""
        sign = ir.Constant(self.word, [ir.Constant(self.word.element, 1 << (8 * self.size - 1))] * self.lanes)
        bits = self.builder.and_(self.builder.bitcast(value, self.word), sign)
        return self.builder.bitcast(
            self.builder.or_(bits, self.builder.bitcast(size, self.word)), self.vector
        )

    def total(self, value: Any) -> Any:
        """Sum of all lanes, by halves: the same order on every machine."""
        width, index = self.lanes, ir.IntType(32)
        while width > 1:
            width //= 2
            picks = [
                ir.Constant(ir.VectorType(index, width), [ir.Constant(index, k + s) for k in range(width)])
                for s in (0, width)
            ]
            value = self.builder.fadd(*[self.builder.shuffle_vector(value, value, pick) for pick in picks])
        return self.builder.extract_element(value, ir.Constant(index, 0))

    def double(self, value: Any) -> Any:
        """A number as a double."""
        return value if self.size == 8 else self.builder.fpext(value, ir.DoubleType())

    def equal(self, lane: Any) -> Any:
        """Which lane is number ``lane``, if any."""
        words = ir.VectorType(lane.type, self.lanes)
        numbers = ir.Constant(words, [ir.Constant(lane.type, k) for k in range(self.lanes)])
        one = self.builder.insert_element(ir.Constant(words, ir.Undefined), lane, ir.IntType(32)(0))
        same = self.builder.shuffle_vector(
            one,
            one,
            ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [ir.IntType(32)(0)] * self.lanes),
        )
        return self.builder.icmp_signed("==", same, numbers)

    def row(self, index: Any) -> Any:
        """The first vector of row ``index``."""
        return self.builder.mul(index, self.values["n"])

    def columns(self, emit: Callable[[list[Any]], None], few: int) -> None:
        """Emit code for all vectors of a row together where they are few, else for one in a loop over them."""
        n = self.values["n"]
        for width in range(1, few + 1):
            known = ir.Constant(n.type, width)
            with self.builder.if_then(self.builder.icmp_signed("==", n, known)):
                self.values["n"] = known
                emit([ir.Constant(n.type, c) for c in range(width)])
                self.values["n"] = n
        with (
            self.builder.if_then(self.builder.icmp_signed(">", n, ir.Constant(n.type, few))),
            cgutils.for_range(self.builder, n) as loop,
        ):
            emit([loop.index])

    def sum_to(self, place: Any, columns: list[Any], value: Any) -> None:
        """Add a number to what the columns before have left at a place; the first of them finds nothing."""
        b = self.builder
        is_first = b.icmp_signed("==", columns[0], ir.Constant(columns[0].type, 0))
        before = b.select(is_first, ir.Constant(value.type, 0.0), b.load(place, align=self.size))
        b.store(b.fadd(before, value), place, align=self.size)

    @contextmanager
    def loop(self, first: Any, last: Any, step: int = 1) -> Iterator[Any]:
        """first..last-1 in steps."""
        with cgutils.for_range_slice(self.builder, first, last, ir.Constant(first.type, step)) as (index, _):
            yield index


def lower(function: Any, emit: Callable[[VectorBuilder], None], *, apart: bool = False) -> None:
    """Let Numba lower ``function`` by ``emit``. Arrays and None are taken as they are, all else is an index.

    What has a loop stands ``apart``, as a function of its own whose arrays do not overlap: a loop inlined into a long
    function has no registers left.
    """
    names = list(inspect.signature(function).parameters)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = dict(zip(names, signature.args, strict=True))
        values = {
            name: cgutils.create_struct_proxy(kinds[name])(context, builder, value=value).data
            if isinstance(kinds[name], types.Array)
            else value
            for name, value in zip(names, arguments, strict=True)
            if kinds[name] is not types.none
        }
        number = next(context.get_value_type(k.dtype) for k in kinds.values() if getattr(k, "ndim", 0) == 2)
        if apart:
            loop = written_apart(builder.module, function.__name__, emit, number, values)
            builder.call(loop, values.values())
        else:
            emit(VectorBuilder(builder, number, values))
        return context.get_dummy_value()

    @type_callable(function)  # type: ignore[untyped-decorator]
    def typer(context: Any) -> Any:
        def signed(*args: Any) -> Any:
            kinds = [a if isinstance(a, types.Array) or a is types.none else types.intp for a in args]
            return typing.signature(types.void, *kinds).replace(pysig=inspect.signature(function))

        signed.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return signed

    lower_builtin(function, types.VarArg(types.Any))(codegen)  # type: ignore[attr-defined]


def written_apart(
    module: Any, name: str, emit: Callable[[VectorBuilder], None], number: Any, values: dict[str, Any]
) -> Any:
    """The operation as a function of the module, written when it is first called."""
    types_of = "".join(str(value.type) for value in values.values())
    unique = f"abex.{name}.{number}.{'.'.join(values)}.{types_of}"
    if unique in module.globals:
        return module.globals[unique]
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values.values()])
    function = ir.Function(module, kind, unique)
    function.linkage = "internal"
    function.attributes.add("noinline")
    for argument in function.args:
        if isinstance(argument.type, ir.PointerType):
            argument.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emit(VectorBuilder(builder, number, dict(zip(values, function.args, strict=True))))
    builder.ret_void()
    return function
