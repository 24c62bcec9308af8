"""Vectors: compiled code computes what their Python does, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.boosting.vectors import (
    HalfVector,
    ManyVectors,
    OneVector,
    QuarterVector,
    TwoVectors,
    absolute,
    copysign,
    filled,
    lane_sum,
    load,
    maximum,
    new_rows,
    pieces,
    store,
    width_of,
    without,
)
from abex.kernels import compiled, kernel


@kernel
def combine(out, totals, rows, lane, number, width):
    size = rows.shape[1] // pieces(width)
    for piece in range(pieces(width)):
        a, b = load(rows, 0, piece, width), load(rows, 1, piece, width)
        store(out, 0, piece, width, a + b)
        store(out, 1, piece, width, a - b)
        store(out, 2, piece, width, a * b)
        store(out, 3, piece, width, absolute(a))
        store(out, 4, piece, width, maximum(a, b))
        store(out, 5, piece, width, copysign(a, b))
        store(out, 6, piece, width, without(a, lane - piece * size))
        store(out, 7, piece, width, filled(rows, width, number) * a)
        running = filled(rows, width, 0.0)
        for _ in range(3):
            running = running + a * b
        store(out, 8, piece, width, running)
        totals[piece] = lane_sum(running)


@pytest.fixture(scope="module")
def run():
    @compiled(combine)
    def compiled_combine(out, totals, rows, lane, number, width):
        combine(out, totals, rows, lane, number, width)

    return compiled_combine  # one function for all types


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("numbers", [1, 2, 3, 8, 10, 16, 26, 40])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), lane=st.integers(-1, 50), spread=st.integers(-30, 30))
def test_compiled_vectors_are_those_of_python(run, dtype, numbers, seed, lane, spread):
    rng = np.random.default_rng(seed)
    rows = new_rows(2, numbers, dtype)
    rows[:] = rng.normal(size=rows.shape) * 10.0 ** rng.integers(-abs(spread), abs(spread) + 1, rows.shape)
    rows[rng.random(rows.shape) < 0.2] = rng.choice([0.0, -0.0])
    width = width_of(numbers, dtype)
    found = []
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for function in (combine, run):
            out, totals = new_rows(9, numbers, dtype), np.zeros(pieces(width))
            function(out, totals, rows, lane, 0.3, width)
            found.append((out.tobytes(), totals.tobytes()))
    assert found[0] == found[1]


def test_rows_are_padded_and_aligned():
    for dtype, numbers, padded, width in (
        (np.float32, 16, 16, OneVector()),
        (np.float32, 17, 32, TwoVectors()),
        (np.float64, 17, 24, ManyVectors(3)),
        (np.float64, 0, 2, QuarterVector()),
        (np.float64, 2, 2, QuarterVector()),
        (np.float64, 3, 4, HalfVector()),
        (np.float64, 5, 8, OneVector()),
        (np.float32, 4, 4, QuarterVector()),
        (np.float32, 8, 8, HalfVector()),
    ):
        rows = new_rows(3, numbers, dtype)
        assert rows.shape == (3, padded)
        assert not rows.any()
        assert rows.ctypes.data % 64 == 0
        assert width_of(numbers, dtype) == width
        assert type(width_of(numbers, dtype)) is type(width)


def test_the_sum_of_the_lanes_is_taken_by_halves():
    numbers = np.array([1e8, 1.0, -1e8, 1.0] * 4, np.float32)
    halves = numbers.copy()
    while halves.size > 1:
        halves = halves[: halves.size // 2] + halves[halves.size // 2 :]
    assert lane_sum(numbers) == halves[0]
