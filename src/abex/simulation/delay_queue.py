"""When a reward reaches its policy: at once, or late and in batches.

The loop over steps enqueues every decision and dequeues the ones that are due, each by a kernel:

``enqueue(pending, memory, state, world, t, arm, rng) -> event``
    Arm ``arm`` was pulled at step t. Returns the first of the decisions whose reward is due before step t + 1, -1 if none is.
``dequeue(pending, memory, event, t, arm) -> when, pulled, event``
    A due decision, its step and its arm, with what the policy remembers of it back in its state; and the next one that is due.
``paid(pending, t, arm, reward) -> reward``
    What becomes of the reward of arm ``arm`` at step t on its way.

Without delay they do nothing and are compiled away: there is one loop. With delay, decisions wait in a ring of as
many places as the longest delay needs (a power of two), decision t in place t, chained in the order of the decisions to the day
on which they are due. They cost the same however many wait. Where the delay
depends on the reward, `abex.simulation.conversions` has the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel
from abex.kinds import kept_with_decisions
from abex.policies.policy import Policy
from abex.simulation.delays import Delay, DelayTable, Fixed, delay_at, delay_table
from abex.support.errors import UserError
from abex.support.reading import check_size


class DelayKernels(NamedTuple):
    """The kernels by which decisions wait for their rewards."""

    enqueue: Callable[..., Any]
    dequeue: Callable[..., Any]
    paid: Callable[..., Any]


@kernel
def enqueue_nothing(pending: Any, memory: Any, state: Any, world: Any, t: int, arm: int, rng: Any) -> int:
    """The decision is due itself."""
    return 0


@kernel
def dequeue_at_once(pending: Any, memory: Any, event: int, t: int, arm: int) -> tuple[int, int, int]:
    """The decision itself, and no other."""
    return t, arm, -1


@kernel
def paid_in_full(pending: Any, t: int, arm: int, reward: float) -> float:
    """The reward."""
    return reward


AT_ONCE = DelayKernels(enqueue_nothing, dequeue_at_once, paid_in_full)


class DelayQueue(Record):
    """The decisions that wait for their reward."""

    delays: DelayTable
    batch: int  # rewards are handed over after every so many decisions
    horizon: int
    arms: NDArray[np.int32]  # (R,), the arm of the decision in a place
    following: NDArray[np.int32]  # (R,), the place of the next decision that is due on the same day
    last: NDArray[np.int32]  # (R,), the place of the last decision that is due on a day, -1 if none is
    kept: NDArray[Any]  # (R, M), what the policy remembers of the decision


@kernel
def enqueue_late(pending: DelayQueue, memory: Any, state: Any, world: Any, t: int, arm: int, rng: Any) -> int:
    """Note the decision under the day on which its reward is due; the first decision that is due tomorrow."""
    put(pending, memory, t, arm, delay_at(pending.delays, t, arm))
    return due_on(pending, t + 1)


@kernel
def put(pending: Any, memory: Any, t: int, arm: int, delay: int) -> None:
    """Note the decision of step t under the day on which it is due, unless that never comes."""
    if delay <= 0:
        return
    mask = pending.arms.size - 1
    due = t + delay
    if pending.batch > 1:
        due = (due - 2 + pending.batch) // pending.batch * pending.batch + 1
    if due <= pending.horizon:
        place, day = t & mask, due & mask
        pending.arms[place] = arm
        remember(pending.kept, memory, place)
        last = pending.last[day]
        pending.following[place] = place if last < 0 else pending.following[last]  # the first one
        if last >= 0:
            pending.following[last] = place
        pending.last[day] = place


@kernel
def due_on(pending: Any, step: int) -> int:
    """The first of the decisions that are due before a step, which are taken out; -1 if none is."""
    day = step & (pending.arms.size - 1)
    last = pending.last[day]
    if last < 0:
        return -1
    first = pending.following[last]
    pending.following[last] = -1
    pending.last[day] = -1
    return int(first)


@kernel
def dequeue_late(pending: DelayQueue, memory: Any, event: int, t: int, arm: int) -> tuple[int, int, int]:
    """The decision in a place, and the next one of the day."""
    recall(pending.kept, memory, event)
    when = t - ((t - event) & (pending.arms.size - 1))
    return when, int(pending.arms[event]), int(pending.following[event])


@kernel
def remember(kept: Any, memory: Any, place: int) -> None:
    """Copy the fields that belong to a decision out of the state."""
    at = 0
    for field in memory:
        for j in range(field.size):
            kept[place, at] = field[j]
            at += 1


@kernel
def recall(kept: Any, memory: Any, place: int) -> None:
    """Copy them back."""
    at = 0
    for field in memory:
        for j in range(field.size):
            field[j] = kept[place, at]
            at += 1


LATE = DelayKernels(enqueue_late, dequeue_late, paid_in_full)


def as_late(delay: Delay | None, batch: int) -> bool:
    """Whether any reward can come later than before the next decision."""
    at_once = delay is None or (isinstance(delay, Fixed) and delay.steps <= 1 and delay.never == 0.0)
    return batch > 1 or not at_once


def memory_of(policy: Policy[Any], state: Any) -> tuple[NDArray[Any], ...]:
    """The fields of the state that belong to a decision, as words of the same memory."""
    names = kept_with_decisions(state)
    fields = [getattr(state, name) for name in names]
    for name, field in zip(names, fields, strict=True):
        if not (isinstance(field, np.ndarray) and field.flags.c_contiguous):
            raise UserError(f"{policy} remembers {name}, which is no array")
    word = np.int64 if all(field.itemsize == 8 for field in fields) else np.uint8
    return tuple(field.reshape(-1).view(word) for field in fields) or (np.zeros(0, np.int64),)


def places(delay: Delay, batch: int, horizon: int) -> int:
    """The power of two that has room for every decision that can wait at the same time."""
    size = 1
    while size < min(delay.longest, horizon) + batch + 2:
        size *= 2
    return size


def new_queue(
    delay: Delay, batch: int, horizon: int, key: np.uint64, n_arms: int, memory: tuple[NDArray[Any], ...]
) -> DelayQueue:
    """An empty queue with a place for every decision that can wait at the same time."""
    size = places(delay, batch, horizon)
    words = sum(field.size for field in memory)
    check_size(
        size * (12 + words * memory[0].itemsize),
        f"the decisions that wait for rewards up to {min(delay.longest, horizon):,} steps late",
    )
    return DelayQueue(
        delays=delay_table(delay, key, n_arms),
        batch=batch,
        horizon=horizon,
        arms=np.zeros(size, np.int32),
        following=np.full(size, -1, np.int32),
        last=np.full(size, -1, np.int32),
        kept=np.zeros((size, words), memory[0].dtype),
    )
