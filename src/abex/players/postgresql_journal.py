"""A journal in PostgreSQL: many processes on many machines (extra ``store``: SQLAlchemy and psycopg).

Every append is one statement, hence one round trip and one transaction: it counts the player's row up, which locks it until
the commit is on disk, and inserts the events under the numbers taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from abex.players.journal import FORMAT, PATIENCE, TABLES, Journal, PlayerRow, UnavailableError
from abex.players.journal_rows import COLUMNS, Row
from abex.support.errors import UserError, shown
from abex.support.extras import needed

TYPES = ("text", "text", "bigint", "text", "bigint", "double precision", "bigint", "text")
LISTED = ", ".join(COLUMNS)
APPEND = f"""
WITH head AS (UPDATE abex_players SET head = head + %(count)s WHERE id = %(player)s RETURNING head),
added AS (
    INSERT INTO abex_events (player, seq, {LISTED})
    SELECT %(player)s, head.head - %(count)s + event.place, {", ".join(f"event.{name}" for name in COLUMNS)}
    FROM head, unnest({", ".join(f"%({name})s::{kind}[]" for name, kind in zip(COLUMNS, TYPES, strict=True))})
    WITH ORDINALITY AS event({LISTED}, place)
)
SELECT head FROM head
"""
READ = f"SELECT seq, {LISTED} FROM abex_events WHERE player = %s AND seq > %s ORDER BY seq LIMIT %s"
ARGUMENTS = {
    "connect_timeout": 5,
    "application_name": "abex",
    "prepare_threshold": 2,
}
SENTENCES = {  # by the code of the error, or its first letters
    "28": "the user or the password is wrong, or may not connect",
    "3D000": "there is no such database",
    "42501": "the user has no right to do that",
    "42P01": "its tables are not those of abex",
    "42703": "its tables are not those of abex",
    "42804": "its tables are not those of abex",
    "25006": "the database is read-only",
    "53": "the disk is full, or the server has no room for another connection",
    "55P03": f"another process has been writing to it for more than {PATIENCE:g} seconds",
    "57P": "the server is shutting down or starting up",
}


class PostgresqlJournal(Journal):
    """The journals in one database."""

    def __init__(self, url: str) -> None:
        with needed():
            import psycopg  # noqa: F401
            from sqlalchemy import NullPool, create_engine, make_url
        try:
            address = make_url(url)
        except Exception:
            raise UserError("a store in PostgreSQL is postgresql://user:password@host/database") from None
        if address.drivername in ("postgresql", "postgres"):
            address = address.set(drivername="postgresql+psycopg")
        if address.drivername != "postgresql+psycopg":
            raise UserError(f"a store in PostgreSQL uses psycopg, not {shown(address.drivername)}")
        self.shown = repr(address.set(drivername="postgresql", query={}).render_as_string(hide_password=True))
        self._engine = create_engine(
            address, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=ARGUMENTS
        )
        self._connection: Any = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    # -- opening --------------------------------------------------------------------------------------

    def _connect(self, create: bool) -> None:
        """Open a connection, make the tables."""
        self._connection = self._engine.connect()
        self._run(f"SET lock_timeout = {int(1000 * PATIENCE)}")
        self._run("SET synchronous_commit = on")
        if self._run("SELECT to_regclass('abex_format')").scalar() is None:
            if not create:
                raise UnavailableError(f"there is no journal in {self.shown}")
            self._in_turn(self._make)
        self.check_format(self._run("SELECT version FROM abex_format").scalar())
        self._run(READ, (0, 0, 0))
        self._run("SELECT id, name, definition, head, pruned FROM abex_players LIMIT 0")
        self._run("SELECT player, seq, body FROM abex_snapshots LIMIT 0")

    def _in_turn(self, work: Any) -> None:
        """One process at a time, all of it or nothing."""
        self._run("BEGIN")
        try:
            self._run("SELECT pg_advisory_xact_lock(hashtext('abex_format'))")
            work()
            self._run("COMMIT")
        except BaseException:
            if self._connection is not None and not self._connection.invalidated:
                self._run("ROLLBACK")
            raise

    def _make(self) -> None:
        words = {
            "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "clustered": "",
            "bytes": "BYTEA",
        }
        if self._run("SELECT to_regclass('abex_format')").scalar() is None:  # nobody was quicker
            for table in TABLES:
                self._run(table.format(**words))
            self._run("INSERT INTO abex_format VALUES (%s)", (FORMAT,))

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except Exception:  # it is gone anyway
                return

    def abandon(self) -> None:
        """Leave the connection to the parent: closing it here would say goodbye in the parent's name."""
        _left_to_parents.append(self._connection)
        self._connection = None
        self._engine.dispose(close=False)

    def _run(self, sql: str, values: Any = None) -> Any:
        if self._connection is None:
            raise UnavailableError(f"the journal {self.shown} is not open")
        return self._connection.exec_driver_sql(sql, values)

    # -- players --------------------------------------------------------------------------------------

    def looks_new(self) -> bool:
        """Only reading tells."""
        return True

    def names(self) -> list[str]:
        """All players."""
        with self.explained("read"):
            return [row[0] for row in self._run("SELECT name FROM abex_players ORDER BY name")]

    def add_player(self, name: str, definition: str) -> None:
        """Insert its row."""
        with self.explained("write to"):
            sql = "INSERT INTO abex_players (name, definition) VALUES (%s, %s) ON CONFLICT DO NOTHING"
            self._run(sql, (name, definition))

    def player(self, name: str) -> PlayerRow | None:
        """Its row."""
        with self.explained("read"):
            sql = "SELECT id, definition, head, pruned FROM abex_players WHERE name = %s"
            row = self._run(sql, (name,)).fetchone()
            return None if row is None else PlayerRow(*row)

    # -- events ---------------------------------------------------------------------------------------

    def append(self, player: int, collect: Callable[[], Sequence[Row]]) -> int:
        """One statement: count up in the player's row, write under the numbers taken.

        To lock the row first and collect then would hold it while Python works: measured, that halves the throughput.
        """
        with self.explained("write to"):
            rows = collect()
            columns = dict(zip(COLUMNS, map(array_text, zip(*rows, strict=True)), strict=True))
            last = self._run(APPEND, columns | {"player": player, "count": len(rows)}).scalar()
            if last is None:
                raise UnavailableError(f"the player is gone from the journal {self.shown}: it was deleted")
            return int(last)

    def read(self, player: int, after: int, limit: int) -> list[tuple[int, Row]]:
        """By the primary key."""
        with self.explained("read"):
            return [(row[0], Row(*row[1:])) for row in self._run(READ, (player, after, limit)).fetchall()]

    def snapshot(self, player: int, most: int | None = None) -> tuple[int, bytes] | None:
        """By the primary key."""
        with self.explained("read"):
            sql = "SELECT seq, body FROM abex_snapshots WHERE player = %s AND seq <= %s ORDER BY seq DESC LIMIT 1"
            found = self._run(sql, (player, 2**62 if most is None else most)).fetchone()
            return None if found is None else (int(found[0]), bytes(found[1]))

    def add_snapshot(self, player: int, seq: int, body: bytes, keep: int) -> None:
        """Insert it and delete those before the last few."""
        with self.explained("write to"):
            self._run(
                "INSERT INTO abex_snapshots VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (player, seq, body)
            )
            self._run(
                "DELETE FROM abex_snapshots WHERE player = %s AND seq NOT IN"
                " (SELECT seq FROM abex_snapshots WHERE player = %s ORDER BY seq DESC LIMIT %s)",
                (player, player, keep),
            )

    def prune(self, player: int, seq: int) -> int:
        """Remember up to where, then delete."""
        with self.explained("write to"):
            self._run("UPDATE abex_players SET pruned = greatest(pruned, %s) WHERE id = %s", (seq, player))
            deleted = self._run("DELETE FROM abex_events WHERE player = %s AND seq <= %s", (player, seq))
            return int(deleted.rowcount)

    # -- errors ---------------------------------------------------------------------------------------

    def reason(self, error: Exception) -> str | None:
        """The server's errors in words."""
        with needed():
            from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        if not isinstance(error, SQLAlchemyError):
            return None
        cause: Any = error.orig if isinstance(error, DBAPIError) else error
        code = str(getattr(cause, "sqlstate", None) or "")
        text = " ".join(str(cause).split())
        for start, sentence in SENTENCES.items():
            if code.startswith(start):
                return sentence
        for words, sentence in (
            ("password", SENTENCES["28"]),
            ("role", SENTENCES["28"]),
            ("does not exist", SENTENCES["3D000"]),
            ("starting up", SENTENCES["57P"]),
            ("shutting down", SENTENCES["57P"]),
            ("too many", SENTENCES["53"]),
        ):
            if not code and words in text:
                return sentence
        if not code:
            return f"the server cannot be reached ({text[:100]})"
        return text[:160]


def array_text(values: Iterable[str | int | float | None]) -> str:
    r"""An array as PostgreSQL reads it; psycopg takes eight times as long to make one.

    >>> print(array_text(["a", None, '{"t": 7}', 0.5]))
    {"a",NULL,"{\"t\": 7}",0.5}
    """
    return "{" + ",".join(["NULL" if one is None else _quoted(one) for one in values]) + "}"


def _quoted(value: str | float) -> str:
    if not isinstance(value, str):
        return str(value)
    if "\\" in value or '"' in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'


_left_to_parents: list[Any] = []  # connections that must not be closed in this process
