"""What `abex.boosting.lanes` is for Numba: each of its functions as vector instructions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from abex.boosting import lanes
from abex.boosting.machine import Machine, operation

TOGETHER = 4  # rows added to bins at a time; the number of sums of a bin divides it


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
    def emit(columns: list[Any]) -> None:
        for c in columns:
            m.add_to("out", m.builder.add(m.row(m.values["o"]), c), m.magnitude(product(m, c)))

    m.columns(emit)


def _add_to_bins(m: Machine) -> None:
    b, first, last = m.builder, m.values["first"], m.values["last"]
    number = functools.partial(ir.Constant, first.type)
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

    m.columns(emit)


def sum_rows(m: Machine, out: str, vector_of: Callable[[Any, Any], Any]) -> None:
    """Row 0 of ``out`` = sum of ``vector_of`` rows first..last-1, in registers."""
    b = m.builder

    def emit(columns: list[Any]) -> None:
        totals = [cgutils.alloca_once(b, m.vector) for _ in columns]
        for total in totals:
            b.store(m.constant(0.0), total)
        with m.loop(m.values["first"], m.values["last"]) as at:
            for c, total in zip(columns, totals, strict=True):
                b.store(b.fadd(b.load(total), vector_of(at, c)), total)
        for c, total in zip(columns, totals, strict=True):
            m.store(b.load(total), out, c)

    m.columns(emit)


def current(m: Machine, at: Any, c: Any) -> Any:
    """Vector c of example ``at``, times its factors."""
    b = m.builder
    slot = m.row(b.add(m.values["start"], m.item("slot", at)))
    return b.fmul(m.load("values", b.add(m.row(at), c)), m.load("factors", b.add(slot, c)))


def _sum_products(m: Machine) -> None:
    sum_rows(m, "sums", lambda at, c: current(m, at, c))


def _settle(m: Machine) -> None:
    def settled(at: Any, c: Any) -> Any:
        value = current(m, at, c)
        value = m.with_sign_of(value, m.larger(m.magnitude(value), m.load("floor", c)))
        m.store(value, "values", m.builder.add(m.row(at), c))
        return value

    sum_rows(m, "sums", settled)


def _sum_bins(m: Machine) -> None:
    sum_rows(m, "out", lambda at, c: m.load("sums", m.builder.add(m.row(at), c)))


def _note_masses(m: Machine) -> None:
    b, lane = m.builder, m.values["lane"]
    number = ir.Constant(lane.type, m.lanes)

    def emit(columns: list[Any]) -> None:
        with m.loop(m.values["first"], m.values["last"]) as at:
            sizes = []
            for c in columns:
                value = m.magnitude(m.load("values", b.add(m.row(at), c)))
                sizes.append(b.select(m.equal(b.sub(lane, b.mul(c, number))), m.constant(0.0), value))
            place = b.gep(m.values["values"], [b.add(b.mul(m.row(at), number), lane)], inbounds=True)
            m.sum_to(place, columns, m.total(functools.reduce(b.fadd, sizes)))

    m.columns(emit)


def _join_bins(m: Machine) -> None:
    b = m.builder
    count = m.row(m.values["bins"])
    with m.loop(ir.Constant(count.type, 1), m.values["several"]) as copy:
        start = b.mul(copy, count)
        with m.loop(ir.Constant(count.type, 0), count) as at:
            m.add_to("sums", at, m.load("sums", b.add(at, start)))


def _add_weighted_bins(m: Machine) -> None:
    b, bins = m.builder, m.values["bins"]
    zero = ir.Constant(bins.type, 0)

    def emit(columns: list[Any]) -> None:
        weights = [m.load("weight", b.add(m.row(m.values["row"]), c)) for c in columns]
        with m.loop(zero, m.values["several"]) as copy:
            start = m.row(b.mul(copy, bins))
            with m.loop(zero, bins) as at:
                for c, weight in zip(columns, weights, strict=True):
                    place = b.add(m.row(at), c)
                    m.add_to("out", place, b.fmul(weight, m.load("sums", b.add(start, place))))

    m.columns(emit)


class Running:
    """Edges while examples change side: some vectors of a row, in registers."""

    def __init__(self, m: Machine, columns: list[Any]) -> None:
        self.m, self.columns = m, columns
        self.places = [cgutils.alloca_once(m.builder, m.vector) for _ in columns]
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


def _sweep(m: Machine) -> None:
    b, bins, crossing = m.builder, m.values["bins"], m.values["crossing"]
    zero, one = ir.Constant(bins.type, 0), ir.Constant(bins.type, 1)

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

    m.columns(emit)


def _cross_rows(m: Machine) -> None:
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

    m.columns(emit)


def _cross_bins(m: Machine) -> None:
    b = m.builder

    def emit(columns: list[Any]) -> None:
        edges = Running(m, columns)
        edges.start(lambda c: m.load("edges", b.add(m.values["i"], c)))
        with m.loop(m.values["first"], m.values["last"]) as at:
            edges.cross(lambda c: m.load("sums", b.add(m.row(at), c)))
        edges.keep(m.values["o"])

    m.columns(emit)


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
    operation(lanes.add_weighted_bins, _add_weighted_bins, apart=True)
    operation(lanes.cross_rows, _cross_rows, apart=True)
    operation(lanes.sweep, _sweep, apart=True)
    operation(lanes.cross_bins, _cross_bins, apart=True)
