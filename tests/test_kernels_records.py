"""Kernels chosen by the class of a record, and named numbers that kernels change."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from abex import UCB1, Bernoulli
from abex.kernels import Scalars, compiled, kernel, single_dispatch
from abex.kernels.cache import kinds_described
from abex.policies.base import Setting


class Clock(Scalars):
    ticks: int
    due: float


class Square(NamedTuple):
    side: float


class Disc(NamedTuple):
    radius: float


class Hand(NamedTuple):
    clock: Clock
    steps: np.ndarray


@single_dispatch
def area(shape):
    return 0.0


@area.register(Square)
@kernel
def area_of_square(shape):
    return shape.side * shape.side


@kernel
def tick(hand):
    hand.clock.ticks += 2
    hand.clock.due -= 0.5
    if hand.clock.ticks > 5:
        hand.clock.ticks = 0


def test_the_class_of_the_record_chooses_the_kernel_in_both_faces():
    @compiled(area)
    def run(shape):
        return area(shape)

    for shape, expected in ((Square(3.0), 9.0), (Disc(3.0), 0.0)):
        assert area(shape) == run(shape) == expected


def test_a_kernel_must_stand_in_the_module_of_its_record():
    with pytest.raises(TypeError, match="must stand in the module of UCB1"):
        area.register(UCB1)(area_of_square)


def test_interpreted_and_compiled_kernels_change_the_same_numbers():
    @compiled(tick)
    def run(hand):
        tick(hand)

    hand = Hand(Clock(ticks=1, due=10.0), np.zeros(1))
    twin = copy.deepcopy(hand)
    for _ in range(4):
        tick(hand)
        run(twin)
        assert hand.clock == twin.clock
    assert hand.clock.asdict() == {"ticks": 2, "due": 8.0}
    run(hand)
    assert hand.clock != twin.clock


def test_copies_of_scalars_share_nothing():
    clock = Clock(ticks=3, due=0.1)
    for twin in (copy.copy(clock), copy.deepcopy(clock), pickle.loads(pickle.dumps(clock))):
        assert twin == clock
        twin.ticks += 1
        assert clock.ticks == 3
    with pytest.raises(AttributeError):
        Clock(tocks=1)
    with pytest.raises((TypeError, ValueError)):
        clock.ticks = "x"


def test_compiled_code_is_stale_when_the_module_of_a_record_changes():
    """The formula of an index stands beside its rule, in a module that the kernel of `select` does not import."""
    import numba

    state = UCB1().start(Setting(3))
    _, modules = kinds_described((numba.typeof(state),))
    assert {"abex.policies.ucb", "abex.samplers.indices"} <= modules
    assert Bernoulli.__module__ not in modules
