"""Administrative changes of a store, and the aliases that follow from them.

Who changed what is one stream of events of the store: players made, archived, brought back, deleted, arms changed, aliases. Each
is written in the transaction of the change itself. An *alias* is a name that sends units to players by a split in per cent; it is
nothing but the fold of its changes, so every process that reads the stream has the same aliases, and a kill loses none.
"""

from __future__ import annotations

import getpass
import hashlib
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import chain, repeat
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from abex.support.errors import UserError, checked_name, nearest, shown, whole_number

ALIAS_SET, ALIAS_ROLLED_BACK, ALIAS_REMOVED = "alias set", "alias rolled back", "alias removed"
Split = dict[str, int]  # per cent by player

#: who is at work, where a service knows; else the user of this process
working_for: ContextVar[str] = ContextVar("working_for", default="")


class AliasError(UserError):
    """What is asked contradicts the aliases or players that there are."""


class UnknownAliasError(UserError):
    """There is no such alias."""


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """An administrative change: of which name, by whom, and what was there before and after, where that says more."""

    who: str
    what: str
    name: str
    before: Any = None
    after: Any = None
    key: str | None = None  # of the request: sent again, it counts once


#: a change as bytes
encode = msgspec.json.encode
#: the change that `encode` wrote; raises ValueError
decode = msgspec.json.Decoder(Change).decode


def change(what: str, name: str, before: Any = None, after: Any = None, key: str | None = None) -> Change:
    """A change by whoever is at work here."""
    return Change(working_for.get() or _user(), what, name, before, after, key)


def _user() -> str:
    with suppress(OSError, KeyError, ImportError):
        return f"user {getpass.getuser()}"
    return "unknown user"


def checked_split(split: Any) -> Split:
    """The players of a split that get something, with their per cent.

    >>> checked_split({"banner-v1": 100, "banner-v2": 0})
    {'banner-v1': 100}
    >>> checked_split({"banner-v1": 90})
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: a split must sum to 100 per cent, and 'banner-v1' 90 % sums to 90
    """
    if not isinstance(split, Mapping):
        raise UserError(f"a split must be a dict of players and whole per cent, got {shown(split)}")
    found = {
        checked_name("a player of a split", player): whole_number(
            f"the per cent of {shown(player)}", percent, least=0, most=100
        )
        for player, percent in split.items()
    }
    if sum(found.values()) != 100:
        raise UserError(
            f"a split must sum to 100 per cent, and {split_text(found)} sums to {sum(found.values())}"
        )
    return {player: percent for player, percent in found.items() if percent}


def split_text(split: Split) -> str:
    """A split in words.

    >>> split_text({"banner-v1": 90, "banner-v2": 10})
    "'banner-v1' 90 %, 'banner-v2' 10 %"
    """
    return ", ".join(f"{shown(player)} {percent} %" for player, percent in split.items()) or "nothing"


def reassigned(buckets: Sequence[str], split: Split) -> tuple[str, ...]:
    """Each of the 100 buckets of an alias to a player, as before wherever the split leaves it there.

    >>> before = reassigned((), {"v1": 90, "v2": 10})
    >>> after = reassigned(before, {"v1": 70, "v2": 20, "v3": 10})
    >>> sum(one != other for one, other in zip(before, after))
    20
    """
    room = dict(split)
    kept: list[str | None] = []
    for player in buckets or repeat(None, 100):
        stays = player is not None and room.get(player, 0) > 0
        if player is not None and stays:
            room[player] -= 1
        kept.append(player if stays else None)
    free = chain.from_iterable(repeat(player, percent) for player, percent in room.items())
    return tuple(next(free) if player is None else player for player in kept)


class Alias(NamedTuple):
    """Where an alias sends units, and the one that a rollback brings back."""

    split: Split
    buckets: tuple[str, ...]
    before: Alias | None

    def player_of(self, name: str, unit: str | None) -> str:
        """The player of a unit: by a hash of the alias's name and the unit, by a draw where there is none."""
        if unit is None:
            return random.choice(self.buckets)
        digest = hashlib.blake2b(f"{name}\0{unit}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.buckets[int.from_bytes(digest) % len(self.buckets)]


class Aliases:
    """The aliases of a store, up to a change.

    Examples
    --------
    >>> aliases = Aliases()
    >>> aliases.follow(1, Change("ann", ALIAS_SET, "banner", None, {"v1": 100}))
    >>> aliases.follow(2, Change("ann", ALIAS_SET, "banner", {"v1": 100}, {"v2": 100}))
    >>> aliases.present["banner"].player_of("banner", "visitor 17"), aliases.players["banner"]
    ('v2', ['v2', 'v1'])
    """

    def __init__(self) -> None:
        self.seq = 0  # of the last change of an alias
        self._keys: dict[str, str | None] = {}  # of the last change of each
        self.present: dict[str, Alias] = {}
        #: the players that an alias has ever named, the latest first: of late rewards
        self.players: dict[str, list[str]] = {}

    def follow(self, seq: int, one: Change) -> None:
        """Let the next change of an alias happen."""
        name, present = one.name, self.present.get(one.name)
        split = None if one.after is None else checked_split(one.after)
        if split is None:
            self.present.pop(name, None)
        elif one.what == ALIAS_ROLLED_BACK and present is not None and present.before is not None:
            self.present[name] = present.before
        else:
            buckets = reassigned(() if present is None else present.buckets, split)
            self.present[name] = Alias(split, buckets, present)
        self.players[name] = list(dict.fromkeys([*(split or ()), *self.players.get(name, ())]))
        self.seq, self._keys[name] = seq, one.key

    def next_change(self, wanted: Change) -> Change | None:
        """A change that is asked for, with what is there before and after; None where it is so already."""
        name, present = wanted.name, self.present.get(wanted.name)
        if wanted.what == ALIAS_SET:
            before = None if present is None else present.split
            return None if before == wanted.after else replace(wanted, before=before)
        if wanted.key is not None and self._keys.get(name) == wanted.key:
            return None
        if present is None:
            raise UnknownAliasError(f"there is no alias {shown(name)}{nearest(name, self.present)}")
        if wanted.what == ALIAS_REMOVED:
            return replace(wanted, before=present.split)
        if present.before is None:
            raise AliasError(f"the alias {shown(name)} has had no other split to go back to")
        return replace(wanted, before=present.split, after=present.before.split)

    def refuse(self, name: str) -> None:
        """An alias where a player is wanted."""
        if name in self.present:
            split = split_text(self.present[name].split)
            raise AliasError(f"{shown(name)} is an alias, of {split}, and no player")

    def refuse_where_needed(self, player: str) -> None:
        """To end a player that an alias sends units to."""
        for name, alias in self.present.items():
            if player in alias.split:
                raise AliasError(f"the alias {shown(name)} sends units to {shown(player)}: change it first")
