"""Structs: the same fields in Python and in compiled code."""

import copy

import numpy as np
import pytest
from numba.core.errors import TypingError
from numpy.typing import NDArray

from abex.kernels import Struct, compiled, kernel


class Ledger(Struct):
    constant = ("size",)
    values: NDArray[np.float32]
    count: int
    table: NDArray[np.int64]
    share: float
    cube: NDArray[np.bool_]
    is_open: bool
    size: int


def ledger():
    return Ledger(
        values=np.arange(3, dtype=np.float32),
        table=np.arange(6).reshape(2, 3),
        cube=np.zeros((2, 1, 4), np.bool_),
        share=0.25,
        is_open=True,
        size=-7,
    )


@kernel
def book(record, at):
    record.count += at
    record.values[at] += record.table[1, at]
    record.share = record.share / 2 + record.cube.shape[2]
    record.cube[1, 0, 3] = record.is_open
    record.is_open = not record.is_open
    return record.size + record.table.size + record.table.shape[0]


def test_kernels_read_and_write_a_struct_as_python_does():
    @compiled(book)
    def run(record, at):
        return book(record, at)

    plain, fast = ledger(), ledger()
    for at in (2, 0, 1, 1):
        assert run(fast, at) == book(plain, at)
        assert repr(fast) == repr(plain)
    assert plain.count == 4
    assert plain.is_open is True


def test_structs_with_arrays_of_other_types_are_other_types():
    @compiled(book)
    def run(record, at):
        return book(record, at)

    first = ledger()
    other = first.replace(values=np.arange(3.0))
    assert run(first, 2) == run(other, 2)
    assert other.values.tolist() == [0.0, 1.0, 7.0]


def test_what_is_constant_stays():
    record = ledger()
    with pytest.raises(AttributeError):
        record.size = 3

    @compiled()
    def run(record):
        record.size = 3

    with pytest.raises((TypeError, TypingError), match="constant"):
        run(record)
    assert record.size == -7


def test_fields_are_those_annotated():
    with pytest.raises(TypeError, match="lacks table, cube"):
        Ledger(values=np.zeros(1, np.float32))
    with pytest.raises(KeyError):
        ledger().replace(misspelt=1)
    with pytest.raises(ValueError, match="contiguous"):
        ledger().replace(table=np.zeros((4, 4), np.int64)[:, ::2])


def test_a_replaced_or_copied_struct_shares_its_arrays_and_not_its_numbers():
    record = ledger()
    for other in (record.replace(share=9.0), copy.copy(record)):
        other.count = 12
        other.values[0] = 5.0
        assert (record.count, record.values[0], record.share) == (0, 5.0, 0.25)
