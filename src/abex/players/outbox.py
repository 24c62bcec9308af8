"""Events of this process that are not known to be in the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from abex.players.decisions import Decision
from abex.players.events import Decided, Event
from abex.support.errors import UserError


class OutboxEntry:
    """An event on its way, and what came of it."""

    __slots__ = ("awaited", "decision", "done", "error", "event", "outcome", "settled")

    def __init__(self, event: Event, decision: Decision | None = None, awaited: bool = True) -> None:
        self.event = event
        self.decision = decision
        self.awaited = awaited  # whether somebody waits until it is written
        self.settled = decision is None  # whether its probability is worked out
        self.done = False
        self.outcome: Any = None
        self.error: UserError | None = None


class Outbox:
    """Entries in the order in which they happened; the player's lock guards it."""

    def __init__(self) -> None:
        self.entries: dict[str, OutboxEntry] = {}  # by the id of the event
        self.decisions = 0
        self.waiting = 0  # entries for which somebody waits

    def add(self, entries: list[OutboxEntry]) -> None:
        """At the end."""
        for entry in entries:
            self.entries[entry.event.id] = entry
            self._count(entry, 1)

    def _count(self, entry: OutboxEntry, change: int) -> None:
        self.decisions += change * isinstance(entry.event, Decided)
        self.waiting += change * entry.awaited

    def find(self, name: str) -> OutboxEntry | None:
        """The entry of an event."""
        return self.entries.get(name)

    def batch(self) -> list[OutboxEntry]:
        """All of it."""
        return list(self.entries.values())

    def unsettled(self) -> Iterator[OutboxEntry]:
        """Decisions whose probability is not worked out yet; they are taken for settled from now on."""
        for entry in self.entries.values():
            if not entry.settled:
                entry.settled = True
                yield entry

    def written(self, name: str, outcome: Any) -> None:
        """An event is in the journal, and applied."""
        entry = self.entries.pop(name, None)
        if entry is not None:
            self._count(entry, -1)
            entry.outcome, entry.done = outcome, True

    def fail(self, error: UserError) -> None:
        """Tell all who wait that the journal could not be written; decisions for which nobody waits stay."""
        for name, entry in list(self.entries.items()):
            if entry.awaited:
                del self.entries[name]
                self._count(entry, -1)
                entry.error, entry.done = type(error)(str(error)), True
