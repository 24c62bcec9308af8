"""A player that takes over from another one: it learns from that one's log, as if it had seen those rewards elsewhere.

Each decision of the log is an observation whose key is the id of the decision, so it counts once, however often somebody asks: a
second request after the change brings the rewards that came meanwhile. Everything is an event of the journal like any other.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request

from abex.players.changes import change
from abex.players.requests import ObserveRequest
from abex.players.state import MOST_SEEN_KEYS
from abex.service.bodies import LearnBody
from abex.service.directory import HTTPError, ServiceState
from abex.service.handlers import JSON, queue_of
from abex.support.errors import UserError, shown

#: half of the keys that a player remembers: none is forgotten while it can come again
MOST_LEARNED = MOST_SEEN_KEYS // 2


async def learn(state: ServiceState, request: Request, body: LearnBody) -> JSON:
    """Learn from the latest decisions of another player; each counts once, however often this is asked."""
    heir = await queue_of(state, request.path_params["name"])
    former = await queue_of(state, body.player)
    if heir is former:
        raise UserError(f"the player {shown(body.player)} has learned from its own decisions already")
    ours, theirs = heir.player.settings, former.player.settings
    if theirs.low < ours.low or theirs.high > ours.high:
        raise HTTPError(
            409,
            f"rewards of {shown(body.player)} are from {theirs.low:g} to {theirs.high:g}, "
            f"those of {shown(heir.player.name)} from {ours.low:g} to {ours.high:g}",
        )
    most = min(body.last or MOST_LEARNED, MOST_LEARNED)
    told = change("player learned", heir.player.name, after={"from": former.player.name})
    await asyncio.to_thread(state.store.do, lambda journal: journal.note(told), state.store.deadline)
    await former.refresh()
    await heir.refresh()
    frame = await asyncio.to_thread(former.player.log, most)
    rewarded = frame[frame["reward"].notna()]
    work = observations(rewarded, set(heir.player.arms), (theirs.low, theirs.high))
    with heir.player.reading() as now:
        known = set(now.seen_keys)
    new = [one for one in work if one.key not in known]  # the others would be void, and fill the journal
    size, learned = state.settings.max_batch, 0
    for first in range(0, len(new), size):
        learned += sum(await asyncio.gather(*(heir.submit(one) for one in new[first : first + size])))
    return {"decisions": len(rewarded), "learned": learned, "of_other_arms": len(rewarded) - len(work)}


def observations(told: Any, arms: set[Any], rewards: tuple[float, float]) -> list[ObserveRequest]:
    """Decisions that had their rewards, within their range but for rounding, as observations of those arms that are there.

    >>> import pandas
    >>> told = pandas.DataFrame({"decision": ["d1", "d2"], "arm": ["red", "old"], "reward": [1.0, 0.0], "also": [None, None]})
    >>> observations(told, {"red", "blue"}, (0.0, 1.0))
    [ObserveRequest(arm='red', reward=1.0, also=None, key='d1')]
    """
    names = {str(arm): arm for arm in arms}
    found = []

    def within(reward: float) -> float:
        return min(rewards[1], max(rewards[0], float(reward)))

    for key, arm, reward, also in zip(
        *(told[column] for column in ("decision", "arm", "reward", "also")), strict=True
    ):
        if arm in arms:
            side = {
                names[other]: within(paid)
                for other, paid in json.loads(also or "{}").items()
                if other in names
            }
            found.append(ObserveRequest(arm, within(reward), side or None, key))
    return found
