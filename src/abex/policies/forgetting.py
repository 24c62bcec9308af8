"""What policies around another policy share: the inner state with a memory that decides how observations count.

The memory is a record with a few kernels (`age`, `lived`, `forced`, `take_in`), the inner policy is any that is
``forgettable``: its formulas read its own fields, which the memory keeps (`abex.policies.statistics`). A new way to forget is
a record and these kernels.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, single_dispatch
from abex.policies.naming import as_policy
from abex.policies.policy import Kernels, Policy, Setting
from abex.policies.statistics import entering, noted
from abex.samplers import scan_for
from abex.samplers.evidence import FadingTournament
from abex.schema import Fractional
from abex.support.errors import UserError, shown


class Forgotten(NamedTuple):
    """The state of the policy inside, and the memory that keeps its statistics."""

    inner: Annotated[Any, Fractional()]
    memory: Any

    def restored(self, fresh: Forgotten) -> Forgotten:
        """Each part as it restores itself; the memory is told of the inner state."""
        inner, made = self.inner, fresh.inner
        if isinstance(inner, Record):
            memory = self.memory.restored(fresh.memory) if hasattr(self.memory, "restored") else self.memory
            return Forgotten(linked(inner, memory), memory)
        if hasattr(inner, "restored"):
            inner = inner.restored(made)
        memory = self.memory.restored(fresh.memory) if hasattr(self.memory, "restored") else self.memory
        inner = linked(inner, memory)
        return Forgotten(linked(inner, memory), memory)


def linked(inner: Any, memory: Any) -> Any:
    """The inner state whose rule, if it looks at the memory's clock, looks at this one's."""
    if hasattr(memory, "relinked"):
        return memory.relinked(inner)
    sampler = getattr(inner, "sampler", None)
    if isinstance(sampler, FadingTournament):
        return with_parts(inner, sampler=FadingTournament(winners=sampler.winners, clock=memory.clock))
    rule = getattr(inner, "rule", None)
    if rule is not None and hasattr(rule, "clock"):
        return with_parts(inner, rule=rule._replace(clock=memory.clock))
    return inner


def with_parts(state: Any, **parts: Any) -> Any:
    """A state with other parts in the place of these."""
    if not isinstance(state, Record):
        return state._replace(**parts)
    for name, part in parts.items():
        setattr(state, name, part)
    return state


def plain_rule(state: Any) -> Any:
    """The rule of an index as its policy made it."""
    return getattr(state.rule, "rule", state.rule)


@single_dispatch
def age(memory: Any, inner: Any, t: int) -> None:
    """Make the statistics those of decision t; the same decision may ask twice (kernel)."""
    raise TypeError


@single_dispatch
def lived(memory: Any, t: int) -> float:
    """How many steps the memory reaches back at decision t: the time that the inner policy's formulas see (kernel)."""
    return float(t)


@single_dispatch
def forced(memory: Any, t: int) -> int:
    """The arm that must be tried at decision t whatever the policy inside would do, -1 if it may choose (kernel)."""
    return -1


@single_dispatch
def take_in(memory: Any, inner: Any, t: int, arm: int, seen: int, reward: float) -> None:
    """Arm ``seen`` was observed to pay ``reward`` by decision t, perhaps long ago (kernel)."""
    raise TypeError


@cache
def forgetting_kernels(kernels: Kernels) -> Kernels:
    """The kernels of a policy that forgets, around those of the policy inside."""
    inner_select = kernels.select

    def select(state: Forgotten, t: int, rng: Any) -> int:
        age(state.memory, state.inner, t)
        arm = forced(state.memory, t)
        if arm >= 0:
            return arm
        return inner_select(state.inner, lived(state.memory, t), rng)  # type: ignore[no-any-return]

    def update(state: Forgotten, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        take_in(state.memory, state.inner, t, arm, seen, entering(state.inner, reward, rng))
        noted(state.inner, arm, seen)

    return Kernels(select, update)


@cache
def forgetting_probabilities(inner_probabilities: Any) -> Any:
    """The distribution of `select`, around that of the policy inside."""

    def probabilities(state: Forgotten, t: int, out: Any) -> None:
        age(state.memory, state.inner, t)
        arm = forced(state.memory, t)
        if arm < 0:
            inner_probabilities(state.inner, lived(state.memory, t), out)
            return
        for k in range(out.size):
            out[k] = 1.0 if k == arm else 0.0

    return probabilities


def scanned(state: Any, laws: tuple[str, ...]) -> Any:
    """The state with a scan in the place of a structure for one of these laws, which cannot follow what happens to it."""
    law = getattr(getattr(state, "sampler", None), "law", None)
    if law not in laws:
        return state
    n_arms = (state.successes if hasattr(state, "successes") else state.means).size
    return with_parts(state, sampler=scan_for(law, n_arms))


class Forgetting(Policy[Any]):
    """A policy around another one that decides what it remembers."""

    policy: Any
    select_ages = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", as_policy(self.policy))
        super().__post_init__()
        name = type(self).__name__
        if not self.policy.forgettable:
            raise UserError(
                f"{name} needs a policy whose statistics can be forgotten, such as UCB1 or Thompson, "
                f"got {shown(str(self.policy))}"
            )
        for flag in ("needs_graph", "resizable"):
            object.__setattr__(self, flag, getattr(self.policy, flag))

    @property
    def needs_horizon(self) -> bool:
        """As the policy inside."""
        return bool(self.policy.needs_horizon)

    @abstractmethod
    def memory(self, setting: Setting, inner: Any) -> Any:
        """A memory of nothing."""

    def adapted(self, inner: Any, memory: Any) -> Any:
        """The state of the policy inside as this memory needs it."""
        return inner

    def start(self, setting: Setting) -> Forgotten:
        """The policy inside as it starts, and nothing to remember."""
        inner = self.policy.start(setting)
        memory = self.memory(setting, inner)
        return Forgotten(self.adapted(inner, memory), memory)

    def prepare(self, state: Forgotten) -> Forgotten:
        """The state of the policy inside as it prepares it and as this memory needs it."""
        return Forgotten(self.adapted(self.policy.prepare(state.inner), state.memory), state.memory)

    def kernels(self) -> Kernels:
        """Around those of the policy inside."""
        return forgetting_kernels(self.policy.kernels())

    @property
    def probabilities(self) -> Any:
        """The kernel of the distribution, where the policy inside has one."""
        inside = self.policy.probabilities
        return None if inside is None else forgetting_probabilities(inside)

    @staticmethod
    def select(state: Any, t: int, rng: Any) -> int:
        """See `kernels`: it depends on the policy inside."""
        raise NotImplementedError

    @staticmethod
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """See `kernels`: it depends on the policy inside."""
        raise NotImplementedError

    def report(self, state: Any) -> dict[str, float]:
        """What the policy inside reports."""
        return dict(self.policy.report(state.inner))

    def with_arms(self, state: Any, setting: Setting, keep: NDArray[np.int64]) -> Forgotten:
        """Both parts for the new arms."""
        inner = self.policy.with_arms(state.inner, setting, keep)
        memory = self.memory_with_arms(state.memory, self.memory(setting, self.policy.start(setting)), keep)
        return Forgotten(self.adapted(inner, memory), memory)

    @abstractmethod
    def memory_with_arms(self, memory: Any, fresh: Any, keep: NDArray[np.int64]) -> Any:
        """The memory when only the arms ``keep`` stay."""

    def __str__(self) -> str:
        """The policy inside first, as a person would type it."""
        words = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if field.name != "policy" and getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join([str(self.policy), *words])})"
