"""Each loop of `abex.boosting.lanes` as vector instructions; they add in the order in which its Python does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abex.kernels.vector_code import VectorBuilder

FEW = 2  # rows of up to so many vectors have a loop of their own, without a loop over vectors in it
TOGETHER = 4  # rows added to bins at a time; the number of sums of a bin divides it


def product(m: VectorBuilder, c: Any = None) -> Any:
    """a[i] * b[j], or vector c of row i times that of row j."""
    i, j = m.values["i"], m.values["j"]
    if c is not None:
        i, j = m.builder.add(m.row(i), c), m.builder.add(m.row(j), c)
    return m.builder.fmul(m.load("a", i), m.load("b", j))


def clear(m: VectorBuilder) -> None:
    """Write `lanes.clear`."""
    count = m.values["count"]
    with m.loop(m.index(0), count) as at:
        m.store(m.constant(0.0), "out", at)


def multiply(m: VectorBuilder) -> None:
    """Write `lanes.multiply`."""
    m.store(product(m), "out", m.values["o"])


def add_magnitudes(m: VectorBuilder) -> None:
    """Write `lanes.add_magnitudes`."""

    def emit(columns: list[Any]) -> None:
        for c in columns:
            m.add_to("out", m.builder.add(m.row(m.values["o"]), c), m.magnitude(product(m, c)))

    m.columns(emit, FEW)


def add_to_bins(m: VectorBuilder) -> None:
    """Write `lanes.add_to_bins`."""
    b, first, last = m.builder, m.values["first"], m.values["last"]
    number = m.index
    mask = b.sub(m.values["several"], number(1))
    offsets = [b.mul(b.and_(number(k), mask), m.values["bins"]) for k in range(TOGETHER)]
    whole = b.sub(last, b.and_(b.sub(last, first), number(TOGETHER - 1)))

    def emit(columns: list[Any]) -> None:
        with m.loop(first, whole, TOGETHER) as at:
            add_rows(columns, [(b.add(at, number(k)), offset) for k, offset in enumerate(offsets)])
        with m.loop(whole, last) as at:
            offset = b.mul(b.and_(b.sub(at, whole), mask), m.values["bins"])
            add_rows(columns, [(at, offset)])

    def add_rows(columns: list[Any], places: list[tuple[Any, Any]]) -> None:
        found = []
        for at, offset in places:
            index = m.item("row", at) if "row" in m.values else at
            slot = m.row(b.add(m.values["start"], m.item("slot", index))) if "slot" in m.values else None
            found.append((m.row(b.add(m.item("code", at), offset)), m.row(index), slot))
        for c in columns:
            products = []
            for _, row, slot in found:
                value = m.load("values", b.add(row, c))
                products.append(value if slot is None else b.fmul(value, m.load("factors", b.add(slot, c))))
            for (out, _, _), value in zip(found, products, strict=True):
                m.add_to("sums", b.add(out, c), value)

    m.columns(emit, FEW)


def sum_rows(m: VectorBuilder, out: str, vector_of: Callable[[Any, Any], Any]) -> None:
    """Row 0 of ``out`` = sum of ``vector_of`` rows first..last-1, in registers."""
    b = m.builder

    def emit(columns: list[Any]) -> None:
        totals = [m.register() for _ in columns]
        for total in totals:
            b.store(m.constant(0.0), total)
        with m.loop(m.values["first"], m.values["last"]) as at:
            for c, total in zip(columns, totals, strict=True):
                b.store(b.fadd(b.load(total), vector_of(at, c)), total)
        for c, total in zip(columns, totals, strict=True):
            m.store(b.load(total), out, c)

    m.columns(emit, FEW)


def current(m: VectorBuilder, at: Any, c: Any) -> Any:
    """Vector c of example ``at``, times its factors."""
    b = m.builder
    slot = m.row(b.add(m.values["start"], m.item("slot", at)))
    return b.fmul(m.load("values", b.add(m.row(at), c)), m.load("factors", b.add(slot, c)))


def sum_products(m: VectorBuilder) -> None:
    """Write `lanes.sum_products`."""
    sum_rows(m, "sums", lambda at, c: current(m, at, c))


def settle(m: VectorBuilder) -> None:
    """Write `lanes.settle`."""

    def settled(at: Any, c: Any) -> Any:
        value = current(m, at, c)
        value = m.with_sign_of(value, m.larger(m.magnitude(value), m.load("floor", c)))
        m.store(value, "values", m.builder.add(m.row(at), c))
        return value

    sum_rows(m, "sums", settled)


def sum_bins(m: VectorBuilder) -> None:
    """Write `lanes.sum_bins`."""
    sum_rows(m, "out", lambda at, c: m.load("sums", m.builder.add(m.row(at), c)))


def note_masses(m: VectorBuilder) -> None:
    """Write `lanes.note_masses`."""
    b, lane = m.builder, m.values["lane"]
    number = m.index(m.lanes)

    def emit(columns: list[Any]) -> None:
        with m.loop(m.values["first"], m.values["last"]) as at:
            sizes = []
            for c in columns:
                value = m.magnitude(m.load("values", b.add(m.row(at), c)))
                sizes.append(b.select(m.equal(b.sub(lane, b.mul(c, number))), m.constant(0.0), value))
            place = b.gep(m.values["values"], [b.add(b.mul(m.row(at), number), lane)], inbounds=True)
            m.sum_to(place, columns, m.total(functools.reduce(b.fadd, sizes)))

    m.columns(emit, FEW)


def join_bins(m: VectorBuilder) -> None:
    """Write `lanes.join_bins`."""
    b = m.builder
    count = m.row(m.values["bins"])
    with m.loop(m.index(1), m.values["several"]) as copy:
        start = b.mul(copy, count)
        with m.loop(m.index(0), count) as at:
            m.add_to("sums", at, m.load("sums", b.add(at, start)))


def add_weighted_bins(m: VectorBuilder) -> None:
    """Write `lanes.add_weighted_bins`."""
    b, bins = m.builder, m.values["bins"]
    zero = m.index(0)

    def emit(columns: list[Any]) -> None:
        weights = [m.load("weight", b.add(m.row(m.values["row"]), c)) for c in columns]
        with m.loop(zero, m.values["several"]) as copy:
            start = m.row(b.mul(copy, bins))
            with m.loop(zero, bins) as at:
                for c, weight in zip(columns, weights, strict=True):
                    place = b.add(m.row(at), c)
                    m.add_to("out", place, b.fmul(weight, m.load("sums", b.add(start, place))))

    m.columns(emit, FEW)


class Running:
    """Edges while examples change side: some vectors of a row, in registers."""

    def __init__(self, m: VectorBuilder, columns: list[Any]) -> None:
        self.m, self.columns = m, columns
        self.places = [m.register() for _ in columns]
        self.twice = [m.load("twice", c) for c in columns]

    def start(self, vector_of: Callable[[Any], Any]) -> None:
        """Set the edges."""
        for c, place in zip(self.columns, self.places, strict=True):
            self.m.builder.store(vector_of(c), place)

    def cross(self, vector_of: Callable[[Any], Any]) -> None:
        """Take twice a vector off the edges."""
        b = self.m.builder
        for c, place, twice in zip(self.columns, self.places, self.twice, strict=True):
            b.store(b.fsub(b.load(place), b.fmul(twice, vector_of(c))), place)

    def keep(self, index: Any) -> None:
        """Write them to vectors ``index``.. of ``edges``."""
        for c, place in zip(self.columns, self.places, strict=True):
            self.m.store(self.m.builder.load(place), "edges", self.m.builder.add(index, c))

    def note(self, name: str, index: Any) -> None:
        """Element ``index`` of an array of doubles gets the sum of max(|edge|, least)."""
        m, b = self.m, self.m.builder
        sizes = [
            m.larger(m.magnitude(b.load(place)), m.load("least", c))
            for c, place in zip(self.columns, self.places, strict=True)
        ]
        edge = m.double(m.total(functools.reduce(b.fadd, sizes)))
        m.sum_to(b.gep(m.values[name], [index], inbounds=True), self.columns, edge)


def sweep(m: VectorBuilder) -> None:
    """Write `lanes.sweep`."""
    b, bins, crossing = m.builder, m.values["bins"], m.values["crossing"]
    zero, one = m.index(0), m.index(1)

    def emit(columns: list[Any]) -> None:
        edges = Running(m, columns)
        edges.start(lambda c: m.constant(0.0))
        with m.loop(zero, bins) as at:
            edges.cross(lambda c: m.load("sums", b.add(m.row(at), c)))
        for place in edges.places:  # - 2 times the sum of all bins
            b.store(b.fmul(b.load(place), m.constant(-0.5)), place)
        edges.keep(zero)
        edges.note("bounds", crossing)
        with m.loop(crossing, bins) as at:
            edges.cross(lambda c: m.load("sums", b.add(m.row(at), c)))
            edges.note("bounds", b.add(at, one))

    m.columns(emit, FEW)


def cross_rows(m: VectorBuilder) -> None:
    """Write `lanes.cross_rows`."""
    b, first = m.builder, m.values["first"]

    def emit(columns: list[Any]) -> None:
        edges = Running(m, columns)
        edges.start(lambda c: m.load("edges", b.add(m.values["i"], c)))
        with m.loop(first, m.values["last"]) as at:
            row = m.item("order", at)
            slot = m.row(b.add(b.mul(m.item("group", row), m.values["stride"]), m.item("slot", row)))
            row = m.row(row)
            edges.cross(lambda c: b.fmul(m.load("values", b.add(row, c)), m.load("factors", b.add(slot, c))))
            edges.note("inner", b.sub(at, first))
        edges.keep(m.values["o"])

    m.columns(emit, FEW)


def cross_bins(m: VectorBuilder) -> None:
    """Write `lanes.cross_bins`."""
    b = m.builder

    def emit(columns: list[Any]) -> None:
        edges = Running(m, columns)
        edges.start(lambda c: m.load("edges", b.add(m.values["i"], c)))
        with m.loop(m.values["first"], m.values["last"]) as at:
            edges.cross(lambda c: m.load("sums", b.add(m.row(at), c)))
        edges.keep(m.values["o"])

    m.columns(emit, FEW)
