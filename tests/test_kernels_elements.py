"""Elements of arrays in compiled code are those of Python, however the array lies and the index is written."""

import numpy as np
import pytest

from abex.kernels import compiled


def exchange(values, one, two):
    old = values[one]
    values[one] = values[two]
    values[two] = old
    return (2.0 if values[one] else 0.0) + (1.0 if values[-1] else 0.0)


ARRAYS = {
    "floats": np.arange(6.0),
    "whole": np.arange(6, dtype=np.int32),
    "bytes": np.arange(6, dtype=np.uint8),
    "truth": np.array([True, False, True, True, False, False]),
    "backwards": np.arange(6.0)[::-1],
    "every other": np.arange(12.0)[::2],
}


@pytest.mark.parametrize("values", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("index", [(1, 3), (-1, -6), (np.uint64(2), np.int32(-2)), (np.uint8(5), 0)])
def test_an_array(values, index):
    room = np.zeros(12, values.dtype)
    ours = room[:6] if values.flags.c_contiguous else room[::-2]
    ours[:] = plain = values.copy()
    assert compiled()(exchange)(ours, *index) == exchange(plain, *index)
    assert np.array_equal(ours, plain)


def exchange_in_table(values, row, column):
    old = values[row, column]
    values[row, column] = values[column - 1, row]
    values[column - 1, row] = old
    return values[-1, -1] + values[row][column] + values[0, :].sum()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("at", [(1, 2), (-1, -2), (0, 3)])
def test_a_table(order, at):
    ours, plain = (np.array(np.arange(12.0).reshape(3, 4), order=order) for _ in range(2))
    assert compiled()(exchange_in_table)(ours, *at) == exchange_in_table(plain, *at)
    assert np.array_equal(ours, plain)


def test_a_number_is_converted_as_it_is_written():
    def write(values, at, value):
        values[at] = value

    for dtype, value in ((np.float32, 0.1), (np.int16, 3.9), (np.float64, 7), (np.bool_, True)):
        ours, plain = np.zeros(3, dtype), np.zeros(3, dtype)
        compiled()(write)(ours, -1, value)
        write(plain, -1, value)
        assert np.array_equal(ours, plain)


def test_a_block_of_three_dimensions():
    def total(block, i, j, k):
        block[i, j, k] += 1.0
        return block[i, j, k] + block[i, j].sum()

    ours, plain = np.arange(24.0).reshape(2, 3, 4), np.arange(24.0).reshape(2, 3, 4)
    assert compiled()(total)(ours, 1, -1, 2) == total(plain, 1, -1, 2)
    assert np.array_equal(ours, plain)
