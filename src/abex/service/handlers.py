"""What the service does: make players and aliases, decide, reward, observe, change arms, look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from abex.graphs.graph import Graph
from abex.players.changes import Alias, AliasError
from abex.players.journal import ArchivedError, UnavailableError
from abex.players.player import Decision, UnknownDecisionError
from abex.players.player_file import player_text
from abex.players.requests import DecideRequest, ObserveRequest, RequestQueue, RewardRequest, arm_named
from abex.players.shared_player import SharedPlayer
from abex.players.store import Store, Wanted, conform, wanted_player
from abex.players.summary import summarise
from abex.policies.naming import as_policy
from abex.service.bodies import (
    AliasBody,
    ArmBody,
    DecideBody,
    DecideManyBody,
    NewPlayer,
    ObserveBody,
    RenameBody,
    RewardBody,
    RewardManyBody,
    RollbackBody,
)
from abex.service.directory import HTTPError, JSONAnswer, ServiceState, is_name
from abex.support.errors import UserError, shown, whole_number

LATE = 0.1  # seconds to wait for a decision that a process outside the service has just made
MOST_LISTED = 10_000  # arms in one answer
FEW_LISTED = 100
JSON = dict[str, Any]


async def queue_of(state: ServiceState, name: str) -> RequestQueue:
    """The queue of a player, opened now if it is the first time, or if the player was deleted meanwhile."""
    queue = state.queues.get(name)
    return await state.open(name) if queue is None or queue.player.is_gone else queue


async def queue_for(state: ServiceState, name: str, unit: str | None) -> RequestQueue:
    """The queue of the player of a name; of an alias, that to which the unit falls."""
    alias = await alias_of(state, name)
    return await queue_of(state, name if alias is None else alias.player_of(name, unit))


async def alias_of(state: ServiceState, name: str) -> Alias | None:
    """The alias of a name; None of a player's."""
    if name not in state.store.known_aliases.present and name not in state.queues:
        with suppress(AliasError):  # it is known by now
            await queue_of(state, name)
    return state.store.known_aliases.present.get(name)


async def maker_of(state: ServiceState, name: str, decision: str) -> RequestQueue:
    """The queue of the player that made a decision, of those that an alias names or has named."""
    for is_news in (False, True):
        for player in state.store.known_aliases.players.get(name, ()):
            with suppress(HTTPError, ArchivedError):  # it was deleted or archived since
                queue = await queue_of(state, player)
                if is_news:  # another worker may have made it
                    await queue.refresh()
                if queue.player.has_made(decision):
                    return queue
    about = (
        f"decision {shown(decision)} was made by no player that the alias {shown(name)} names or has named"
    )
    raise UnknownDecisionError(f"{about}, and that is neither archived nor deleted", decision)


async def refreshed(state: ServiceState, request: Request) -> SharedPlayer:
    """The player in the path, as the store has it now."""
    queue = await queue_of(state, request.path_params["name"])
    await queue.refresh()
    return queue.player


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
    """The players of the store by name, and apart those that are archived, and the aliases."""
    limit = limit_of(request, default=MOST_LISTED)
    found = await asyncio.to_thread(state.listed, limit)
    many = len(found) if len(found) < limit else await asyncio.to_thread(state.count)
    archived = await asyncio.to_thread(state.listed, limit, archived=True)
    aliases = await asyncio.to_thread(state.store.aliases)
    listed = {"players": found, "archived": archived, "aliases": aliases}
    return {"n_players": many, "shown": len(found)} | listed


async def create_player(state: ServiceState, request: Request, body: NewPlayer) -> JSONAnswer:
    """Make a player; one that is there must be the same, and gets the arms that are declared (`on_new_arms`)."""
    wanted = await asyncio.to_thread(_wanted, state, body)
    created = await asyncio.to_thread(state.create, body.name, wanted)
    player = (await queue_of(state, body.name)).player
    if not created:
        await asyncio.to_thread(_conform, player, wanted)
    found = await asyncio.to_thread(summary_of, player, FEW_LISTED)
    return JSONAnswer({"created": created} | found, 201 if created else 200)


def _conform(player: SharedPlayer, wanted: Wanted) -> None:
    try:
        conform(player, wanted, f"the player {player.name!r}")
    except UnavailableError:
        raise
    except UserError as error:
        raise HTTPError(409, getattr(error, "over_http", str(error))) from error


def _wanted(state: ServiceState, body: NewPlayer) -> Wanted:
    """What a player is to be, in the words of the library."""
    n_arms, labels = (body.arms, None) if isinstance(body.arms, int) else (len(body.arms), body.arms)
    whole_number("arms", n_arms, least=1, most=state.settings.max_arms)
    policy = as_policy(body.policy)
    for word, is_needed in (("horizon", policy.needs_horizon), ("edges", policy.needs_graph)):
        if is_needed and getattr(body, word) is None:
            raise UserError(f'{policy} plays only where it knows the {word}: send "{word}", too')
    given = asdict(body)
    for name in ("name", "policy", "arms", "edges"):
        del given[name]
    if body.window is not None:
        given["expire"] = None
    wanted = wanted_player(
        policy,
        n_arms,
        arms=labels,
        graph=None if body.edges is None else Graph.from_edges([tuple(pair) for pair in body.edges], n_arms),
        max_pending=max(state.settings.max_open, 10**6),
        **given | {"propensities": None if body.propensities else False},
    )
    assert wanted is not None
    return wanted


async def export_player(state: ServiceState, request: Request, body: None) -> Response:
    """The player with all it knows, as a file for `Player.load`; its ETag is the number of the last event."""
    player = await refreshed(state, request)

    def exported() -> tuple[int, str]:
        with player.reading():
            return player.seq(), player_text(player)

    seq, text = await asyncio.to_thread(exported)
    headers = {"etag": f'"{seq}"', "content-disposition": 'attachment; filename="player.json"'}
    return Response(text, media_type="application/json", headers=headers)


async def archive_player(state: ServiceState, request: Request, body: None) -> JSON:
    """Let a player rest, where If-Match says that its last state has been exported: it can be brought back."""
    return {"archived": await _ended(state, request, state.archive)}


async def restore_player(state: ServiceState, request: Request, body: None) -> JSON:
    """Bring back a player that was archived; nothing where it was not."""
    name = request.path_params["name"]
    await asyncio.to_thread(state.restore, name)
    return {"restored": name}


async def delete_player(state: ServiceState, request: Request, body: None) -> JSON:
    """Delete a player and its journal for ever, where If-Match says that its last state has been exported."""
    return {"deleted": await _ended(state, request, state.delete)}


async def _ended(state: ServiceState, request: Request, end: Callable[[str, int], bool]) -> str:
    """End a player whose last state has been exported; its name."""
    name, tag = request.path_params["name"], request.headers.get("if-match", "").strip('"')
    if not (tag.isascii() and tag.isdigit() and len(tag) < 19):
        raise HTTPError(428, "export the player first, and send the ETag of the export in If-Match")
    if not await asyncio.to_thread(end, name, int(tag)):
        raise HTTPError(412, f"the player {shown(name)} has had events since that export: export it again")
    state.queues.pop(name, None)
    state.timelines.pop(name, None)
    return str(name)


# -- deciding and learning --------------------------------------------------------------------------------


def _shown(decision: Decision, name: str, player: str) -> JSON:
    found = {"id": decision.id, "arm": decision.arm, "probability": decision.compute_probability()}
    return found if player == name else found | {"player": player}


async def decide(state: ServiceState, request: Request, body: DecideBody) -> JSON:
    """What to try next; on disk when it is answered."""
    name = request.path_params["name"]
    queue = await queue_for(state, name, body.unit or body.key)
    (decision,) = await queue.submit(DecideRequest((body.unit,), body.key))
    return _shown(decision, name, queue.player.name)


async def decide_many(state: ServiceState, request: Request, body: DecideManyBody) -> JSON:
    """Several decisions at once: on different arms, or one for each unit."""
    if (body.count is None) == (body.units is None):
        raise UserError("give either count, for different arms, or units, for a decision each")
    many = body.count if body.count is not None else len(body.units or ())
    whole_number("the number of decisions", many, least=1, most=state.settings.max_batch)
    units = (None,) * many if body.units is None else tuple(body.units)
    name, key = request.path_params["name"], body.key
    asked = [DecideRequest(units, key, distinct=body.units is None)]
    if body.units is not None and await alias_of(state, name) is not None:
        asked = [
            DecideRequest((unit,), None if key is None else f"{key}#{number}")
            for number, unit in enumerate(units)
        ]
    queues = [await queue_for(state, name, one.units[0] or one.key) for one in asked]
    made = await asyncio.gather(*(queue.submit(one) for queue, one in zip(queues, asked, strict=True)))
    answered = zip(queues, made, strict=True)
    return {"decisions": [_shown(one, name, queue.player.name) for queue, some in answered for one in some]}


async def reward(state: ServiceState, request: Request, body: RewardBody) -> JSON:
    """The reward of a decision, which counts once, however often it is reported; or a correction of it.

    ``learned`` is false where it is known, or came too late: then the summary counts it among ``late``.
    """
    (learned,) = await _learned(state, request, [body])
    return {"learned": learned}


async def reward_many(state: ServiceState, request: Request, body: RewardManyBody) -> JSON:
    """Rewards of several decisions: all are learned, or none if one is wrong."""
    whole_number("the number of rewards", len(body.rewards), least=1, most=state.settings.max_batch)
    return {"learned": await _learned(state, request, body.rewards)}


async def _learned(state: ServiceState, request: Request, bodies: list[RewardBody]) -> list[bool]:
    name = request.path_params["name"]
    rewards = [(one.decision, one.reward, one.also, one.key, one.corrects) for one in bodies]
    if await alias_of(state, name) is not None:
        return await _learned_by_makers(state, name, rewards)
    queue, work = await queue_of(state, name), RewardRequest(rewards)
    try:
        found: list[bool] = await queue.submit(work)
    except UnknownDecisionError as error:
        if not queue.player.is_recent(error.id):
            raise
        await asyncio.sleep(LATE)  # a process outside the service may be about to write it
        found = await queue.submit(work)
    return found


async def _learned_by_makers(state: ServiceState, name: str, rewards: list[tuple[Any, ...]]) -> list[bool]:
    """Rewards in the name of an alias, by the players that made the decisions."""
    asked = [(await maker_of(state, name, one[0]), RewardRequest([one])) for one in rewards]
    for queue, one in asked:  # before any of them is learned
        one.check(queue.player)
    told = await asyncio.gather(*(queue.submit(one) for queue, one in asked))
    return [learned for (learned,) in told]


async def observe(state: ServiceState, request: Request, body: ObserveBody) -> JSON:
    """What an arm paid that was tried without a decision of the player, which is no alias."""
    queue = await queue_of(state, request.path_params["name"])
    return {"learned": await queue.submit(ObserveRequest(body.arm, body.reward, body.also, body.key))}


# -- aliases ----------------------------------------------------------------------------------------------


async def set_alias(state: ServiceState, request: Request, body: AliasBody) -> JSON:
    """Let a name stand for players, each for so many per cent of the units; a changed split moves only the units it must."""
    name = request.path_params["name"]
    if not is_name(name):
        raise UserError(f"{shown(name)} is no name for an alias")
    return await _changed(state, name, lambda store: store.alias(name, body.split))


async def roll_back(state: ServiceState, request: Request, body: RollbackBody) -> JSON:
    """Bring back what an alias was before its last change; once more, what it was before that."""
    name = request.path_params["name"]
    return await _changed(state, name, lambda store: store.rollback(name, body.key))


async def remove_alias(state: ServiceState, request: Request, body: None) -> JSON:
    """Let a name stand for nothing any more."""
    name = request.path_params["name"]
    return await _changed(state, name, lambda store: store.remove_alias(name))


async def _changed(state: ServiceState, name: str, work: Callable[[Store], None]) -> JSON:
    def changed() -> JSON:
        store = state.connected()
        work(store)
        alias = store.known_aliases.present.get(name)
        return {"name": name, "split": None if alias is None else alias.split}

    return await asyncio.to_thread(changed)


async def changes(state: ServiceState, request: Request, body: None) -> JSON:
    """Who changed what, the latest first; `before` a number to go on."""
    limit, before = limit_of(request), request.query_params.get("before")
    end = None if before is None else limit_of(request, "before", 10**11)
    return {"changes": await asyncio.to_thread(lambda: state.connected().changes(limit, end))}


# -- arms -------------------------------------------------------------------------------------------------


async def list_arms(state: ServiceState, request: Request, body: None) -> JSON:
    """The names of the arms."""
    limit = limit_of(request, default=MOST_LISTED)
    player = await refreshed(state, request)
    return {"n_arms": player.n_arms, "arms": player.arms[:limit]}


async def add_arm(state: ServiceState, request: Request, body: ArmBody) -> JSON:
    """An arm never seen."""
    player = (await queue_of(state, request.path_params["name"])).player
    whole_number("the number of arms", player.n_arms + 1, most=state.settings.max_arms)
    return {"arm": await asyncio.to_thread(player.add_arm, body.name)}


async def rename_arm(state: ServiceState, request: Request, body: RenameBody) -> JSON:
    """Another name for an arm; what is known of it stays."""
    player, arm = await _player_and_arm(state, request)
    await asyncio.to_thread(player.rename_arm, arm, body.name)
    return {"arm": body.name}


async def remove_arm(state: ServiceState, request: Request, body: None) -> JSON:
    """Remove an arm for ever; its decisions that wait are forgotten."""
    player, arm = await _player_and_arm(state, request)
    await asyncio.to_thread(player.remove_arm, arm)
    return {"removed": arm}


async def _player_and_arm(state: ServiceState, request: Request) -> tuple[SharedPlayer, Any]:
    """Those in the path."""
    player = (await queue_of(state, request.path_params["name"])).player
    with player.reading() as now:
        return player, arm_named(now.arms, request.path_params["arm"])


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


def summary_of(player: SharedPlayer, limit: int) -> dict[str, Any]:
    """Counts of the player, and of the ``limit`` arms chosen most: pulls, mean with interval, probability, recent share."""
    with player.reading() as now:
        arms = summarise(now, limit)
        return {
            "name": player.name,
            "policy": str(player.policy),
            "seq": player.seq(),
            "decisions": now.decisions,
            "rewarded": now.tallies.rewarded,
            "waiting": len(now.pending),
            "expired": now.tallies.expired,
            "late": now.tallies.late,
            "corrected": now.tallies.corrected,
            **now.settings.as_given,
            "n_arms": now.n_arms,
            "shown": len(arms),
            "probabilities_unknown": arms.unknown,
            "arms": [one._asdict() for one in arms],  # what is not a number is null in JSON
        }


def probabilities_of(player: SharedPlayer, limit: int) -> dict[str, Any]:
    """The probability of each arm at the next decision; the ``limit`` largest, in the order of the arms."""
    with player.reading() as now:
        chances = now.probabilities(now.steps + 1)
        places = np.sort(np.argsort(-chances, kind="stable")[:limit])
        listed = [
            {"arm": now.arms.label(int(now.arms.numbers[place])), "probability": float(chances[place])}
            for place in places
        ]
        return {"seq": player.seq(), "n_arms": player.n_arms, "shown": len(listed), "probabilities": listed}
