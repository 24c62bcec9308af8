"""The state of a player as a function of its events: decisions, rewards, expiries, arms that come and go.

A player in one process has one replica. Of a player that many processes share each process has one, and all are alike after the
same events, bit for bit. So nothing here looks at a clock or draws a number of its own: moments stand in the events, random
numbers that learning needs are an argument. What a policy's *sampler* holds (`abex.samplers`) is no part of that state: it finds
arms faster, changes with every draw, and has no influence on what is learned.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kinds import kept_with_decisions, weighed_by
from abex.players.arms import Label, NamedArms
from abex.players.ids import life_and_number
from abex.players.policy_runner import PolicyRunner
from abex.players.tallies import Tallies
from abex.policies.policy import Setting
from abex.support.errors import UserError

MOST_TOLD = 10_000  # keys of observations that are remembered
MOST_LIVES = 1_000  # lives whose decisions are told from those of other players


class Pending(NamedTuple):
    """What is kept of a decision that waits for its reward."""

    t: int  # its step
    arm: int  # number of its arm
    memory: tuple[NDArray[Any], ...]  # the state fields that belong to it
    moment: int  # milliseconds since 1970
    probability: float | None = None  # with which it was chosen, where that was asked for
    unit: str | None = None  # for whom: as long as it waits, that unit gets no other decision
    key: str | None = None  # of the request that asked for it: asked again, it is the answer


class PlayerState(PolicyRunner):
    """Policy, state, arms, waiting decisions and tallies of a player."""

    def __init__(
        self, policy: Any, setting: Setting, arms: NamedArms, *, compiled: bool, max_pending: int
    ) -> None:
        super().__init__(policy, setting, compiled)
        self.arms = arms
        self.max_pending = max_pending
        self.tallies = Tallies(setting.n_arms)
        self.steps = 0  # of the policy's life: decisions made, and arms tried elsewhere
        self.elsewhere = 0  # arms tried elsewhere
        self.pending: OrderedDict[str, Pending] = OrderedDict()  # by id, in the order of the decisions
        self.waiting: dict[int, OrderedDict[str, None]] = {}  # ids in `pending` by the number of their arm
        self.lives: dict[str, int] = {}  # the last decision of each life
        self.units: dict[str, str] = {}  # ids in `pending` by the unit for which they were made
        self.keys: dict[str, str] = {}  # ids in `pending` by the key of their request
        self.told: OrderedDict[str, None] = OrderedDict()  # keys of the last observations

    def copy(self) -> PlayerState:
        """An independent replica in the same state."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.state, twin._entries = copy.deepcopy(self.state), {}
        twin.arms, twin.tallies = self.arms.copy(), self.tallies.copy()
        twin.pending = OrderedDict(self.pending)
        twin.waiting = {arm: OrderedDict(names) for arm, names in self.waiting.items()}
        twin.lives, twin.units, twin.keys = dict(self.lives), dict(self.units), dict(self.keys)
        twin.told = OrderedDict(self.told)
        return twin

    @property
    def decisions(self) -> int:
        """How many were made."""
        return self.steps - self.elsewhere

    # -- decisions ------------------------------------------------------------------------------------

    def decided(self, name: str, pending: Pending) -> tuple[str, Pending]:
        """A decision was made: it waits for its reward; beyond `max_pending` the oldest is forgotten.

        Decisions of one life come in order; one that comes again changes nothing. One for a unit or under a key that has a
        decision which waits is void: that one, which is returned, stands for it.
        """
        life, number = life_and_number(name) or ("", 0)
        new = life not in self.lives
        if not new and number <= self.lives[life]:
            return name, pending
        self.lives[life] = number
        standing = self.open_decision(pending.unit, pending.key)
        if standing is not None:
            return standing
        self.steps += 1
        if self.arms.has(pending.arm):
            self.tallies.decided(self.arms.place(pending.arm), pending.arm)
            self.add_pending(name, pending)
        if len(self.pending) > self.max_pending:
            self.forget(next(iter(self.pending)))
        if new and len(self.lives) > MOST_LIVES:
            self._trim_lives()
        return name, pending

    def open_decision(self, unit: str | None, key: str | None) -> tuple[str, Pending] | None:
        """The decision that waits under this key, or for this unit."""
        name = self.keys.get(key) if key is not None else None
        if name is None and unit is not None:
            name = self.units.get(unit)
        return None if name is None else (name, self.pending[name])

    def add_pending(self, name: str, pending: Pending) -> None:
        """Let a decision wait."""
        self.pending[name] = pending
        if pending.unit is not None:
            self.units[pending.unit] = name
        if pending.key is not None:
            self.keys[pending.key] = name
        waiting = self.waiting.get(pending.arm)
        if waiting is None:
            waiting = self.waiting[pending.arm] = OrderedDict()
        waiting[name] = None

    def forget(self, name: str) -> Pending:
        """A decision waits no more."""
        pending = self.pending.pop(name)
        waiting = self.waiting[pending.arm]
        del waiting[name]
        if not waiting:
            del self.waiting[pending.arm]
        if pending.unit is not None:
            del self.units[pending.unit]
        if pending.key is not None:
            del self.keys[pending.key]
        return pending

    def _trim_lives(self) -> None:
        """Leave out old lives that nothing waits for."""
        needed = {(life_and_number(name) or ("",))[0] for name in self.pending}
        needed.update(list(self.lives)[-MOST_LIVES:])
        self.lives = {life: last for life, last in self.lives.items() if life in needed}

    def has_made(self, name: str) -> bool | None:
        """Whether a decision of that id was made; None if its life is unknown."""
        life, number = life_and_number(name) or ("", 0)
        last = self.lives.get(life)
        return None if last is None else 1 <= number <= last

    def waits_for(self, number: int) -> str | None:
        """The latest decision on an arm that waits for its reward."""
        waiting = self.waiting.get(number)
        return next(reversed(waiting)) if waiting else None

    # -- rewards --------------------------------------------------------------------------------------

    def rewarded(self, name: str, reward: float, also: Mapping[int, float], rng: Any) -> bool:
        """A decision had its reward in [0, 1], and other arms were seen with it; False if it does not wait for one."""
        if name not in self.pending:
            return False
        pending = self.forget(name)
        self._recall(pending.memory)
        self.tallies.rewarded += 1
        self._learn(pending.t, pending.arm, reward, also, rng)
        return True

    def observed_without_decision(
        self, number: int, reward: float, also: Mapping[int, float], rng: Any
    ) -> bool:
        """An arm was tried without a decision of the player: a step of the policy's life as if it had been chosen now."""
        if not self.arms.has(number):
            return False
        place, step = self.arms.place(number), self.steps + 1
        if kept_with_decisions(self.state):
            self._remember_choice(step, place)
        self.steps, self.elsewhere = step, self.elsewhere + 1
        self._learn(step, number, reward, also, rng)
        return True

    def _remember_choice(self, step: int, place: int) -> None:
        """What a decision at this step on this arm remembers: only the arm's own probability is a matter of the arm."""
        _, memory = self.draw(step, np.random.Generator(np.random.PCG64(0)))
        self._recall(memory)
        field = weighed_by(self.state)
        if field is None or self.policy.probabilities is None:
            return
        weights = getattr(self.state, field)
        if weights.size != self.n_arms or weights[place] <= 0.0:
            self.set_propensity(self.probabilities(step), place)

    def _recall(self, memory: tuple[NDArray[Any], ...]) -> None:
        """Put what a decision remembers back into the state."""
        for field, value in zip(kept_with_decisions(self.state), memory, strict=True):
            getattr(self.state, field)[:] = value

    def is_first(self, key: str) -> bool:
        """Whether an observation under this key is the first one; of the last ones the keys are remembered."""
        if key in self.told:
            return False
        self.told[key] = None
        if len(self.told) > MOST_TOLD:
            self.told.popitem(last=False)
        return True

    def expired(self, cutoff: int, unrewarded: float | None, rng: Any) -> list[str]:
        """The oldest decisions, up to the first one made after ``cutoff``, had no reward in time; returns their ids.

        They count as ``unrewarded``, or teach nothing if that is None.
        """
        names = []
        while self.pending:
            name = next(iter(self.pending))
            if self.pending[name].moment > cutoff:
                break
            names.append(name)
            self.tallies.expired += 1
            if unrewarded is None:
                self.forget(name)
            else:
                self.rewarded(name, unrewarded, {}, rng)
                self.tallies.rewarded -= 1
        return names

    def _learn(self, t: int, number: int, reward: float, also: Mapping[int, float], rng: Any) -> None:
        place = self.arms.place(number)
        seen = [(self.arms.place(other), paid) for other, paid in also.items() if self.arms.has(other)]
        seen.append((place, reward))  # the pulled arm last
        for other, paid in seen:
            self.tallies.observed(other, paid)
        self.learn(t, place, seen, rng)

    # -- arms -----------------------------------------------------------------------------------------

    def add_arm(self, label: Label | None) -> int:
        """Add an arm never seen; returns its number."""
        keep = np.arange(self.n_arms)
        self.resize(keep, self.n_arms + 1)
        self.tallies.keep(keep, self.n_arms)
        return self.arms.add(label)

    def check_remove(self, number: int) -> None:
        """Refuse to remove the last arm."""
        if self.n_arms == 1:
            raise UserError(f"arm {self.arms.label(number)!r} is the last one and cannot be removed")

    def remove_arm(self, number: int) -> None:
        """Remove an arm for ever; its decisions that wait for a reward are forgotten."""
        keep = np.delete(np.arange(self.n_arms), self.arms.place(number))
        self.resize(keep, self.n_arms - 1)
        self.tallies.keep(keep, self.n_arms)
        self.arms.remove(number)
        for name in list(self.waiting.get(number, ())):
            self.forget(name)

    def rename_arm(self, number: int, label: Label) -> None:
        """Call an arm something else; all that is known of it stays."""
        self.arms.rename(number, label)
