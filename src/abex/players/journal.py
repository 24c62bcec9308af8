"""What a journal promises: events in order, numbered without gaps, on disk before they are acknowledged.

A journal holds any number of players by name. Of each it keeps a definition, the events 1, 2, ... and snapshots of the state
after some of them. Two stores keep one: `sqlite_journal` (a file, nothing to install) and `postgresql_journal` (a server,
many machines).

An append is one transaction that takes the next numbers from a counter in the player's row and writes the events under them.
Whoever appends next waits for the row until that transaction has ended, so numbers have no gaps and *become visible in their
order*: who has read up to number n will never see one at or below n appear.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from abex.players.journal_rows import Row
from abex.support.errors import UserError

FORMAT = 1
PATIENCE = 30.0  # seconds to wait for another process that is writing
TABLES = (
    """CREATE TABLE abex_format (version INTEGER NOT NULL)""",
    """CREATE TABLE abex_players (
        id {identity}, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL,
        head BIGINT NOT NULL DEFAULT 0, pruned BIGINT NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE abex_events (
        player BIGINT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, moment BIGINT NOT NULL,
        decision TEXT, arm BIGINT, value DOUBLE PRECISION, seen BIGINT, detail TEXT, PRIMARY KEY (player, seq)
    ){clustered}""",
    """CREATE TABLE abex_snapshots (
        player BIGINT NOT NULL, seq BIGINT NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (player, seq)
    )""",
)


class UnavailableError(UserError):
    """The journal cannot be reached or written just now. Nothing is lost; it works again when the store is back."""


class PlayerRow(NamedTuple):
    """The row of a player."""

    id: int
    definition: str
    head: int  # number of the last event
    pruned: int  # events up to this one are no longer kept


class Journal(ABC):
    """A store of journals; not for several threads at once. Errors of the store are `UnavailableError`, in one sentence."""

    shown: str  # the address without its password
    cheap_look: bool = False  # whether `looks_new` costs microseconds

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether there is a connection."""

    def connect(self, create: bool) -> None:
        """Open the store, and check or make (if ``create``) its tables; nothing if it is open."""
        if not self.is_open:
            with self.explained("open"):
                self._connect(create)

    @abstractmethod
    def _connect(self, create: bool) -> None:
        """Open the store, which is not open."""

    @abstractmethod
    def close(self) -> None:
        """Leave the store; `connect` opens it again."""

    @abstractmethod
    def abandon(self) -> None:
        """In a forked process: forget a connection that belongs to the parent."""

    @abstractmethod
    def looks_new(self) -> bool:
        """Whether something may have been written by others since the last call."""

    @abstractmethod
    def names(self) -> list[str]:
        """The players of this store."""

    @abstractmethod
    def add_player(self, name: str, definition: str) -> None:
        """A new player; nothing if there is one of that name."""

    @abstractmethod
    def player(self, name: str) -> PlayerRow | None:
        """A player by name."""

    @abstractmethod
    def append(self, player: int, collect: Callable[[], Sequence[Row]]) -> int:
        """Write the events that ``collect`` returns under the next numbers; returns the last one. On disk when it returns.

        They are collected as late as the store allows: what came while the process waited for its turn goes along.
        """

    @abstractmethod
    def read(self, player: int, after: int, limit: int) -> list[tuple[int, Row]]:
        """The next events, in order."""

    @abstractmethod
    def snapshot(self, player: int, most: int | None = None) -> tuple[int, bytes] | None:
        """The latest snapshot (up to a number), and the number of the event after which it was taken."""

    @abstractmethod
    def add_snapshot(self, player: int, seq: int, body: bytes, keep: int) -> None:
        """Keep a snapshot, and the ``keep`` latest before it."""

    @abstractmethod
    def prune(self, player: int, seq: int) -> int:
        """Delete events up to a number; returns how many."""

    def events(self, player: int, after: int = 0, page: int = 5_000) -> Iterator[tuple[int, Row]]:
        """All events after a number, page by page."""
        while found := self.read(player, after, page):
            yield from found
            after = found[-1][0]

    @contextmanager
    def explained(self, doing: str) -> Iterator[None]:
        """Turn errors of the store into `UnavailableError`."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            why = self.reason(error)
            if why is None:
                raise
            self.close()
            raise UnavailableError(f"cannot {doing} the journal {self.shown}: {why}") from error

    @abstractmethod
    def reason(self, error: Exception) -> str | None:
        """Why the store failed, in words; None for an error that is not the store's."""

    def check_format(self, version: int | None) -> None:
        """See that this abex can read the format found."""
        if version is None or not version >= 1:
            raise UnavailableError(f"cannot use the journal {self.shown}: its table abex_format is damaged")
        if version > FORMAT:
            raise UnavailableError(
                f"the journal {self.shown} was written by a newer abex (format {version}, this one has {FORMAT}): upgrade abex"
            )


def journal_at(url: str) -> Journal:
    """The journal at an address, not yet opened.

    >>> journal_at("sqlite:///shop.db").shown
    "'sqlite:///shop.db'"
    """
    scheme = url.partition(":")[0].partition("+")[0] if isinstance(url, str) else ""
    if scheme == "sqlite":
        from abex.players.sqlite_journal import SqliteJournal

        return SqliteJournal(url)
    if scheme in ("postgresql", "postgres"):
        from abex.players.postgresql_journal import PostgresqlJournal

        return PostgresqlJournal(url)
    raise UserError(
        "a store must be an address such as sqlite:///shop.db or postgresql://user@host/database"
        + (f", and {scheme[:20]!r} is neither" if scheme else "")
    )
