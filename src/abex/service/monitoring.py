"""For those who watch: timeline, log, evaluation, health, readiness, metrics."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from abex.players.journal import Journal
from abex.service.bodies import EvaluateBody
from abex.service.endpoint import ServiceState
from abex.service.exports import FORMATS, evaluate_policies, log_file, log_frame
from abex.service.handlers import JSON, limit_of, refreshed
from abex.service.timeline import MOST_EVENTS, Timeline
from abex.support.errors import UserError, one_of


async def timeline(state: ServiceState, request: Request, body: None) -> JSON:
    """Shares of the arms and rewards over time, beside what uniform choice would have earned."""
    player = await refreshed(state, request)

    def read(journal: Journal) -> JSON:
        record = journal.player(player.name)
        if record is None:
            raise UserError(f"there is no player {player.name!r} any more")
        found = state.timelines.get(player.name)
        if found is None or found.seq < record.pruned:
            after = max(record.pruned, record.head - MOST_EVENTS)
            with player._lock:
                arms = player._state.arms.copy() if after > 0 else None
            found = state.timelines[player.name] = Timeline(player._definition, arms, after)
        found.read_on(journal, record.id)
        return {"name": player.name} | found.as_json()

    async with state.reading_on:
        return await asyncio.to_thread(state.directory.reading, read)


async def log(state: ServiceState, request: Request, body: None) -> Response:
    """Every decision with its probability and reward, the latest ones."""
    kind = one_of("format", request.query_params.get("format", "csv"), FORMATS)
    most = limit_of(request, "last", state.settings.max_log, state.settings.max_log)
    player = await refreshed(state, request)

    def made() -> bytes:
        frame = state.directory.reading(lambda journal: log_frame(journal, player.name, most, player))
        return log_file(frame, kind, player.arms)

    async with state.heavy:
        content = await asyncio.to_thread(made)
    headers = {"content-disposition": f'attachment; filename="log.{kind}"'}
    return Response(content, media_type=FORMATS[kind], headers=headers)


async def evaluate(state: ServiceState, request: Request, body: EvaluateBody) -> JSON:
    """What other policies would have earned, from the log of this player."""
    most = min(body.last or state.settings.max_log, state.settings.max_log)
    player = await refreshed(state, request)

    def made() -> dict[str, Any]:
        frame = state.directory.reading(lambda journal: log_frame(journal, player.name, most, player))
        span = player._settings.low, player._settings.high
        return evaluate_policies(frame, player.arms, body.policies, body.learn, span)

    async with state.heavy:
        return await asyncio.to_thread(made)


async def health(state: ServiceState, request: Request, body: None) -> JSON:
    """Whether the process is alive."""
    return {"status": "ok"}


async def ready(state: ServiceState, request: Request, body: None) -> JSON:
    """Whether the store can be reached."""
    await asyncio.to_thread(state.directory.count)
    return {"status": "ready"}


async def metrics(state: ServiceState, request: Request, body: None) -> Response:
    """Prometheus' text format; the players that somebody has asked this worker for."""
    players = [desk.player for desk in state.directory.desks.values()]
    text = await asyncio.to_thread(state.metrics.text, players)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
