"""Who won among the arms of a player: by the bets and sums of its state."""

from __future__ import annotations

from typing import Any

from abex.inference.betting import MOST_COMPARED
from abex.inference.standing import arms_of, checked_control, is_coin
from abex.inference.winner import BETS, SUMS, Winner, checked_risk, verdict
from abex.players.player_settings import PlayerSettings
from abex.players.state import PlayerState
from abex.support.errors import UserError

TOLD = "that whether and when a reward is told does not depend on what it is"


def winner_of(
    state: PlayerState, settings: PlayerSettings, risk: float, at_least: float | None, control: Any
) -> Winner:
    """What may be said of the arms now: by bets where most decisions were bet on, else by sums; with a table of them."""
    labels = state.arms.all_labels()
    if len(labels) > MOST_COMPARED:
        raise UserError(f"who won is told of up to {MOST_COMPARED:,} arms, and there are {len(labels):,}")
    risk = checked_risk(risk)
    control = None if control is None else checked_control(control, labels)
    bets, known = state.bets, state.bets.comparison()
    found = verdict(
        known,
        labels,
        risk=risk,
        at_least=at_least,
        method=BETS if 2 * bets.bet >= bets.counted else SUMS,
        low=settings.low,
        scale=settings.high - settings.low,
        given=TOLD if bets.late else "",
    )
    coin = is_coin(known)
    arms = arms_of(
        known,
        labels,
        coin=coin,
        low=settings.low,
        scale=settings.high - settings.low,
        control=control,
        risk=risk,
    )
    return found._replace(control=control, arms=tuple(arms), coin=coin)
