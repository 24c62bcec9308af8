"""Policies that explore by a fractional dominating set: epsilon-greedy-LP and UCB-LP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel
from abex.parameters import HUGE, TINY, real
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.known_graph import fractional_dominating_set, only_graph
from abex.policies.means import learn_mean
from abex.randomness import argmax, share_among_largest
from abex.samplers.softmax import pick
from abex.schema import HAIR, MOST_COUNT, AsStarted, Count, MeanOf, Scratch, Within, agree


class CoveredMeans(NamedTuple):
    """Means, the weights of the program, their sum, and the numerator of the exploration rate."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,)
    cover: Annotated[NDArray[np.float64], Within(0.0, 1.0 + HAIR)]  # (K,)
    total: Annotated[float, Within(1.0 - HAIR, MOST_COUNT)]
    rate: Annotated[float, Within(0.0)]

    def restored(self, fresh: CoveredMeans) -> CoveredMeans:
        """The weights have their sum."""
        check_sum(self.cover, self.total)
        return self


def check_sum(cover: NDArray[np.float64], total: float) -> None:
    """See that a cover from a file has the sum that it says."""
    agree(abs(float(cover.sum()) - total) <= 1e-6 * total, "cover must have the sum total")


@dataclass(frozen=True)
class EpsilonGreedyLP(Policy[CoveredMeans]):
    r"""Explore by the weights of a linear program with a probability that falls as 1/t, else play the best mean.

    :math:`z=\arg\min\sum_k z_k` subject to :math:`\sum_{l\in in(j)}z_l\ge1` for every j;
    :math:`\epsilon_t=\min\{1,c\sum_k z_k/(d^2t)\}`; with that probability pull k with probability :math:`z_k/\sum z`.

    Parameters
    ----------
    c : float
        The theorem asks for more than 5.
    d : float
        A lower bound on the smallest gap, which nobody knows: tune it.

    Notes
    -----
    Cost O(K) per step, after the program is solved once. For fixed graphs.

    References
    ----------
    Buccapatnam, Eryilmaz, Shroff 2014, Algorithm 1 and Theorem 5 (from memory).

    Examples
    --------
    >>> from abex import Graph, Player
    >>> star = Graph.from_edges([(0, 1), (0, 2)])
    >>> Player(EpsilonGreedyLP(), n_arms=3, graph=star, seed=0).select()
    0
    """

    c: float = real(5.1, above=0.0, most=HUGE)
    d: float = real(0.25, least=TINY, most=1.0)
    needs_graph = True
    resizable = False
    changing_graphs = "none"
    names_matter = True  # the program may have several solutions
    also_known_as = ("eps-greedy-LP",)

    def start(self, setting: Setting) -> CoveredMeans:
        """Nothing observed, the program solved."""
        n = setting.n_arms
        cover = fractional_dominating_set(only_graph(self, setting))
        rate = self.c * cover.upper / self.d**2
        return CoveredMeans(np.zeros(n), np.zeros(n), cover.weights, cover.upper, rate)

    @staticmethod
    @kernel
    def select(state: CoveredMeans, t: int, rng: Any) -> int:
        """A draw from the cover, or the best mean."""
        if rng.random() * t < state.rate:
            return pick(state.cover, state.total, rng)
        return argmax(state.means, rng)

    update = staticmethod(learn_mean)

    @staticmethod
    @kernel
    def probabilities(state: CoveredMeans, t: int, out: Any) -> None:
        """The cover's weights and the best means, which share what is left."""
        epsilon = min(1.0, state.rate / t)
        for k in range(out.size):
            out[k] = epsilon * state.cover[k] / state.total
        share_among_largest(state.means, 1.0 - epsilon, out)


class PhaseClock(Scalars):
    """Where the phases stand."""

    phase: Annotated[int, Count()]  # m of the paper
    left: Annotated[int, Count()]  # arms not yet dropped
    cursor: Annotated[int, Count()]  # no arm before it has pulls due in this phase
    done: Annotated[int, Count()]  # 1 when no phase is left


class PhaseState(NamedTuple):
    """Means, the arms still in play, own pulls, the weights of the program, and the clock."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,)
    active: Annotated[NDArray[np.bool_], AsStarted()]  # (K,)
    played: Annotated[NDArray[np.float64], Count()]  # (K,), own pulls
    cover: Annotated[NDArray[np.float64], Within(0.0, 1.0 + HAIR)]  # (K,)
    score: Annotated[NDArray[np.float64], Scratch()]  # (K,)
    clock: PhaseClock
    total: Annotated[float, Within(1.0 - HAIR, MOST_COUNT)]
    horizon: float

    def restored(self, fresh: PhaseState) -> PhaseState:
        """Arms in play are counted; while there are phases left, the cursor is at an arm."""
        left = int(np.count_nonzero(self.active))
        self.clock.left = left
        agree(left >= 1 and self.clock.done <= 1, "clock must leave an arm")
        if self.clock.done == 0:
            agree(left > 1 and self.horizon >= math.e, "clock must end with the last arm")
            agree(self.clock.cursor < self.observations.size, "clock must stand at an arm")
            agree(self.clock.phase <= last_phase(self.horizon), "clock must name a phase")
        check_sum(self.cover, self.total)
        return self


@kernel
def last_phase(horizon: float) -> int:
    """The phase after which there is no other."""
    return math.floor(0.5 * math.log2(horizon / math.e))


@kernel
def phase_pulls(state: PhaseState) -> float:
    """Observations of each arm that the phase asks for, ceil(2 ln(T D^2) / D^2) with D = 2^-m."""
    width = 0.5 ** (2.0 * state.clock.phase)  # D^2
    return float(math.ceil(2.0 * math.log(state.horizon * width) / width))


@kernel
def is_due(state: PhaseState, arm: int, wanted: float) -> bool:
    """Whether the phase still asks for pulls of ``arm``."""
    if state.total <= state.clock.left:
        return bool(state.played[arm] < math.ceil(wanted * state.cover[arm] - 1e-9))
    return bool(state.active[arm] and state.observations[arm] < wanted)


@kernel
def next_due(state: PhaseState) -> None:
    """Move the cursor to the next arm that is due; end phases in which there is none."""
    n_arms = state.means.size
    clock = state.clock
    while clock.done == 0:
        wanted = phase_pulls(state)
        while clock.cursor < n_arms and not is_due(state, clock.cursor, wanted):
            clock.cursor += 1
        if clock.cursor < n_arms:
            return
        width = 0.5 ** (2.0 * clock.phase)
        radius = math.sqrt(math.log(state.horizon * width) / (2.0 * wanted))
        top = 0.0
        for k in range(n_arms):
            if state.active[k]:
                top = max(top, state.means[k])
        for k in range(n_arms):
            if state.active[k] and state.means[k] + radius < top - radius:
                state.active[k] = False
                clock.left -= 1
        clock.phase += 1
        clock.cursor = 0
        if clock.left == 1 or clock.phase > last_phase(state.horizon):
            clock.done = 1


@kernel
def score_means_left(state: PhaseState) -> None:
    """Score the arms in play by their means; a dropped arm is below them all."""
    for k in range(state.means.size):
        state.score[k] = state.means[k] if state.active[k] else -1.0


@dataclass(frozen=True)
class UCBLP(Policy[PhaseState]):
    r"""Successive elimination that explores by the weights of a linear program while many arms are left.

    Phase m = 0, 1, ... asks for :math:`n=\lceil2\ln(T\tilde\Delta^2)/\tilde\Delta^2\rceil` observations of each arm,
    :math:`\tilde\Delta=2^{-m}`: by raising each arm of the program's support to :math:`\lceil n z_k\rceil` pulls while
    :math:`\sum z\le|B|`, else by pulling each remaining arm. Then arms with :math:`\hat\mu_i+r<\max_B\hat\mu-r`,
    :math:`r=\sqrt{\ln(T\tilde\Delta^2)/(2n)}`, are dropped. The last arm, or the best mean after
    :math:`\lfloor\frac12\log_2(T/e)\rfloor` phases, is played to the end.

    Notes
    -----
    Cost O(1) amortised per step, O(K) at the end of a phase, after the program is solved once. For fixed graphs;
    needs the horizon.

    References
    ----------
    Buccapatnam, Eryilmaz, Shroff 2014, Algorithm 2 (UCB-LP). The condition that switches between the two kinds of
    exploration also involves :math:`\tilde\Delta` in the publication; ours is not verified against it.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> star = Graph.from_edges([(0, 1), (0, 2)])
    >>> Player(UCBLP(), n_arms=3, graph=star, horizon=100, seed=0).select()
    0
    """

    needs_graph = True
    resizable = False
    changing_graphs = "none"
    names_matter = True  # the program may have several solutions
    also_known_as = ("UCB-LP",)

    @property
    def needs_horizon(self) -> bool:
        """Always."""
        return True

    def start(self, setting: Setting) -> PhaseState:
        """The first phase, the program solved."""
        n = setting.n_arms
        cover = fractional_dominating_set(only_graph(self, setting))
        horizon = float(self.horizon_of(setting))
        state = PhaseState(
            observations=np.zeros(n),
            means=np.zeros(n),
            active=np.ones(n, dtype=bool),
            played=np.zeros(n),
            cover=cover.weights,
            score=np.zeros(n),
            clock=PhaseClock(left=n, done=n == 1 or horizon < math.e),
            total=cover.upper,
            horizon=horizon,
        )
        next_due(state)
        return state

    @staticmethod
    @kernel
    def select(state: PhaseState, t: int, rng: Any) -> int:
        """The arm that is due, or the best mean of those left."""
        if state.clock.done == 0:
            return state.clock.cursor
        score_means_left(state)
        return argmax(state.score, rng)

    @staticmethod
    @kernel
    def probabilities(state: PhaseState, t: int, out: Any) -> None:
        """All for the arm that is due, or even among the best means of those left."""
        for k in range(out.size):
            out[k] = 0.0
        if state.clock.done == 0:
            out[state.clock.cursor] = 1.0
        else:
            score_means_left(state)
            share_among_largest(state.score, 1.0, out)

    @staticmethod
    @kernel
    def update(state: PhaseState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean; at the end of the step see who is due next."""
        learn_mean(state, t, arm, seen, reward, rng)
        if seen == arm:
            state.played[arm] += 1.0
            next_due(state)

    def report(self, state: PhaseState) -> dict[str, float]:
        """Phase reached and arms left."""
        return {"phase": float(state.clock.phase), "arms_left": float(state.clock.left)}
