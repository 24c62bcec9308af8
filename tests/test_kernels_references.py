"""Kernels in compiled functions, and NamedTuples handed over by reference."""

import gc
import threading
from typing import NamedTuple

import numpy as np
import pytest

from abex.kernels import by_reference, compiled, kernel, rare_kernel, single_dispatch
from abex.kernels.cache import make_callable
from abex.kernels.garbage import collection_paused
from abex.support.errors import UserError
from abex.support.randomness import argmax
from tests.test_kernels import run as run_in_process
from tests.waiting import PATIENCE


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
        return record.rate + record.missing

    with pytest.raises(TypingError, match="missing"):
        compiled()(wrong)(by_reference(Inner(np.zeros(1), 2.0, True)))


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


def test_what_compiled_code_cannot_read_is_named():
    with pytest.raises(UserError, match="the field 'name' holds a str"):
        by_reference(Named("a", np.arange(3.0)))


def test_functions_of_other_people_may_call_our_kernels():
    import numba

    compiled(argmax)(lambda values, rng: argmax(values, rng))(np.arange(3.0), np.random.default_rng(0))

    @numba.njit
    def largest(values, rng):
        return argmax(values, rng) + min(2, 1)

    assert largest(np.array([1.0, 3.0, 2.0]), np.random.default_rng(0)) == 2


def test_kernels_become_part_of_their_callers(tmp_path):
    """A call hands over what the caller holds in registers, at every step; rare kernels alone are called."""
    code = (
        "import re; from abex import ABE, Bernoulli, simulate; from abex.graphs.feedback import reveal_alone\n"
        "from abex.simulation.loop import compiled_loop\n"
        "policy, world = ABE(), Bernoulli([.4] * 9 + [.6])\n"
        "simulate(policy, world, horizon=50, replications=1, workers=1)\n"
        "(code,) = compiled_loop(policy.kernels(), world.rules(), reveal_alone).inspect_llvm().values()\n"
        "called = set(re.findall(r' call .*?@(_ZN4abex\\w+)', code))\n"
        "rare = ('4play', 'bound_all_arms', 'scan_arms')\n"
        "print(len(called), [name for name in called if not any(one in name for one in rare)])\n"
    )
    assert run_in_process(code, ABEX_CACHE=str(tmp_path)) == "3 []"


def test_nothing_of_the_compiler_is_replaced(tmp_path):
    """Neither while anything is compiled nor afterwards; what is registered by its public interface is added to it."""
    code = (
        "import sys, numba, numba.np.arraymath; from types import FunctionType; from llvmlite import binding\n"
        "from abex import Bernoulli, simulate; from abex.boosting import AdaBoostMHClassifier\n"
        "def functions(scope, of):\n"
        "    for name, value in list(vars(scope).items()):\n"
        "        if isinstance(value, FunctionType): yield (of, name), value\n"
        "        elif isinstance(value, type) and value.__module__ == of: yield from functions(value, f'{of}.{name}')\n"
        "def everything():\n"
        "    names = [name for name in sys.modules if name.split('.')[0] in ('numba', 'llvmlite', 'scipy', 'numpy')]\n"
        "    return {at: value for name in names for at, value in functions(sys.modules[name], name)}\n"
        "before, during, optimise = everything(), {}, numba.core.codegen.CPUCodeLibrary.finalize\n"
        "from numba.core import event\n"
        "class Look(event.Listener):\n"
        "    def on_start(self, e): during or during.update(everything())\n"
        "    def on_end(self, e): pass\n"
        "event.register('numba:llvm_lock', Look())\n"
        "simulate('UCB1', Bernoulli([.4, .6]), horizon=9, replications=1)\n"
        "AdaBoostMHClassifier(3, calibrate=False).fit([[0.0], [1.0], [2.0]], [0, 1, 1])\n"
        "for then in (during, everything()):\n"
        "    print(len(before) > 5000, [at for at in before if then.get(at) is not before[at]])\n"
    )
    assert run_in_process(code, ABEX_CACHE=str(tmp_path)).split("\n") == ["True []"] * 2


def test_no_garbage_is_collected_while_anything_compiles():
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with collection_paused():
            inside.set()
            leave.wait(PATIENCE)

    thread = threading.Thread(target=other)
    with collection_paused():
        thread.start()
        assert inside.wait(PATIENCE)
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
