r"""Watching one arm for a change: a likelihood-ratio test between its recent rewards and the older ones.

The rewards of the watched arm stand in *blocks*, oldest first, at most two of each power of two: :math:`2\log_2N` of
them. Every border between two blocks may be where the arm has changed. With :math:`n_1,m_1` number and mean before
it, :math:`n_2,m_2` after it and m the mean of all, on the scale of the rewards seen so far, the statistic is
:math:`n_1\mathrm{kl}(m_1,m)+n_2\mathrm{kl}(m_2,m)`, which bounds the log-likelihood ratio of any distributions on
that range; a change is found where it exceeds :math:`4+\frac32\ln N` nats.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from abex.kernels import Scalars, kernel, rare_kernel
from abex.schema import ArmNumbers, Count, Within
from abex.support.divergence import bernoulli_kl

MOST_BLOCKS = 128  # two of each size up to 2^53, and some room
FREELY = 32  # rewards up to which each one is a moment to look
SELDOM = 8  # later every eighth is
OFFSET, FACTOR = 4.0, 1.5  # of the threshold, in nats
ROUNDING = 1e-9  # of a mean, on the scale of the rewards seen
COUNT, SUM, SQUARES = 0, 1, 2  # rows of the blocks


class WatchClock(Scalars):
    """What was seen of all arms, which arm is watched, and what came of it."""

    lowest: Annotated[float, Within(0.0, 1.0)]  # reward seen so far
    highest: Annotated[float, Within(0.0, 1.0)]
    watched: Annotated[int, ArmNumbers(least=-1)]  # the most observed arm, -1 if none
    blocks: Annotated[int, Within(0, MOST_BLOCKS)]  # in use
    changes: Annotated[int, Count()]  # found


@kernel
def push_reward(blocks: Any, clock: Any, reward: float) -> None:
    """Append a block of one reward; where three blocks have one size the older two become one."""
    at = clock.blocks
    blocks[COUNT, at] = size = 1.0
    blocks[SUM, at] = reward
    blocks[SQUARES, at] = reward * reward
    last = at
    while at >= 2 and blocks[COUNT, at - 1] == size and blocks[COUNT, at - 2] == size:
        at -= 2
        for row in range(3):
            blocks[row, at] += blocks[row, at + 1]
            for j in range(at + 1, last):
                blocks[row, j] = blocks[row, j + 1]
        last -= 1
        size += size
    clock.blocks = last + 1


@kernel
def watch_arm(state: Any, arm: int, reward: float) -> None:
    """Watch another arm, whose last reward is given: the earlier ones are one block."""
    n = state.observations[arm]
    state.clock.watched = arm
    state.clock.blocks = 0
    if n > 1.0:
        mean = state.means[arm]
        state.blocks[COUNT, 0] = n - 1.0
        state.blocks[SUM, 0] = n * mean - reward
        state.blocks[SQUARES, 0] = max(state.squares[arm] + n * mean * mean - reward * reward, 0.0)
        state.clock.blocks = 1


@kernel
def look_for_change(state: Any) -> int:
    """How many blocks of the watched arm are older than its most likely change; 0 if there was none, or it is no time to look."""
    blocks, clock = state.blocks, state.clock
    n = state.observations[clock.watched]
    width = clock.highest - clock.lowest
    if (n > FREELY and n % SELDOM != 0.0) or width <= 0.0:
        return 0
    return most_likely_change(blocks, clock, n, n * state.means[clock.watched], width)


@rare_kernel
def most_likely_change(blocks: Any, clock: Any, n: float, total: float, width: float) -> int:
    """The border of the largest statistic above the threshold, as the number of blocks before it; 0 if there is none."""
    mean = (total / n - clock.lowest) / width
    if mean < ROUNDING or mean > 1.0 - ROUNDING:
        return 0  # it has always paid the least, or the most, of all rewards
    threshold = OFFSET + FACTOR * math.log(n)
    # kl(x, y) is at most (x - y)^2 / (y (1 - y)): most borders need no logarithm
    least = threshold * mean * (1.0 - mean)
    found = 0
    before, paid = 0.0, 0.0
    for j in range(clock.blocks - 1):
        before += blocks[COUNT, j]
        paid += blocks[SUM, j]
        old = (paid / before - clock.lowest) / width
        shift = old - mean
        if shift * shift * before * n > least * (n - before):
            new = mean - shift * before / (n - before)
            value = split_evidence(before, old, n - before, new, mean)
            if value > threshold:
                threshold = value
                least = threshold * mean * (1.0 - mean)
                found = j + 1
    return found


@rare_kernel
def split_evidence(before: float, old: float, after: float, new: float, mean: float) -> float:
    """The statistic of one border; rounding may carry a mean out of [0, 1]."""
    old, new, mean = min(max(old, 0.0), 1.0), min(max(new, 0.0), 1.0), min(max(mean, 0.0), 1.0)
    return before * bernoulli_kl(old, mean) + after * bernoulli_kl(new, mean)


@rare_kernel
def forget_before(state: Any, older: int, kept: float) -> None:
    """Drop the older blocks of the watched arm, and leave every other arm ``kept`` observations at its mean and variance."""
    blocks, clock, observations, spread = state.blocks, state.clock, state.observations, state.squares
    for k in range(observations.size):
        count = observations[k]
        if count > kept:
            spread[k] *= kept / count
            observations[k] = kept
    n, total, squares = 0.0, 0.0, 0.0
    left, watched = clock.blocks - older, clock.watched
    for j in range(left):
        for row in range(3):
            blocks[row, j] = blocks[row, j + older]
        n += blocks[COUNT, j]
        total += blocks[SUM, j]
        squares += blocks[SQUARES, j]
    clock.blocks = left
    clock.changes += 1
    observations[watched] = n
    state.means[watched] = total / n
    spread[watched] = max(squares - total * total / n, 0.0)
