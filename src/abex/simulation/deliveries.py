"""When a reward reaches its policy: at once, or late and in batches.

The loop over steps posts every decision and takes the ones that are due, each by a kernel:

``post(mail, memory, t, arm) -> event``
    Arm ``arm`` was pulled at step t. Returns the first of the decisions whose reward is due before step t + 1, -1 if none is.
``take(mail, memory, event, t, arm) -> when, pulled, event``
    A due decision, its step and its arm, with what the policy remembers of it back in its state; and the next one that is due.

Without delay both do nothing and are compiled away: there is one loop. With delay, decisions wait in a calendar: a ring of as
many places as the longest delay needs (a power of two), decision t in place t, chained in the order of the decisions to the day
on which they are due. Posting and taking cost the same however many wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.policies.policy import Policy
from abex.simulation.delays import Delay, DelayTable, Fixed, delay_at, delay_table
from abex.support.errors import UserError
from abex.support.reading import check_size


class Deliveries(NamedTuple):
    """The kernels by which decisions are posted and taken."""

    post: Callable[..., Any]
    take: Callable[..., Any]


@kernel
def post_at_once(mail: Any, memory: Any, t: int, arm: int) -> int:
    """The decision is due itself."""
    return 0


@kernel
def take_at_once(mail: Any, memory: Any, event: int, t: int, arm: int) -> tuple[int, int, int]:
    """The decision itself, and no other."""
    return t, arm, -1


AT_ONCE = Deliveries(post_at_once, take_at_once)


class Calendar(NamedTuple):
    """The decisions that wait for their reward."""

    delays: DelayTable
    batch: int  # rewards are handed over after every so many decisions
    horizon: int
    arms: NDArray[np.int32]  # (R,), the arm of the decision in a place
    following: NDArray[np.int32]  # (R,), the place of the next decision that is due on the same day
    last: NDArray[np.int32]  # (R,), the place of the last decision that is due on a day, -1 if none is
    kept: NDArray[Any]  # (R, M), what the policy remembers of the decision


@kernel
def post_in_calendar(mail: Calendar, memory: Any, t: int, arm: int) -> int:
    """Note the decision under the day on which its reward is due; the first decision that is due tomorrow."""
    mask = mail.arms.size - 1
    delay = delay_at(mail.delays, t, arm)
    if delay > 0:
        due = t + delay
        if mail.batch > 1:
            due = (due - 2 + mail.batch) // mail.batch * mail.batch + 1
        if due <= mail.horizon:
            place, day = t & mask, due & mask
            mail.arms[place] = arm
            remember(mail.kept, memory, place)
            last = mail.last[day]
            mail.following[place] = place if last < 0 else mail.following[last]  # the first one
            if last >= 0:
                mail.following[last] = place
            mail.last[day] = place
    day = (t + 1) & mask
    last = mail.last[day]
    if last < 0:
        return -1
    first = mail.following[last]
    mail.following[last] = -1
    mail.last[day] = -1
    return int(first)


@kernel
def take_from_calendar(mail: Calendar, memory: Any, event: int, t: int, arm: int) -> tuple[int, int, int]:
    """The decision in a place, and the next one of the day."""
    recall(mail.kept, memory, event)
    when = t - ((t - event) & (mail.arms.size - 1))
    return when, int(mail.arms[event]), int(mail.following[event])


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


LATE = Deliveries(post_in_calendar, take_from_calendar)


def as_late(delay: Delay | None, batch: int) -> bool:
    """Whether any reward can come later than before the next decision."""
    at_once = delay is None or (isinstance(delay, Fixed) and delay.steps <= 1 and delay.never == 0.0)
    return batch > 1 or not at_once


def memory_of(policy: Policy[Any], state: Any) -> tuple[NDArray[Any], ...]:
    """The fields of the state that belong to a decision, as words of the same memory."""
    names = policy.remembered(state)
    fields = [getattr(state, name) for name in names]
    for name, field in zip(names, fields, strict=True):
        if not (isinstance(field, np.ndarray) and field.flags.c_contiguous):
            raise UserError(f"{policy} remembers {name}, which is no array")
    word = np.int64 if all(field.itemsize == 8 for field in fields) else np.uint8
    return tuple(field.reshape(-1).view(word) for field in fields) or (np.zeros(0, np.int64),)


def new_calendar(
    delay: Delay, batch: int, horizon: int, key: np.uint64, n_arms: int, memory: tuple[NDArray[Any], ...]
) -> Calendar:
    """An empty calendar with a place for every decision that can wait at the same time."""
    size = 1
    while size < min(delay.longest, horizon) + batch + 2:
        size *= 2
    words = sum(field.size for field in memory)
    check_size(
        size * (12 + words * memory[0].itemsize),
        f"the decisions that wait for rewards up to {min(delay.longest, horizon):,} steps late",
    )
    return Calendar(
        delays=delay_table(delay, key, n_arms),
        batch=batch,
        horizon=horizon,
        arms=np.zeros(size, np.int32),
        following=np.full(size, -1, np.int32),
        last=np.full(size, -1, np.int32),
        kept=np.zeros((size, words), memory[0].dtype),
    )
