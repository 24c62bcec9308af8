"""Records: plain objects in Python, one pointer in compiled code, the same memory."""

import copy
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from abex.kernels import Record, compiled, kernel, laid_out, single_dispatch
from abex.support.errors import UserError


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


@pytest.mark.parametrize(
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
    from numba.core.errors import NumbaError

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
