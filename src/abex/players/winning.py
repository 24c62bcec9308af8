"""Who won among the arms of a player: by sums from what every player keeps, by bets from the log of a shared one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from abex.inference.betting import compared, new_comparison
from abex.inference.columns import laws_of
from abex.inference.winner import BETS, PAIRS, Winner, verdict
from abex.players.player_settings import PlayerSettings
from abex.players.state import PlayerState

LATE = "rewards that come late, and sooner for being good, mislead it"


def winner_by_sums(
    state: PlayerState, settings: PlayerSettings, risk: float, at_least: float | None
) -> Winner:
    """From number and sum of the rewards of each arm, side observations included, in the order in which they came."""
    known = new_comparison(state.n_arms)
    known.observations[:] = state.tallies.observations
    known.sums[:] = state.tallies.sums
    labels = [state.arms.label(number) for number in state.arms.numbers.tolist()]
    scale = settings.high - settings.low
    found = verdict(known, labels, risk=risk, at_least=at_least, method=PAIRS, scale=scale)
    if settings.expire is not None and settings.unrewarded is not None:
        return found._replace(sentence=f"{found.sentence}; {LATE}")
    return found


def winner_by_log(
    columns: Mapping[str, Sequence[Any]],
    labels: list[Any],
    settings: PlayerSettings,
    risk: float,
    at_least: float | None,
) -> Winner | None:
    """From the decisions of a log, in their order; where decisions expire, up to the first that waits. None: nothing can be bet.

    Bets need the probabilities of all arms: they follow from those of the chosen ones for two arms, and where they never change.
    Decisions that were made at once are left out.
    """
    status = columns["status"]
    end = status.index("waiting") if settings.expire is not None and "waiting" in status else len(status)
    reward, chosen = (np.array(columns[name][:end], np.float64) for name in ("reward", "probability"))
    alone = np.array([batch is None for batch in columns["batch"][:end]], bool)
    place = {label: k for k, label in enumerate(labels)}
    arms = np.array([place.get(label, -1) for label in columns["arm"][:end]], np.int64)
    if (arms < 0).any():
        return None  # an arm is gone: what the others had beside it is unknown
    taken = np.isfinite(reward) & np.isfinite(chosen) & alone
    if not taken.any():
        return None
    laws, _ = laws_of(chosen[taken], arms[taken], len(labels))
    if laws is None:
        return None
    scale = settings.high - settings.low
    state, _ = compared(arms[taken], (reward[taken] - settings.low) / scale, laws, len(labels), risk)
    return verdict(state, labels, risk=risk, at_least=at_least, method=BETS, scale=scale)
