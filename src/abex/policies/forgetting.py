"""What policies around another one share: a memory that decides how observations count.

The policy inside learns by its kernel ``learn(state, arm, reward, weight)`` (`abex.policies.learner`), which the policy around it
calls with weights of its own. Its formulas stay as they are, and so does its state, whose field ``memory`` holds a record with a
few kernels: ``leaves``, ``enters``, ``alarmed``, ``lived``, ``forced``. A new way to forget is a record and these kernels.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, single_dispatch
from abex.kinds import agree, kinds_of, restore
from abex.policies.learner import Around, Learner
from abex.policies.policy import Kernels, Setting
from abex.support.errors import UserError, shown

MIN_WEIGHT = 1e-280  # of what was observed ages ago: still more than nothing


class Shrinking(Record):
    """What a policy has learned that grows with the observations: counts and sums, by their kinds (`abex.kinds`)."""

    parts: Any  # arrays of the policy's state, (K,)
    limits: NDArray[np.float64]  # (parts,), their numbers where nothing is known: 0, or that of a prior


def growing(state: Any) -> tuple[NDArray[np.float64], ...]:
    """The arrays of a state that grow with the observations; means and all else do not."""
    parts = (getattr(state, name) for name, kind in kinds_of(state).items() if kind in ("count", "total"))
    return tuple(part for part in parts if isinstance(part, np.ndarray))


def shrinking(fresh: Any) -> Shrinking:
    """What can shrink in a fresh state."""
    return Shrinking(parts=growing(fresh), limits=np.array([part[0] for part in growing(fresh)]))


@kernel
def shrink(shrinking: Shrinking, factor: float) -> None:
    """Multiply the weights of all observations, of every arm; none becomes nothing."""
    for j in range(shrinking.limits.size):
        part, limit = shrinking.parts[j], shrinking.limits[j]
        for k in range(part.size):
            if part[k] > limit:
                part[k] = max(limit + (part[k] - limit) * factor, limit + MIN_WEIGHT)


@kernel
def is_known(shrinking: Shrinking, arm: int) -> bool:
    """Whether an arm was ever observed."""
    known = False
    for j in range(shrinking.limits.size):
        known = known or shrinking.parts[j][arm] > shrinking.limits[j]
    return known


@kernel
def forget(shrinking: Shrinking, arm: int) -> None:
    """Nothing is known of an arm any more."""
    for j in range(shrinking.limits.size):
        shrinking.parts[j][arm] = shrinking.limits[j]


@single_dispatch
def leaves(memory: Any, t: int, entering: bool) -> tuple[int, float, float]:
    """What is to be learned anew before decision t (kernel): an arm, or -1, a reward, a weight. To be asked until there is none.

    The memory becomes that of decision t. Where an observation is ``entering``, perhaps one of a decision long ago, it goes on to
    that decision at most, and makes room.
    """
    raise TypeError


@single_dispatch
def enters(memory: Any, t: int, arm: int, reward: float) -> float:
    """An arm was observed to pay ``reward`` by decision t: with what weight it is to be learned, 0 for not at all (kernel)."""
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
def alarmed(memory: Any) -> bool:
    """Whether what has just been learned is the reason that other things are to be learned anew (kernel)."""
    return False


@cache
def leaving(learn: Callable[..., Any]) -> Any:
    """The kernel that lets go what leaves."""

    @kernel
    def let_go(state: Any, t: int, entering: bool) -> None:
        arm, reward, weight = leaves(state.memory, t, entering)
        while arm >= 0:
            learn(state, arm, reward, weight)
            arm, reward, weight = leaves(state.memory, t, entering)

    return let_go


@cache
def forgetting_kernels(select_inside: Any, learn: Any, counted: Any, advance: Any) -> Kernels:
    """The kernels of a policy that forgets, around those of the policy inside."""
    let_go = leaving(learn)

    def select(state: Any, t: int, rng: Any) -> int:
        let_go(state, t, False)
        arm = forced(state.memory, t)
        if arm >= 0:
            return arm
        return select_inside(state, lived(state.memory, t), rng)  # type: ignore[no-any-return]

    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        reward = counted(state, reward, rng)
        let_go(state, t, True)
        weight = enters(state.memory, t, seen, reward)
        if weight > 0.0:
            learn(state, seen, reward, weight)
            if alarmed(state.memory):
                let_go(state, t, True)
        advance(state, arm, seen)

    update.hands_on_to = counted  # type: ignore[attr-defined]
    return Kernels(select, update)


@cache
def forgetting_probabilities(probabilities_inside: Any, learn: Any) -> Any:
    """The distribution of `select`, around that of the policy inside."""
    let_go = leaving(learn)

    def probabilities(state: Any, t: int, out: Any) -> None:
        let_go(state, t, False)
        arm = forced(state.memory, t)
        if arm < 0:
            probabilities_inside(state, lived(state.memory, t), out)
            return
        for k in range(out.size):
            out[k] = 1.0 if k == arm else 0.0

    return probabilities


class Forgetting(Around[Any]):
    """A policy around another one that decides what it remembers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.policy, Learner):
            raise UserError(
                f"{type(self).__name__} needs a policy whose statistics can be forgotten, such as UCB1 or Thompson, "
                f"got {shown(str(self.policy))}"
            )

    @abstractmethod
    def memory(self, setting: Setting, state: Any) -> Any:
        """A memory of nothing, for a fresh state of the policy inside."""

    def start(self, setting: Setting) -> Any:
        """The policy inside as it starts, and nothing to remember."""
        state = self.policy.start(setting)
        state.memory = self.memory(setting, state)
        return self.prepare(state)

    def prepare(self, state: Any) -> Any:
        """As the policy inside; its sampler is one that can follow the memory."""
        if hasattr(state.memory, "shrinking"):
            state.memory.shrinking.parts = growing(state)
        return self.policy.prepare(state)

    def resume(self, setting: Setting, values: Any, keep: NDArray[np.int64] | None = None) -> Any:
        """The policy inside goes on, and its memory."""
        agree(isinstance(values, dict) and "memory" in values, "a state that forgets must have a memory")
        memory = self.start(setting).memory
        restore(memory, values["memory"], setting.n_arms, keep)
        inside = {name: value for name, value in values.items() if name != "memory"}
        state = self.policy.resume(setting, inside, keep)
        state.memory = memory
        return self.prepare(state)

    def kernels(self) -> Kernels:
        """Around those of the policy inside."""
        inside = self.policy
        return forgetting_kernels(inside.kernels().select, inside.learn, inside.counted, inside.advance)

    @property
    def probabilities(self) -> Any:
        """The kernel of the distribution, where the policy inside has one."""
        inside = self.policy.probabilities
        return None if inside is None else forgetting_probabilities(inside, self.policy.learn)

    def report(self, state: Any) -> dict[str, float]:
        """What the policy inside reports."""
        return dict(self.policy.report(state))

    def __str__(self) -> str:
        """The policy inside first, as a person would type it."""
        words = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if field.name != "policy" and getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join([str(self.policy), *words])})"
