"""What the service does: make players, decide, reward, observe, change arms, look."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from json.encoder import encode_basestring_ascii
from typing import Any

from starlette.requests import Request

from abex.graphs.graph import Graph
from abex.players.decision_ids import moment_of
from abex.players.player import UnknownDecisionError, new_replica
from abex.players.shared import RECENT, SharedPlayer
from abex.players.terms import terms
from abex.players.together import Ask, Observe, Tell, arm_named
from abex.service.bodies import (
    ArmBody,
    AskBody,
    AskManyBody,
    NewPlayer,
    ObserveBody,
    RenameBody,
    RewardBody,
    RewardManyBody,
    parsed,
)
from abex.service.desk import Desk
from abex.service.directory import described
from abex.service.endpoints import Answer, Context, answer, body_of
from abex.service.overview import probabilities_of, summary_of
from abex.support.errors import UserError, shown, whole_number

LATE = 0.1  # seconds to wait for a decision that a process outside the service has just made
MOST_LISTED = 10_000  # arms in one answer
FEW_LISTED = 100


async def desk_of(context: Context, request: Request) -> Desk:
    """The desk of the player in the path."""
    return await context.directory.desk(request.path_params["name"])


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


async def list_players(context: Context, request: Request) -> Answer:
    """The players of the store."""

    def listed() -> list[dict[str, Any]]:
        directory = context.directory
        return [described(name, directory.record(name)) for name in directory.names()]

    return answer({"players": await asyncio.to_thread(listed)})


async def create_player(context: Context, request: Request) -> Answer:
    """Make a player; nothing happens if there is the same one."""
    wanted = parsed(NewPlayer, await body_of(context, request))
    created = await asyncio.to_thread(_create, context, wanted)
    desk = await context.directory.desk(wanted.name)
    found = await asyncio.to_thread(summary_of, desk.player, FEW_LISTED)
    return answer({"created": created} | found, 201 if created else 200)


def _create(context: Context, wanted: NewPlayer) -> bool:
    numbered = isinstance(wanted.arms, int)
    n_arms = wanted.arms if isinstance(wanted.arms, int) else len(wanted.arms)
    whole_number("arms", n_arms, least=1, most=context.settings.max_arms)
    try:
        expire = None if wanted.expire is None else timedelta(seconds=wanted.expire)
    except (OverflowError, ValueError):
        raise UserError(f"expire must be a number of seconds, got {shown(wanted.expire)}") from None
    agreed = terms(tuple(wanted.rewards), expire, wanted.unrewarded, None if wanted.propensities else False)
    graph = None if wanted.edges is None else Graph.from_edges([tuple(pair) for pair in wanted.edges], n_arms)
    pending = max(context.settings.max_open, 10**6)
    labels = None if numbered else wanted.arms
    replica = new_replica(wanted.policy, n_arms, labels, graph, wanted.horizon, False, pending)
    return context.directory.create(wanted.name, replica, agreed)


# -- deciding and learning --------------------------------------------------------------------------------


def _shown(decision: Any) -> dict[str, Any]:
    return {"id": decision.id, "arm": decision.arm, "probability": decision.settle()}


def asked(content: bytes | bytearray) -> Ask:
    """What a request for a decision asks for."""
    wanted = parsed(AskBody, content)
    return Ask((wanted.unit,), wanted.key)


def decision_text(found: Any) -> bytes:
    """A decision as JSON; written out, since an encoder takes several times as long.

    >>> from abex.players.decisions import Decision
    >>> decision_text([Decision("01a1ece7-2d3b-7000-8000-01a02bd90503", "red", 0.25)])
    b'{"id":"01a1ece7-2d3b-7000-8000-01a02bd90503","arm":"red","probability":0.25}'
    """
    (decision,) = found
    name, arm = decision
    label = encode_basestring_ascii(arm) if type(arm) is str else arm
    probability = decision.settle()
    return f'{{"id":"{name}","arm":{label},"probability":{"null" if probability is None else probability}}}'.encode()


async def decide(context: Context, request: Request) -> Answer:
    """What to try next; on disk when it is answered."""
    work = asked(await body_of(context, request))
    desk = await desk_of(context, request)
    return Answer(decision_text(await desk.do(work)), 200, {})


async def decide_many(context: Context, request: Request) -> Answer:
    """Several decisions at once: on different arms, or one for each unit."""
    wanted = parsed(AskManyBody, await body_of(context, request))
    if (wanted.count is None) == (wanted.units is None):
        raise UserError("give either count, for different arms, or units, for a decision each")
    many = wanted.count if wanted.count is not None else len(wanted.units or ())
    whole_number("the number of decisions", many, least=1, most=context.settings.max_batch)
    units = (None,) * many if wanted.units is None else tuple(wanted.units)
    desk = await desk_of(context, request)
    decisions = await desk.do(Ask(units, wanted.key, distinct=wanted.units is None))
    return answer({"decisions": [_shown(one) for one in decisions]})


def told(content: bytes | bytearray) -> Tell:
    """What the report of a reward tells."""
    return _rewards([parsed(RewardBody, content)])


def learned_text(found: Any) -> bytes:
    """Whether a reward was learned, as JSON."""
    return b'{"learned":true}' if found[0] else b'{"learned":false}'


async def reward(context: Context, request: Request) -> Answer:
    """The reward of a decision; it counts once, however often it is reported."""
    work = told(await body_of(context, request))
    return Answer(learned_text(await _tell(await desk_of(context, request), work)), 200, {})


async def reward_many(context: Context, request: Request) -> Answer:
    """Rewards of several decisions: all are learned, or none if one is wrong."""
    told = parsed(RewardManyBody, await body_of(context, request))
    whole_number("the number of rewards", len(told.rewards), least=1, most=context.settings.max_batch)
    return answer({"learned": await _tell(await desk_of(context, request), _rewards(told.rewards))})


def _rewards(told: list[RewardBody]) -> Tell:
    return Tell([(one.decision, one.reward, one.also) for one in told])


async def _tell(desk: Desk, work: Tell) -> list[bool]:
    try:
        found = await desk.do(work)
    except UnknownDecisionError as error:
        if not may_come(desk, error):
            raise
        await asyncio.sleep(LATE)
        found = await desk.do(work)
    learned: list[bool] = found
    return learned


def may_come(desk: Desk, error: object) -> bool:
    """Whether a decision is unknown that a process outside the service may be about to write."""
    return isinstance(error, UnknownDecisionError) and desk.player._now() - moment_of(error.id) <= RECENT


async def observe(context: Context, request: Request) -> Answer:
    """What an arm paid that was tried without a decision of the player."""
    told = parsed(ObserveBody, await body_of(context, request))
    desk = await desk_of(context, request)
    new = await desk.do(Observe(told.arm, told.reward, told.also, told.key))
    return answer({"learned": new})


# -- arms -------------------------------------------------------------------------------------------------


async def list_arms(context: Context, request: Request) -> Answer:
    """The names of the arms."""
    desk = await desk_of(context, request)
    await desk.do(SharedPlayer.refresh)
    limit = limit_of(request, default=MOST_LISTED)
    return answer({"n_arms": desk.player.n_arms, "arms": desk.player.arms[:limit]})


async def add_arm(context: Context, request: Request) -> Answer:
    """An arm never seen."""
    wanted = parsed(ArmBody, await body_of(context, request))
    desk = await desk_of(context, request)
    whole_number("the number of arms", desk.player.n_arms + 1, most=context.settings.max_arms)
    name = await desk.do(lambda player: player.add_arm(wanted.name))
    return answer({"arm": name}, 201)


async def rename_arm(context: Context, request: Request) -> Answer:
    """Another name for an arm; what is known of it stays."""
    wanted = parsed(RenameBody, await body_of(context, request))
    desk = await desk_of(context, request)
    arm = arm_named(desk.player._replica.arms, request.path_params["arm"])
    await desk.do(lambda player: player.rename_arm(arm, wanted.name))
    return answer({"arm": wanted.name})


async def remove_arm(context: Context, request: Request) -> Answer:
    """Remove an arm for ever; its decisions that wait are forgotten."""
    desk = await desk_of(context, request)
    arm = arm_named(desk.player._replica.arms, request.path_params["arm"])
    await desk.do(lambda player: player.remove_arm(arm))
    return answer({"removed": arm})


# -- looking ----------------------------------------------------------------------------------------------


async def summary(context: Context, request: Request) -> Answer:
    """Counts, and of the arms chosen most: pulls, mean with interval, probability now."""
    limit = limit_of(request)
    desk = await desk_of(context, request)
    await desk.do(SharedPlayer.refresh)
    return answer(await asyncio.to_thread(summary_of, desk.player, limit))


async def probabilities(context: Context, request: Request) -> Answer:
    """The probability of each arm at the next decision."""
    limit = limit_of(request, default=MOST_LISTED)
    desk = await desk_of(context, request)
    await desk.do(SharedPlayer.refresh)
    return answer(await asyncio.to_thread(probabilities_of, desk.player, limit))
