"""Kernels linked before anything is optimised, and records handed over by reference."""

import gc
import threading
from typing import NamedTuple

import numpy as np
import pytest

from abex.kernels import by_reference, compiled, kernel, rare_kernel, single_dispatch
from abex.kernels.cache import make_callable
from abex.kernels.garbage import collection_paused
from abex.kernels.interfaces import usable
from abex.policies.means import Means
from abex.randomness import argmax
from tests.test_kernels import run as run_in_process


class Inner(NamedTuple):
    values: np.ndarray
    rate: float
    active: bool


class Outer(NamedTuple):
    first: int
    inner: Inner
    table: np.ndarray
    name: np.uint64


@kernel
def scaled(inner, at):
    return inner.values[at] * inner.rate if inner.active else 0.0


@rare_kernel
def put(outer, at, value):
    if at >= outer.inner.values.size:
        raise IndexError("beyond")
    outer.inner.values[at] = value
    outer.table[at, outer.first] += scaled(outer.inner, at)


@single_dispatch
def kind_of(record):
    return 0


@kind_of.register(Inner)
@kernel
def kind_of_inner(record):
    return 1


def run(outer, count):
    total = 0.0
    for at in range(count):
        put(outer, at, outer.inner.values[at] + 1.0)
        total += scaled(outer.inner, at) + kind_of(outer.inner)
    return total + outer.name


def new_outer():
    return Outer(1, Inner(np.arange(4.0), 0.5, True), np.zeros((4, 2)), np.uint64(7))


def test_compiled_code_reads_records_by_reference_as_python_does():
    one, other = new_outer(), new_outer()
    function = compiled(kind_of_inner, put, scaled)(run)
    assert function(by_reference(one), 4) == run(other, 4) == 0.5 * 10 + 4 + 7
    assert np.array_equal(one.inner.values, other.inner.values)
    assert np.array_equal(one.table, other.table)


def test_by_value_and_by_reference_are_one_source():
    one, other = new_outer(), new_outer()
    function = compiled(kind_of_inner, put, scaled)(run)
    assert function(by_reference(one), 3) == function(other, 3)


def test_an_exception_of_a_kernel_that_is_called_arrives():
    function = compiled(kind_of_inner, put, scaled)(run)
    with pytest.raises(IndexError, match="beyond"):
        function(by_reference(new_outer()), 5)


def test_a_reference_keeps_nothing_alive_and_changes_no_count():
    import sys

    outer = new_outer()
    function = compiled(kind_of_inner, put, scaled)(run)
    function(by_reference(outer), 4)
    counts = [sys.getrefcount(part) for part in (outer, outer.inner, outer.table, outer.inner.values)]
    for _ in range(10):
        function(by_reference(outer), 4)
    assert counts == [sys.getrefcount(part) for part in (outer, outer.inner, outer.table, outer.inner.values)]


def test_a_field_that_is_not_there_is_an_error_of_compilation():
    from numba.core.errors import TypingError

    def wrong(record):
        return record.scale + record.missing

    with pytest.raises(TypingError, match="missing"):
        compiled()(wrong)(by_reference(Means(np.zeros(1), np.zeros(1), np.zeros(1), 2.0)))


def test_what_is_no_record_stays_as_it_is():
    assert by_reference((1, 2)) == (1, 2)
    assert by_reference(3) == 3


class Mixed(NamedTuple):
    flag: np.bool_
    small: np.float32
    backwards: np.ndarray
    pair: tuple
    rng: np.random.Generator
    large: int


def sum_of_mixed(mixed, at):
    total = mixed.small + mixed.backwards[at] + float(mixed.large >> np.uint64(60))
    for one in mixed.pair:
        total += one[at]
    return total + mixed.rng.random() if mixed.flag else 0.0


def new_mixed(flag):
    return Mixed(
        np.bool_(flag),
        np.float32(0.5),
        np.arange(6.0)[::-2],
        (np.arange(3.0), np.full(3, 0.25)),
        np.random.default_rng(5),
        (1 << 63) + 5,
    )


@pytest.mark.parametrize("flag", [True, False])
def test_all_kinds_of_fields_are_laid_out_as_compiled_code_reads_them(flag):
    function = compiled()(sum_of_mixed)
    assert function(by_reference(new_mixed(flag)), 1) == sum_of_mixed(new_mixed(flag), 1)


class Named(NamedTuple):
    name: str
    values: np.ndarray


def test_a_record_of_anything_else_is_handed_over_by_value():
    record = Named("a", np.arange(3.0))
    assert by_reference(record) is record
    assert compiled()(lambda record: record.values[2])(by_reference(record)) == 2.0
    packed = Named((True, 1.0), np.arange(3.0))
    assert by_reference(packed) is packed


def test_functions_of_other_people_may_call_our_kernels():
    import numba

    compiled(argmax)(lambda values, rng: argmax(values, rng))(np.arange(3.0), np.random.default_rng(0))

    @numba.njit
    def largest(values, rng):
        return argmax(values, rng) + min(2, 1)

    assert largest(np.array([1.0, 3.0, 2.0]), np.random.default_rng(0)) == 2


def test_kernels_become_machine_code_in_the_compiled_function_alone():
    if not usable("options"):
        pytest.skip("needs private interfaces (run without ABEX_PLAIN)")
    function = compiled(kind_of_inner, put, scaled)(run)
    function(by_reference(new_outer()), 1)
    (code,) = function.chosen.inspect_llvm().values()
    defined = [line for line in code.splitlines() if line.startswith("define")]
    assert any("run" in line and "cpython" not in line for line in defined)
    assert not any("scaled" in line for line in defined)  # part of its callers


def test_no_garbage_is_collected_while_anything_compiles():
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with collection_paused():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with collection_paused():
        thread.start()
        inside.wait(10)
        assert not gc.isenabled()
    assert not gc.isenabled()  # the other thread still compiles
    leave.set()
    thread.join()
    assert gc.isenabled()
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()  # as it was
    finally:
        gc.enable()


def test_code_from_the_disk_does_not_make_the_whole_compiler_ready(tmp_path):
    """Its names are there without; `numba.np.arraymath` is what Numba imports only to compile."""
    code = (
        "import sys; from abex import *; simulate('ABE', Bernoulli([.4, .6]), horizon=50, replications=1);"
        "print('numba.np.arraymath' in sys.modules)"
    )
    assert [run_in_process(code, ABEX_CACHE=str(tmp_path)) for _ in range(2)] == ["True", "False"]


def test_code_from_the_disk_that_names_what_is_missing_gets_the_whole_compiler():
    class Target:
        refreshed = 0

        def refresh(self):
            Target.refreshed += 1

    from numba.core.registry import cpu_target

    target = Target()
    target.__dict__.update(vars(cpu_target.target_context))
    make_callable(["Py_DecRef", "PyExc_IndexError"], target)
    assert Target.refreshed == 0
    make_callable(["Py_DecRef", "no_such_function"], target)
    assert Target.refreshed == 1
