"""Ids of decisions: unique across processes, machines, restarts and seeds, and sorted by time.

An id is a UUID of version 7 (RFC 9562): the millisecond, the number of the decision within a *life* of its player, and 40 random
bits that name the life. A player begins a life when it is made, loaded, copied, unpickled, or finds itself in a forked process.
So it can tell whether an id is its own, was given before it was saved, or belongs to a life that it never lived: a
decision made after the last save is lost with its process, and a late reward for it must not be taken for another's.

The bits come from the system, never from the player's random stream: what is played stays a function of the seed.
"""

from __future__ import annotations

import os
import re
import time
from functools import lru_cache

COUNTER_BITS = 34
LIFE_BITS = 40
LOW_BITS = 62 - LIFE_BITS  # of the counter, beside the life
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7([0-9a-f]{3})-([89ab][0-9a-f]{3})-([0-9a-f]{2})([0-9a-f]{10})")


class Life:
    """What a player does between being made or loaded and its end: a name, and how many decisions it made."""

    def __init__(self) -> None:
        self.name = os.urandom(LIFE_BITS // 8).hex()
        self.made = 0
        self.latest = 0
        self._digits = "00000000-0000-7"  # of the latest moment

    @property
    def is_full(self) -> bool:
        """Whether its decisions have used up their numbers."""
        return self.made >= (1 << COUNTER_BITS) - 1

    def next_id(self, moment: int | None = None) -> str:
        """The id of its next decision at a moment (milliseconds since 1970, now unless given).

        Ids of one life increase, even when the clock is set back.
        """
        self.made += 1
        if moment is None:
            moment = time.time_ns() // 1_000_000
        if moment > self.latest:
            self.latest = moment
            digits = f"{moment & 0xFFFFFFFFFFFF:012x}"
            self._digits = f"{digits[:8]}-{digits[8:]}-7"
        high, low = self.made >> LOW_BITS, self.made & ((1 << LOW_BITS) - 1)
        rest = f"{2 << LOW_BITS | low:06x}"
        return f"{self._digits}{high:03x}-{rest[:4]}-{rest[4:]}{self.name}"


@lru_cache(maxsize=8_192)  # of a decision it is asked when it is made, and when its reward comes
def life_and_number(name: str) -> tuple[str, int] | None:
    """The life that gave an id, and which of its decisions it was; None for anything else.

    >>> life = Life()
    >>> first, second = life.next_id(), life.next_id()
    >>> first < second, life_and_number(second) == (life.name, 2), life_and_number("something")
    (True, True, None)
    """
    found = _UUID.fullmatch(name)
    if found is None:
        return None
    high, middle, low, life = found.groups()
    return life, int(high, 16) << LOW_BITS | int(middle + low, 16) & ((1 << LOW_BITS) - 1)


def moment_of(name: str) -> int:
    """When the decision of an id was made, in milliseconds since 1970; 0 for anything else.

    >>> moment_of(Life().next_id(moment=1_700_000_000_000))
    1700000000000
    """
    return int(name[:8] + name[9:13], 16) if _UUID.fullmatch(name) else 0


def is_life(name: object) -> bool:
    """Whether ``name`` can be the name of a life."""
    return isinstance(name, str) and re.fullmatch(r"[0-9a-f]{10}", name) is not None
