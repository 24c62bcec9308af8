"""The arms of a player as JSON: those chosen most, whatever their number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.players.shared import SharedPlayer
from abex.players.summary import interval_of
from abex.support.errors import UserError


def number(value: float | None) -> float | None:
    """A number as JSON knows it: None for what is not one."""
    return None if value is None or not math.isfinite(value) else float(value)


def summary_of(player: SharedPlayer, limit: int) -> dict[str, Any]:
    """Counts of the player, and of the ``limit`` arms chosen most: pulls, mean with interval, probability, recent share."""
    with player._lock:
        replica, terms = player._replica, player._terms
        chances, why = _chances(replica)
        tallies, labels = replica.tallies, replica.arms
        counts = {
            "decisions": replica.decisions,
            "rewarded": tallies.rewarded,
            "waiting": len(replica.pending),
            "expired": tallies.expired,
        }
        pulls, observations, sums = tallies.pulls.copy(), tallies.observations.copy(), tallies.sums.copy()
        recent = np.array(tallies.recent, dtype=np.int64)
        seq, n_arms = player.seq(), replica.n_arms
        places = np.sort(np.argsort(-pulls, kind="stable")[:limit])
        numbers = [int(labels.numbers[place]) for place in places]
        names = [labels.label(one) for one in numbers]
    arms = []
    for place, own, name in zip(places.tolist(), numbers, names, strict=True):
        count = int(observations[place])
        mean = float(sums[place]) / count if count else math.nan
        low, high = interval_of(mean, count)
        arms.append(
            {
                "arm": name,
                "pulls": int(pulls[place]),
                "observations": count,
                "mean": number(terms.shown(mean)),
                "low": number(terms.shown(low)),
                "high": number(terms.shown(high)),
                "probability": None if chances is None else number(float(chances[place])),
                "recent_share": number(float((recent == own).mean())) if recent.size else None,
            }
        )
    return {
        "name": player.name,
        "policy": str(player.policy),
        "seq": seq,
        **counts,
        "rewards": [terms.low, terms.high],
        "expire": None if terms.expire is None else terms.expire / 1000.0,
        "n_arms": n_arms,
        "shown": len(arms),
        "probabilities_unknown": why,
        "arms": arms,
    }


def probabilities_of(player: SharedPlayer, limit: int) -> dict[str, Any]:
    """The probability of each arm at the next decision; the ``limit`` largest, in the order of the arms."""
    with player._lock:
        chances, why = _chances(player._replica)
        if chances is None:
            raise UserError(str(why))
        places = np.sort(np.argsort(-chances, kind="stable")[:limit])
        arms = player._replica.arms
        listed = [
            {"arm": arms.label(int(arms.numbers[place])), "probability": float(chances[place])}
            for place in places
        ]
        return {"seq": player.seq(), "n_arms": player.n_arms, "shown": len(listed), "probabilities": listed}


def _chances(replica: Any) -> tuple[Any, str | None]:
    try:
        return replica.probabilities(replica.steps + 1), None
    except UserError as error:
        return None, str(error)
