"""Elimination that samples the arms still in play through a random cover, without knowing the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel
from abex.parameters import TINY, real
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.means import learn_mean
from abex.randomness import below
from abex.samplers.arm_lists import swap_remove
from abex.schema import ArmNumbers, Count, MeanOf, Rebuilt, Within, agree, positions

MOST_PHASES = 10_000


class EliminationClock(Scalars):
    """Where the phases stand."""

    phase: Annotated[int, Count()]  # r of the paper
    active: Annotated[int, Count()]  # arms still in play
    unseen: Annotated[int, Count()]  # of these, not yet observed in this pass
    passes: Annotated[int, Within(-(2.0**62), 2.0**62)]  # passes left in this phase


class EliminationState(NamedTuple):
    """Means, the arms still in play, those this pass has not observed yet, and the clock."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,)
    active: Annotated[
        NDArray[np.int64], ArmNumbers()
    ]  # (K,), the arms in play in its first clock.active places
    unseen: Annotated[
        NDArray[np.int64], ArmNumbers()
    ]  # (K,), those to be observed in its first clock.unseen places
    place: Annotated[NDArray[np.int64], Rebuilt()]  # (K,), where an arm stands in `unseen`, -1 if it does not
    clock: EliminationClock
    log_level: float  # ln(1 / delta)

    def restored(self, fresh: EliminationState) -> EliminationState:
        """Arms to be observed are arms in play; the places follow from the list."""
        clock = self.clock
        agree(
            1 <= clock.phase < MOST_PHASES and 1 <= clock.active <= self.observations.size,
            "clock must name a phase and its arms",
        )
        agree(1 <= clock.unseen <= clock.active, "clock must leave arms to observe")
        agree(clock.passes >= 1 or clock.active == 1, "clock must leave passes")
        in_play = positions(self.active, clock.active, self.place, "active")
        place = positions(self.unseen, clock.unseen, self.place, "unseen")
        agree(bool((in_play[place >= 0] >= 0).all()), "unseen must be arms in play")
        return self._replace(place=place)


@kernel
def new_pass(state: EliminationState) -> None:
    """All arms in play are to be observed again."""
    count = state.clock.active
    for j in range(count):
        state.unseen[j] = state.active[j]
        state.place[state.active[j]] = j
    state.clock.unseen = count


@kernel
def new_phase(state: EliminationState) -> None:
    """Passes of the next phase, ceil(2 ln(1/delta) / eps^2) with eps = 2^-(r+1)."""
    state.clock.phase += 1
    shift = min(state.clock.phase + 1, 26)  # 4^26 passes outlast every horizon; more would overflow
    state.clock.passes = math.ceil(2.0 * state.log_level * 4.0**shift)
    new_pass(state)


@kernel
def eliminate(state: EliminationState) -> None:
    """Drop the arms whose mean is more than 2 eps below the best."""
    slack = 2.0 * 0.5 ** (state.clock.phase + 1.0)
    top = 0.0
    for j in range(state.clock.active):
        top = max(top, state.means[state.active[j]])
    kept = 0
    for j in range(state.clock.active):
        arm = state.active[j]
        if state.means[arm] >= top - slack:
            state.active[kept] = arm
            kept += 1
    state.clock.active = kept


@dataclass(frozen=True)
class EliminationAlphaSample(Policy[EliminationState]):
    r"""Phases of random covers of the arms in play, after each of which clearly worse arms are dropped.

    Phase r = 1, 2, ... makes :math:`n_r=\lceil2\ln(1/\delta)/\epsilon_r^2\rceil` AlphaSample passes,
    :math:`\epsilon_r=2^{-(r+1)}`: pull a uniform arm among those in play not yet observed in this pass until all are.
    Then arms with :math:`\hat\mu<\max\hat\mu-2\epsilon_r` are dropped. No graph knowledge.

    Parameters
    ----------
    delta : float or None
        None takes :math:`1/(2KT)`, which needs the horizon.

    Notes
    -----
    Cost O(1) per step, O(arms in play) per pass. Plays every graph. The first phase alone takes 32 ln(2KT) passes.

    References
    ----------
    Cohen, Hazan, Koren 2016, Algorithms 1 and 2, Theorem 5; constants as in the code published with a later paper of
    other authors on heavy tails (UAI 2023).

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(EliminationAlphaSample(delta=0.5), n_arms=3, seed=0)
    >>> player.update_many([(0, 0.5), (1, 0.5)]), player.select()
    (2, 2)
    """

    delta: float | None = real(None, least=TINY, most=0.999, or_none=True)
    resizable = False
    also_known_as = ("AAE-AlphaSample",)
    horizon_sets = ("delta",)

    def start(self, setting: Setting) -> EliminationState:
        """All arms in play, the first pass open."""
        n = setting.n_arms
        delta = self.delta if self.delta is not None else 0.5 / (n * self.horizon_of(setting))
        state = EliminationState(
            observations=np.zeros(n),
            means=np.zeros(n),
            active=np.arange(n),
            unseen=np.arange(n),
            place=np.arange(n),
            clock=EliminationClock(active=n, unseen=n),
            log_level=math.log(1.0 / delta),
        )
        new_phase(state)
        return state

    @staticmethod
    @kernel
    def select(state: EliminationState, t: int, rng: Any) -> int:
        """A uniform arm among those this pass has not observed."""
        return int(state.unseen[below(state.clock.unseen, rng)])

    @staticmethod
    @kernel
    def update(state: EliminationState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean, cross the arm off; the end of a pass may end a phase."""
        learn_mean(state, t, arm, seen, reward, rng)
        if state.place[seen] >= 0:
            state.clock.unseen = swap_remove(state.unseen, state.place, state.clock.unseen, seen)
        if seen == arm and state.clock.unseen == 0:
            state.clock.passes -= 1
            if state.clock.passes == 0 and state.clock.active > 1:
                eliminate(state)
                new_phase(state)
            else:
                new_pass(state)

    @staticmethod
    @kernel
    def probabilities(state: EliminationState, t: int, out: Any) -> None:
        """Uniform over the arms this pass has not observed."""
        for k in range(out.size):
            out[k] = 0.0
        for j in range(state.clock.unseen):
            out[state.unseen[j]] = 1.0 / state.clock.unseen

    def report(self, state: EliminationState) -> dict[str, float]:
        """Phase reached and arms left."""
        return {"phase": float(state.clock.phase), "arms_left": float(state.clock.active)}

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned for the horizon, and bolder."""
        yield cls()
        yield cls(delta=0.3)
        yield cls(delta=0.95)
