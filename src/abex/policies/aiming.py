"""Having drawn an arm, play the arm of a known graph that shows it best."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Feedback, observers, reveal
from abex.kernels import kernel, single_dispatch
from abex.samplers.evidence import leading_arm, weight_of
from abex.schema import Scratch


@single_dispatch
def aimed(aim: Any, state: Any, t: int, arm: int, cautious: bool) -> int:
    """The arm to play, having drawn ``arm`` (kernel)."""
    raise TypeError


@single_dispatch
def spread_aimed(aim: Any, state: Any, t: int, lead: int, cautious: bool, share: float, out: Any) -> None:
    """Add to ``out`` the probabilities of what is played when an arm is drawn by its weight, times ``share`` (kernel)."""
    raise TypeError


class NoAim(NamedTuple):
    """The arm drawn is played."""

    n_arms: int


@aimed.register(NoAim)
@kernel
def play_drawn(aim: NoAim, state: Any, t: int, arm: int, cautious: bool) -> int:
    """Itself."""
    return arm


@spread_aimed.register(NoAim)
@kernel
def spread_drawn(aim: NoAim, state: Any, t: int, lead: int, cautious: bool, share: float, out: Any) -> None:
    """By the weights; what is left is the leader's."""
    left = share
    for k in range(out.size):
        if k != lead:
            drawn = share * weight_of(state, k, lead, cautious) / out.size
            out[k] += drawn
            left -= drawn
    if lead >= 0:
        out[lead] += left


class Aim(NamedTuple):
    """The graph, and room for the weights of all arms, the arms that show one and the arms that one shows."""

    graph: Feedback
    weights: Annotated[NDArray[np.float64], Scratch()]  # (K,)
    who: Annotated[NDArray[np.int32], Scratch()]  # (K,)
    shown: Annotated[NDArray[np.int32], Scratch()]  # (K,)

    @classmethod
    def on(cls, graph: Feedback, n_arms: int) -> Aim:
        """Room for a graph."""
        return cls(graph, np.zeros(n_arms), np.zeros(n_arms, np.int32), np.zeros(n_arms, np.int32))


@kernel
def weigh_all(aim: Aim, state: Any, lead: int, cautious: bool) -> None:
    """The weights of all arms: their sum is K."""
    left = float(aim.weights.size)
    for k in range(aim.weights.size):
        if k != lead:
            aim.weights[k] = weight_of(state, k, lead, cautious)
            left -= aim.weights[k]
    if lead >= 0:
        aim.weights[lead] = left


@kernel
def who_shows_best(aim: Aim, state: Any, t: int, arm: int, lead: int) -> int:
    """The leader if it shows the arm, else who shows it at the least loss for the weight that it shows; weights are at hand."""
    count = observers(aim.graph, t, arm, aim.who)
    best = arm
    least = math.inf
    for j in range(count):
        other = int(aim.who[j])
        if other == lead:
            return lead
        loss = 1.0  # all are alike before the first observation
        if lead >= 0:
            loss = state.means[lead] - state.means[other]  # an arm never observed stands at 0
        weight = 0.0
        for i in range(reveal(aim.graph, t, other, aim.shown)):
            if aim.shown[i] != lead:
                weight += aim.weights[aim.shown[i]]
        price = loss / max(weight, 1e-300)
        if price < least:
            least = price
            best = other
    return best


@aimed.register(Aim)
@kernel
def play_aimed(aim: Aim, state: Any, t: int, arm: int, cautious: bool) -> int:
    """Who shows the arm best."""
    lead = leading_arm(state.sampler)
    if arm == lead:
        return arm
    weigh_all(aim, state, lead, cautious)
    return who_shows_best(aim, state, t, arm, lead)


@spread_aimed.register(Aim)
@kernel
def spread_over_aims(aim: Aim, state: Any, t: int, lead: int, cautious: bool, share: float, out: Any) -> None:
    """Each arm's probability goes to who shows it best."""
    weigh_all(aim, state, lead, cautious)
    for k in range(out.size):
        play = k if k == lead else who_shows_best(aim, state, t, k, lead)
        out[play] += share * aim.weights[k] / out.size
