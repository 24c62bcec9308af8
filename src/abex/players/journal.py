"""What a journal promises: events in order, numbered without gaps, on disk before they are acknowledged.

A journal holds any number of players by name. Of each it keeps a definition, the events 1, 2, ... as bytes and snapshots of the
state after some of them. Two databases keep one, by the same SQL: `sqlite_journal` (a file, nothing to install) and
`postgresql_journal` (a server, many machines). Beside the bytes of an event stand its kind and its moment, for whoever looks
into the table.

An append is one transaction, for any number of players: it takes the next numbers from a counter in each player's row and writes
the events under them. Whoever appends next waits for the row until that transaction has ended, so numbers have no gaps and
*become visible in their order*: who has read up to number n will never see one at or below n appear.

Row 0 is no player: its events are the administrative changes of the store (`abex.players.changes`). Who makes one takes that row
first, so there is one at a time, and appends its event in the same transaction.
"""

from __future__ import annotations

import errno
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, NamedTuple

from msgspec import to_builtins

from abex.players.changes import AliasError, Aliases, Change, decode, encode
from abex.support.errors import UserError, nearest, shown

FORMAT = 1
PATIENCE = 10.0  # seconds to wait for another process that is writing, and for the answer to a statement
NO_DESCRIPTORS = "this process has no file descriptor left (see `ulimit -n`)"
TABLES = (
    """CREATE TABLE abex_format (version INTEGER NOT NULL)""",
    """CREATE TABLE abex_players (
        id {identity}, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL,
        head BIGINT NOT NULL DEFAULT 0, pruned BIGINT NOT NULL DEFAULT 0, archived BIGINT NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE abex_events (
        player BIGINT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, moment BIGINT NOT NULL, body {bytes} NOT NULL,
        PRIMARY KEY (player, seq)
    ){clustered}""",
    """CREATE TABLE abex_snapshots (
        player BIGINT NOT NULL, seq BIGINT NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (player, seq)
    )""",
)
ROW = "id, definition, head, pruned, archived"  # of a player
CHANGES = 0  # the row whose events are the administrative changes


class UnavailableError(UserError):
    """The journal cannot be reached or written just now; it works again when the store is back.

    ``kept`` tells whether what was to be written is kept by this process, which writes it when the store is back; ``why`` is the
    reason alone.
    """

    def __init__(self, why: object = "", kept: bool = False) -> None:
        super().__init__(
            f"{why}; what was reported is kept, and written when the store is back" if kept else why
        )
        self.why, self.kept = str(why), kept


class ArchivedError(UserError):
    """The player is archived."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the player {name!r} is archived and neither decides nor learns until it is brought back"
        )


class PlayerRow(NamedTuple):
    """The row of a player."""

    id: int
    definition: str
    head: int  # number of the last event
    pruned: int  # events up to this one are no longer kept
    archived: int  # when it was archived, milliseconds since 1970: until it is brought back nothing is appended; else 0


class Row(NamedTuple):
    """An event as a journal holds it, beside player and number."""

    kind: str
    moment: int
    body: bytes


class Journal(ABC):
    """A store of journals; not for several threads at once. Errors of the store are `UnavailableError`, in one sentence."""

    display_url: str  # the address without its password
    words: ClassVar[Mapping[str, str]]  # in which the SQL of this database differs
    connections = 0  # made so far
    _connection: Any = None  # to the database

    # -- the connection -------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    def connect(self, create: bool) -> None:
        """Open the store, and check or make (if ``create``) its tables; nothing if it is open."""
        if not self.is_open:
            with self._translated_errors("open"):
                self._connect(create)
            self.connections += 1

    @abstractmethod
    def _connect(self, create: bool) -> None:
        """Open the store, which is not open."""

    @abstractmethod
    def close(self) -> None:
        """Leave the store; `connect` opens it again."""

    def forget_after_fork(self) -> None:
        """In a forked process: leave the connection to the parent; closing it here would end the parent's locks and session."""
        _left_to_parents.append(self._connection)
        self._connection = None

    @abstractmethod
    def interrupt(self) -> None:
        """From another thread: let the statement under way, whose answer does not come, fail."""

    @abstractmethod
    def has_changed(self) -> bool:
        """Whether something may have been written by others since the last call."""

    @abstractmethod
    def now(self) -> int:
        """Milliseconds since 1970 by the clock of the store."""

    @property
    def _opened(self) -> Any:
        if self._connection is None:
            raise UnavailableError(f"the journal {self.display_url} is not open")
        return self._connection

    def _run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """A cursor after a statement, in which ? stands for a value."""
        return self._opened.execute(sql.replace("?", self.words["value"]), values)

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """All that is written within, or nothing."""

    def _prepare(self, create: bool) -> None:
        """Tables of this format."""
        if not self._has_tables():
            if not create:
                raise UnavailableError(f"there is no journal in {self.display_url}")
            with self._transaction():
                self._run(self.words["alone"])  # nobody else makes them
                if not self._has_tables():  # nobody was quicker
                    for table in TABLES:
                        self._run(table.format(**self.words))
                    self._run("INSERT INTO abex_format VALUES (?)", (FORMAT,))
                    self._run(
                        "INSERT INTO abex_players (id, name, definition) VALUES (?, '', '')", (CHANGES,)
                    )
        version = self._run("SELECT max(version) FROM abex_format").fetchone()[0] or 0
        if version > FORMAT:
            raise UnavailableError(
                f"the journal {self.display_url} was written by a newer abex "
                f"(format {version}, this one has {FORMAT}): upgrade abex"
            )

    def _has_tables(self) -> bool:
        return bool(self._run(self.words["tables"]).fetchone()[0])

    # -- players --------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The players of this store, without the archived ones."""
        return [
            name
            for (name,) in self._rows(
                "SELECT name FROM abex_players WHERE archived = 0 AND id > 0 ORDER BY name"
            )
        ]

    def count(self) -> int:
        """How many players this store has, without the archived ones."""
        return int(self._rows("SELECT count(*) FROM abex_players WHERE archived = 0 AND id > 0")[0][0])

    def players(self, most: int, archived: bool = False) -> list[tuple[str, PlayerRow]]:
        """Players by name, the first ones; those that are archived, or those that are not."""
        sql = (
            f"SELECT name, {ROW} FROM abex_players WHERE (archived > 0) = ? AND id > 0 ORDER BY name LIMIT ?"
        )
        return [(name, PlayerRow(*row)) for name, *row in self._rows(sql, archived, most)]

    def add_player(self, change: Change, definition: str) -> bool:
        """A new player, the one that the change names; False if there is one of that name."""
        with self._changing() as aliases:
            aliases.refuse(change.name)
            sql = "INSERT INTO abex_players (name, definition) VALUES (?, ?) ON CONFLICT DO NOTHING"
            return bool(self._run(sql, (change.name, definition)).rowcount) and self._note(change)

    def player(self, name: str) -> PlayerRow | None:
        """A player by name."""
        found = self._rows(f"SELECT {ROW} FROM abex_players WHERE name = ?", name)
        return PlayerRow(*found[0]) if found else None

    def heads(self, players: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Of players that are there: the number of the last event, and up to where events are no longer kept."""
        sql = f"SELECT id, head, pruned FROM abex_players WHERE id {self.words['among']}"
        return {player: (head, pruned) for player, head, pruned in self._rows(sql, json.dumps(list(players)))}

    # -- events ---------------------------------------------------------------------------------------

    def append(self, batch: Mapping[int, Sequence[Row]]) -> dict[int, int]:
        """Write the events of each player under its next numbers; returns the last number of each. On disk when it returns.

        One transaction. A player that is gone from the journal is missing from the answer.
        """
        with self._translated_errors("write to"):
            return self._append(batch)

    @abstractmethod
    def _append(self, batch: Mapping[int, Sequence[Row]]) -> dict[int, int]: ...

    def read(self, player: int, after: int, limit: int) -> list[tuple[int, bytes]]:
        """The next events, in order."""
        sql = "SELECT seq, body FROM abex_events WHERE player = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [(seq, bytes(body)) for seq, body in self._rows(sql, player, after, limit)]

    def first_since(self, player: int, moment: int) -> int | None:
        """The number of the first event at or after a moment."""
        sql = "SELECT min(seq) FROM abex_events WHERE player = ? AND moment >= ?"
        return self._rows(sql, player, moment)[0][0]  # type: ignore[no-any-return]

    def snapshot(self, player: int) -> tuple[int, bytes] | None:
        """The latest snapshot, after the number of the event after which it was taken."""
        sql = "SELECT seq, body FROM abex_snapshots WHERE player = ? ORDER BY seq DESC LIMIT 1"
        found = self._rows(sql, player)
        return (found[0][0], bytes(found[0][1])) if found else None

    def latest_snapshot(self, player: int) -> int:
        """The number of the event after which the latest snapshot was taken; 0 if there is none."""
        return self._rows("SELECT max(seq) FROM abex_snapshots WHERE player = ?", player)[0][0] or 0

    def add_snapshot(self, player: int, seq: int, body: bytes, keep: int) -> None:
        """Keep a snapshot, and the ``keep`` latest before it."""
        with self._writing():
            self._run(
                "INSERT INTO abex_snapshots VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (player, seq, body)
            )
            self._run(
                "DELETE FROM abex_snapshots WHERE player = ? AND seq NOT IN"
                " (SELECT seq FROM abex_snapshots WHERE player = ? ORDER BY seq DESC LIMIT ?)",
                (player, player, keep),
            )

    def prune(self, player: int, seq: int) -> int:
        """Delete events up to a number and remember up to where; returns how many."""
        with self._writing():
            sql = "UPDATE abex_players SET pruned = ? WHERE id = ? AND pruned < ?"
            self._run(sql, (seq, player, seq))
            sql = "DELETE FROM abex_events WHERE player = ? AND seq <= ?"
            return int(self._run(sql, (player, seq)).rowcount)

    def archive(self, change: Change, player: int, head: int) -> bool:
        """Let nothing be appended any more; False if ``head`` is not the number of the last event."""
        with self._changing() as aliases:
            aliases.refuse_where_needed(change.name)
            sql = "UPDATE abex_players SET archived = ? WHERE id = ? AND head = ?"
            return bool(self._run(sql, (max(1, self.now()), player, head)).rowcount) and self._note(change)

    def restore(self, change: Change, player: int) -> bool:
        """Bring a player back; False if it was not archived."""
        with self._changing():
            sql = "UPDATE abex_players SET archived = 0 WHERE id = ? AND archived > 0"
            return bool(self._run(sql, (player,)).rowcount) and self._note(change)

    def delete(self, change: Change, player: int, head: int) -> bool:
        """Delete a player with its events; False if ``head`` is not the number of its last one."""
        with self._changing() as aliases:
            aliases.refuse_where_needed(change.name)
            sql = "DELETE FROM abex_players WHERE id = ? AND head = ?"
            if not self._run(sql, (player, head)).rowcount:
                return False
            for table in ("abex_events", "abex_snapshots"):
                self._run(f"DELETE FROM {table} WHERE player = ?", (player,))
            return self._note(change)

    # -- administrative changes -----------------------------------------------------------------------

    def note(self, change: Change) -> None:
        """Write down a change that is none of the rows of players."""
        with self._changing():
            self._note(change)

    def change_alias(self, wanted: Change) -> None:
        """Set an alias, or roll it back, or remove it; nothing where it is so already."""
        with self._changing() as aliases:
            change = aliases.next_change(wanted)
            if change is None:
                return
            if self.player(change.name) is not None:
                raise AliasError(f"there is a player {shown(change.name)}: an alias needs a name of its own")
            for player in change.after or ():
                aliases.refuse(player)
                record = self.player(player)
                if record is None:
                    raise AliasError(f"there is no player {shown(player)}{nearest(player, self.names())}")
                if record.archived:
                    raise AliasError(f"the player {shown(player)} is archived: bring it back first")
            self._note(change)

    def follow(self, aliases: Aliases) -> None:
        """Let the changes of aliases happen that are new."""
        sql = "SELECT seq, body FROM abex_events WHERE player = ? AND seq > ? AND kind = 'alias' ORDER BY seq"
        for seq, body in self._rows(sql, CHANGES, aliases.seq):
            aliases.follow(seq, self._decoded(seq, body))

    def changes(self, before: int, most: int) -> list[dict[str, Any]]:
        """The last administrative changes before a number, the latest first."""
        sql = (
            "SELECT seq, moment, body FROM abex_events WHERE player = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
        )
        return [
            {"seq": seq, "time": moment} | to_builtins(self._decoded(seq, body))
            for seq, moment, body in self._rows(sql, CHANGES, before, most)
        ]

    def _decoded(self, seq: int, body: bytes) -> Change:
        try:
            return decode(bytes(body))
        except (ValueError, TypeError) as error:
            raise UserError(f"change {seq} of the journal {self.display_url} is damaged: {error}") from error

    def row_of(self, change: Change) -> Row:
        """A change as an event, whose kind is what it is about: a player, an arm or an alias."""
        return Row(change.what.partition(" ")[0], self.now(), encode(change))

    @contextmanager
    def _changing(self) -> Iterator[Aliases]:
        """A transaction in which nobody else makes an administrative change; the aliases that there are."""
        aliases = Aliases()
        with self._writing():
            if not self._run("UPDATE abex_players SET head = head WHERE id = ?", (CHANGES,)).rowcount:
                raise UserError(
                    f"the journal {self.display_url} is damaged: its administrative changes are gone"
                )
            self.follow(aliases)
            yield aliases

    def _note(self, change: Change) -> bool:
        """Within a transaction: append a change."""
        sql = "UPDATE abex_players SET head = head + 1 WHERE id = ? RETURNING head"
        ((seq,),) = self._run(sql, (CHANGES,)).fetchall()
        sql = "INSERT INTO abex_events (player, seq, kind, moment, body) VALUES (?, ?, ?, ?, ?)"
        self._run(sql, (CHANGES, seq, *self.row_of(change)))
        return True

    # -- statements and errors ---------------------------------------------------------------------------------------

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        """What a statement finds."""
        with self._translated_errors("read"):
            return self._run(sql, values).fetchall()  # type: ignore[no-any-return]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._translated_errors("write to"), self._transaction():
            yield

    @contextmanager
    def _translated_errors(self, doing: str) -> Iterator[None]:
        """Turn errors of the store into `UnavailableError`."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            why = self._reason(error)
            if why is None:
                raise
            self.close()
            raise UnavailableError(f"cannot {doing} the journal {self.display_url}: {why}") from error

    @abstractmethod
    def _reason(self, error: Exception) -> str | None:
        """Why the store failed, in words; None for an error that is not the store's."""


def no_descriptors() -> bool:
    """Whether this process can open no file any more."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def journal_at(url: str) -> Journal:
    """The journal at an address, not yet opened.

    >>> journal_at("sqlite:///shop.db").display_url
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


_left_to_parents: list[Any] = []  # connections that must not be closed in this process
