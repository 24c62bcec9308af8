"""The players of the store, opened when they are asked for."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from abex.players.definitions import Definition, definition_text
from abex.players.journal import Journal, PlayerRow, journal_at
from abex.players.shared_player import SharedPlayer
from abex.players.store import Store
from abex.service.desk import Answered, Desk
from abex.service.metrics import Metrics
from abex.service.settings import Settings
from abex.support.errors import LONGEST_NAME, UserError, shown

T = TypeVar("T")


class UnknownPlayerError(UserError):
    """There is no player of that name."""


class ConflictError(UserError):
    """What is asked for contradicts what is there."""


class FullError(UserError):
    """A limit of the service is reached."""


class Directory:
    """Desks by the names of their players. All methods but `desk` and `close` may wait for the store."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings, self._metrics = settings, metrics
        self.store = Store.open(settings.store)
        self.desks: dict[str, Desk] = {}
        self._opening: dict[str, asyncio.Task[Desk]] = {}
        self._answered: Answered | None = None

    def _do(self, work: Callable[[Journal], T]) -> T:
        """Call a function with the journal of the store; its tables are made if they are missing."""

        def connected(journal: Journal) -> T:
            journal.connect(create=True)
            return work(journal)

        return self.store.do(connected, self.store.deadline)

    def count(self) -> int:
        """How many players the store has; an error if it cannot be reached."""
        return self._do(lambda journal: journal.count())

    def listed(self, most: int) -> list[dict[str, Any]]:
        """The first players of the store by name, as JSON."""
        return [described(*one) for one in self._do(lambda journal: journal.players(most))]

    def record(self, name: str) -> PlayerRow:
        """The row of a player."""
        found = self._do(lambda journal: journal.player(name)) if is_name(name) else None
        if found is None:
            raise UnknownPlayerError(f"there is no player {shown(name)}")
        return found

    def reading(self, work: Callable[[Journal], T]) -> T:
        """Call a function with a connection of its own, so that long reads hold up nobody."""
        journal = journal_at(self.settings.store)
        journal.connect(create=False)
        try:
            return work(journal)
        finally:
            journal.close()

    def create(self, name: str, replica: Any, terms: Any) -> bool:
        """Make a player; False if there is the same one."""
        if not is_name(name):
            raise UserError(
                f"the name of a player must be 1 to {LONGEST_NAME} printable characters without a slash, not dots alone, "
                f"got {shown(name)}"
            )
        text = definition_text(replica, terms)

        def made(journal: Journal) -> tuple[bool, PlayerRow | None]:
            found = journal.player(name)
            if found is not None:
                return False, found
            if journal.count() >= self.settings.max_players:
                raise FullError(f"there are {self.settings.max_players:,} players, and no more may be made")
            journal.add_player(name, text)
            return True, journal.player(name)  # perhaps another process was quicker, with another definition

        is_new, found = self._do(made)
        assert found is not None
        difference = Definition(found.definition, f"the player {name!r}").first_difference(replica, terms)
        if difference is not None:
            raise ConflictError(f"there is another player {shown(name)}: {difference}")
        return is_new

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
            self.record(name)
            return self.store.follow(name, None, None, None, None)

        self.desks.pop(name, None)
        player = await asyncio.to_thread(opened)
        self._answered = self._answered or Answered()
        desk = self.desks[name] = Desk(player, self.settings.max_open, self._answered, self._metrics)
        return desk

    async def close(self) -> None:
        """Write what waits and leave the store."""
        await asyncio.gather(*(desk.close() for desk in self.desks.values()))
        self.desks.clear()
        with contextlib.suppress(UserError):  # the store is away: what was acknowledged is in it
            await asyncio.to_thread(self.store.close)


def is_name(name: str) -> bool:
    """Whether a player may have this name; a slash, or a dot or two alone, would not fit into an address."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and "/" not in name and name.strip(" .") != ""


def described(name: str, record: PlayerRow) -> dict[str, Any]:
    """A player as it stands in a list."""
    body = json.loads(record.definition)["player"]
    return {"name": name, "policy": body["policy"], "arms": body["n_arms"], "events": record.head}
