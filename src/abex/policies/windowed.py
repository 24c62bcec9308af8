"""Observations of the last steps only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel
from abex.policies.forgetting import Forgetting, age, lived, scanned, take_in
from abex.policies.policy import Setting
from abex.policies.statistics import Blank, Known, Sums, blank_of, count_in, weigh_in
from abex.policies.ucb import UCB1
from abex.schema import ArmNumbers, Count, Rebuilt, Within, agree
from abex.support.parameters import whole
from abex.support.reading import check_size

WIDEST = 10**9  # steps of a window


class WindowClock(Scalars):
    """Where the window stands."""

    step: Annotated[int, Count()]  # the decision whose window this is
    oldest: Annotated[int, Count()]  # no observation of an earlier step is left
    free: Annotated[int, Within(-1, 2.0**40)]  # an entry that is not in use, -1 if there is none


class Window(NamedTuple):
    """The observations of the last steps: entries, chained to their step in a ring of steps and to each other."""

    clock: WindowClock
    head: Annotated[NDArray[np.int32], Within(-1, 2.0**31)]  # (R,), an entry of a step, -1 if there is none
    following: Annotated[
        NDArray[np.int32], Within(-1, 2.0**31)
    ]  # (M,), the next entry of the step, or that is not in use
    arms: Annotated[NDArray[np.int32], ArmNumbers()]  # (M,)
    rewards: Annotated[NDArray[np.float64], Within(0.0, 1.0)]  # (M,)
    width: int
    known: Annotated[Sums, Rebuilt()]  # what the entries add up to

    def restored(self, fresh: Window) -> Window:
        """Every entry stands in one chain, and chains end; else following them would have no end."""
        agree(self.clock.free < self.arms.size, "free must be an entry")
        starts = [*self.head[self.head >= 0].tolist(), *([self.clock.free] if self.clock.free >= 0 else [])]
        agree(max([-1, *starts, int(self.following.max())]) < self.arms.size, "following must be entries")
        reached = 0
        for start in starts:
            entry = start
            while entry >= 0:
                reached += 1
                agree(reached <= self.arms.size, "an entry stands in two chains")
                if start != self.clock.free:
                    count_in(fresh.known, int(self.arms[entry]), float(self.rewards[entry]), 1)
                entry = int(self.following[entry])
        agree(reached == self.arms.size, "an entry is in no chain")
        return self._replace(known=fresh.known)


def new_window(width: int, n_entries: int, n_arms: int, blank: Blank) -> Window:
    """Nothing observed."""
    size = 1
    while size < width + 2:
        size *= 2
    check_size(4 * size + 16 * n_entries, f"a window of width {width:,} with {n_entries:,} observations")
    following = np.arange(1, n_entries + 1, dtype=np.int32)
    following[-1] = -1
    return Window(
        clock=WindowClock(step=0, oldest=1, free=0),
        head=np.full(size, -1, np.int32),
        following=following,
        arms=np.zeros(n_entries, np.int32),
        rewards=np.zeros(n_entries),
        width=width,
        known=Sums(*blank, *np.zeros((3, n_arms), np.int64)),
    )


@kernel
def forget_step(memory: Window, inner: Any, step: int) -> None:
    """The observations of a step leave."""
    place = step & (memory.head.size - 1)
    entry = memory.head[place]
    memory.head[place] = -1
    while entry >= 0:
        arm, reward = int(memory.arms[entry]), memory.rewards[entry]
        count_in(memory.known, arm, reward, -1)
        weigh_in(inner, memory.known, arm, reward, -1.0)
        after = memory.following[entry]
        memory.following[entry] = memory.clock.free
        memory.clock.free = entry
        entry = after


@age.register(Window)
@kernel
def age_window(memory: Window, inner: Any, t: int) -> None:
    """Decision t sees the steps from t - width to t - 1."""
    clock = memory.clock
    if t <= clock.step:
        return
    clock.step = t
    first = t - memory.width
    if first - clock.oldest > memory.head.size:  # a ring holds no more steps than it has places
        clock.oldest = first - memory.head.size
    while clock.oldest < first:
        forget_step(memory, inner, clock.oldest)
        clock.oldest += 1


@lived.register(Window)
@kernel
def lived_window(memory: Window, t: int) -> float:
    """The steps so far, at most the width."""
    return float(min(t, memory.width))


@take_in.register(Window)
@kernel
def take_in_window(memory: Window, inner: Any, t: int, arm: int, seen: int, reward: float) -> None:
    """A reward that comes late stays as long as its step does; one that comes too late is not learned."""
    clock = memory.clock
    age_window(memory, inner, t)
    if t < clock.oldest:
        return
    while clock.free < 0:  # more observations than the window has room for: the oldest leave early
        forget_step(memory, inner, clock.oldest)
        clock.oldest += 1
        if t < clock.oldest:
            return
    entry = clock.free
    clock.free = memory.following[entry]
    place = t & (memory.head.size - 1)
    memory.following[entry] = memory.head[place]
    memory.head[place] = entry
    memory.arms[entry] = seen
    memory.rewards[entry] = reward
    count_in(memory.known, seen, reward, 1)
    weigh_in(inner, memory.known, seen, reward, 1.0)


@dataclass(frozen=True)
class Windowed(Forgetting):
    r"""A policy that knows the observations of the last steps only.

    At decision t the policy inside plays by its formula with the counts and means of the observations of steps
    :math:`t-\tau,\dots,t-1`, and :math:`\min(t,\tau)` in the place of t. An arm without any counts as never observed.
    ``Windowed(UCB1(scale))`` is SW-UCB, ``Windowed(Thompson())`` is SW-TS.

    Parameters
    ----------
    policy : Policy
        UCB1 (the default), KLUCB, Thompson, Evidence, ABE, Boltzmann, IMED, Maillard, or another that is ``forgettable``.
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

    def memory(self, setting: Setting, inner: Any) -> Window:
        """Room for what the window can hold."""
        width = self.width
        if setting.horizon is not None:
            width = min(width, setting.horizon)  # what is never forgotten needs no room beyond
        return new_window(width, (width + 1) * most_observed(setting), setting.n_arms, blank_of(inner))

    def adapted(self, inner: Any, memory: Window) -> Any:
        """A scan where an arm that is forgotten cannot be filed as one never observed."""
        laws: tuple[str, ...] = ("Gumbel",)
        if not np.isfinite(memory.known.first):
            laws = ("Gumbel", "softmax")
        return scanned(inner, laws)

    def memory_with_arms(self, memory: Window, fresh: Window, keep: NDArray[np.int64]) -> Window:
        """What was observed of the arms that stay."""
        new_name = {int(old): new for new, old in enumerate(keep)}
        fresh.clock.step, fresh.clock.oldest = memory.clock.step, memory.clock.oldest
        nobody = _Nobody()
        for step in range(memory.clock.oldest, memory.clock.step + 1):
            entry = int(memory.head[step & (memory.head.size - 1)])
            kept = []
            while entry >= 0:
                kept.append((int(memory.arms[entry]), float(memory.rewards[entry])))
                entry = int(memory.following[entry])
            for arm, reward in reversed(kept):
                if arm in new_name:
                    take_in_window(fresh, nobody, step, 0, new_name[arm], reward)
        return fresh

    also_known_as = ("SW-UCB",)


class _Nobody:
    """A state that learns nothing: its statistics are already those of the window."""


@weigh_in.register(_Nobody)
def _learn_nothing(state: Any, blank: Known, seen: int, reward: float, weight: float) -> None:
    """Nothing."""


def most_observed(setting: Setting) -> int:
    """How many arms a pull can show."""
    return 1 if setting.graph is None else int(setting.graph.max_observed)
