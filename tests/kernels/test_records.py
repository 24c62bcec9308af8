"""Records: plain objects in Python, one pointer in compiled code, the same memory. Kernels chosen by the class of a record."""

import copy
import pickle
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from abex import UCB1
from abex.kernels import Record, compiled, kernel, laid_out, rare_kernel, single_dispatch
from abex.support.errors import UserError
from tests.each import each


class Inner(Record):
    values: NDArray[np.float64]
    level: float


class Table(NamedTuple):
    rows: Any
    rate: float


class Outer(Record):
    counts: NDArray[np.int64]
    inner: Inner
    table: Any
    rng: Any
    steps: int
    credit: float
    open: bool
    absent: Any = None


@single_dispatch
def size_of(part):
    return 0


@size_of.register(Inner)
@kernel
def size_of_inner(part):
    return part.values.size


@size_of.register(Table)
@kernel
def size_of_table(part):
    return part.rows.shape[0]


@single_dispatch
def extra(part):
    return 0.0


@extra.register(Inner)
@kernel
def extra_of_inner(part):
    return part.level


@kernel
def step(state, arm):
    state.steps += 1
    state.credit -= state.inner.level * state.table.rate
    state.open = not state.open
    state.counts[arm] += state.steps
    state.inner.level += 0.25
    state.inner.values[arm] = state.table.rows[arm, 1] + state.rng.random()
    state.credit += extra(state.absent)
    return size_of(state.inner) + size_of(state.table) + size_of(state.counts)


def new_outer(seed=1, **others):
    return Outer(
        counts=np.zeros(3, np.int64),
        inner=Inner(values=np.linspace(0.0, 1.0, 3), level=0.5),
        table=Table(np.arange(6.0).reshape(3, 2), 2.0),
        rng=np.random.default_rng(seed),
        credit=4.0,
        **others,
    )


@compiled(step)
def run(state, arm):
    return step(state, arm)


def text_of(state):
    return repr(state).replace(repr(state.rng), "rng")


def test_both_faces_change_the_same_numbers_and_arrays():
    one, other = new_outer(), new_outer()
    for arm in (0, 2, 1, 1):
        assert run(one, arm) == step(other, arm) == 6
        assert text_of(one) == text_of(other)
    assert (one.steps, one.open, one.inner.level) == (4, False, 1.5)
    assert one.credit == 4.0 - 2.0 * (0.5 + 0.75 + 1.0 + 1.25)


class Everything(Record):
    array: Any
    inner: Inner
    pair: Any
    absent: Any
    rng: Any
    number: Any
    whole: int
    fraction: float
    flag: bool


@kernel
def mirror(record, found, values):
    """Write all that stands in a record into another one and into an array, and something else in its place."""
    found.whole, found.fraction, found.flag = record.whole, record.fraction, record.flag
    found.inner.level = record.inner.level
    found.inner.values[0] = record.inner.values[1]
    found.pair.rows[0, 0] = record.pair.rows[1, 1] * record.pair.rate
    values[0] = record.rng.random()
    values[1] = record.number
    values[2] = record.array.size
    values[3] = record.absent is None
    at = 4
    for length in record.array.shape:
        values[at] = length
        at += 1
    for value in record.array.flat:
        values[at] = value
        at += 1
    record.whole, record.fraction, record.flag = ~record.whole, -record.fraction, not record.flag
    record.inner.level, record.pair.rows[1, 0] = 7.0, 8.0


@compiled(mirror)
def mirror_compiled(record, found, values):
    mirror(record, found, values)


#: arrays by layout: an address with a shape, or an address of both and of strides
ARRAYS = [
    lambda numbers: numbers.astype(np.float64),
    lambda numbers: numbers.astype(np.float32).reshape(2, 6),
    lambda numbers: numbers.astype(np.int32).reshape(2, 2, 3),
    lambda numbers: numbers.astype(np.int64).reshape(1, 2, 2, 3),
    lambda numbers: numbers.astype(np.uint8)[:0],
    lambda numbers: (numbers > 0).reshape(3, 4).T,
    lambda numbers: numbers.astype(np.int16)[::-2],
    lambda numbers: np.broadcast_to(numbers.astype(np.uint64)[:3], (2, 3)),
]
NUMBERS = [3, -0.5, True, np.float32(0.1), np.uint64(2**63 + 5), np.int8(-3), np.bool_(True)]


@settings(max_examples=60, deadline=None)
@given(
    array=st.sampled_from(ARRAYS),
    number=st.sampled_from(NUMBERS),
    numbers=st.lists(st.integers(0, 100), min_size=12, max_size=12),
    whole=st.integers(-(2**63), 2**63 - 1),
    fractions=st.lists(st.floats(width=64), min_size=4, max_size=4),
    flag=st.booleans(),
)
def test_a_record_made_in_python_and_read_in_compiled_code_agree(
    array, number, numbers, whole, fractions, flag
):
    def new():
        return Everything(
            array=array(np.array(numbers, np.int64)),
            inner=Inner(values=np.array(fractions[:2]), level=fractions[2]),
            pair=Table(np.array(fractions).reshape(2, 2), 2.0),
            absent=None,
            rng=np.random.default_rng(numbers[0]),
            number=number,
            whole=whole,
            fraction=fractions[3],
            flag=flag,
        )

    faces = []
    with np.errstate(over="ignore"):
        for run_it in (mirror, mirror_compiled):
            record, found, values = new(), new(), np.zeros(32)
            run_it(record, found, values)
            faces.append((numbers_of(record), numbers_of(found), values.tobytes()))
    assert faces[0] == faces[1]


def numbers_of(record):
    """All that may have changed, to the last bit."""
    changed = [
        record.whole,
        record.flag,
        record.array.tobytes(),
        record.inner.values.tobytes(),
        record.pair.rows.tobytes(),
    ]
    return changed, np.array([record.fraction, record.inner.level]).tobytes()


def test_what_is_put_in_the_place_of_an_array_or_a_record_is_what_compiled_code_reads():
    state = new_outer()
    run(state, 0)
    state.inner.values = np.zeros(5)  # of the same type
    run(state, 4 - 2)
    assert state.inner.values[2] > 0.0
    state.inner = Inner(values=np.ones(1), level=8.0)
    assert run(state, 0) == 1 + 3
    assert state.inner.level == 8.25
    kinds = len(run.overloads)
    state.absent = state.inner  # of another type than None
    before = state.credit
    run(state, 0)
    assert state.credit == before - 2.0 * 8.25 + 8.5
    state.inner.values = np.zeros(2, np.float32)  # and so is what stands in the record within
    assert run(state, 1) == 2 + 3
    assert state.inner.values[1] > 1.0
    assert len(run.overloads) == kinds + 2


def test_copies_share_nothing_or_all():
    state = new_outer()
    state.absent = state.inner
    twin, shallow = copy.deepcopy(state), copy.copy(state)
    assert twin.absent is twin.inner
    read = pickle.loads(pickle.dumps(state))
    assert text_of(read) == text_of(twin) == text_of(shallow) == text_of(state)
    run(shallow, 0)
    assert (state.steps, shallow.steps, state.counts[0]) == (0, 1, 1)
    for other in (twin, read):
        assert other.counts[0] == 0
        run(other, 0)
        assert (other.steps, other.counts[0]) == (1, 1)


def test_arrays_of_every_layout_and_expressions_of_arrays():
    class Ours(Record):
        backwards: NDArray[np.float64]
        deep: NDArray[np.float64]
        few: NDArray[np.float64]
        many: NDArray[np.float64]

    def reads(state, flag):
        best = np.argmax(state.few / state.many)
        both = state.few if flag else np.ones(3)
        both = both * 1.0
        state.few[1:][:] = state.many[:-1] + 1.0
        return state.backwards[1] + state.deep[1, 0, 1, 0] + best + both.sum() + np.sum(state.few)

    def new():
        return Ours(
            backwards=np.arange(6.0)[::-2],
            deep=np.arange(16.0).reshape(2, 2, 2, 2),
            few=np.array([1.0, 4.0, 9.0]),
            many=np.array([1.0, 2.0, 9.0]),
        )

    function = compiled()(reads)
    for flag in (True, False):
        one, other = new(), new()
        assert function(one, flag) == reads(other, flag)
        assert np.array_equal(one.few, other.few)


def test_a_named_tuple_is_laid_out_alike():
    class State(NamedTuple):
        inner: Inner
        table: Table
        pair: tuple
        scale: float

    def total(state):
        state.inner.level += 1.0
        first, second = state.pair
        return state.inner.values.sum() * state.scale + state.table.rows[2, 1] + first[0] + second

    state = State(Inner(values=np.ones(2), level=0.0), Table(np.ones((3, 2)), 1.0), (np.full(1, 7.0), 3), 0.5)
    function = compiled()(total)
    assert function(laid_out(state)) == total(state) == 12.0
    assert state.inner.level == 2.0


def test_equal_records_have_one_type():
    import numba

    one, other = new_outer(), new_outer(2)
    assert numba.typeof(one) is numba.typeof(other)
    assert numba.typeof(laid_out(one.table)) is numba.typeof(laid_out(other.table))
    one.table = Table(np.zeros((3, 2), np.int64), 1.0)
    assert numba.typeof(one) is not numba.typeof(other)


def test_the_type_of_a_record_like_another_is_found_by_its_key(monkeypatch):
    """Numba is asked once for each type of array and number, not for those of every replication."""
    import numba

    from abex.kernels import record_type

    known = numba.typeof(new_outer())
    monkeypatch.setattr(record_type, "typeof_impl", None)
    assert numba.typeof(new_outer(2)) is known


@each(
    ("make", "message"),
    [
        (lambda: Inner(level=1.0), "Inner needs a value for its field 'values'"),
        (lambda: Inner(values=np.ones(1), levle=1.0), "Inner has no field 'levle' .did you mean 'level'.."),
        (lambda: Inner(values=[1.0]), "the field 'values' holds a list: compiled code takes arrays"),
        (lambda: setattr(new_outer(), "step", 1), "Outer has no field 'step'"),
    ],
)
def test_wrong_fields_are_named(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_what_compiled_code_cannot_do_is_an_error_of_compilation():
    def misspelt(state):
        return state.levle

    def replaces(state):
        state.values = state.values

    for wrong, message in ((misspelt, "levle"), (replaces, "it cannot be replaced")):
        with pytest.raises((NumbaError, TypeError), match=message):
            compiled()(wrong)(new_outer().inner)


def test_names_that_a_record_needs_itself_are_refused():
    with pytest.raises(TypeError, match="choose another name"):
        type("Wrong", (Record,), {"__annotations__": {"_mine": int}})


@rare_kernel
def put(table, at, value):
    if at >= table.rows.shape[0]:
        raise IndexError("beyond")
    table.rows[at, 0] = value * table.rate


def fill(table, count):
    for at in range(count):
        put(table, at, 1.0 + at)


def test_by_value_and_laid_out_are_one_source():
    one, other = Table(np.zeros((4, 2)), 0.5), Table(np.zeros((4, 2)), 0.5)
    function = compiled(put)(fill)
    function(laid_out(one), 3)
    function(other, 3)
    assert one.rows[:, 0].tolist() == other.rows[:, 0].tolist() == [0.5, 1.0, 1.5, 0.0]
    with pytest.raises(IndexError, match="beyond"):
        function(laid_out(one), 5)


def test_what_is_laid_out_keeps_nothing_alive_and_changes_no_count():
    table = Table(np.zeros((4, 2)), 0.5)
    function = compiled(put)(fill)
    function(laid_out(table), 4)
    counts = [sys.getrefcount(part) for part in (table, table.rows)]
    for _ in range(10):
        function(laid_out(table), 4)
    assert counts == [sys.getrefcount(part) for part in (table, table.rows)]


def test_what_is_no_record_stays_as_it_is():
    assert laid_out((1, 2)) == (1, 2)
    assert laid_out(3) == 3


def test_what_compiled_code_cannot_read_is_named():
    with pytest.raises(UserError, match="the field 'rate' holds a str"):
        laid_out(Table(np.arange(3.0), "a"))


class Square(NamedTuple):
    side: float


class Disc(NamedTuple):
    radius: float


@single_dispatch
def area(shape):
    return 0.0


@area.register(Square)
@kernel
def area_of_square(shape):
    return shape.side * shape.side


def test_the_class_of_the_record_chooses_the_kernel_in_both_faces():
    @compiled(area)
    def run_area(shape):
        return area(shape)

    for shape, expected in ((Square(3.0), 9.0), (Disc(3.0), 0.0)):
        assert area(shape) == run_area(shape) == run_area(laid_out(shape)) == expected


def test_a_kernel_must_stand_in_the_module_of_its_record():
    with pytest.raises(TypeError, match="must stand in the module of UCB1"):
        area.register(UCB1)(area_of_square)
