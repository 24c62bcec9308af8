"""What the handlers of a process share: the players of the store, each with a desk for its requests once it is asked for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from abex.players.events import Decided, Rewarded
from abex.players.journal import Journal, PlayerRow, UnavailableError
from abex.players.player_file import definition_text
from abex.players.requests import Request, RequestBatch
from abex.players.shared_player import SharedPlayer
from abex.players.store import Store, Wanted
from abex.service.metrics import Metrics
from abex.service.settings import Settings
from abex.service.timeline import Timeline
from abex.support.errors import LONGEST_NAME, UserError, shown

T = TypeVar("T")

SLOW = 0.005  # CPU seconds: a player whose requests take longer works in a thread of its own, so that others need not wait
MOMENT = 0.001  # seconds that a batch may wait for more


class Written:
    """What a ticket of the store sets when it is due; it wakes up the event loop once for a batch."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self._loop.create_future()

    def set(self) -> None:
        """From the thread of the store: it is written, or could not be."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Desk:
    """A player as the event loop has it: requests that come while others are written are the next batch."""

    def __init__(self, player: SharedPlayer, most_open: int, metrics: Metrics) -> None:
        self.player = player
        self._most_open, self._metrics = most_open, metrics
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
        """Propose what waits, until it is written and answered; what comes meanwhile is the next batch.

        Where many shared the last commit they may share this one, too: it waits a moment for as many.
        """
        crowd, lasted = 0, 0.0
        while self._queue:
            if len(self._queue) < crowd:
                await asyncio.sleep(min(MOMENT, lasted / 2.0))
            queue, self._queue, began = self._queue, [], self._loop.time()
            batch = RequestBatch(self.player, [request for request, _ in queue], self._most_open)
            try:
                answers = await self._answers(batch)
            except Exception as error:
                answers = [error] * len(queue)
            crowd, lasted = len(queue), self._loop.time() - began
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
        decisions, paid, corrected, shown_reward = 0, list[float](), 0, self.player.settings.shown
        for one in batch.entries():
            if isinstance(one.event, Decided):
                decisions += one.done and one.outcome.id == one.event.id
            elif isinstance(one.event, Rewarded) and one.event.decision is not None and one.outcome is True:
                if one.event.corrects:
                    corrected += 1
                else:
                    paid.append(shown_reward(one.event.reward))
        counts = {
            "decisions": decisions,
            "rewards": len(paid),
            "reward_sum": sum(paid),
            "corrections": corrected,
        }
        for metric, count in counts.items():
            self._metrics.add(f"abex_instance_{metric}", self.player.name, count)

    def _propose(self, batch: RequestBatch) -> None:
        began = time.thread_time()
        batch.propose()
        self._took = time.thread_time() - began

    async def _written(self, batch: RequestBatch) -> None:
        written, store = Written(), self.player.store
        ticket = self.player.ticket(batch.entries(), written)
        if ticket.left:
            store.hurry()
            await self._in_time(written.future)
        if ticket.error:
            raise UnavailableError(ticket.error)

    async def refresh(self) -> None:
        """Read what other processes wrote."""
        store = self.player.store
        await self._in_time(asyncio.wrap_future(store.submit(lambda _: store.read(self.player))))

    async def _in_time(self, future: asyncio.Future[None]) -> None:
        """Wait no longer than the deadline of the store."""
        store = self.player.store
        try:
            async with asyncio.timeout(store.deadline):
                await asyncio.shield(future)
        except TimeoutError:
            raise store.silent(store.deadline) from None

    async def close(self) -> None:
        """Answer what waits."""
        if self._working is not None:
            await self._working


class HTTPError(UserError):
    """A request that is answered by a status of its own."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}


class ServiceState:
    """The store and the desks of its players, by name. All methods but `desk` and `close` may wait for the store."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.asks_for_keys = bool(settings.keys)
        self.store = Store.open(settings.store)
        self.desks: dict[str, Desk] = {}
        self._opening: dict[str, asyncio.Task[Desk]] = {}
        self.timelines: dict[str, Timeline] = {}  # by player: how far the journals were read
        self.reading_on = asyncio.Lock()  # one timeline at a time
        self.heavy = asyncio.Lock()  # logs and evaluations take much memory and time: one at a time

    def _do(self, work: Callable[[Journal], T]) -> T:
        """Call a function with the journal of the store; its tables are made if they are missing."""

        def connected(journal: Journal) -> T:
            journal.connect(create=True)
            return work(journal)

        return self.store.do(connected, self.store.deadline)

    def count(self) -> int:
        """How many players the store has; an error if it cannot be reached."""
        return self._do(lambda journal: journal.count())

    def listed(self, most: int, archived: bool = False) -> list[dict[str, Any]]:
        """The first players of the store by name, as JSON; those that are archived apart."""
        return [described(*one) for one in self._do(lambda journal: journal.players(most, archived))]

    def record(self, name: str) -> PlayerRow:
        """The row of a player, be it archived or not."""
        found = self._do(lambda journal: journal.player(name)) if is_name(name) else None
        if found is None:
            raise HTTPError(404, f"there is no player {shown(name)}")
        return found

    def create(self, name: str, wanted: Wanted) -> bool:
        """Make a player; False if there is one of that name."""
        if not is_name(name):
            raise UserError(
                f"the name of a player must be 1 to {LONGEST_NAME} printable characters, not dots alone, "
                f"got {shown(name)}"
            )
        text = definition_text(wanted.replica, wanted.terms)

        def made(journal: Journal) -> bool:
            if journal.player(name) is not None:
                return False
            if journal.count() >= self.settings.max_players:
                raise HTTPError(
                    429, f"there are {self.settings.max_players:,} players, and no more may be made"
                )
            return journal.add_player(name, text)

        return self._do(made)

    def archive(self, name: str, seq: int) -> bool:
        """Let a player rest; False if it has had events after that number."""
        record = self.record(name)
        return record.archived > 0 or self._do(lambda journal: journal.archive(record.id, seq))

    def restore(self, name: str) -> None:
        """Bring a player back."""
        record = self.record(name)
        self._do(lambda journal: journal.restore(record.id))

    def delete(self, name: str, seq: int) -> bool:
        """Delete a player with its journal; False if it has had events after that number."""
        record = self.record(name)
        return record.head == seq and self._do(lambda journal: journal.delete(record.id, seq))

    # -- desks ----------------------------------------------------------------------------------------

    async def desk(self, name: str) -> Desk:
        """The desk of a player, opened now if it is the first time, or if the player was deleted meanwhile."""
        desk = self.desks.get(name)
        if desk is not None and not desk.player.is_gone:
            return desk
        task = self._opening.get(name)
        if task is None:
            task = asyncio.create_task(self._open(name))
            self._opening[name] = task
            task.add_done_callback(lambda _: self._opening.pop(name, None))
        return await asyncio.shield(task)

    async def _open(self, name: str) -> Desk:
        def opened() -> SharedPlayer:
            self.record(name)  # of one that is not there the store would tell its address
            return self.store.follow(name, None, None, None, None)

        self.desks.pop(name, None)
        player = await asyncio.to_thread(opened)
        desk = self.desks[name] = Desk(player, self.settings.max_open, self.metrics)
        return desk

    async def close(self) -> None:
        """Write what waits and leave the store."""
        await asyncio.gather(*(desk.close() for desk in self.desks.values()))
        self.desks.clear()
        with suppress(UserError):  # the store is away: what was acknowledged is in it
            await asyncio.to_thread(self.store.close)


def is_name(name: str) -> bool:
    """Whether a player may have this name; a dot or two alone would not fit into an address."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name.strip(" .") != ""


def described(name: str, record: PlayerRow) -> dict[str, Any]:
    """A player as it stands in a list."""
    body = json.loads(record.definition)["player"]
    return {"name": name, "policy": body["policy"], "arms": body["n_arms"], "events": record.head}
