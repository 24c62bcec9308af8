"""Requests of a player from the event loop: those that come while others are written are the next batch."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import Any

from abex.players.events import Decided, Rewarded
from abex.players.journal import UnavailableError
from abex.players.requests import Request, RequestBatch
from abex.players.shared_player import SharedPlayer
from abex.service.metrics import Metrics
from abex.support.errors import UserError

SLOW = 0.005  # CPU seconds: a player whose requests take longer works in a thread of its own, so that others need not wait


class Answered:
    """Futures that the thread of the store has an answer for: it wakes up the event loop once for all of a commit."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready: deque[asyncio.Future[None]] = deque()
        self._rung = False

    def add(self, future: asyncio.Future[None]) -> None:
        """From any thread."""
        self._ready.append(future)
        if not self._rung:
            self._rung = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._rung = False
        while self._ready:
            future = self._ready.popleft()
            if not future.done():
                future.set_result(None)


class Written:
    """What a ticket of the store calls when it is due."""

    def __init__(self, answered: Answered) -> None:
        self._answered = answered
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self) -> None:
        """It is written, or could not be."""
        self._answered.add(self.future)


class Desk:
    """A player as the event loop has it."""

    def __init__(self, player: SharedPlayer, most_open: int, answered: Answered, metrics: Metrics) -> None:
        self.player = player
        self._most_open, self._answered, self._metrics = most_open, answered, metrics
        self._loop = asyncio.get_running_loop()
        self._queue: list[tuple[Request, asyncio.Future[Any]]] = []
        self._working: asyncio.Task[None] | None = None
        self._took = 0.0

    def submit(self, request: Request) -> asyncio.Future[Any]:
        """Have a request carried out; the future has the answer, or the error."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.append((request, future))
        if self._working is None:
            self._working = self._loop.create_task(self._work())
        return future

    async def _work(self) -> None:
        """Propose what waits, until it is written and answered; what comes meanwhile is the next batch."""
        while queue := self._queue:
            self._queue = []
            batch = RequestBatch(self.player, [request for request, _ in queue], self._most_open)
            try:
                answers = await self._answers(batch)
            except Exception as error:
                answers = [error] * len(queue)
            for (_, future), answer in zip(queue, answers, strict=True):
                if future.done():  # the client has gone
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._working = None

    async def _answers(self, batch: RequestBatch) -> list[Any]:
        if batch.may_stand():
            with suppress(UnavailableError):
                await self.refresh()
        if self._took > SLOW:
            await asyncio.to_thread(self._propose, batch)
        else:
            self._propose(batch)
        if batch.late:
            try:
                await self.refresh()
            except UserError as error:
                batch.refuse_late(error)
            else:
                batch.propose_late()
        try:
            await self._written(batch)
        except UnavailableError as error:
            batch.withdraw(error)
        self._count(batch)
        return batch.answers()

    def _count(self, batch: RequestBatch) -> None:
        """Each event counts where it was written, and no void one."""
        decisions = rewards = 0
        for one in batch.entries():
            if isinstance(one.event, Decided):
                decisions += one.done and one.outcome[0] == one.event.id
            elif isinstance(one.event, Rewarded) and one.event.decision is not None:
                rewards += one.outcome is True
        self._metrics.add("abex_instance_decisions", self.player.name, decisions)
        self._metrics.add("abex_instance_rewards", self.player.name, rewards)

    def _propose(self, batch: RequestBatch) -> None:
        began = time.thread_time()
        batch.propose()
        self._took = time.thread_time() - began

    async def _written(self, batch: RequestBatch) -> None:
        written, store = Written(self._answered), self.player.store
        ticket = self.player.ticket(batch.entries(), written)
        if ticket.left:
            store.hurry()
            await self._in_time(written.future)
        if ticket.error:
            raise UnavailableError(ticket.error)

    async def refresh(self) -> None:
        """Read what other processes wrote."""
        written, store = Written(self._answered), self.player.store
        work = store.submit(lambda _: store.read(self.player))
        work.add_done_callback(lambda _: written.set())
        await self._in_time(written.future)
        work.result()

    async def _in_time(self, future: asyncio.Future[None]) -> None:
        """Wait no longer than the deadline of the store."""
        timer = self._loop.call_later(self.player.store.deadline, self._give_up, future)
        try:
            await future
        finally:
            timer.cancel()

    def _give_up(self, future: asyncio.Future[None]) -> None:
        store = self.player.store
        if not future.done():
            future.set_exception(store.silent(store.deadline))

    async def close(self) -> None:
        """Answer what waits."""
        if self._working is not None:
            await self._working
