"""What the service does: make players, decide, reward, observe, change arms, look."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from abex.graphs.graph import Graph
from abex.players.arms import NamedArms
from abex.players.declared_arms import declare
from abex.players.ids import moment_of
from abex.players.journal import UnavailableError
from abex.players.player import UnknownDecisionError, new_state
from abex.players.player_file import player_text
from abex.players.player_settings import terms
from abex.players.requests import DecideRequest, ObserveRequest, RewardRequest, arm_named
from abex.players.shared_player import RECENT, SharedPlayer
from abex.service.bodies import (
    ArmBody,
    DecideBody,
    DecideManyBody,
    NewPlayer,
    ObserveBody,
    RenameBody,
    RewardBody,
    RewardManyBody,
)
from abex.service.desk import Desk
from abex.service.directory import ConflictError
from abex.service.endpoint import HTTPError, JSONAnswer, ServiceState
from abex.service.overview import probabilities_of, summary_of
from abex.support.errors import UserError, shown, whole_number

LATE = 0.1  # seconds to wait for a decision that a process outside the service has just made
MOST_LISTED = 10_000  # arms in one answer
FEW_LISTED = 100
JSON = dict[str, Any]


async def desk_of(state: ServiceState, request: Request) -> Desk:
    """The desk of the player in the path."""
    return await state.directory.desk(request.path_params["name"])


async def refreshed(state: ServiceState, request: Request) -> SharedPlayer:
    """The player in the path, as the store has it now."""
    desk = await desk_of(state, request)
    await desk.refresh()
    return desk.player


def limit_of(
    request: Request, name: str = "limit", most: int = MOST_LISTED, default: int = FEW_LISTED
) -> int:
    """A number of the query."""
    given = request.query_params.get(name)
    if given is None:
        return min(default, most)
    value: Any = int(given) if given.isascii() and given.isdigit() and len(given) < 12 else given
    return whole_number(name, value, least=1, most=most)


# -- players ----------------------------------------------------------------------------------------------


async def list_players(state: ServiceState, request: Request, body: None) -> JSON:
    """The players of the store by name."""
    limit, directory = limit_of(request, default=MOST_LISTED), state.directory
    found = await asyncio.to_thread(directory.listed, limit)
    many = len(found) if len(found) < limit else await asyncio.to_thread(directory.count)
    return {"n_players": many, "shown": len(found), "players": found}


async def create_player(state: ServiceState, request: Request, body: NewPlayer) -> JSONAnswer:
    """Make a player; one that is there must be the same, and gets the arms that are declared (`on_new_arms`)."""
    created, arms = await asyncio.to_thread(_create, state, body)
    desk = await state.directory.desk(body.name)
    if not created:
        await asyncio.to_thread(_declare, desk.player, arms, body)
    found = await asyncio.to_thread(summary_of, desk.player, FEW_LISTED)
    return JSONAnswer({"created": created} | found, 201 if created else 200)


def _declare(player: SharedPlayer, arms: NamedArms, wanted: NewPlayer) -> None:
    try:
        declare(player, arms, wanted.on_new_arms, wanted.on_missing_arms, f"the player {player.name!r}")
    except UnavailableError:
        raise
    except UserError as error:
        raise ConflictError(str(error)) from error


def _create(state: ServiceState, wanted: NewPlayer) -> tuple[bool, NamedArms]:
    numbered = isinstance(wanted.arms, int)
    n_arms = wanted.arms if isinstance(wanted.arms, int) else len(wanted.arms)
    whole_number("arms", n_arms, least=1, most=state.settings.max_arms)
    try:
        expire = None if wanted.expire is None else timedelta(seconds=wanted.expire)
    except (OverflowError, ValueError):
        raise UserError(f"expire must be a number of seconds, got {shown(wanted.expire)}") from None
    agreed = terms(wanted.rewards, expire, wanted.unrewarded, None if wanted.propensities else False)
    graph = None if wanted.edges is None else Graph.from_edges([tuple(pair) for pair in wanted.edges], n_arms)
    pending = max(state.settings.max_open, 10**6)
    labels = None if numbered else wanted.arms
    replica = new_state(wanted.policy, n_arms, labels, graph, wanted.horizon, False, pending)
    return state.directory.create(wanted.name, replica, agreed), replica.arms


async def export_player(state: ServiceState, request: Request, body: None) -> Response:
    """The player with all it knows, as a file for `Player.load`; its ETag is the number of the last event."""
    player = await refreshed(state, request)

    def exported() -> tuple[int, str]:
        with player._lock:
            return player.seq(), player_text(player)

    seq, text = await asyncio.to_thread(exported)
    headers = {"etag": f'"{seq}"', "content-disposition": 'attachment; filename="player.json"'}
    return Response(text, media_type="application/json", headers=headers)


async def delete_player(state: ServiceState, request: Request, body: None) -> JSON:
    """Delete a player and its journal for ever, where If-Match says that its last state has been exported."""
    name, tag = request.path_params["name"], request.headers.get("if-match", "").strip('"')
    if not (tag.isascii() and tag.isdigit() and len(tag) < 19):
        raise HTTPError(428, "export the player first, and send the ETag of the export in If-Match")
    if not await asyncio.to_thread(state.directory.delete, name, int(tag)):
        raise HTTPError(412, f"the player {shown(name)} has had events since that export: export it again")
    state.directory.desks.pop(name, None)
    state.timelines.pop(name, None)
    return {"deleted": name}


# -- deciding and learning --------------------------------------------------------------------------------


def _shown(decision: Any) -> JSON:
    return {"id": decision.id, "arm": decision.arm, "probability": decision.compute_probability()}


async def decide(state: ServiceState, request: Request, body: DecideBody) -> JSON:
    """What to try next; on disk when it is answered."""
    desk = await desk_of(state, request)
    (decision,) = await desk.submit(DecideRequest((body.unit,), body.key))
    return _shown(decision)


async def decide_many(state: ServiceState, request: Request, body: DecideManyBody) -> JSON:
    """Several decisions at once: on different arms, or one for each unit."""
    if (body.count is None) == (body.units is None):
        raise UserError("give either count, for different arms, or units, for a decision each")
    many = body.count if body.count is not None else len(body.units or ())
    whole_number("the number of decisions", many, least=1, most=state.settings.max_batch)
    units = (None,) * many if body.units is None else tuple(body.units)
    desk = await desk_of(state, request)
    decisions = await desk.submit(DecideRequest(units, body.key, distinct=body.units is None))
    return {"decisions": [_shown(one) for one in decisions]}


async def reward(state: ServiceState, request: Request, body: RewardBody) -> JSON:
    """The reward of a decision; it counts once, however often it is reported."""
    (learned,) = await _learned(state, request, [body])
    return {"learned": learned}


async def reward_many(state: ServiceState, request: Request, body: RewardManyBody) -> JSON:
    """Rewards of several decisions: all are learned, or none if one is wrong."""
    whole_number("the number of rewards", len(body.rewards), least=1, most=state.settings.max_batch)
    return {"learned": await _learned(state, request, body.rewards)}


async def _learned(state: ServiceState, request: Request, rewards: list[RewardBody]) -> list[bool]:
    desk = await desk_of(state, request)
    work = RewardRequest([(one.decision, one.reward, one.also) for one in rewards])
    try:
        found: list[bool] = await desk.submit(work)
    except UnknownDecisionError as error:
        if desk.player._now() - moment_of(error.id) > RECENT:
            raise
        await asyncio.sleep(LATE)  # a process outside the service may be about to write it
        found = await desk.submit(work)
    return found


async def observe(state: ServiceState, request: Request, body: ObserveBody) -> JSON:
    """What an arm paid that was tried without a decision of the player."""
    desk = await desk_of(state, request)
    return {"learned": await desk.submit(ObserveRequest(body.arm, body.reward, body.also, body.key))}


# -- arms -------------------------------------------------------------------------------------------------


async def list_arms(state: ServiceState, request: Request, body: None) -> JSON:
    """The names of the arms."""
    limit = limit_of(request, default=MOST_LISTED)
    player = await refreshed(state, request)
    return {"n_arms": player.n_arms, "arms": player.arms[:limit]}


async def add_arm(state: ServiceState, request: Request, body: ArmBody) -> JSON:
    """An arm never seen."""
    desk = await desk_of(state, request)
    whole_number("the number of arms", desk.player.n_arms + 1, most=state.settings.max_arms)
    return {"arm": await asyncio.to_thread(desk.player.add_arm, body.name)}


async def rename_arm(state: ServiceState, request: Request, body: RenameBody) -> JSON:
    """Another name for an arm; what is known of it stays."""
    desk = await desk_of(state, request)
    arm = arm_named(desk.player._state.arms, request.path_params["arm"])
    await asyncio.to_thread(desk.player.rename_arm, arm, body.name)
    return {"arm": body.name}


async def remove_arm(state: ServiceState, request: Request, body: None) -> JSON:
    """Remove an arm for ever; its decisions that wait are forgotten."""
    desk = await desk_of(state, request)
    arm = arm_named(desk.player._state.arms, request.path_params["arm"])
    await asyncio.to_thread(desk.player.remove_arm, arm)
    return {"removed": arm}


# -- looking ----------------------------------------------------------------------------------------------


async def summary(state: ServiceState, request: Request, body: None) -> Response:
    """Counts, and of the arms chosen most: pulls, mean with interval, probability now. 304 where no event has happened since."""
    limit = limit_of(request)
    player = await refreshed(state, request)
    tag = {"etag": f'"{player.seq()}"'}
    if request.headers.get("if-none-match") == tag["etag"]:
        return Response(status_code=304, headers=tag)
    found = await asyncio.to_thread(summary_of, player, limit)
    return JSONAnswer(found, headers={"etag": f'"{found["seq"]}"'})


async def probabilities(state: ServiceState, request: Request, body: None) -> JSON:
    """The probability of each arm at the next decision."""
    limit = limit_of(request, default=MOST_LISTED)
    return await asyncio.to_thread(probabilities_of, await refreshed(state, request), limit)
