"""What `abex.boosting.lanes` is for Numba: each of its functions as vector instructions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types, typing
from numba.extending import lower_builtin, type_callable

from abex.boosting import lanes

WIDTHS = 2  # rows of up to so many vectors have a loop of their own, without a loop over vectors in it
TOGETHER = 4  # rows added to bins at a time; the number of sums of a bin divides it


class Machine:
    """One function under construction: its arguments by name, and vectors to load, compute and store."""

    def __init__(self, builder: Any, number: Any, values: dict[str, Any]) -> None:
        self.builder = builder
        self.values = values  # arrays are pointers to their numbers
        self.number = number
        self.size = 4 if isinstance(number, ir.FloatType) else 8
        self.lanes = lanes.VECTOR_BYTES // self.size
        self.vector = ir.VectorType(number, self.lanes)
        self.word = ir.VectorType(ir.IntType(8 * self.size), self.lanes)

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

    def widths(self, emit: Callable[[Callable[[], Any]], None]) -> None:
        """Emit code once for each small number of vectors in a row and once for any; ``emit`` gets their loop."""
        n = self.values["n"]
        for width in range(1, WIDTHS + 1):
            known = ir.Constant(n.type, width)
            with self.builder.if_then(self.builder.icmp_signed("==", n, known)):
                self.values["n"] = known
                emit(lambda width=width: (ir.Constant(n.type, c) for c in range(width)))  # type: ignore[misc]
                self.values["n"] = n
        with self.builder.if_then(self.builder.icmp_signed(">", n, ir.Constant(n.type, WIDTHS))):
            emit(self.any_width)

    def any_width(self) -> Iterator[Any]:
        """The vectors of a row, in a loop at run time."""
        with cgutils.for_range(self.builder, self.values["n"]) as loop:
            yield loop.index

    @contextmanager
    def loop(self, first: Any, last: Any, step: int = 1) -> Iterator[Any]:
        """first..last-1 in steps."""
        with cgutils.for_range_slice(self.builder, first, last, ir.Constant(first.type, step)) as (index, _):
            yield index


def operation(function: Any, emit: Callable[[Machine], None], *, apart: bool = False) -> None:
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
            emit(Machine(builder, number, values))
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
    module: Any, name: str, emit: Callable[[Machine], None], number: Any, values: dict[str, Any]
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
    emit(Machine(builder, number, dict(zip(values, function.args, strict=True))))
    builder.ret_void()
    return function


def product(m: Machine, c: Any = None) -> Any:
    """a[i] * b[j], or vector c of row i times that of row j."""
    i, j = m.values["i"], m.values["j"]
    if c is not None:
        i, j = m.builder.add(m.row(i), c), m.builder.add(m.row(j), c)
    return m.builder.fmul(m.load("a", i), m.load("b", j))


def _clear(m: Machine) -> None:
    count = m.values["count"]
    with m.loop(ir.Constant(count.type, 0), count) as at:
        m.store(m.constant(0.0), "out", at)


def _multiply(m: Machine) -> None:
    m.store(product(m), "out", m.values["o"])


def _add_magnitudes(m: Machine) -> None:
    def emit(vectors: Any) -> None:
        for c in vectors():
            m.add_to("out", m.builder.add(m.row(m.values["o"]), c), m.magnitude(product(m, c)))

    m.widths(emit)


def _add_to_bins(m: Machine) -> None:
    b, first, last = m.builder, m.values["first"], m.values["last"]
    number = functools.partial(ir.Constant, first.type)
    mask = b.sub(m.values["several"], number(1))
    offsets = [b.mul(b.and_(number(k), mask), m.values["bins"]) for k in range(TOGETHER)]
    whole = b.sub(last, b.and_(b.sub(last, first), number(TOGETHER - 1)))

    def emit(vectors: Any) -> None:
        with m.loop(first, whole, TOGETHER) as at:
            add_rows(vectors, [(b.add(at, number(k)), offset) for k, offset in enumerate(offsets)])
        with m.loop(whole, last) as at:
            offset = b.mul(b.and_(b.sub(at, whole), mask), m.values["bins"])
            add_rows(vectors, [(at, offset)])

    def add_rows(vectors: Any, places: list[tuple[Any, Any]]) -> None:
        found = []
        for at, offset in places:
            index = m.item("row", at) if "row" in m.values else at
            slot = m.row(b.add(m.values["start"], m.item("slot", index))) if "slot" in m.values else None
            found.append((m.row(b.add(m.item("code", at), offset)), m.row(index), slot))
        for c in vectors():
            products = []
            for _, row, slot in found:
                value = m.load("values", b.add(row, c))
                products.append(value if slot is None else b.fmul(value, m.load("factors", b.add(slot, c))))
            for (out, _, _), value in zip(found, products, strict=True):
                m.add_to("sums", b.add(out, c), value)

    m.widths(emit)


def over_rows(m: Machine, emit: Callable[[Any, Any, Any], Any]) -> None:
    """For each vector of a row: sums = sum over rows first..last-1 of what ``emit`` makes of it, in a register."""
    b = m.builder
    start = m.row(m.values["start"])
    with cgutils.for_range(b, m.values["n"]) as column:
        c = column.index
        total = cgutils.alloca_once(b, m.vector)
        b.store(m.constant(0.0), total)
        with m.loop(m.values["first"], m.values["last"]) as at:
            row = b.add(m.row(at), c)
            slot = b.add(b.add(m.row(m.item("slot", at)), start), c)
            value = b.fmul(m.load("values", row), m.load("factors", slot))
            b.store(b.fadd(b.load(total), emit(value, row, c)), total)
        m.store(b.load(total), "sums", c)


def _sum_products(m: Machine) -> None:
    over_rows(m, lambda value, row, c: value)


def _settle(m: Machine) -> None:
    def emit(value: Any, row: Any, c: Any) -> Any:
        value = m.with_sign_of(value, m.larger(m.magnitude(value), m.load("floor", c)))
        m.store(value, "values", row)
        return value

    over_rows(m, emit)


def _note_masses(m: Machine) -> None:
    b, lane = m.builder, m.values["lane"]
    number = ir.Constant(lane.type, m.lanes)

    def emit(vectors: Any) -> None:
        total = cgutils.alloca_once(b, m.vector)
        with m.loop(m.values["first"], m.values["last"]) as at:
            b.store(m.constant(0.0), total)
            for c in vectors():
                value = m.magnitude(m.load("values", b.add(m.row(at), c)))
                here = b.select(m.equal(b.sub(lane, b.mul(c, number))), m.constant(0.0), value)
                b.store(b.fadd(b.load(total), here), total)
            place = b.gep(m.values["values"], [b.add(b.mul(m.row(at), number), lane)], inbounds=True)
            b.store(m.total(b.load(total)), place, align=m.size)

    m.widths(emit)


def _join_bins(m: Machine) -> None:
    b = m.builder
    count = m.row(m.values["bins"])
    with m.loop(ir.Constant(count.type, 1), m.values["several"]) as copy:
        start = b.mul(copy, count)
        with m.loop(ir.Constant(count.type, 0), count) as at:
            m.add_to("sums", at, m.load("sums", b.add(at, start)))


def _sum_bins(m: Machine) -> None:
    b = m.builder
    with cgutils.for_range(b, m.values["n"]) as column:
        total = cgutils.alloca_once(b, m.vector)
        b.store(m.constant(0.0), total)
        with m.loop(m.values["first"], m.values["last"]) as at:
            b.store(b.fadd(b.load(total), m.load("sums", b.add(m.row(at), column.index))), total)
        m.store(b.load(total), "out", column.index)


def _add_column(m: Machine) -> None:
    b, bins = m.builder, m.values["bins"]
    zero, width = ir.Constant(bins.type, 0), ir.Constant(bins.type, m.lanes)
    sign = b.sitofp(m.values["sign"], m.number)
    with m.loop(zero, m.values["several"]) as copy, m.loop(zero, bins) as at:
        there = b.add(b.mul(m.row(at), width), m.values["lane"])
        here = b.add(b.mul(m.row(b.add(at, b.mul(copy, bins))), width), m.values["lane"])
        out = b.gep(m.values["out"], [there], inbounds=True)
        value = b.load(b.gep(m.values["sums"], [here], inbounds=True), align=m.size)
        b.store(b.fadd(b.load(out, align=m.size), b.fmul(sign, value)), out, align=m.size)


def note_edge(m: Machine, name: str, index: Any, c: Any, edges: Any) -> None:
    """Element ``index`` of an array of doubles gets what vector c of the edges contributes."""
    b = m.builder
    edge = m.double(m.total(m.larger(m.magnitude(edges), m.load("least", c))))
    place = b.gep(m.values[name], [index], inbounds=True)
    is_first = b.icmp_signed("==", c, ir.Constant(c.type, 0))
    known = b.select(is_first, ir.DoubleType()(0.0), b.load(place))
    b.store(b.fadd(known, edge), place)


def _sweep(m: Machine) -> None:
    b = m.builder
    bins, crossing = m.values["bins"], m.values["crossing"]
    one = ir.Constant(bins.type, 1)

    with cgutils.for_range(b, m.values["n"]) as column:
        c = column.index
        twice = m.load("twice", c)
        edges = cgutils.alloca_once(b, m.vector)
        b.store(m.constant(0.0), edges)
        with m.loop(ir.Constant(bins.type, 0), bins) as at:
            bin_sum = m.load("sums", b.add(m.row(at), c))
            b.store(b.fadd(b.load(edges), bin_sum), edges)
        b.store(b.fmul(b.load(edges), b.fmul(twice, m.constant(0.5))), edges)
        m.store(b.load(edges), "edges", c)
        note_edge(m, "bounds", crossing, c, b.load(edges))
        with m.loop(crossing, bins) as at:
            bin_sum = m.load("sums", b.add(m.row(at), c))
            b.store(b.fsub(b.load(edges), b.fmul(twice, bin_sum)), edges)
            note_edge(m, "bounds", b.add(at, one), c, b.load(edges))


def _cross_bins(m: Machine) -> None:
    b = m.builder
    with cgutils.for_range(b, m.values["n"]) as column:
        c = column.index
        edges = cgutils.alloca_once(b, m.vector)
        b.store(m.load("edges", b.add(m.values["i"], c)), edges)
        with m.loop(m.values["first"], m.values["last"]) as at:
            bin_sum = m.load("sums", b.add(m.row(at), c))
            b.store(b.fsub(b.load(edges), b.fmul(m.load("twice", c), bin_sum)), edges)
        m.store(b.load(edges), "edges", b.add(m.values["o"], c))


def _cross_rows(m: Machine) -> None:
    b, first, last = m.builder, m.values["first"], m.values["last"]
    with cgutils.for_range(b, m.values["n"]) as column:
        c = column.index
        twice = m.load("twice", c)
        edges = cgutils.alloca_once(b, m.vector)
        b.store(m.load("edges", b.add(m.values["i"], c)), edges)
        with m.loop(first, last) as at:
            row = m.item("order", at)
            slot = b.add(b.mul(m.item("group", row), m.values["stride"]), m.item("slot", row))
            value = m.load("values", b.add(m.row(row), c))
            value = b.fmul(value, m.load("factors", b.add(m.row(slot), c)))
            b.store(b.fsub(b.load(edges), b.fmul(twice, value)), edges)
            note_edge(m, "inner", b.sub(at, first), c, b.load(edges))
        m.store(b.load(edges), "edges", b.add(m.values["o"], c))


def teach() -> None:
    """Lower all functions of `lanes`."""
    operation(lanes.clear, _clear, apart=True)
    operation(lanes.multiply, _multiply)
    operation(lanes.add_magnitudes, _add_magnitudes)
    operation(lanes.add_to_bins, _add_to_bins, apart=True)
    operation(lanes.sum_products, _sum_products, apart=True)
    operation(lanes.settle, _settle, apart=True)
    operation(lanes.note_masses, _note_masses, apart=True)
    operation(lanes.join_bins, _join_bins, apart=True)
    operation(lanes.sum_bins, _sum_bins, apart=True)
    operation(lanes.add_column, _add_column, apart=True)
    operation(lanes.cross_rows, _cross_rows, apart=True)
    operation(lanes.sweep, _sweep, apart=True)
    operation(lanes.cross_bins, _cross_bins, apart=True)
