"""Conversions that are heard of and silence that is not: how decisions wait where the delay depends on the reward.

`conversion_queue` makes the queue of a policy and the kernels that work on it (`abex.simulation.delay_queue`) from its
`Conversions`. Where a policy learns at close or as rewards come, decisions wait in a `DelayQueue` for the day on which they are
learned. Where it weighs, the queue holds the decisions of a window: their conversions are learned when they come, and J decisions
a step reach the next of the J ages of `abex.policies.attribution`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel
from abex.policies.attribution import (
    Attribution,
    bin_of,
    can_weigh,
    enter,
    grow_older,
    new_attribution,
    silences,
    weigh,
)
from abex.policies.policy import Policy
from abex.simulation.delay_queue import DelayKernels, dequeue_late, due_on, new_queue, places, put
from abex.simulation.delays import Conversions, DelayTable, delay_at, delay_table
from abex.support.reading import check_size


class ConversionTable(DelayTable):
    """The delays of conversions, and what they are beside."""

    window: int
    silence: float
    at_close: bool  # whether all is learned when the window ends


class ConversionQueue(Record):
    """The decisions of a window, where a policy weighs them."""

    delays: ConversionTable
    batch: int
    horizon: int
    arms: NDArray[np.int32]  # (R,), the arm of the decision in a place
    following: NDArray[
        np.int32
    ]  # (R,), the place of the next decision whose conversion comes on the same day
    last: NDArray[np.int32]  # (R,), the place of the last one of a day, -1 if there is none
    kept: NDArray[np.int64]  # (R, 0)
    paid: NDArray[np.float64]  # (R,), the reward
    bins: NDArray[np.int32]  # (R,), the bin of the delay of a conversion that has come, else -1
    steps: NDArray[np.int64]  # (J,), after so many steps a decision leaves a bin
    attribution: Attribution


def conversion_queue(
    conversions: Conversions,
    policy: Policy[Any],
    draw: Any,
    batch: int,
    horizon: int,
    key: np.uint64,
    n_arms: int,
    memory: tuple[NDArray[Any], ...],
) -> tuple[Any, DelayKernels]:
    """An empty queue for a policy, and its kernels."""
    plain = delay_table(conversions, key, n_arms)
    table = ConversionTable(
        **{name: getattr(plain, name) for name in DelayTable._fields},
        window=conversions.window,
        silence=conversions.silence,
        at_close=conversions.learned != "as they come",
    )
    if conversions.learned != "weighed" or not can_weigh(policy):
        closing = new_queue(conversions, batch, horizon, key, n_arms, memory)
        closing.delays = table
        return closing, closing_kernels(draw)
    size = places(conversions, batch, horizon)
    check_size(28 * size, f"the decisions of a window of {conversions.window:,} steps")
    attribution = new_attribution(n_arms, conversions.window, conversions.silence)
    queue = ConversionQueue(
        delays=table,
        batch=batch,
        horizon=horizon,
        arms=np.zeros(size, np.int32),
        following=np.full(size, -1, np.int32),
        last=np.full(size, -1, np.int32),
        kept=np.zeros((size, 0), np.int64),
        paid=np.zeros(size),
        bins=np.full(size, -1, np.int32),
        steps=np.ceil(attribution.ages[1:]).astype(np.int64),
        attribution=attribution,
    )
    return queue, weighing_kernels(draw, policy.learn, policy.counted)  # type: ignore[attr-defined]


@kernel
def delay_of(delays: ConversionTable, t: int, arm: int, reward: float) -> int:
    """The delay of a conversion that comes within its window, -1 of silence."""
    delay = delay_at(delays, t, arm)
    return delay if 0 < delay <= delays.window and reward != delays.silence else -1


@kernel
def paid_in_window(pending: Any, t: int, arm: int, reward: float) -> float:
    """The reward, if it is a conversion that comes within the window; else silence."""
    return reward if delay_of(pending.delays, t, arm, reward) > 0 else float(pending.delays.silence)


@cache
def closing_kernels(draw: Callable[..., Any]) -> DelayKernels:
    """Decisions are learned when their window ends, unless conversions are when they come."""

    @kernel
    def enqueue(pending: Any, memory: Any, state: Any, world: Any, t: int, arm: int, rng: Any) -> int:
        delay = delay_of(pending.delays, t, arm, draw(world, t, arm))
        if delay < 0 or pending.delays.at_close:
            delay = pending.delays.window
        put(pending, memory, t, arm, delay)
        return due_on(pending, t + 1)

    return DelayKernels(enqueue, dequeue_late, paid_in_window)


@cache
def weighing_kernels(draw: Callable[..., Any], learn: Any, counted: Any) -> DelayKernels:
    """Conversions are learned when they come, and silence as decisions grow older; no decision is due by itself."""
    hear = silences(learn)

    @kernel
    def enqueue(pending: Any, memory: Any, state: Any, world: Any, t: int, arm: int, rng: Any) -> int:
        mask = pending.arms.size - 1
        place = t & mask
        reward = draw(world, t, arm)
        pending.arms[place] = arm
        pending.paid[place] = reward
        pending.bins[place] = -1
        put(pending, memory, t, arm, delay_of(pending.delays, t, arm, reward))
        enter(pending.attribution, arm)
        if t % pending.batch != 0:
            return -1
        attribution = pending.attribution
        for now in range(t + 1 - pending.batch, t + 1):
            for j in range(pending.steps.size):
                when = now - pending.steps[j]
                if when >= 1:
                    grow_older(attribution, pending.arms[when & mask], j, pending.bins[when & mask])
        weigh(attribution)
        for now in range(t + 1 - pending.batch, t + 1):
            for j in range(pending.steps.size):
                if now - pending.steps[j] >= 1:
                    hear(attribution, state, pending.arms[(now - pending.steps[j]) & mask])
            hear(attribution, state, attribution.turn)
            attribution.turn = (attribution.turn + 1) % attribution.converted.size
        for step in range(t + 2 - pending.batch, t + 2):
            event = due_on(pending, step)
            while event >= 0:
                when = t - ((t - event) & mask)
                known = pending.arms[event]
                pending.bins[event] = bin_of(attribution, delay_at(pending.delays, when, known))
                attribution.converted[known] += 1.0
                learn(state, known, counted(state, pending.paid[event], rng), 1.0)
                hear(attribution, state, known)
                event = pending.following[event]
        return -1

    return DelayKernels(enqueue, dequeue_late, paid_in_window)
