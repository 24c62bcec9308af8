"""A player as JSON: counts, and the arms chosen most, whatever their number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.players.shared_player import SharedPlayer
from abex.players.summary import summarise
from abex.support.errors import UserError


def summary_of(player: SharedPlayer, limit: int) -> dict[str, Any]:
    """Counts of the player, and of the ``limit`` arms chosen most: pulls, mean with interval, probability, recent share."""
    with player._lock:
        replica, terms = player._state, player._settings
        chances, why = _chances(replica)
        arms = summarise(replica, terms, "", limit, chances)
        return {
            "name": player.name,
            "policy": str(player.policy),
            "seq": player.seq(),
            "decisions": replica.decisions,
            "rewarded": replica.tallies.rewarded,
            "waiting": len(replica.pending),
            "expired": replica.tallies.expired,
            "rewards": [terms.low, terms.high],
            "expire": None if terms.expire is None else terms.expire / 1000.0,
            "n_arms": replica.n_arms,
            "shown": len(arms),
            "probabilities_unknown": why,
            "arms": [one._asdict() for one in arms],  # what is not a number is null in JSON
        }


def probabilities_of(player: SharedPlayer, limit: int) -> dict[str, Any]:
    """The probability of each arm at the next decision; the ``limit`` largest, in the order of the arms."""
    with player._lock:
        chances, why = _chances(player._state)
        if why is not None:
            raise UserError(why)
        places = np.sort(np.argsort(-chances, kind="stable")[:limit])
        arms = player._state.arms
        listed = [
            {"arm": arms.label(int(arms.numbers[place])), "probability": float(chances[place])}
            for place in places
        ]
        return {"seq": player.seq(), "n_arms": player.n_arms, "shown": len(listed), "probabilities": listed}


def _chances(replica: Any) -> tuple[Any, str | None]:
    try:
        return replica.probabilities(replica.steps + 1), None
    except UserError as error:
        return np.full(replica.n_arms, math.nan), str(error)
