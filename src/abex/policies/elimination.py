"""Elimination that samples the arms still in play through a random cover, without knowing the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.parameters import TINY, real
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.means import learn_mean
from abex.randomness import below
from abex.schema import Arms, Count, MeanOf, Rebuilt, Within, agree, positions

# The counters of `EliminationState.clock`.
PHASE = 0  # r of the paper
ACTIVE = 1  # arms still in play
UNSEEN = 2  # of these, not yet observed in this pass
PASSES = 3  # passes left in this phase
MOST_PHASES = 10_000


class EliminationState(NamedTuple):
    """Means, the arms still in play, those this pass has not observed yet, and the clock."""

    pulls: Annotated[PerArm, Count()]  # float64 (K,), observations
    means: Annotated[PerArm, MeanOf("pulls")]  # float64 (K,)
    active: Annotated[NDArray[np.int64], Arms()]  # (K,), the arms in play in its first clock[ACTIVE] places
    unseen: Annotated[
        NDArray[np.int64], Arms()
    ]  # (K,), those to be observed in its first clock[UNSEEN] places
    place: Annotated[NDArray[np.int64], Rebuilt()]  # (K,), where an arm stands in `unseen`, -1 if it does not
    clock: Annotated[NDArray[np.int64], Within(-(2.0**62), 2.0**62)]  # (4,)
    log_level: float  # ln(1 / delta)

    def restored(self, fresh: EliminationState) -> EliminationState:
        """Arms to be observed are arms in play; the places follow from the list."""
        phase, active, unseen, passes = (int(counter) for counter in self.clock)
        agree(
            1 <= phase < MOST_PHASES and 1 <= active <= self.pulls.size,
            "clock must name a phase and its arms",
        )
        agree(1 <= unseen <= active, "clock must leave arms to observe")
        agree(passes >= 1 or active == 1, "clock must leave passes")
        in_play = positions(self.active, active, self.place, "active")
        place = positions(self.unseen, unseen, self.place, "unseen")
        agree(bool((in_play[place >= 0] >= 0).all()), "unseen must be arms in play")
        return self._replace(place=place)


@kernel
def new_pass(state: Any) -> None:
    """All arms in play are to be observed again."""
    count = state.clock[ACTIVE]
    for j in range(count):
        state.unseen[j] = state.active[j]
        state.place[state.active[j]] = j
    state.clock[UNSEEN] = count


@kernel
def new_phase(state: Any) -> None:
    """Passes of the next phase, ceil(2 ln(1/delta) / eps^2) with eps = 2^-(r+1)."""
    state.clock[PHASE] += 1
    shift = min(state.clock[PHASE] + 1, 26)  # 4^26 passes outlast every horizon; more would overflow
    state.clock[PASSES] = np.int64(math.ceil(2.0 * state.log_level * 4.0**shift))
    new_pass(state)


@kernel
def eliminate(state: Any) -> None:
    """Drop the arms whose mean is more than 2 eps below the best."""
    slack = 2.0 * 0.5 ** (state.clock[PHASE] + 1.0)
    top = 0.0
    for j in range(state.clock[ACTIVE]):
        top = max(top, state.means[state.active[j]])
    kept = 0
    for j in range(state.clock[ACTIVE]):
        arm = state.active[j]
        if state.means[arm] >= top - slack:
            state.active[kept] = arm
            kept += 1
    state.clock[ACTIVE] = kept


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

    References
    ----------
    Cohen, Hazan, Koren 2016, Algorithms 1 and 2, Theorem 5; constants as in the code published with a later paper of
    other authors on heavy tails (UAI 2023).

    Notes
    -----
    Cost O(1) per step, O(arms in play) per pass. Plays every graph. The first phase alone takes 32 ln(2KT) passes.

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

    @property
    def needs_horizon(self) -> bool:
        """Only where ``delta`` is left open."""
        return self.delta is None

    def start(self, setting: Setting) -> EliminationState:
        """All arms in play, the first pass open."""
        n = setting.n_arms
        delta = self.delta if self.delta is not None else 0.5 / (n * self.horizon_of(setting))
        state = EliminationState(
            pulls=np.zeros(n),
            means=np.zeros(n),
            active=np.arange(n),
            unseen=np.arange(n),
            place=np.arange(n),
            clock=np.array([0, n, n, 0]),
            log_level=math.log(1.0 / delta),
        )
        new_phase(state)
        return state

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """A uniform arm among those this pass has not observed."""
        return int(state.unseen[below(state.clock[UNSEEN], rng)])

    @staticmethod
    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean, cross the arm off; the end of a pass may end a phase."""
        learn_mean(state, t, arm, seen, reward, rng)
        where = state.place[seen]
        if where >= 0:
            last = state.clock[UNSEEN] - 1
            moved = state.unseen[last]
            state.unseen[where] = moved
            state.place[moved] = where
            state.place[seen] = -1
            state.clock[UNSEEN] = last
        if seen == arm and state.clock[UNSEEN] == 0:
            state.clock[PASSES] -= 1
            if state.clock[PASSES] == 0 and state.clock[ACTIVE] > 1:
                eliminate(state)
                new_phase(state)
            else:
                new_pass(state)

    @staticmethod
    @kernel
    def probabilities(state: Any, t: int, out: Any) -> None:
        """Uniform over the arms this pass has not observed."""
        for k in range(out.size):
            out[k] = 0.0
        for j in range(state.clock[UNSEEN]):
            out[state.unseen[j]] = 1.0 / state.clock[UNSEEN]

    def report(self, state: EliminationState) -> dict[str, float]:
        """Phase reached and arms left."""
        return {"phase": float(state.clock[PHASE]), "arms_left": float(state.clock[ACTIVE])}

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Tuned for the horizon, and bolder."""
        yield cls()
        yield cls(delta=0.3)
        yield cls(delta=0.95)
