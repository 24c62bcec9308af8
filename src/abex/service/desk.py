"""The one thread of a process that works with a player; requests that come while it works are its next batch."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from abex.players.shared import SharedPlayer
from abex.players.together import Ask, Observe, Request, Tell, together
from abex.support.errors import UserError

Work = Request | Callable[[SharedPlayer], Any]
Waiting = tuple[Work, asyncio.Future[Any]]


class Desk:
    """A player and its thread. All methods but `_run` and `_carried_out` belong to the event loop."""

    def __init__(self, player: SharedPlayer, most_open: int) -> None:
        self.player = player
        self._most_open = most_open
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Waiting] = deque()
        self._wake, self._idle, self._stop = threading.Event(), True, False
        self._thread = threading.Thread(target=self._run, name=f"desk {player.name}", daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> asyncio.Future[Any]:
        """Have a request carried out, or a function called with the player; the future has the answer, or the error."""
        if self._stop:
            raise UserError(f"the player {self.player.name!r} is closed")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.append((work, future))
        if self._idle:
            self._idle = False
            self._wake.set()
        return future

    async def close(self) -> None:
        """Carry out what waits, then leave the store."""
        self._stop = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self.player.close)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while batch := [self._queue.popleft() for _ in range(len(self._queue))]:
                answers = self._carried_out([work for work, _ in batch])
                self._loop.call_soon_threadsafe(_hand_out, batch, answers)
            if self._stop:
                return
            self._idle = True
            if self._queue:  # it came between the look and the nap
                self._idle = False
                self._wake.set()

    def _carried_out(self, work: list[Work]) -> list[Any]:
        answers: list[Any] = [None] * len(work)
        places = [place for place, one in enumerate(work) if isinstance(one, Ask | Tell | Observe)]
        if places:
            try:
                requests: list[Any] = [work[place] for place in places]
                found = together(self.player, requests, self._most_open)
            except Exception as error:
                found = [error] * len(places)
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
        for place, one in enumerate(work):
            if callable(one):
                try:
                    answers[place] = one(self.player)
                except Exception as error:
                    answers[place] = error
        return answers


def _hand_out(batch: Sequence[Waiting], answers: Sequence[Any]) -> None:
    """Answer those who wait for a batch; the event loop wakes up once for all of them."""
    for (_, future), answer in zip(batch, answers, strict=True):
        if future.done():  # the client has gone
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
