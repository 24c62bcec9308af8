"""What the handlers of a process share: the store, and its players, each with a queue for its requests once it is asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from abex.players.changes import change
from abex.players.journal import Journal, PlayerRow
from abex.players.player_file import definition_text
from abex.players.requests import RequestQueue
from abex.players.shared_player import SharedPlayer
from abex.players.store import Store, Wanted, player_made
from abex.service.metrics import Metrics
from abex.service.settings import Settings
from abex.service.timeline import Timeline
from abex.support.errors import LONGEST_NAME, UserError, shown

T = TypeVar("T")
encode = msgspec.json.Encoder(enc_hook=lambda number: number.item()).encode  # NumPy's numbers


class HTTPError(UserError):
    """A request that is answered by a status of its own."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}


class JSONAnswer(Response):
    """A JSON answer with a status or headers of its own."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """As bytes."""
        return encode(content)


class ServiceState:
    """The store and the queues of its players, by name. All methods but `open` and `close` may wait for the store."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.store = Store.open(settings.store)
        self.queues: dict[str, RequestQueue] = {}
        self._opening: dict[str, asyncio.Task[RequestQueue]] = {}
        self.timelines: dict[str, Timeline] = {}
        self.reading_on = asyncio.Lock()  # one timeline at a time
        self.heavy = asyncio.Lock()  # logs and evaluations take much memory and time: one at a time

    def _do(self, work: Callable[[Journal], T]) -> T:
        """Call a function with the journal of the store; its tables are made if they are missing."""
        return self.store.do(work, self.store.deadline, create=True)

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
            if is_name(name):
                self._do(self.store.follow_aliases)
            self.store.known_aliases.refuse(name)
            raise HTTPError(404, f"there is no player {shown(name)}")
        return found

    def create(self, name: str, wanted: Wanted) -> bool:
        """Make a player; False if there is one of that name."""
        if not is_name(name):
            raise UserError(
                f"the name of a player must be 1 to {LONGEST_NAME} printable characters, not dots alone, "
                f"got {shown(name)}"
            )
        text, change = definition_text(wanted.replica), player_made(name, wanted)

        def made(journal: Journal) -> bool:
            if journal.player(name) is not None:
                return False
            if journal.count() >= self.settings.max_players:
                raise HTTPError(
                    429, f"there are {self.settings.max_players:,} players, and no more may be made"
                )
            return journal.add_player(change, text)

        return self._do(made)

    def archive(self, name: str, seq: int) -> bool:
        """Let a player rest; False if it has had events after that number."""
        record, archived = self.record(name), change("player archived", name)
        return record.archived > 0 or self._do(lambda journal: journal.archive(archived, record.id, seq))

    def restore(self, name: str) -> None:
        """Bring a player back."""
        record, restored = self.record(name), change("player restored", name)
        self._do(lambda journal: journal.restore(restored, record.id))

    def delete(self, name: str, seq: int) -> bool:
        """Delete a player with its journal; False if it has had events after that number."""
        record = self.record(name)
        deleted = change("player deleted", name, before={"events": record.head})
        return record.head == seq and self._do(lambda journal: journal.delete(deleted, record.id, seq))

    def connected(self) -> Store:
        """The store, whose tables are there."""
        self._do(lambda journal: None)
        return self.store

    # -- queues ---------------------------------------------------------------------------------------

    async def open(self, name: str) -> RequestQueue:
        """Open the queue of a player, once if several ask for it at the same time."""
        task = self._opening.get(name)
        if task is None:
            task = asyncio.create_task(self._open(name))
            self._opening[name] = task
            task.add_done_callback(lambda _: self._opening.pop(name, None))
        return await asyncio.shield(task)

    async def _open(self, name: str) -> RequestQueue:
        def opened() -> SharedPlayer:
            self.record(name)  # of one that is not there the store would tell its address
            return self.store.follow(name, None, None, None, None)

        self.queues.pop(name, None)
        player, metrics = await asyncio.to_thread(opened), self.metrics
        families = metrics.decisions, metrics.rewards, metrics.reward_sum, metrics.corrections
        counters = [family.labels(name) for family in families]
        queue = self.queues[name] = RequestQueue(player, self.settings.max_open, counters)
        return queue

    async def close(self) -> None:
        """Write what waits and leave the store."""
        await asyncio.gather(*(queue.close() for queue in self.queues.values()))
        self.queues.clear()
        with suppress(UserError):  # the store is away: what was acknowledged is in it
            await asyncio.to_thread(self.store.close)


def is_name(name: str) -> bool:
    """Whether a player may have this name; a dot or two alone would not fit into an address."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name.strip(" .") != ""


def described(name: str, record: PlayerRow) -> dict[str, Any]:
    """A player as it stands in a list."""
    policy = json.loads(record.definition)["player"]["policy"]
    return {"name": name, "policy": policy, "events": record.head}


def capital(said: str) -> str:
    """What an error says, with a capital letter."""
    return said[:1].upper() + said[1:]
