"""Policies that are one kernel, `learn` or `probabilities`, and policies around another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from abex.kernels import Record, kernel
from abex.policies.naming import as_policy
from abex.policies.policy import Policy, State
from abex.samplers import distribution, draw, sampler_for
from abex.samplers.scan import pick


class Learned(Record):
    """What a `Learner` knows: subclasses add fields with kinds (`abex.kinds`)."""

    sampler: Any = None  # what finds the arm, where something does
    memory: Any = None  # of a policy around it, such as `Discounted`, which decides what counts


@kernel
def stay(state: Any, arm: int, seen: int) -> None:
    """Nothing follows from an observation beside what is learned."""


@kernel
def as_it_is(state: Any, reward: float, rng: Any) -> float:
    """The reward."""
    return reward


@cache
def learned(learn: Callable[..., Any], counted: Callable[..., Any], advance: Callable[..., Any]) -> Any:
    """The kernel ``update`` that learns by the kernel ``learn``."""

    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        learn(state, seen, counted(state, reward, rng), 1.0)
        advance(state, arm, seen)

    update.hands_on_to = counted  # type: ignore[attr-defined]
    return update


@cache
def drawn_from(probabilities: Callable[..., Any]) -> Any:
    """The kernel ``select`` that draws from the kernel ``probabilities(state, t, out)``, kept in ``state.probabilities``."""

    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        probabilities(state, t, state.probabilities)
        return pick(state.probabilities, 1.0, rng)

    return select


class DrawnPolicy(Policy[State]):
    """A policy that draws from probabilities in closed form: a subclass gives the kernel `probabilities`.

    Its state has an array ``probabilities`` for them, of the kind `Chance`: rewards are weighed by it.
    """

    cheap_probabilities: ClassVar[bool] = True

    @staticmethod
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw from the probabilities: `drawn_from` makes it for each formula."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "probabilities" in vars(cls):
            cls.select = staticmethod(drawn_from(cls.probabilities))  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)


class Learner(Policy[State]):
    """A policy that learns by the kernel ``learn(state, arm, reward, weight)``, which a subclass gives.

    An arm was observed to pay ``reward``, with this weight; with weight -1, an observation leaves; with weight 0, what is known
    of the arm was changed from outside: whatever follows from it is made anew. The sampler is told by `learn`. `Discounted`,
    `Windowed` and `Restarting` call it with weights of their own; its state is a `Learned`, in
    which they put what they remember. The arm is found by the field ``sampler``, which draws by the ``law`` of that name
    (`abex.samplers.sampler_for`), unless a subclass selects in another way.
    """

    learn: ClassVar[Any]
    law: ClassVar[str | None] = None
    #: Kernel ``counted(state, reward, rng)``: the reward as the policy counts it.
    counted: ClassVar[Any] = staticmethod(as_it_is)
    #: Kernel ``advance(state, arm, seen)``: what else happens when ``seen`` was observed because ``arm`` was pulled.
    advance: ClassVar[Any] = staticmethod(stay)
    #: Whether decisions follow from means alone, and from counts over the `stretch_of` the memory (`abex.samplers.interface`):
    #: then, under a discount, counts may stand relative to each other.
    relative: ClassVar[bool] = False

    @staticmethod
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn: `learned` makes it for each way to learn."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "learn" in vars(cls) and "update" not in vars(cls):
            cls.update = staticmethod(learned(cls.learn, cls.counted, cls.advance))  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    def prepare(self, state: State) -> State:
        """Find arms by the law."""
        if self.law is not None:
            state.sampler = sampler_for(self.law, state)  # type: ignore[attr-defined]
        return state

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The arm that the sampler finds."""
        return draw(state.sampler, state, t, rng)

    @staticmethod
    @kernel
    def probabilities(state: Any, t: int, out: Any) -> None:
        """How likely the sampler finds each arm."""
        distribution(state.sampler, state, t, out)


class Around(Policy[State]):
    """A policy around another one, its parameter ``policy``, from whose kernels it makes its own."""

    policy: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", as_policy(self.policy))
        super().__post_init__()
        for flag in ("needs_graph", "resizable"):
            object.__setattr__(self, flag, getattr(self.policy, flag))

    @property
    def needs_horizon(self) -> bool:
        """As the policy inside."""
        return bool(self.policy.needs_horizon)

    @staticmethod
    def select(state: Any, t: int, rng: Any) -> int:
        """See `kernels`: it depends on the policy inside."""
        raise NotImplementedError

    @staticmethod
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """See `kernels`: it depends on the policy inside."""
        raise NotImplementedError
