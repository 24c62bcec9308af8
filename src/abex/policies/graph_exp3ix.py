"""EXP3-IX with side observations: nothing about the graph has to be guessed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Changing, chance_seen
from abex.kernels import kernel
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.exp3 import loss_chances
from abex.policies.known_graph import known_graph
from abex.samplers.softmax import pick
from abex.schema import Chances, Within


class ImplicitState(NamedTuple):
    """Estimated losses, the law of the last decision, and the sum that sets the rate."""

    losses: Annotated[PerArm, Within()]  # float64 (K,)
    chances: Annotated[PerArm, Chances()]  # float64 (K,)
    spent: Annotated[NDArray[np.float64], Within(0.0, 1e18)]  # (1,), sum of Q_s over the steps so far
    graph: Changing


@kernel
def spent_rate(state: Any) -> float:
    """Learning rate and implicit exploration of the next step."""
    n_arms = state.losses.size
    return math.sqrt(math.log(max(n_arms, 2)) / (n_arms + state.spent[0]))


@dataclass(frozen=True)
class Exp3IXGraph(Policy[ImplicitState]):
    r"""EXP3-IX with side observations: tempered loss estimates, a rate that finds the graph's difficulty itself.

    :math:`p=\mathrm{softmax}(-\eta_t\hat L)`, :math:`o_j=\sum_{l\in in(j)}p_l`,
    :math:`\hat L_j\mathrel{+}=l_j/(o_j+\gamma_t)` for every observed j, and
    :math:`\eta_t=\gamma_t=\sqrt{\ln K/(K+\sum_{s<t}Q_s)}`, :math:`Q_t=\sum_j p_j/(o_j+\gamma_t)`.

    References
    ----------
    Kocák, Neu, Valko, Munos 2014, Algorithm 1 and Theorem 2 (from memory, re-derived): regret
    :math:`O(\sqrt{\ln K(K+\sum_t\alpha_t\ln(KT))})`, without knowing :math:`\alpha` or the horizon.

    Notes
    -----
    Cost O(K + edges) per step, for Q. Plays every graph; the graph is needed after the pull only.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> Player(Exp3IXGraph(), n_arms=2, graph=Graph.from_edges([(0, 1)]), seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    needs_graph = True
    resizable = False
    remembers = ("chances",)
    also_known_as = ("EXP3-IX on graphs",)

    def start(self, setting: Setting) -> ImplicitState:
        """No loss yet."""
        record, n = known_graph(self, setting), setting.n_arms
        return ImplicitState(np.zeros(n), np.full(n, 1.0 / n), np.zeros(1), record)

    @staticmethod
    @kernel
    def probabilities(state: Any, t: int, out: Any) -> None:
        """The softmax of the estimated losses."""
        loss_chances(state.losses, spent_rate(state), out)

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw."""
        loss_chances(state.losses, spent_rate(state), state.chances)
        return pick(state.chances, 1.0, rng)

    @staticmethod
    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Tempered loss of an observed arm; at the end of the step, what it adds to the rate's sum."""
        gamma = spent_rate(state)
        chance = chance_seen(state.graph, t, seen, state.chances)
        state.losses[seen] += (1.0 - reward) / (chance + gamma)
        if seen == arm:
            total = 0.0
            for j in range(state.losses.size):
                total += state.chances[j] / (chance_seen(state.graph, t, j, state.chances) + gamma)
            state.spent[0] += total
