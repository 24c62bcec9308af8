"""A journal in PostgreSQL: many processes on many machines (extra ``store``: psycopg).

Every append is one statement, hence one round trip and one transaction: it counts the players' rows up, which locks them until
the commit is on disk, and inserts the events under the numbers taken. Rows are locked in the order of their ids, so that no two
appends wait for each other.

**A server that falls silent is noticed.** A connection whose peer is gone fails after some seconds (`tcp_user_timeout`,
keep-alive packets), a statement that waits for a lock or runs too long is ended by the server, and `interrupt` breaks a
connection to a server that is stopped. What the address says of any of these (``?keepalives_idle=60``) holds instead.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar
from urllib.parse import urlsplit

from abex.players.journal import NO_DESCRIPTORS, PATIENCE, Journal, Row, no_descriptors
from abex.support.errors import UserError, brief, shown
from abex.support.extras import needed

APPEND = """
WITH counted AS (SELECT * FROM unnest(%(players)s::bigint[], %(counts)s::bigint[]) AS counted(id, count)),
locked AS (SELECT id FROM abex_players WHERE id = ANY(%(players)s::bigint[]) AND archived = 0 ORDER BY id FOR UPDATE),
head AS (
    UPDATE abex_players AS player SET head = player.head + counted.count FROM counted, locked
    WHERE player.id = counted.id AND player.id = locked.id
    RETURNING player.id, player.head, counted.count
),
added AS (
    INSERT INTO abex_events (player, seq, kind, moment, body)
    SELECT head.id, head.head - head.count + event.place, event.kind, event.moment, event.body
    FROM unnest(%(player)s::bigint[], %(place)s::bigint[], %(kind)s::text[], %(moment)s::bigint[], %(body)s::bytea[])
    AS event(player, place, kind, moment, body) JOIN head ON head.id = event.player
)
SELECT id, head FROM head
"""
ARGUMENTS: dict[str, Any] = {  # seconds, but the last one milliseconds
    "connect_timeout": 5,
    "application_name": "abex",
    "keepalives": 1,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8_000,
}
SETTINGS = {
    "lock_timeout": f"{int(1000 * PATIENCE)}",
    "statement_timeout": f"{int(1000 * PATIENCE)}",
    "synchronous_commit": "on",
}
SENTENCES = {  # by the code of the error, or its first letters
    "28": "the user or the password is wrong, or may not connect",
    "3D000": "there is no such database",
    "42501": "the user has no right to do that",
    "42P01": "its tables are not those of abex",
    "42703": "its tables are not those of abex",
    "42804": "its tables are not those of abex",
    "25006": "the database is read-only",
    "53100": "the disk of the server is full",
    "53300": "the server has no room for another connection (its max_connections)",
    "53": "the server has no memory or another resource left",
    "55P03": f"another process has been writing to it for more than {PATIENCE:g} seconds",
    "57014": f"the server took more than {PATIENCE:g} seconds for a statement",
    "57P": "the server is shutting down or starting up",
}


class PostgresqlJournal(Journal):
    """The journals in one database."""

    words: ClassVar = {
        "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "clustered": "",
        "bytes": "BYTEA",
        "value": "%s",
        "among": "IN (SELECT json_array_elements_text(?::json)::bigint)",
        # by the catalogue: `to_regclass` does not see what was committed while this transaction waited for the lock
        "tables": "SELECT count(*) FROM pg_class WHERE relname = 'abex_format' AND pg_table_is_visible(oid)",
    }

    def __init__(self, url: str) -> None:
        with needed("store"):
            import psycopg

        scheme, _, rest = url.partition("://")
        driver = scheme.partition("+")[2]
        if driver not in ("", "psycopg"):
            raise UserError(f"a store in PostgreSQL uses psycopg, not {shown(scheme)}")
        try:
            self._address = psycopg.conninfo.conninfo_to_dict(f"postgresql://{rest}")
            place = urlsplit(f"postgresql://{rest}")
        except (psycopg.Error, ValueError):
            raise UserError("a store in PostgreSQL is postgresql://user:password@host/database") from None
        who, at, host = place.netloc.rpartition("@")
        name, colon, _ = who.partition(":")
        self.display_url = repr(f"postgresql://{name}{':***' if colon else ''}{at}{host}{place.path}")

    # -- the connection -------------------------------------------------------------------------------

    def _connect(self, create: bool) -> None:
        """Open a connection, make the tables."""
        import psycopg

        arguments: dict[str, Any] = ARGUMENTS | self._address
        self._connection = psycopg.connect(**arguments, autocommit=True, prepare_threshold=2)
        given = str(self._address.get("options", ""))
        for name, value in SETTINGS.items():
            if name not in given:
                self._run("SELECT set_config(?, ?, false)", (name, value))
        self._prepare(create)

    def _alone_for_tables(self) -> None:
        self._run("SELECT pg_advisory_xact_lock(hashtext('abex_format'))")

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def interrupt(self) -> None:
        """Break the connection."""
        try:
            with socket.socket(fileno=os.dup(self._connection.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        except Exception:  # it is gone already, or not yet there
            return

    def has_changed(self) -> bool:
        """Only reading tells."""
        return True

    def now(self) -> int:
        """By the clock of the server."""
        return int(self._rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")[0][0])

    def _transaction(self) -> AbstractContextManager[Any]:
        return self._opened.transaction()  # type: ignore[no-any-return]

    # -- events ---------------------------------------------------------------------------------------

    def _append(self, batch: Mapping[int, Sequence[Row]]) -> dict[int, int]:
        """One statement, which is a transaction of its own."""
        placed = [(player, place, row) for player, rows in batch.items() for place, row in enumerate(rows, 1)]
        values = {
            "players": list(batch),
            "counts": [len(rows) for rows in batch.values()],
            "player": [player for player, _, _ in placed],
            "place": [place for _, place, _ in placed],
            "kind": [row.kind for _, _, row in placed],
            "moment": [row.moment for _, _, row in placed],
            "body": [row.body for _, _, row in placed],
        }
        return dict(self._opened.execute(APPEND, values, binary=True).fetchall())

    # -- errors ---------------------------------------------------------------------------------------

    def _reason(self, error: Exception) -> str | None:
        """The server's errors in words."""
        import psycopg

        if not isinstance(error, psycopg.Error):
            return None
        code, text = str(error.sqlstate or ""), " ".join(str(error).split())
        for start, sentence in SENTENCES.items():
            if code.startswith(start):
                return sentence
        for words, sentence in (  # of a connection that is refused
            ("too many", SENTENCES["53300"]),
            ("slots are reserved", SENTENCES["53300"]),
            ("password", SENTENCES["28"]),
            ("role", SENTENCES["28"]),
            ("does not exist", SENTENCES["3D000"]),
            ("starting up", SENTENCES["57P"]),
            ("shutting down", SENTENCES["57P"]),
        ):
            if not code and words in text:
                return sentence
        if not code:
            if no_descriptors():
                return NO_DESCRIPTORS
            return f"the server cannot be reached ({brief(text, 100)})"
        return brief(text, 160)
