"""One good Bernoulli arm among equal ones, drawn anew in each replication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.environments.environment import Environment, Rules
from abex.kernels import Record, kernel
from abex.support.errors import UserError, whole_number
from abex.support.parameters import MOST_ARMS, real, whole
from abex.support.randomness import uniform_at


class SpecialWorld(Record):
    """The special arm, the two means, and the key of the rewards."""

    key: np.uint64
    special: int
    top: float
    other: float


@kernel
def is_special(world: Any, t: int, arm: int) -> bool:
    """The special arm is the best; all are, if they are alike."""
    return bool(arm == world.special or world.other == world.top)


@dataclass(frozen=True)
class SpecialArm(Environment):
    """K Bernoulli arms of mean ``other`` but for one of mean ``best``, drawn uniformly in each replication.

    The Facebook experiment of "Almost Boltzmann Exploration" (Section 5).

    Parameters
    ----------
    K : int
        Number of arms.
    best, other : float
        Mean of the special arm and of the others.
    among : sequence of int, optional
        The arms of which the special one is drawn, uniformly; default all. With it one samples by strata: the
        expectation over all arms is that over each stratum, weighted by its share of the arms.

    Examples
    --------
    >>> SpecialArm(333).n_arms
    333
    >>> SpecialArm(333, among=[5]).n_arms
    333
    """

    K: int = whole(least=1, most=MOST_ARMS)
    best: float = real(0.75, least=0.0, most=1.0)  # type: ignore[assignment]  # the kernel is in `rules`
    other: float = real(0.5, least=0.0, most=1.0)
    among: Sequence[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.other > self.best:
            raise UserError(f"other must be at most best = {self.best:g}, got {self.other!r}")
        if self.among is not None:
            arms = tuple(whole_number("among", arm, least=0, most=self.K - 1) for arm in self.among)
            if not arms:
                raise UserError("among is empty: name the arms of which the special one is drawn")
            if len(set(arms)) < len(arms):
                raise UserError("among names an arm twice")
            object.__setattr__(self, "among", arms)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.K

    def open(self, key: np.uint64, horizon: int) -> SpecialWorld:
        """Draw the special arm."""
        with np.errstate(over="ignore"):
            drawn = uniform_at(key, 0, 0)  # steps begin at 1: no reward uses this word
        special = int(drawn * self.K) if self.among is None else self.among[int(drawn * len(self.among))]
        return SpecialWorld(key=key, special=special, top=self.best, other=self.other)

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """1 with the arm's probability."""
        mean = world.top if arm == world.special else world.other
        return 1.0 if uniform_at(world.key, t, arm) < mean else 0.0

    @staticmethod
    @kernel
    def gap(world: Any, t: int, arm: int) -> float:
        """Pseudo-regret."""
        return 0.0 if arm == world.special else world.top - world.other

    def rules(self) -> Rules:
        """The kernels."""
        return Rules(self.draw, self.gap, is_special)
