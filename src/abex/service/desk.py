"""The one thread of a process that works with a player; requests that come while it works are its next batch."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from abex.players.shared import SharedPlayer
from abex.players.together import Ask, Observe, Request, Tell, together
from abex.support.errors import UserError

Work = Request | Callable[[SharedPlayer], Any]


class Bell:
    """Tells the event loop what desks have done.

    To send a byte gives up the interpreter while the loop wakes up. `call_soon_threadsafe` holds it, and the loop, awake, has to
    wait until this thread gets its turn again: on a busy machine that cost 40 % of the rate.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._answered: deque[tuple[list[tuple[Work, Callable[[Any], None]]], list[Any]]] = deque()
        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        try:
            self._loop.add_reader(self._ours, self._heard)
            self._rings = True
        except NotImplementedError:  # the loop of Windows
            self._rings = False

    def ring(self, batch: list[tuple[Work, Callable[[Any], None]]], answers: list[Any]) -> None:
        """Hand answers out in the event loop; called by the thread of a desk."""
        self._answered.append((batch, answers))
        if not self._rings:
            self._loop.call_soon_threadsafe(self._heard)
            return
        with contextlib.suppress(BlockingIOError):  # it has been rung often enough
            self._theirs.send(b".")

    def _heard(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._ours.recv(4096)
        while self._answered:
            batch, answers = self._answered.popleft()
            for (_, answered), answer in zip(batch, answers, strict=True):
                answered(answer)

    def close(self) -> None:
        """There are no desks any more."""
        self._heard()
        if self._rings:
            self._loop.remove_reader(self._ours)
        self._ours.close()
        self._theirs.close()


class Desk:
    """A player and its thread. All methods but `_run` belong to the event loop."""

    def __init__(self, player: SharedPlayer, most_open: int, bell: Bell) -> None:
        self.player = player
        self._most_open, self._bell = most_open, bell
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[Work, Callable[[Any], None]]] = deque()
        self._wake, self._idle, self._stop = threading.Event(), True, False
        self._thread = threading.Thread(target=self._run, name=f"desk {player.name}", daemon=True)
        self._thread.start()

    def put(self, work: Work, answered: Callable[[Any], None]) -> None:
        """Have a request carried out, or a function called with the player; the answer, or an error, is handed over."""
        if self._stop:
            raise UserError(f"the player {self.player.name!r} is closed")
        self._queue.append((work, answered))
        if self._idle:
            self._idle = False
            self._wake.set()

    async def do(self, work: Work) -> Any:
        """What comes of a request or a function; errors are raised here."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self.put(work, lambda answer: None if future.done() else future.set_result(answer))
        answer = await future  # or the client has gone
        if isinstance(answer, BaseException):
            raise answer
        return answer

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
                self._bell.ring(batch, answers)
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
