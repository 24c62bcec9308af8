"""The interface of environments.

An environment is a value (frozen dataclass). ``open(key, horizon)`` makes the *world* of one replication,
a record of arrays, from a 64-bit key; three kernels read it and write nothing:

``draw(world, t, arm) -> reward``
    Reward in [0, 1] of ``arm`` at step t. It depends on its arguments alone, so it is the same whoever asks
    and in whatever order: policies simulated together face the very same rewards (common random numbers).
``gap(world, t, arm) -> float``
    What pulling ``arm`` at step t adds to the regret.
``best(world, t, arm) -> bool``
    Whether ``arm`` is a best arm at step t.
"""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from abex.support.errors import UserError
from abex.support.parameters import check_parameters
from abex.support.plugins import ENVIRONMENTS, loaded, register


class Rules(NamedTuple):
    """The kernels of an environment."""

    draw: Callable[..., Any]
    gap: Callable[..., Any]
    best: Callable[..., Any]


class Environment(ABC):
    """A source of rewards; see the module's text for what it promises."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            register(_registry, cls)

    @property
    @abstractmethod
    def n_arms(self) -> int:
        """Number of arms K."""

    @abstractmethod
    def open(self, key: np.uint64, horizon: int) -> Any:
        """The world of one replication (arrays may be shared between worlds: nothing writes to them)."""

    @staticmethod
    @abstractmethod
    def draw(world: Any, t: int, arm: int) -> float:
        """Reward of ``arm`` at step t (kernel)."""

    @staticmethod
    @abstractmethod
    def gap(world: Any, t: int, arm: int) -> float:
        """Regret of pulling ``arm`` at step t (kernel)."""

    @staticmethod
    @abstractmethod
    def best(world: Any, t: int, arm: int) -> bool:
        """Whether ``arm`` is a best arm at step t (kernel)."""

    def rules(self) -> Rules:
        """The three kernels."""
        return Rules(self.draw, self.gap, self.best)

    @property
    def longest_horizon(self) -> int | None:
        """The last step that has rewards, None if it never ends."""
        return None

    def changes(self, horizon: int) -> list[int]:
        """The steps up to the horizon at which the means of arms change all at once, if they do."""
        return []


def as_environment(environment: Any) -> Environment:
    """``environment`` if it is an `Environment`, else an error."""
    if not isinstance(environment, Environment):
        raise UserError(
            f"environment must be an Environment such as Bernoulli([0.5, 0.6]), got {environment!r}"
        )
    return environment


_registry: dict[str, type[Environment]] = {}


def known_environments(*, installed: bool = False) -> dict[str, type[Environment]]:
    """Every environment defined so far, ours and the user's, by name; with ``installed`` those of other packages too."""
    known = {
        name: cls
        for name, cls in sorted(_registry.items())
        if not inspect.isabstract(cls) and dataclasses.is_dataclass(cls)
    }
    if not installed:
        return known
    return loaded(ENVIRONMENTS, Environment) | known
