"""The players of the store, opened when they are asked for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from abex.players import Player
from abex.players.definitions import Definition, definition_text
from abex.players.journal import Journal, PlayerRow, journal_at
from abex.players.shared import SharedPlayer
from abex.service.desk import Desk
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
    """Desks by the names of their players, and a connection of its own for looking into the store."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.desks: dict[str, Desk] = {}
        self._opening: dict[str, asyncio.Task[Desk]] = {}
        self._journal = journal_at(settings.store)
        self._lock = threading.Lock()

    # -- the store ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _looking(self) -> Iterator[Journal]:
        """The connection for looking, in whatever thread; the tables are made if they are missing."""
        with self._lock:
            self._journal.connect(create=True)
            yield self._journal

    def check(self) -> None:
        """Whether the store can be reached; raises if not."""
        with self._looking() as journal:
            journal.names()

    def names(self) -> list[str]:
        """The players of the store."""
        with self._looking() as journal:
            return journal.names()

    def record(self, name: str) -> PlayerRow:
        """The row of a player."""
        if not is_name(name):
            raise UnknownPlayerError(f"there is no player {shown(name)}")
        with self._looking() as journal:
            found = journal.player(name)
        if found is None:
            raise UnknownPlayerError(f"there is no player {shown(name)}")
        return found

    def definition(self, name: str) -> Definition:
        """What was agreed on when the player was made."""
        return Definition(self.record(name).definition, f"the player {name!r}")

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
        with self._looking() as journal:
            found = journal.player(name)
            if found is None:
                if len(journal.names()) >= self.settings.max_players:
                    raise FullError(
                        f"there are {self.settings.max_players:,} players, and no more may be made"
                    )
                text = definition_text(replica, terms)
                journal.add_player(name, text)
                found = journal.player(name)
                if found is not None and found.definition == text:
                    return True
        assert found is not None
        difference = Definition(found.definition, f"the player {name!r}").disagreement(replica, terms)
        if difference is not None:
            raise ConflictError(f"there is another player {shown(name)}: {difference}")
        return False

    # -- desks ----------------------------------------------------------------------------------------

    async def desk(self, name: str) -> Desk:
        """The desk of a player, opened now if it is the first time."""
        desk = self.desks.get(name)
        if desk is not None:
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
            return Player.open(self.settings.store, name)

        player = await asyncio.to_thread(opened)
        desk = self.desks[name] = Desk(player, self.settings.max_open)
        return desk

    async def close(self) -> None:
        """Write what waits and leave the store."""
        for desk in list(self.desks.values()):
            with contextlib.suppress(UserError):  # the store is away: what was acknowledged is in it
                await desk.close()
        self.desks.clear()
        with self._lock:
            self._journal.close()


def is_name(name: str) -> bool:
    """Whether a player may have this name; a slash, or a dot or two alone, would not fit into an address."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and "/" not in name and name.strip(" .") != ""


def described(name: str, record: PlayerRow) -> dict[str, Any]:
    """A player as it stands in a list."""
    body = json.loads(record.definition)["player"]
    return {"name": name, "policy": body["policy"], "arms": body["n_arms"], "events": record.head}
