"""For those who watch: timeline, log, other policies valued on it, health, readiness, metrics."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from abex.evaluation import Log
from abex.evaluation import evaluate as evaluated
from abex.evaluation.log_files import dsjson_of
from abex.players.requests import arm_named
from abex.service.bodies import EvaluateBody
from abex.service.directory import ServiceState, capital
from abex.service.handlers import JSON, limit_of, refreshed
from abex.service.timeline import MOST_EVENTS, Timeline
from abex.support.errors import UserError, one_of, shown
from abex.support.files import table_bytes

#: format -> its media type
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "dsjson": "application/x-ndjson"}


async def timeline(state: ServiceState, request: Request, body: None) -> JSON:
    """Shares of the arms and rewards over time, beside what uniform choice would have earned."""
    player = await refreshed(state, request)

    def read() -> JSON:
        first, found = player.first_kept(MOST_EVENTS), state.timelines.get(player.name)
        if found is None or found.seq < player.first_kept():
            found = Timeline(player.definition, player.arms_after(first), first)
            state.timelines[player.name] = found
        found.read_on(player)
        return {"name": player.name} | found.as_json()

    async with state.reading_on:
        return await asyncio.to_thread(read)


async def log(state: ServiceState, request: Request, body: None) -> Response:
    """Every decision with its probability and reward, the latest ones."""
    kind = one_of("format", request.query_params.get("format", "csv"), FORMATS)
    most = limit_of(request, "last", state.settings.max_log, state.settings.max_log)
    player = await refreshed(state, request)

    def made() -> bytes:
        return log_file(player.log(most), kind, player.arms)

    async with state.heavy:
        content = await asyncio.to_thread(made)
    headers = {"content-disposition": f'attachment; filename="log.{kind}"'}
    return Response(content, media_type=FORMATS[kind], headers=headers)


async def evaluate(state: ServiceState, request: Request, body: EvaluateBody) -> JSON:
    """What other policies would have earned, from the log of this player."""
    most = min(body.last or state.settings.max_log, state.settings.max_log)
    player = await refreshed(state, request)

    def made() -> dict[str, Any]:
        span = player.settings.low, player.settings.high
        return evaluate_policies(player.log(most), player.arms, body.policies, body.learn, span)

    async with state.heavy:
        return await asyncio.to_thread(made)


async def winner(state: ServiceState, request: Request, body: None) -> JSON:
    """The best arm with a stated risk, or how long it takes to know; one may ask as often as one likes."""
    asked: dict[str, Any] = {name: number_of(request, name) for name in ("risk", "at_least")}
    control = request.query_params.get("control")
    player = await refreshed(state, request)
    if control is not None:
        with player.reading() as now:
            asked["control"] = arm_named(now.arms, control)

    def made() -> JSON:
        return player.winner(**{name: value for name, value in asked.items() if value is not None}).as_dict()

    async with state.heavy:
        return await asyncio.to_thread(made)


def number_of(request: Request, name: str) -> float | None:
    """A number of the query; None where it is not given."""
    given = request.query_params.get(name)
    try:
        return None if given is None else float(given)
    except ValueError:
        raise UserError(f"{name} must be a number, got {shown(given)}") from None


async def health(state: ServiceState, request: Request, body: None) -> JSON:
    """Whether the process is alive."""
    return {"status": "ok"}


async def ready(state: ServiceState, request: Request, body: None) -> JSON:
    """Whether the store can be reached."""
    await asyncio.to_thread(state.count)
    return {"status": "ready"}


async def metrics(state: ServiceState, request: Request, body: None) -> Response:
    """Prometheus' text format; the players that somebody has asked this worker for."""
    players = [queue.player for queue in state.queues.values()]
    text = await asyncio.to_thread(state.metrics.text, players, state.store.known_aliases)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def log_file(frame: Any, kind: str, arms: list[Any]) -> bytes:
    """A data frame of decisions as a file; dsjson has those alone that had their reward."""
    if kind == "dsjson":
        return dsjson_of(_log(frame, arms))
    if kind == "parquet":
        frame = frame.assign(arm=frame["arm"].map(str))
    return table_bytes(frame, f".{kind}")


def evaluate_policies(
    frame: Any, arms: list[Any], policies: list[str], learn: float, rewards: tuple[float, float]
) -> dict[str, Any]:
    """What each policy would have earned by decision, by every estimator; a sentence where the log cannot tell."""
    log = _log(frame, arms)
    return {
        "rows": len(log),
        "logged": log.reward.mean(),
        "policies": [_evaluated(log, policy, learn, rewards) for policy in policies],
    }


def _log(frame: Any, arms: list[Any]) -> Log:
    """With all arms of the player, also those that the log never tries, and those of the log that are gone."""
    gone = dict.fromkeys(frame["arm"][~frame["arm"].isin(arms)])
    return Log.from_frame(frame, arms=[*arms, *gone])


def _evaluated(log: Log, policy: str, learn: float, rewards: tuple[float, float]) -> dict[str, Any]:
    try:
        found = evaluated(log, policy, learn=learn, rewards=rewards)
    except UserError as error:
        return {"policy": policy, "error": capital(str(error))}
    return {
        "policy": found.policy,
        "rows": found.rows,
        "learned": found.learned,
        "estimates": [
            {
                "estimator": one.estimator,
                "value": one.value,
                "low": one.interval[0],
                "high": one.interval[1],
                "effective": one.effective,
                "largest_weight": one.largest_weight,
                "reason": one.reason or None,
            }
            for one in found.verdicts
            if not (math.isnan(one.raw) and not one.reason)
        ],
    }
