"""On a feedback graph: the arms that a decision reveals, each with the probability of being observed at that step."""

from __future__ import annotations

import numpy as np

from abex.graphs.feedback import probability_seen, reveal
from abex.players.events import Decided
from abex.players.state import PlayerState
from abex.support.errors import UserError


def observed_with(replica: PlayerState, decision: Decided) -> dict[int, float] | None:
    """By the number of the arm, for all arms that the decision reveals; None without a graph or probabilities, and in a batch."""
    if replica.setting.graph is None or decision.batch is not None or not replica.arms.has(decision.arm):
        return None
    try:
        chosen = replica.probabilities(decision.t)
    except UserError:
        return None
    graph, seen = replica.feedback, np.zeros(replica.n_arms, np.int64)
    with np.errstate(over="ignore"):
        count = reveal(graph, decision.t, replica.arms.place(decision.arm), seen)
        return {
            int(replica.arms.numbers[place]): min(
                1.0, float(probability_seen(graph, decision.t, place, chosen))
            )
            for place in seen[:count].tolist()
        }
