"""Policies that are told by what they draw from: the formula is theirs, `select` and `update` follow."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from abex.kernels import kernel
from abex.policies.base import Policy, State
from abex.samplers import changed, distribution, draw
from abex.samplers.scan import pick


@cache
def drawn_from(probabilities: Callable[..., Any]) -> Any:
    """The kernel ``select`` that draws from the kernel ``probabilities(state, t, out)``, kept in ``state.probabilities``."""

    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        probabilities(state, t, state.probabilities)
        return pick(state.probabilities, 1.0, rng)

    return select


@cache
def learned_by(learn: Callable[..., Any]) -> Any:
    """The kernel ``update`` that learns by the kernel ``learn`` and tells the sampler."""

    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        learn(state, t, arm, seen, reward, rng)
        changed(state.sampler, state, seen)

    return update


class DrawnPolicy(Policy[State]):
    """A policy that draws from probabilities in closed form: a subclass gives the kernel `probabilities`.

    Its state has an array ``probabilities`` for them; rewards are weighed by it.
    """

    remembers: ClassVar[tuple[str, ...]] = ("probabilities",)

    @staticmethod
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw from the probabilities: `drawn_from` makes it for each formula."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "probabilities" in vars(cls):
            cls.select = staticmethod(drawn_from(cls.probabilities))  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)


class SampledPolicy(Policy[State]):
    """A policy whose arm is found by the ``sampler`` of its state: a subclass gives the kernel `learn`."""

    learn: ClassVar[Any]  # (state, t, arm, seen, reward, rng): what `update` does before it tells the sampler

    @staticmethod
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn and tell the sampler: `learned_by` makes it for each way to learn."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "learn" in vars(cls):
            cls.update = staticmethod(learned_by(cls.learn))  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

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
