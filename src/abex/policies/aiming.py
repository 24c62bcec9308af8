"""Having drawn an arm, play the arm of a known graph that shows it best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import observers, reveal
from abex.kernels import Record, kernel, single_dispatch
from abex.samplers.evidence import leading_arm, rarity_of, weight_of


class Aim(Record):
    """The graph, and room for the weights of all arms, the arms that show one and the arms that one shows."""

    graph: Any
    weights: NDArray[np.float64]  # (K,)
    who: NDArray[np.int32]  # (K,)
    shown: NDArray[np.int32]  # (K,)


def aim_on(graph: Any, n_arms: int) -> Aim:
    """Room for a graph."""
    return Aim.of_arms(n_arms, graph=graph)


@single_dispatch
def observer_of(aim: Any, state: Any, t: int, target: int, cautious: bool) -> int:
    """The arm to play, having drawn the arm ``target`` (kernel): itself, where no graph is known."""
    return target


@single_dispatch
def observer_probabilities(
    aim: Any, state: Any, t: int, lead: int, cautious: bool, share: float, out: Any
) -> None:
    """Add to ``out`` the probabilities of `observer_of` for an arm that is drawn by its weight, times ``share`` (kernel)."""
    left = share
    for k in range(out.size):
        if k != lead:
            drawn = share * weight_of(state, k, lead, cautious) / rarity_of(state.sampler, k, out.size)
            out[k] += drawn
            left -= drawn
    if lead >= 0:
        out[lead] += left


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
def cheapest_observer(aim: Aim, state: Any, t: int, target: int, lead: int) -> int:
    """The leader if it shows the target, else who shows it at the least loss for the weight shown; weights are at hand."""
    count = observers(aim.graph, t, target, aim.who)
    best = target
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


@observer_of.register(Aim)
@kernel
def observer_on_graph(aim: Aim, state: Any, t: int, target: int, cautious: bool) -> int:
    """Who shows the target best."""
    lead = leading_arm(state.sampler)
    if target == lead:
        return target
    weigh_all(aim, state, lead, cautious)
    return cheapest_observer(aim, state, t, target, lead)


@observer_probabilities.register(Aim)
@kernel
def spread_over_observers(
    aim: Aim, state: Any, t: int, lead: int, cautious: bool, share: float, out: Any
) -> None:
    """Each arm's probability goes to who shows it best."""
    weigh_all(aim, state, lead, cautious)
    for k in range(out.size):
        play = k if k == lead else cheapest_observer(aim, state, t, k, lead)
        out[play] += share * aim.weights[k] / out.size
