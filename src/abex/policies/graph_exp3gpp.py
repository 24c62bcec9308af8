"""EXP3.G++: exponential weights on feedback graphs, for adversarial and for random rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Feedback, probability_seen, reveal
from abex.kernels import kernel
from abex.parameters import HUGE, TINY, real
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.exp3 import loss_probabilities
from abex.policies.graph_exp3 import LEAST_PROBABILITY_SEEN
from abex.policies.graph_exp3ix import ObservabilitySum
from abex.policies.known_graph import known_graph
from abex.samplers.softmax import pick
from abex.schema import Count, MeanOf, Probabilities, Scratch, UpToArms, Within


class GapGraphState(NamedTuple):
    """Estimated losses, plain means of the losses, the exploration set, and the distribution of the last decision."""

    losses: Annotated[PerArm, Within()]  # float64 (K,), importance-weighted sums
    observations: Annotated[PerArm, Count()]  # float64 (K,)
    mean_losses: Annotated[PerArm, MeanOf("observations")]  # float64 (K,), unweighted
    probabilities: Annotated[PerArm, Probabilities()]  # float64 (K,)
    gaps: Annotated[NDArray[np.float64], Scratch()]  # (K,)
    order: Annotated[NDArray[np.int64], Scratch()]  # (K,), arms by gap
    hidden: Annotated[NDArray[np.bool_], Scratch()]  # (K,)
    who: Annotated[NDArray[np.int32], Scratch()]  # (K,)
    size: Annotated[NDArray[np.float64], UpToArms()]  # (1,), size of the exploration set of the last select
    sums: ObservabilitySum  # of these sizes
    unseen: Annotated[NDArray[np.int64], UpToArms()]  # (1,), arms never observed before this step
    a: float
    b: float
    graph: Feedback


@kernel
def sort_by_gap(gaps: Any, order: Any) -> None:
    """Insertion sort by (gap, arm): nearly linear, since the order changes little from step to step."""
    for i in range(1, order.size):
        arm = order[i]
        j = i - 1
        while j >= 0 and (gaps[order[j]] > gaps[arm] or (gaps[order[j]] == gaps[arm] and order[j] > arm)):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = arm


@kernel
def gap_graph_probabilities(state: GapGraphState, t: int, out: Any) -> None:
    """Uniform over unobserved arms while there are any, then softmax with floors on the exploration set."""
    n_arms = out.size
    untried = 0
    for k in range(n_arms):
        if state.observations[k] == 0.0:
            untried += 1
    if untried > 0:
        for k in range(n_arms):
            out[k] = 1.0 / untried if state.observations[k] == 0.0 else 0.0
        return
    level = 0.5 * (state.a * math.log(t) + math.log(n_arms))
    lowest = 1.0
    for k in range(n_arms):
        lowest = min(lowest, state.mean_losses[k] + math.sqrt(level / state.observations[k]))
    for k in range(n_arms):
        state.gaps[k] = max(
            0.0, max(0.0, state.mean_losses[k] - math.sqrt(level / state.observations[k])) - lowest
        )
        state.hidden[k] = True
    sort_by_gap(state.gaps, state.order)
    size = 0
    for i in range(n_arms):
        arm = state.order[i]
        if state.hidden[arm]:
            size += 1
            for j in range(reveal(state.graph, t, arm, state.who)):
                state.hidden[state.who[j]] = False
            state.order[i] = -1 - arm  # marks a member until the floors are known
    state.size[0] = size
    log_arms = math.log(max(n_arms, 2))
    loss_probabilities(state.losses, 0.5 * math.sqrt(log_arms / (state.sums.spent + size)), out)
    cap = min(0.5 / n_arms, 0.5 * math.sqrt(log_arms / (t * size)))
    given = 0.0
    for i in range(n_arms):
        if state.order[i] < 0:
            given += gap_floor(state, t, -1 - state.order[i], cap)
    for k in range(n_arms):
        out[k] *= 1.0 - given
    for i in range(n_arms):
        if state.order[i] < 0:
            arm = -1 - state.order[i]
            state.order[i] = arm
            out[arm] += gap_floor(state, t, arm, cap)


@kernel
def gap_floor(state: GapGraphState, t: int, arm: int, cap: float) -> float:
    """Exploration rate of a member of the exploration set."""
    gap = state.gaps[arm]
    return cap if gap <= 0.0 else min(cap, state.b * math.log(t) / (t * gap * gap))


@dataclass(frozen=True)
class Exp3GPlusPlus(Policy[GapGraphState]):
    r"""EXP3.G++: exponential weights for graphs that explore a set of arms by which all are seen, bad arms less.

    :math:`p=(1-\sum_{k\in S}\epsilon_k)\,\mathrm{softmax}(-\eta_t\hat L)+\epsilon`. S is built by scanning the arms by increasing
    gap estimate :math:`\hat\Delta_k` (confidence bounds as in `Exp3PlusPlus`, with observations for pulls), taking
    those not yet seen by S; :math:`\epsilon_k=\min\{\frac1{2K},\frac12\sqrt{\ln K/(t|S|)},b\ln t/(t\hat\Delta_k^2)\}` on S.
    Losses are weighted by the probability of observation. Arms never observed come first.

    Parameters
    ----------
    a, b : float
        Constants of the gap estimate, 3 and 256 as in `Exp3PlusPlus`. These, the learning rate
        :math:`\eta_t=\frac12\sqrt{\ln K/\sum_{s\le t}|S_s|}` and the start are our reading: not verified against the publication.

    Notes
    -----
    Cost O(K + edges shown by S) per step, more while the order of the gaps changes. Plays every graph.

    References
    ----------
    Rouyer, van der Hoeven, Cesa-Bianchi, Seldin 2022, Algorithm 1 (abstract and outline only).

    Examples
    --------
    >>> from abex import Graph, Player
    >>> player = Player(Exp3GPlusPlus(), n_arms=2, graph=Graph.from_edges([(0, 1)]), seed=0)
    >>> player.update(0, 0.0, also={1: 1.0})
    True
    >>> player.probabilities().tolist()
    [0.625, 0.375]
    """

    a: float = real(3.0, least=TINY, most=HUGE)
    b: float = real(256.0, least=TINY, most=HUGE)
    needs_graph = True
    resizable = False
    remembers = ("probabilities", "size", "unseen")
    names_matter = True  # arms with equal gap estimates are scanned by number
    also_known_as = ("EXP3.G++",)

    def start(self, setting: Setting) -> GapGraphState:
        """Nothing observed."""
        record, n = known_graph(self, setting), setting.n_arms
        return GapGraphState(
            losses=np.zeros(n),
            observations=np.zeros(n),
            mean_losses=np.zeros(n),
            probabilities=np.full(n, 1.0 / n),
            gaps=np.zeros(n),
            order=np.arange(n),
            hidden=np.zeros(n, dtype=bool),
            who=np.zeros(n, dtype=np.int32),
            size=np.zeros(1),
            sums=ObservabilitySum(),
            unseen=np.full(1, n, dtype=np.int64),
            a=float(self.a),
            b=float(self.b),
            graph=record,
        )

    probabilities = staticmethod(gap_graph_probabilities)

    @staticmethod
    @kernel
    def select(state: GapGraphState, t: int, rng: Any) -> int:
        """A draw."""
        gap_graph_probabilities(state, t, state.probabilities)
        state.unseen[0] = 0
        for k in range(state.observations.size):
            if state.observations[k] == 0.0:
                state.unseen[0] += 1
        return pick(state.probabilities, 1.0, rng)

    @staticmethod
    @kernel
    def update(state: GapGraphState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Plain mean of the losses; weighted sum once every arm has been observed."""
        loss = 1.0 - reward
        state.observations[seen] += 1.0
        state.mean_losses[seen] += (loss - state.mean_losses[seen]) / state.observations[seen]
        if state.unseen[0] == 0:
            probability = probability_seen(state.graph, t, seen, state.probabilities)
            state.losses[seen] += loss / max(probability, LEAST_PROBABILITY_SEEN)
            if seen == arm:
                state.sums.spent += state.size[0]
