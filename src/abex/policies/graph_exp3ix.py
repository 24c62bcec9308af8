"""EXP3-IX with side observations: nothing about the graph has to be guessed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from abex.graphs.feedback import Feedback, probability_seen
from abex.kernels import Scalars, kernel
from abex.policies.base import PerArm, Setting
from abex.policies.drawn import DrawnPolicy
from abex.policies.known_graph import known_graph
from abex.samplers.scan import loss_probabilities
from abex.schema import Probabilities, Within


class ObservabilitySum(Scalars):
    """What the learning rate has to be divided by."""

    spent: Annotated[float, Within(0.0, 1e18)]  # sum over the steps so far


class ImplicitState(NamedTuple):
    """Estimated losses, the distribution of the last decision, and the sum that sets the rate."""

    losses: Annotated[PerArm, Within()]  # float64 (K,)
    probabilities: Annotated[PerArm, Probabilities()]  # float64 (K,)
    sums: ObservabilitySum  # of Q_s
    graph: Feedback


@kernel
def spent_rate(state: ImplicitState) -> float:
    """Learning rate and implicit exploration of the next step."""
    n_arms = state.losses.size
    return math.sqrt(math.log(max(n_arms, 2)) / (n_arms + state.sums.spent))


@dataclass(frozen=True)
class Exp3IXGraph(DrawnPolicy[ImplicitState]):
    r"""EXP3-IX with side observations: tempered loss estimates, a rate that finds the graph's difficulty itself.

    :math:`p=\mathrm{softmax}(-\eta_t\hat L)`, :math:`o_j=\sum_{l\in in(j)}p_l`,
    :math:`\hat L_j\mathrel{+}=l_j/(o_j+\gamma_t)` for every observed j, and
    :math:`\eta_t=\gamma_t=\sqrt{\ln K/(K+\sum_{s<t}Q_s)}`, :math:`Q_t=\sum_j p_j/(o_j+\gamma_t)`.

    Notes
    -----
    Cost O(K + edges) per step, for Q. Plays every graph; the graph is needed after the pull only.

    References
    ----------
    Kocák, Neu, Valko, Munos 2014, Algorithm 1 and Theorem 2 (from memory, re-derived): regret
    :math:`O(\sqrt{\ln K(K+\sum_t\alpha_t\ln(KT))})`, without knowing :math:`\alpha` or the horizon.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> Player(Exp3IXGraph(), n_arms=2, graph=Graph.from_edges([(0, 1)]), seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    needs_graph = True
    resizable = False
    also_known_as = ("EXP3-IX on graphs",)

    def start(self, setting: Setting) -> ImplicitState:
        """No loss yet."""
        record, n = known_graph(self, setting), setting.n_arms
        return ImplicitState(np.zeros(n), np.full(n, 1.0 / n), ObservabilitySum(), record)

    @staticmethod
    @kernel
    def probabilities(state: ImplicitState, t: int, out: Any) -> None:
        """The softmax of the estimated losses."""
        loss_probabilities(state.losses, spent_rate(state), out)

    @staticmethod
    @kernel
    def update(state: ImplicitState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Tempered loss of an observed arm; at the end of the step, what it adds to the rate's sum."""
        gamma = spent_rate(state)
        probability = probability_seen(state.graph, t, seen, state.probabilities)
        state.losses[seen] += (1.0 - reward) / (probability + gamma)
        if seen == arm:
            total = 0.0
            for j in range(state.losses.size):
                total += state.probabilities[j] / (
                    probability_seen(state.graph, t, j, state.probabilities) + gamma
                )
            state.sums.spent += total
