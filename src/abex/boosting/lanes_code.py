"""What `abex.boosting.lanes` is for Numba: each of its functions as vector instructions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types, typing
from numba.extending import lower_builtin, type_callable

from abex.boosting import lanes

UNROLLED = 2  # rows of up to so many vectors have a loop of their own, without a loop over vectors in it


class Machine:
    """One function under construction: its arguments by name, and vectors to load, compute and store."""

    def __init__(self, context: Any, builder: Any, names: Any, kinds: Any, values: Any) -> None:
        self.context, self.builder = context, builder
        self.kinds, self.values = dict(zip(names, kinds, strict=True)), dict(zip(names, values, strict=True))
        number = next(k.dtype for k in kinds if isinstance(k, types.Array) and k.ndim == 2)
        self.number = context.get_value_type(number)
        self.size = 4 if number == types.float32 else 8
        self.lanes = lanes.VECTOR_BYTES // self.size
        self.vector = ir.VectorType(self.number, self.lanes)
        self.word = ir.VectorType(ir.IntType(8 * self.size), self.lanes)

    def there(self, name: str) -> bool:
        """Whether an argument is not None."""
        return not isinstance(self.kinds[name], types.NoneType)

    def data(self, name: str) -> Any:
        """Where an array begins."""
        return cgutils.create_struct_proxy(self.kinds[name])(
            self.context, self.builder, value=self.values[name]
        ).data

    def place(self, name: str, index: Any) -> Any:
        """Where vector ``index`` of an array is."""
        offset = self.builder.mul(index, ir.Constant(index.type, self.lanes))
        place = self.builder.gep(self.data(name), [offset], inbounds=True)
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
        element = self.builder.load(self.builder.gep(self.data(name), [index], inbounds=True))
        word = self.context.get_value_type(types.intp)
        return element if element.type == word else self.builder.zext(element, word)

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

        def fixed(width: int) -> Callable[[], Any]:
            return lambda: iter([ir.Constant(n.type, c) for c in range(width)])

        for width in range(1, UNROLLED + 1):
            with self.builder.if_then(self.builder.icmp_signed("==", n, ir.Constant(n.type, width))):
                emit(fixed(width))
        with self.builder.if_then(self.builder.icmp_signed(">", n, ir.Constant(n.type, UNROLLED))):
            emit(self.any_width)

    def any_width(self) -> Iterator[Any]:
        """The vectors of a row, in a loop at run time."""
        with cgutils.for_range(self.builder, self.values["n"]) as loop:
            yield loop.index

    @contextmanager
    def loop(self, first: Any, last: Any) -> Iterator[Any]:
        """first..last-1."""
        with cgutils.for_range(self.builder, last, first) as loop:
            yield loop.index


def operation(function: Any, emit: Callable[[Machine], Any], returns: Any = types.void) -> None:
    """Let Numba lower ``function`` by ``emit``. Arrays and None are taken as they are, all else is an index."""
    names = list(inspect.signature(function).parameters)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = emit(Machine(context, builder, names, signature.args, arguments))
        return context.get_dummy_value() if returns is types.void else result

    @type_callable(function)  # type: ignore[untyped-decorator]
    def typer(context: Any) -> Any:
        def signed(*args: Any) -> Any:
            kinds = [a if isinstance(a, (types.Array, types.NoneType)) else types.intp for a in args]
            return typing.signature(returns, *kinds).replace(pysig=inspect.signature(function))

        signed.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return signed

    lower_builtin(function, types.VarArg(types.Any))(codegen)  # type: ignore[attr-defined]


def product(m: Machine, c: Any = None) -> Any:
    """a[i] * b[j], or vector c of row i times that of row j."""
    i, j = m.values["i"], m.values["j"]
    if c is not None:
        i, j = m.builder.add(m.row(i), c), m.builder.add(m.row(j), c)
    return m.builder.fmul(m.load("a", i), m.load("b", j))


def emit_add(m: Machine) -> None:
    m.add_to("out", m.values["o"], m.load("a", m.values["i"]))


def emit_copy(m: Machine) -> None:
    m.store(m.load("a", m.values["i"]), "out", m.values["o"])


def emit_multiply(m: Machine) -> None:
    m.store(product(m), "out", m.values["o"])


def emit_add_magnitudes(m: Machine) -> None:
    def emit(vectors: Any) -> None:
        for c in vectors():
            m.add_to("out", m.builder.add(m.row(m.values["o"]), c), m.magnitude(product(m, c)))

    m.widths(emit)


def emit_cross_product(m: Machine) -> Any:
    e, k = m.values["e"], m.values["k"]
    value = m.builder.fsub(m.load("edges", e), m.builder.fmul(m.load("twice", k), product(m)))
    m.store(value, "edges", e)
    return m.double(m.total(m.larger(m.magnitude(value), m.load("least", k))))


def emit_add_to_bins(m: Machine) -> None:
    b = m.builder

    def emit(vectors: Any) -> None:
        with m.loop(m.values["first"], m.values["last"]) as at:
            copy = b.mul(b.and_(at, m.values["mask"]), m.values["step"])
            out = m.row(b.add(m.item("code", at), copy))
            index = m.item("row", at) if m.there("row") else at
            row = m.row(index)
            if m.there("slot"):
                slot = m.row(b.add(m.values["start"], m.item("slot", index)))
            for c in vectors():
                value = m.load("values", b.add(row, c))
                if m.there("slot"):
                    value = b.fmul(value, m.load("factors", b.add(slot, c)))
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


def emit_sum_products(m: Machine) -> None:
    over_rows(m, lambda value, row, c: value)


def emit_settle(m: Machine) -> None:
    def emit(value: Any, row: Any, c: Any) -> Any:
        value = m.with_sign_of(value, m.larger(m.magnitude(value), m.load("floor", c)))
        m.store(value, "values", row)
        return value

    over_rows(m, emit)


def emit_note_masses(m: Machine) -> None:
    b, n, lane = m.builder, m.values["n"], m.values["lane"]
    number = ir.Constant(lane.type, m.lanes)
    total = cgutils.alloca_once(b, m.vector)
    with m.loop(m.values["first"], m.values["last"]) as at:
        b.store(m.constant(0.0), total)
        with cgutils.for_range(b, n) as column:
            value = m.magnitude(m.load("values", b.add(m.row(at), column.index)))
            here = b.select(m.equal(b.sub(lane, b.mul(column.index, number))), m.constant(0.0), value)
            b.store(b.fadd(b.load(total), here), total)
        place = b.gep(m.data("values"), [b.add(b.mul(m.row(at), number), lane)], inbounds=True)
        b.store(m.total(b.load(total)), place, align=m.size)


def emit_sweep(m: Machine) -> None:
    b = m.builder
    base, bins, crossing = m.values["base"], m.values["bins"], m.values["crossing"]
    one = ir.Constant(bins.type, 1)

    def note(index: Any, c: Any, edges: Any) -> None:
        edge = m.double(m.total(m.larger(m.magnitude(edges), m.load("least", c))))
        place = b.gep(m.data("bounds"), [index], inbounds=True)
        is_first = b.icmp_signed("==", c, ir.Constant(c.type, 0))
        known = b.select(is_first, ir.DoubleType()(0.0), b.load(place))
        b.store(b.fadd(known, edge), place)

    with cgutils.for_range(b, m.values["n"]) as column:
        c = column.index
        twice = m.load("twice", c)
        edges = cgutils.alloca_once(b, m.vector)
        b.store(m.constant(0.0), edges)
        with m.loop(ir.Constant(bins.type, 0), bins) as at:
            bin_sum = m.load("sums", b.add(base, b.add(m.row(at), c)))
            b.store(b.fadd(b.load(edges), bin_sum), edges)
        b.store(b.fmul(b.load(edges), b.fmul(twice, m.constant(0.5))), edges)
        m.store(b.load(edges), "edges", c)
        note(crossing, c, b.load(edges))
        with m.loop(crossing, bins) as at:
            bin_sum = m.load("sums", b.add(base, b.add(m.row(at), c)))
            b.store(b.fsub(b.load(edges), b.fmul(twice, bin_sum)), edges)
            note(b.add(at, one), c, b.load(edges))


def emit_cross_bins(m: Machine) -> None:
    b = m.builder
    with cgutils.for_range(b, m.values["n"]) as column:
        c = column.index
        edges = cgutils.alloca_once(b, m.vector)
        b.store(m.load("edges", b.add(m.values["i"], c)), edges)
        with m.loop(m.values["first"], m.values["last"]) as at:
            bin_sum = m.load("sums", b.add(m.values["base"], b.add(m.row(at), c)))
            b.store(b.fsub(b.load(edges), b.fmul(m.load("twice", c), bin_sum)), edges)
        m.store(b.load(edges), "edges", b.add(m.values["o"], c))


def teach() -> None:
    """Lower all functions of `lanes`."""
    operation(lanes.add, emit_add)
    operation(lanes.copy, emit_copy)
    operation(lanes.multiply, emit_multiply)
    operation(lanes.add_magnitudes, emit_add_magnitudes)
    operation(lanes.cross_product, emit_cross_product, types.float64)
    operation(lanes.add_to_bins, emit_add_to_bins)
    operation(lanes.sum_products, emit_sum_products)
    operation(lanes.settle, emit_settle)
    operation(lanes.note_masses, emit_note_masses)
    operation(lanes.sweep, emit_sweep)
    operation(lanes.cross_bins, emit_cross_bins)
