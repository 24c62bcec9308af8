r"""A test whether one arm has changed: a likelihood-ratio test between its recent rewards and the older ones.

The rewards of the tested arm stand in *blocks*, oldest first, at most two of each power of two: :math:`2\log_2N` of
them. Every border between two blocks may be where the arm has changed. With :math:`n_1,m_1` number and mean before
it, :math:`n_2,m_2` after it and m the mean of all, on the scale of the rewards seen so far, the statistic is
:math:`n_1\mathrm{kl}(m_1,m)+n_2\mathrm{kl}(m_2,m)`, which bounds the log-likelihood ratio of any distributions on
that range; a change is found where it exceeds :math:`4+\frac32\ln N` nats, times the *patience*, 1 at first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel
from abex.kinds import Arm, Number, Series, Whole, agree
from abex.support.divergence import bernoulli_kl

MAX_BLOCKS = 128  # two of each size up to 2^53, and some room
FREELY = 32  # rewards up to which each one is a moment to look
SELDOM = 8  # later every eighth is
OFFSET, FACTOR = 4.0, 1.5  # of the threshold, in nats
ROUNDING = 1e-9  # of a mean, on the scale of the rewards seen
COUNT, SUM, SQUARES = 0, 1, 2  # rows of the blocks


class ChangeTest(Record):
    """The arm that is tested, its rewards, and what came of it."""

    arm: Arm  # the most observed one, -1 if none is
    blocks: Series  # float64 (3, MAX_BLOCKS), number, sum and sum of squares of the rewards of each block
    n_blocks: Whole  # in use
    changes: Whole  # found
    patience: Number  # times the threshold


def new_change_test() -> ChangeTest:
    """No arm is tested."""
    return ChangeTest(arm=-1, blocks=np.zeros((3, MAX_BLOCKS)), patience=1.0)


def check_blocks(test: ChangeTest, observations: NDArray[np.float64] | None) -> None:
    """See that the blocks hold counts, sums and squares of rewards, as many as the tested arm has if ``observations`` says so."""
    agree(test.n_blocks <= MAX_BLOCKS, "n_blocks must fit their room")
    agree(test.patience >= 1.0, "patience must be at least 1")
    count, total, squares = test.blocks[:, : test.n_blocks]
    younger = count[
        1:
    ]  # the oldest may have any size; of the others there are two of each power of two at most
    fine = (count >= 1.0).all() and (count == np.floor(count)).all()
    fine = (
        fine and (np.exp2(np.floor(np.log2(younger))) == younger).all() and (younger[2:] < younger[:-2]).all()
    )
    fine = fine and (squares >= 0.0).all() and bool((np.abs(total) <= count * (1.0 + 1e-6)).all())
    agree(bool(fine), "blocks must hold counts, sums and squares of rewards")
    if observations is not None and test.arm >= 0:
        agree(count.sum() == observations[test.arm], "blocks must hold the rewards of the tested arm")


@kernel
def append_reward(test: ChangeTest, reward: float) -> None:
    """Append a block of one reward; where three blocks have one size the older two become one."""
    blocks, at = test.blocks, test.n_blocks
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
    test.n_blocks = last + 1


@kernel
def change_found(test: ChangeTest, state: Any, arm: int, reward: float) -> int:
    """An arm was observed: how many blocks of the most observed one are older than a change that this shows; 0 is none."""
    if test.arm < 0 or (arm != test.arm and state.observations[arm] > state.observations[test.arm]):
        begin_test(test, state, arm, reward)
    if arm != test.arm:
        return 0
    append_reward(test, reward)
    return look_for_change(test, state)


def go_on(test: ChangeTest, state: Any, before: Any, keep: NDArray[np.int64]) -> None:
    """The test of the arms that stay: of the same arm, or where that goes of the most observed one, its rewards one block."""
    test.changes, test.patience = before["changes"], before["patience"]
    if before["arm"] in keep:
        test.arm, test.n_blocks = int(np.flatnonzero(keep == before["arm"])[0]), before["n_blocks"]
        test.blocks[:] = before["blocks"]
    elif before["arm"] >= 0:
        test.arm, test.n_blocks = int(state.observations.argmax()), 1
        n, mean, squares = (part[test.arm] for part in (state.observations, state.means, state.squares))
        test.blocks[:, 0] = n, n * mean, squares + n * mean * mean


@kernel
def begin_test(test: ChangeTest, state: Any, arm: int, reward: float) -> None:
    """Test another arm, whose last reward is given: the earlier ones are one block."""
    n = state.observations[arm]
    test.arm = arm
    test.n_blocks = 0
    if n > 1.0:
        mean = state.means[arm]
        test.blocks[COUNT, 0] = n - 1.0
        test.blocks[SUM, 0] = n * mean - reward
        test.blocks[SQUARES, 0] = max(state.squares[arm] + n * mean * mean - reward * reward, 0.0)
        test.n_blocks = 1


@kernel
def look_for_change(test: ChangeTest, state: Any) -> int:
    """How many blocks of the tested arm are older than its most likely change; 0 if there was none, or it is no time to look."""
    n = state.observations[test.arm]
    width = state.largest_reward - state.least_reward
    if (n > FREELY and n % SELDOM != 0.0) or width <= 0.0:
        return 0
    return most_likely_change(test, n, n * state.means[test.arm], state.least_reward, width)


@rare_kernel
def most_likely_change(test: ChangeTest, n: float, total: float, least_reward: float, width: float) -> int:
    """The border of the largest statistic above the threshold, as the number of blocks before it; 0 if there is none."""
    blocks = test.blocks
    mean = (total / n - least_reward) / width
    if mean < ROUNDING or mean > 1.0 - ROUNDING:
        return 0  # it has always paid the least, or the most, of all rewards
    threshold = test.patience * (OFFSET + FACTOR * math.log(n))
    # kl(x, y) is at most (x - y)^2 / (y (1 - y)): most borders need no logarithm
    least = threshold * mean * (1.0 - mean)
    found = 0
    before, paid = 0.0, 0.0
    for j in range(test.n_blocks - 1):
        before += blocks[COUNT, j]
        paid += blocks[SUM, j]
        old = (paid / before - least_reward) / width
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
def drop_older(test: ChangeTest, older: int) -> tuple[float, float, float]:
    """Drop the older blocks: number, sum and sum of squares of the rewards that are left."""
    blocks = test.blocks
    n, total, squares = 0.0, 0.0, 0.0
    for j in range(test.n_blocks - older):
        for row in range(3):
            blocks[row, j] = blocks[row, j + older]
        n += blocks[COUNT, j]
        total += blocks[SUM, j]
        squares += blocks[SQUARES, j]
    test.n_blocks -= older
    test.changes += 1
    return n, total, squares
