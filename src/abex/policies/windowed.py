"""Observations of the last steps only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, compile_alone, kernel
from abex.kinds import Arms, Series, Whole, agree
from abex.policies.forgetting import Forgetting, enters, leaves, lived
from abex.policies.means import mean_after
from abex.policies.policy import Setting
from abex.policies.thompson import posterior_after
from abex.policies.ucb import UCB1
from abex.support.parameters import whole
from abex.support.reading import check_size

WIDEST = 10**9  # steps of a window
INTERPRETED = 20_000  # entries up to which Python adds up a loaded window
UNITS = 2**31  # of a sum, in 1, and in each of them once more


class Window(Record):
    """The observations of the last steps, and what they add up to.

    Entries are chained to their step in a ring of steps and to each other. Sums are exact, so no rounding stays behind when an
    observation leaves: rewards stand in units of 2^-31 and, what is left, of 2^-62. So two arms that know the same have the same
    mean to the last bit, whatever they knew before, and so have two whose means are equal as fractions (up to four million
    observations).
    """

    step: Whole  # the decision whose window this is
    oldest: Whole  # no observation of an earlier step is left
    next: Whole  # where the next free entry is looked for
    arms: Arms  # int32 (M,), -1 of an entry that is not in use
    steps: Series  # int64 (M,)
    rewards: Series  # float64 (M,)
    width: int
    head: NDArray[np.int32]  # (R,), the last entry of a step, -1 if there is none
    following: NDArray[np.int32]  # (M,), the next entry of the step, a lower one, -1 if there is none
    used: int  # entries
    early: int  # steps before this one leave, for want of room too
    counts: NDArray[np.int64]  # (K,)
    high: NDArray[np.int64]  # (K,)
    low: NDArray[np.int64]  # (K,), less than one unit of ``high``

    def scans(self, law: str, few: int) -> bool:
        """Whether all arms are looked at: where one that is forgotten cannot be filed as never observed."""
        return law in ("Gumbel", "softmax")


def add_up(memory: Window) -> None:
    """Chain the entries to their steps, and add them up."""
    used = memory.arms >= 0
    steps, rewards = memory.steps[used], memory.rewards[used]
    agree(bool(((rewards >= 0.0) & (rewards <= 1.0)).all()), "rewards must be numbers from 0 to 1")
    fine = (steps >= memory.oldest) & (steps < memory.oldest + memory.head.size)
    agree(bool(fine.all()), "steps must be those of the window")
    agree(memory.next < memory.arms.size, "next must be an entry")
    memory.head[:] = -1
    memory.counts[:] = memory.high[:] = memory.low[:] = memory.used = 0
    if steps.size:
        (add_all if steps.size <= INTERPRETED else compile_alone(add_all))(memory)


@kernel
def add_all(memory: Window) -> None:
    """Add every entry."""
    for entry in range(memory.arms.size):
        if memory.arms[entry] >= 0:
            add(memory, entry)


@kernel
def add(memory: Window, entry: int) -> None:
    """Put an entry into the chain of its step, the higher first: whoever loads a window lets the same leave first."""
    place = memory.steps[entry] & (memory.head.size - 1)
    above, at = -1, memory.head[place]
    while at > entry:  # seldom: mostly it is the highest one
        above, at = at, memory.following[at]
    memory.following[entry] = at
    if above < 0:
        memory.head[place] = entry
    else:
        memory.following[above] = entry
    memory.used += 1
    count_in(memory, memory.arms[entry], memory.rewards[entry], 1)


@kernel
def count_in(memory: Window, arm: int, reward: float, sign: int) -> None:
    """A reward comes (1) or leaves (-1)."""
    units = reward * UNITS
    whole = math.floor(units)
    low = memory.low[arm] + sign * math.floor((units - whole) * UNITS + 0.5)
    carry = low // UNITS
    memory.counts[arm] += sign
    memory.high[arm] += sign * whole + carry
    memory.low[arm] = low - carry * UNITS


@mean_after.register(Window)
@kernel
def mean_of_sums(memory: Window, arm: int, before: float, mean: float, reward: float, weight: float) -> float:
    """The sum over the count; of equal fractions whole parts and rests are equal, and so are the rounded ones."""
    count = max(
        memory.counts[arm], 1
    )  # a damaged file may know of observations that the window does not hold
    whole = memory.high[arm] // count
    rest = (memory.high[arm] - whole * count) * UNITS + memory.low[arm]
    return float((whole + rest / count / UNITS) / UNITS)


@posterior_after.register(Window)
@kernel
def posterior_of_sums(
    memory: Window, state: Any, arm: int, reward: float, weight: float
) -> tuple[float, float]:
    """The prior and the sums."""
    total = (memory.high[arm] + memory.low[arm] / UNITS) / UNITS
    return state.prior_successes + total, state.prior_failures + (memory.counts[arm] - total)


@leaves.register(Window)
@kernel
def leave_window(memory: Window, t: int, entering: bool) -> tuple[int, float, float]:
    """Decision t sees the steps from t - width to t - 1; without room for what enters, the oldest leave early."""
    memory.step = max(memory.step, t)
    first = memory.step - memory.width
    if first - memory.oldest > memory.head.size:  # a ring holds no more steps than it has places
        memory.oldest = first - memory.head.size
    while memory.oldest < max(first, memory.early) or (
        entering and memory.used == memory.arms.size and memory.oldest <= t
    ):
        memory.early = max(memory.early, memory.oldest + 1)  # a step leaves as a whole
        place = memory.oldest & (memory.head.size - 1)
        entry = memory.head[place]
        if entry >= 0:
            arm, reward = int(memory.arms[entry]), memory.rewards[entry]
            memory.head[place] = memory.following[entry]
            memory.arms[entry] = -1
            memory.used -= 1
            count_in(memory, arm, reward, -1)
            return arm, reward, -1.0
        memory.oldest += 1
    return -1, 0.0, 0.0


@enters.register(Window)
@kernel
def enter_window(memory: Window, t: int, arm: int, reward: float) -> float:
    """A reward that comes late stays as long as its step does; one that comes too late is not learned."""
    if t < memory.oldest:
        return 0.0
    entry = memory.next
    while memory.arms[entry] >= 0:  # seldom: entries leave about as they came
        entry = entry + 1 if entry + 1 < memory.arms.size else 0
    memory.next = entry + 1 if entry + 1 < memory.arms.size else 0
    memory.arms[entry], memory.steps[entry], memory.rewards[entry] = arm, t, reward
    add(memory, entry)
    return 1.0


@lived.register(Window)
@kernel
def lived_window(memory: Window, t: int) -> float:
    """The steps so far, at most the width."""
    return float(min(t, memory.width))


@dataclass(frozen=True)
class Windowed(Forgetting):
    r"""A policy that knows the observations of the last steps only.

    At decision t the policy inside plays by its formula with the counts and means of the observations of steps
    :math:`t-\tau,\dots,t-1`, and :math:`\min(t,\tau)` in the place of t. An arm without any counts as never observed.
    ``Windowed(UCB1(scale))`` is SW-UCB, ``Windowed(Thompson())`` is SW-TS.

    Parameters
    ----------
    policy : Policy
        UCB1 (the default), KLUCB, Thompson, Evidence, ABE, Boltzmann, IMED, Maillard, or another `Learner`.
    width : int
        The steps :math:`\tau`. For :math:`\Upsilon` changes in T steps, :math:`2\sqrt{T\ln T/\Upsilon}` gives SW-UCB regret
        :math:`O(\sqrt{T\Upsilon\log T})` (rewards in [0, 1]).

    References
    ----------
    Garivier and Moulines 2011, Section 2.2 and Theorem 2 (SW-UCB; their bonus :math:`\sqrt{\xi\ln\min(t,\tau)/N_k}` is
    ``UCB1(scale=xi)``, :math:`\xi>1/2`); Trovò, Paladino, Restelli, Gatti 2020, Algorithm 1 (SW-TS).

    Notes
    -----
    Means are those of exact sums: arms of which the window holds the same rewards tie, whatever it held before.
    A reward that comes late leaves with the step of its decision. Cost O(1) more per step, whatever the width; memory
    for every observation of the window. On graphs the window has room for all of them; a `Player` that is not told the
    graph has room for one a step, and where there are more the oldest leave early. Many arms are found as fast as by the policy
    inside, BoltzmannGumbel excepted, and Boltzmann and ABE with ``initial=None``: they look at every arm.

    Examples
    --------
    >>> from abex import KLUCB, Player
    >>> player = Player(Windowed(KLUCB(), width=50), n_arms=2, seed=0)
    >>> for t in range(200):
    ...     arm = player.select()
    ...     _ = player.update(arm, reward=float((arm == 0) == (t < 100)))
    >>> player.select()
    1
    """

    policy: Any = UCB1()  # noqa: RUF009 - a value
    width: int = whole(1000, least=1, most=WIDEST)

    def memory(self, setting: Setting, state: Any) -> Window:
        """Room for what the window can hold."""
        n_arms, width = setting.n_arms, self.width
        if setting.horizon is not None:
            width = min(width, setting.horizon)  # what is never forgotten needs no room beyond
        n_entries = (width + 1) * (1 if setting.graph is None else setting.graph.max_observed)
        ring = 1 << (width + 1).bit_length()
        check_size(4 * ring + 24 * n_entries, f"a window of width {width:,} with {n_entries:,} observations")
        return Window.of_arms(
            n_arms,
            oldest=1,
            arms=np.full(n_entries, -1, np.int32),
            steps=np.zeros(n_entries, np.int64),
            rewards=np.zeros(n_entries),
            width=width,
            head=np.full(ring, -1, np.int32),
            following=np.zeros(n_entries, np.int32),
        )

    def prepare(self, state: Any) -> Any:
        """What the entries add up to follows from them."""
        add_up(state.memory)
        return super().prepare(state)

    def resume(self, setting: Setting, values: Any, keep: NDArray[np.int64] | None = None) -> Any:
        """Of arms that stay, what was observed of them stays in the window."""
        state = super().resume(setting, values, keep)
        if keep is None:
            return state
        memory, before = state.memory, values["memory"]
        number = np.full(
            max(keep.max(initial=0), before["arms"].max()) + 2, -1
        )  # the last one is that of no arm
        number[keep] = np.arange(keep.size)
        stay = np.flatnonzero(number[before["arms"]] >= 0)
        memory.step, memory.oldest = before["step"], before["oldest"]
        memory.arms[: stay.size] = number[before["arms"][stay]]
        memory.steps[: stay.size] = before["steps"][stay]
        memory.rewards[: stay.size] = before["rewards"][stay]
        memory.next = int(stay.size) % memory.arms.size
        return self.prepare(state)

    also_known_as = ("SW-UCB",)
