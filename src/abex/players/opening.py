"""Opening a shared player: made if it is not there, compared if it is."""

from __future__ import annotations

from typing import Any

from abex.players.definitions import Definition, definition_text
from abex.players.journal import journal_at
from abex.players.replica import Replica
from abex.players.shared import SharedPlayer
from abex.players.terms import Terms
from abex.support.errors import UserError, nearest, real_number, shown, whole_number

LONGEST_NAME = 200


def open_player(
    url: str,
    name: str,
    wanted: tuple[Replica, Terms] | None,
    *,
    freshness: float,
    snapshot_every: int,
    **options: Any,
) -> SharedPlayer:
    """The player of a store; ``wanted`` is what it is to be, None takes it as it is."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError(
            f"the name of a player must be 1 to {LONGEST_NAME} printable characters, got {shown(name)}"
        )
    freshness = real_number("freshness", freshness, least=0.0, most=3600.0)
    snapshot_every = whole_number("snapshot_every", snapshot_every, least=1)
    if options.get("seed") is not None:
        options["seed"] = whole_number("seed", options["seed"], least=0)
    journal = journal_at(url)
    try:
        journal.connect(create=wanted is not None)
        record = journal.player(name)
        if record is None and wanted is None:
            names = journal.names()
            there = f": there are {', '.join(names[:5])}" if names else ": it has none yet"
            raise UserError(
                f"there is no player {shown(name)} in {journal.shown}{nearest(name, names)}{there}; "
                "`abex player create`, or Player.open with arms, makes one"
            )
        if record is None and wanted is not None:
            journal.add_player(name, definition_text(*wanted))
            record = journal.player(name)  # perhaps another process was quicker, with another definition
        assert record is not None
        where = f"the player {name!r} in {journal.shown}"
        if wanted is not None:
            difference = Definition(record.definition, where).disagreement(*wanted)
            if difference is not None:
                raise UserError(f"{where} is another one: {difference}")
        return SharedPlayer(
            url, name, journal=journal, freshness=freshness, snapshot_every=snapshot_every, **options
        )
    except BaseException:
        journal.close()
        raise
