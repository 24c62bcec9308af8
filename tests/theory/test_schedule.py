"""The schedule and the lemmas about it, compared with Algorithms 1 and 2 played slot by slot."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.support.errors import UserError
from abex.theory import (
    Schedule,
    exploration_overhead,
    largest_alpha,
    lemma_1_lower,
    lemma_1_lower_as_printed,
    lemma_1_upper,
    lemma_2,
    lemma_2_carry,
    lemma_3,
    lemma_3_sharp,
)
from tests.each import each
from tests.naive.schedule import play

HORIZON = 1500
amounts = st.sampled_from([0.01, 0.1, 0.3, 0.5, 1.0, 1.7, 4.0, 25.0])
exponents = st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0, 1.5, 2.5])
roundings = st.sampled_from(["floor", "carry", "ceil"])


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    n_arms = draw(st.integers(1, 12))
    covers = None
    if draw(st.booleans()):
        cuts = sorted(draw(st.sets(st.integers(1, n_arms))) | {n_arms})
        covers = tuple(b - a for a, b in pairwise([0, *cuts]))
    return Schedule(n_arms, draw(amounts), draw(exponents), draw(roundings), covers)


@settings(max_examples=150)
@given(schedules())
def test_the_schedule_is_the_papers_algorithm_slot_by_slot(schedule: Schedule) -> None:
    covers = None if schedule.covers is None else list(schedule.covers)
    slots = list(play(schedule.n_arms, schedule.c, schedule.alpha, HORIZON, schedule.rounding, covers))
    assert list(schedule.positions(HORIZON)) == [position for _, position in slots]
    explored = 0
    for t, (i, position) in enumerate(slots, start=1):
        explored += position is not None
        if t % 37 == 0 or t == HORIZON:
            assert schedule.at(t).number == i
            assert schedule.explores(t) == (position is not None)
            assert schedule.exploration_slots(t) == explored
            assert schedule.sweeps(t) == explored // schedule.sweep
    counts = [sum(p == k for _, p in slots) for k in range(schedule.sweep)]
    assert [schedule.exploration_pulls(HORIZON, k) for k in range(schedule.sweep)] == counts


@settings(max_examples=60)
@given(schedules())
def test_first_exploration_is_where_the_first_slot_is(schedule: Schedule) -> None:
    first = schedule.first_exploration()
    if first is None:
        assert schedule.alpha == 0.0
        assert schedule.exploration_slots(10**6) == 0
    elif first.step is not None:
        assert schedule.explores(first.step)
        assert schedule.exploration_slots(first.step) == 1
        assert schedule.at(first.step).number == first.epoch
        assert first.log10_step == pytest.approx(math.log10(first.step))


@each(
    ("c", "alpha", "epoch", "n_arms", "step"),
    [
        (0.1, 0.7, 27, 333, 4.5e10),
        (0.2, 0.5, 25, 333, 1.1e10),
        (0.2, 0.7, 10, 16, 16_353),
        (1.0, 0.5, 1, 784, 1),
    ],
)
def test_the_papers_parameters_explore_when_the_specification_says(
    c: float, alpha: float, epoch: int, n_arms: int, step: float
) -> None:
    first = Schedule(n_arms, c, alpha).first_exploration()
    assert first is not None
    assert first.step is not None
    assert first.epoch == epoch
    assert first.step == pytest.approx(step, rel=0.03)


def test_a_schedule_beyond_all_integers_answers_in_logarithms() -> None:
    first = Schedule(333, 0.01, 0.1).first_exploration()
    assert first is not None
    assert first.step is None
    assert first.epoch == pytest.approx(1e20, rel=1e-6)
    assert first.log10_step == pytest.approx(1e20 * math.log10(2.0), rel=1e-6)
    huge = Schedule(333, 0.1, 0.7).at(10**3000)
    assert huge.number == pytest.approx(3000 * math.log2(10) - math.log2(333), abs=1.0)
    assert huge.first <= 10**3000 <= huge.last


def test_wrong_parameters_are_named() -> None:
    for wrong in ({"c": -1.0}, {"rounding": "round"}, {"covers": (2, 2)}, {"n_arms": 0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            Schedule(**({"n_arms": 3, "c": 1.0, "alpha": 1.0} | wrong))


# -- the lemmas on a grid, exactly -----------------------------------------------------------------------

GRID = [
    (c, alpha, n)
    for c in (0.01, 0.1, 1.0, 10.0, 400.0)
    for alpha in (0.1, 0.5, 1.0, 2.0, 2.5)
    for n in (2, 16, 333)
]


def ends(schedule: Schedule, last: int = 40):
    """First and last step of each phase of the epochs up to ``last``: bounds monotone in t are tight there."""
    for epoch in takewhile(lambda epoch: epoch.number <= last, schedule.epochs()):
        yield epoch, {epoch.first, epoch.last_exploration, epoch.last_exploration + 1, epoch.last} - {0}


@pytest.mark.parametrize("rounding", ["floor", "carry"])
def test_lemma_1_holds_exactly_up_to_its_largest_alpha(rounding: str) -> None:
    for c, alpha, n_arms in GRID:
        for epoch, steps in ends(Schedule(n_arms, c, alpha, rounding)):
            for t in steps:
                if t >= epoch.first:
                    power = 2**epoch.number
                    assert (
                        t <= 2 * (1 + 2 * Fraction(c)) * n_arms * power
                    )  # the lower bound, in exact numbers
                    assert n_arms * power <= t + 2 * n_arms  # the upper bound
                    assert lemma_1_lower_as_printed(t, n_arms, c) <= epoch.number + 1e-12
                    assert lemma_1_lower(t, n_arms, c, alpha) <= epoch.number + 1e-12
                    assert epoch.number <= lemma_1_upper(t, n_arms) + 1e-12


def test_lemma_1_as_printed_fails_beyond_its_largest_alpha_and_the_corrected_one_does_not() -> None:
    eighth = Schedule(16, 0.1, 3.0).at(16 * 2**9)
    assert eighth.number == 8
    assert lemma_1_lower_as_printed(eighth.last, 16, 0.1) > 8.0  # 8.05, as the specification found
    assert exploration_overhead(largest_alpha()) == pytest.approx(2.0)
    for c, alpha in ((0.1, 3.0), (1.0, 4.0), (1e6, largest_alpha() + 0.01)):
        epochs = list(takewhile(lambda e: e.number <= 40, Schedule(16, c, alpha).epochs()))
        assert any(lemma_1_lower_as_printed(e.last, 16, c) > e.number for e in epochs)
        assert all(lemma_1_lower(e.last, 16, c, alpha) <= e.number + 1e-12 for e in epochs)


@pytest.mark.parametrize("covers", [None, "graph"])
def test_lemmas_2_and_5_bound_the_observations_of_every_arm_from_below(covers: str | None) -> None:
    said = 0
    for c, alpha, n_arms in GRID:
        sweep = None if covers is None else (n_arms - 1, 1)
        schedule = Schedule(n_arms, c, alpha, covers=sweep if n_arms > 1 else None)
        for epoch, steps in ends(schedule, 60):
            for t in steps:
                bound = lemma_2(t, n_arms, c, alpha)
                if bound is not None and t > epoch.last_exploration:
                    said += 1
                    assert schedule.sweeps(t) >= bound
    assert said > 1000


def test_carrying_explores_twice_as_much_as_lemma_2_promises_and_from_the_start() -> None:
    for c, alpha, n_arms in GRID:
        schedule = Schedule(n_arms, c, alpha, "carry")
        for epoch, steps in ends(schedule):
            for t in steps:
                if t > epoch.last_exploration:
                    assert schedule.sweeps(t) >= lemma_2_carry(t, n_arms, c, alpha) - 1e-6


def test_lemmas_3_and_6_bound_the_exploration_pulls_of_every_arm_from_above() -> None:
    for c, alpha, n_arms in GRID:
        for covers in (None, (1,) * (n_arms // 2) + (n_arms - n_arms // 2,)):
            for rounding in ("floor", "carry"):
                schedule = Schedule(n_arms, c, alpha, rounding, covers)
                rest = 1.0 if rounding == "carry" else 1e-6  # a carried sweep may be under way
                for _, steps in ends(schedule):
                    for t in steps:
                        pulls = schedule.exploration_pulls(t, 0)
                        assert pulls <= lemma_3_sharp(t, n_arms, c, alpha) + rest
                        assert pulls <= lemma_3(t, n_arms, c, alpha) + rest


def test_rounding_up_breaks_lemma_3() -> None:
    schedule = Schedule(16, 0.01, 0.5, "ceil")
    assert schedule.exploration_pulls(10**6, 0) > lemma_3(10**6, 16, 0.01, 0.5)


def test_the_policy_plays_this_schedule() -> None:
    from abex.policies import ABE, Setting
    from abex.support.randomness import stream

    for rounding in ("floor", "carry", "ceil"):
        for c, alpha in ((0.3, 0.7), (1.0, 0.5)):
            policy = ABE(eta=1.0, c=c, alpha=alpha, rounding=rounding)
            state, rng = policy.start(Setting(5)), stream(0, "policy")
            slots = []
            for t in range(1, 701):
                arm = policy.select(state, t, rng)
                before = state.explored
                policy.update(state, t, arm, arm, 0.5, rng)
                slots.append(bool(state.explored > before))
            expected = [position is not None for position in Schedule(5, c, alpha, rounding).positions(700)]
            assert slots == expected


def test_the_policy_plays_this_schedule_on_a_graph() -> None:
    from abex.policies import ABE, Setting
    from abex.support.randomness import stream

    star = {0: [1, 2, 3, 4], **{leaf: [0] for leaf in range(1, 5)}}
    for seed in range(6):
        policy = ABE(eta=1.0, c=0.4, alpha=0.7, rounding="carry")
        state, rng = policy.start(Setting(5)), stream(seed, "policy")
        slots = []
        for t in range(1, 501):
            arm = policy.select(state, t, rng)
            before = state.explored
            for seen in [*star[arm], arm]:
                policy.update(state, t, arm, seen, 0.5, rng)
            slots.append(bool(state.explored > before))
        covers = tuple(int(n) for n in state.xi.shows if n > 0)
        assert np.sum(covers) == 5
        expected = [p is not None for p in Schedule(5, 0.4, 0.7, "carry", covers).positions(500)]
        assert slots == expected
