"""Exact questions about the schedule of ABE: which steps are exploration slots, which are Boltzmann slots.

Outer iteration (*epoch*) i = 1, 2, ... first explores, then takes K 2^i Boltzmann slots. Exploration is paid from a credit
counted in arms: an epoch adds its due, every exploration pull takes away the arms that it is the first of its sweep to show, and
the phase lasts while one arm is due. With bandit feedback a pull shows one arm; in Algorithm 2 the pulls of a sweep xi together
show K. The formulas are the kernels of `abex.policies.schedule`, which ABE plays by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import NamedTuple

from abex.policies.schedule import (
    LAST_DOUBLING,
    MAX_ALPHA,
    ROUNDINGS,
    arms_due,
    boltzmann_slots,
    exploration_rate,
    explores,
    whole_sweeps,
)
from abex.support.errors import UserError, one_of, real_number, whole_number
from abex.support.parameters import HUGE

MAX_EXACT_EPOCHS = 100_000  # beyond, steps have more than 30,000 digits: logarithms only
MAX_FIRST_EPOCH = 2**1000  # numbers of steps that are logarithms end soon after


class Epoch(NamedTuple):
    """Outer iteration ``number``: ``exploration`` slots from step ``first`` on, then ``boltzmann`` slots."""

    number: int
    first: int
    exploration: int
    boltzmann: int
    explored_before: int  # exploration slots of all earlier epochs

    @property
    def last(self) -> int:
        """Its last step."""
        return self.first + self.exploration + self.boltzmann - 1

    @property
    def last_exploration(self) -> int:
        """The last step of its exploration phase (``first - 1`` if it has none)."""
        return self.first + self.exploration - 1


class FirstExploration(NamedTuple):
    """Where pure exploration begins; ``step`` is None where it has more than 30,000 digits."""

    epoch: int
    step: int | None
    log10_step: float


@dataclass(frozen=True)
class Schedule:
    r"""The schedule of Algorithm 1, or of Algorithm 2 when ``covers`` is given, in exact integers.

    Epoch i explores in :math:`|\xi|\lfloor c\,i^\alpha\rfloor` slots (``rounding="floor"``, as printed),
    :math:`|\xi|\lceil c\,i^\alpha\rceil` (``"ceil"``), or what the carried credit pays for (``"carry"``:
    :math:`\lfloor K\sum_{j\le i}c\,j^\alpha\rfloor` slots by the end of epoch i under bandit feedback).

    Parameters
    ----------
    n_arms
        Number of arms K.
    c, alpha
        Amount and growth of exploration.
    rounding
        ``floor``, ``ceil`` or ``carry``.
    covers
        For graph feedback: how many arms each pull of xi covers anew, in order; they add up to K.

    References
    ----------
    Almost Boltzmann Exploration, Algorithms 1 and 2.

    Examples
    --------
    >>> paper = Schedule(n_arms=333, c=0.1, alpha=0.7)
    >>> paper.exploration_slots(10**6), paper.at(10**6).number
    (0, 11)
    >>> paper.first_exploration()
    FirstExploration(epoch=27, step=44694502759, log10_step=10.65...)
    >>> Schedule(333, 0.1, 0.7, rounding="carry").exploration_slots(10**6)
    1239
    """

    n_arms: int
    c: float
    alpha: float
    rounding: str = "floor"
    covers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        whole_number("n_arms", self.n_arms, least=1)
        real_number("c", self.c, least=0.0, most=HUGE)
        real_number("alpha", self.alpha, least=0.0, most=MAX_ALPHA)
        one_of("rounding", self.rounding, ROUNDINGS)
        if self.covers is not None and (min(self.covers, default=0) < 1 or sum(self.covers) != self.n_arms):
            raise UserError(f"covers must be positive and add up to {self.n_arms} arms, got {self.covers!r}")

    @property
    def sweep(self) -> int:
        r"""Pulls of one sweep, :math:`|\xi|`; K under bandit feedback."""
        return self.n_arms if self.covers is None else len(self.covers)

    def epochs(self) -> Iterator[Epoch]:
        """All epochs in turn, without end."""
        code = ROUNDINGS.index(self.rounding)
        first, explored, credit = 1, 0, 0.0
        number = 0
        while True:
            number += 1
            credit = arms_due(code, exploration_rate(self.c, self.alpha, number), self.n_arms, credit)
            slots, credit = self._spend(credit, explored % self.sweep)
            doubled = boltzmann_slots(self.n_arms, number) << max(0, number - LAST_DOUBLING)
            epoch = Epoch(number, first, slots, doubled, explored)
            yield epoch
            first = epoch.last + 1
            explored += slots

    def _spend(self, credit: float, position: int) -> tuple[int, float]:
        """Slots that ``credit`` pays for from ``position`` of the sweep on, and the credit that is left."""
        if self.covers is None:
            slots = max(0, whole_sweeps(credit))
            return slots, credit - slots
        sweeps = max(0, whole_sweeps(credit / self.n_arms))
        credit -= sweeps * self.n_arms
        slots = sweeps * self.sweep
        while explores(credit):
            credit -= self.covers[(position + slots) % self.sweep]
            slots += 1
        return slots, credit

    def at(self, t: int) -> Epoch:
        r"""The epoch :math:`i_t` of step t.

        >>> Schedule(n_arms=2, c=1.0, alpha=1.0).at(7).number
        2
        """
        t = whole_number("t", t, least=1)
        return next(epoch for epoch in self.epochs() if epoch.last >= t)

    def explores(self, t: int) -> bool:
        """Whether step t is a slot of pure exploration."""
        return t <= self.at(t).last_exploration

    def exploration_slots(self, t: int) -> int:
        """Slots of pure exploration among steps 1..t."""
        if t == 0:
            return 0
        epoch = self.at(t)
        return epoch.explored_before + min(epoch.exploration, t - epoch.first + 1)

    def sweeps(self, t: int) -> int:
        """Complete sweeps by the end of step t: every arm has been observed at least so often."""
        return self.exploration_slots(t) // self.sweep

    def exploration_pulls(self, t: int, position: int) -> int:
        """Exploration pulls of the arm at ``position`` of the sweep during steps 1..t."""
        return (self.exploration_slots(t) + self.sweep - 1 - position) // self.sweep

    def positions(self, horizon: int) -> Iterator[int | None]:
        """For each step 1..horizon the position in the sweep that is explored, None in a Boltzmann slot."""
        for epoch in takewhile(lambda epoch: epoch.first <= horizon, self.epochs()):
            for t in range(epoch.first, min(epoch.last, horizon) + 1):
                explored = epoch.explored_before + t - epoch.first
                yield explored % self.sweep if t <= epoch.last_exploration else None

    def first_exploration(self) -> FirstExploration | None:
        """The first epoch that explores, and its first step; None if none ever does."""
        number = self._first_epoch()
        if number is None:
            return None
        if number > MAX_EXACT_EPOCHS:
            return FirstExploration(number, None, math.log10(self.n_arms) + number * math.log10(2.0))
        step = self.n_arms * (2**number - 2) + 1  # nothing but Boltzmann slots came before
        return FirstExploration(number, step, math.log10(step))

    def _first_epoch(self) -> int | None:
        if self.c == 0.0:
            return None
        if self.rounding == "carry":
            due = accumulate(exploration_rate(self.c, self.alpha, i) for i in range(1, MAX_EXACT_EPOCHS))
            for number, sweeps in enumerate(due, start=1):
                if explores(sweeps * self.n_arms):
                    return number
            # far out the sum is its integral: c i^(alpha + 1) / (alpha + 1) = 1 / K
            return math.ceil(math.pow((self.alpha + 1.0) / (self.c * self.n_arms), 1.0 / (self.alpha + 1.0)))
        if self.alpha == 0.0 and not self._sweeps_in(1):
            return None
        last = 1  # the rate grows with the epoch: double until a sweep is due, then halve the interval
        while not self._sweeps_in(last):
            last *= 2
            if last > MAX_FIRST_EPOCH:
                raise UserError(
                    f"c={self.c:g} and alpha={self.alpha:g} are too small: exploration begins after epoch 2^1000"
                )
        before = last // 2
        while last - before > 1:
            middle = (before + last) // 2
            before, last = (before, middle) if self._sweeps_in(middle) else (middle, last)
        return last

    def _sweeps_in(self, epoch: int) -> bool:
        """Whether a sweep is due in an epoch, of what it brings itself."""
        try:
            rate = exploration_rate(self.c, self.alpha, epoch)
        except OverflowError:
            return True
        return arms_due(ROUNDINGS.index(self.rounding), rate, 1, 0.0) >= 1.0
