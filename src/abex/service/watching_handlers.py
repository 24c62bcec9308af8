"""For those who watch: timeline, live stream, log, what-if, health, metrics."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from abex.players.journal import Journal
from abex.players.shared import SharedPlayer
from abex.service.bodies import EvaluateBody, parsed
from abex.service.chronicle import MOST_EVENTS, Chronicle
from abex.service.directory import FullError
from abex.service.endpoints import Context, RefusedError, answer, body_of
from abex.service.exports import FORMATS, log_file, log_frame, what_if
from abex.service.handlers import desk_of, limit_of
from abex.service.overview import summary_of
from abex.support.errors import UserError, one_of

PAUSE = 0.25  # seconds between two events of a stream, at least
HEARTBEAT = 15.0  # seconds after which a stream that has nothing to say says so
MANY_ARMS = 1_000  # beyond, a stream is slower: every event costs as much as there are arms
SHOWN = 30  # arms in an event
MOST_STREAMS = 100  # of one worker


class Watching:
    """What watching needs to remember: how far the journals were read, how many streams are open."""

    def __init__(self) -> None:
        self.chronicles: dict[str, Chronicle] = {}
        self.locks: dict[str, asyncio.Lock] = {}
        self.heavy = asyncio.Semaphore(1)  # logs and evaluations take much memory and time: one at once
        self.streams = 0


def _watching(context: Context) -> Watching:
    if not hasattr(context, "watching"):
        context.watching = Watching()  # type: ignore[attr-defined]
    found: Watching = context.watching  # type: ignore[attr-defined]
    return found


async def timeline(context: Context, request: Request) -> Response:
    """Shares of the arms and rewards over time, beside what uniform choice would have earned."""
    desk = await desk_of(context, request)
    watching, player = _watching(context), desk.player
    await desk.do(SharedPlayer.refresh)

    def read(journal: Journal) -> dict[str, Any]:
        record = journal.player(player.name)
        if record is None:
            raise UserError(f"there is no player {player.name!r} any more")
        found = watching.chronicles.get(player.name)
        if found is None or found.seq < record.pruned:
            after = max(record.pruned, record.head - MOST_EVENTS)
            with player._lock:
                arms = player._replica.arms.copy() if after > 0 else None
            found = watching.chronicles[player.name] = Chronicle(player._definition, arms, after)
        found.read_on(journal, record.id)
        return {"name": player.name} | found.told()

    async with watching.locks.setdefault(player.name, asyncio.Lock()):
        return answer(await asyncio.to_thread(context.directory.reading, read))


async def stream(context: Context, request: Request) -> Response:
    """Server-sent events: a summary whenever something has changed."""
    desk = await desk_of(context, request)
    watching = _watching(context)
    if watching.streams >= MOST_STREAMS:
        raise FullError(f"{MOST_STREAMS} streams are open, and no more may be")
    return StreamingResponse(
        _events(context, desk, watching),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _events(context: Context, desk: Any, watching: Watching) -> AsyncIterator[bytes]:
    player, seen, spoke, trouble, speed = desk.player, -1, 0.0, "", 0.0
    speeds: deque[tuple[float, int]] = deque(maxlen=20)
    watching.streams += 1
    try:
        while not context.stopping:
            now = time.monotonic()
            try:
                await desk.do(SharedPlayer.refresh)
                trouble = ""
            except UserError as error:
                if str(error) != trouble:
                    trouble, spoke = str(error), now
                    yield _event("trouble", {"error": trouble})
            seq = player.seq()
            speeds.append((now, seq))
            if seq != seen and not trouble:
                told = await asyncio.to_thread(summary_of, player, SHOWN)
                (then, first), seen, spoke = speeds[0], seq, now
                speed = told["events_per_second"] = (seq - first) / (now - then) if now > then else 0.0
                yield _event("summary", told)
            elif speed > 0.0 and speeds[0][1] == seq:
                speed = 0.0
                yield _event("speed", {"events_per_second": speed})
            elif now - spoke > HEARTBEAT:
                spoke = now
                yield b": still here\n\n"
            await asyncio.sleep(PAUSE if player.n_arms <= MANY_ARMS else 4.0 * PAUSE)
    finally:
        watching.streams -= 1


def _event(kind: str, told: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(told, allow_nan=False)}\n\n".encode()


async def log(context: Context, request: Request) -> Response:
    """Every decision with its probability and reward, the latest ones."""
    kind = one_of("format", request.query_params.get("format", "csv"), FORMATS)
    most = limit_of(request, "last", context.settings.max_log, context.settings.max_log)
    desk = await desk_of(context, request)
    await desk.do(SharedPlayer.refresh)
    name = desk.player.name

    def made() -> bytes:
        frame = context.directory.reading(lambda journal: log_frame(journal, name, most, desk.player))
        return log_file(frame, kind, desk.player.arms)

    async with _watching(context).heavy:
        content = await asyncio.to_thread(made)
    headers = {"content-disposition": f'attachment; filename="log.{kind}"'}
    return Response(content, media_type=FORMATS[kind], headers=headers)


async def evaluate(context: Context, request: Request) -> Response:
    """What other policies would have earned, from the log of this player."""
    wanted = parsed(EvaluateBody, await body_of(context, request))
    most = min(wanted.last or context.settings.max_log, context.settings.max_log)
    desk = await desk_of(context, request)
    await desk.do(SharedPlayer.refresh)
    player = desk.player

    def made() -> dict[str, Any]:
        frame = context.directory.reading(lambda journal: log_frame(journal, player.name, most, player))
        return what_if(
            frame, player.arms, wanted.policies, wanted.learn, (player._terms.low, player._terms.high)
        )

    async with _watching(context).heavy:
        return answer(await asyncio.to_thread(made))


async def health(context: Context, request: Request) -> Response:
    """Whether the process is alive."""
    return answer({"status": "ok"})


async def ready(context: Context, request: Request) -> Response:
    """Whether the store can be reached."""
    if context.stopping:
        raise RefusedError(503, "the service is stopping")
    await asyncio.to_thread(context.directory.check)
    return answer({"status": "ready"})


async def metrics(context: Context, request: Request) -> Response:
    """Prometheus' text format; the players that somebody has asked this worker for."""
    players = [desk.player for desk in context.directory.desks.values()]
    text = await asyncio.to_thread(context.meter.text, players)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
