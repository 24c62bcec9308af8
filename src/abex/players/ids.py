"""Ids of decisions: unique across processes, machines, restarts and seeds, and sorted by time.

An id is a UUID of version 7 (RFC 9562): the millisecond, the number of the decision within a *life* of its player, and 40 random
bits that name the life. A player begins a life when it is made, loaded, copied, unpickled, or finds itself in a forked process.
So it can tell whether an id is its own, was given before it was saved, or belongs to a life that it never lived: a
decision made after the last save is lost with its process, and a late reward for it must not be taken for another's. Ids of one
life are sorted as words are.

The bits come from the system, never from the player's random stream: what is played stays a function of the seed.
"""

from __future__ import annotations

import os
import re
import time

COUNTER_BITS = 34
LIFE_BITS = 40
LOW_BITS = 62 - LIFE_BITS  # of the counter, beside the life
LIFE_AT = 26  # where in an id the name of its life begins
PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
_is_id = re.compile(PATTERN).fullmatch
_BYTES = [f"{number:02x}" for number in range(256)]


class Life:
    """What a player does between being made or loaded and its end: a name, and how many decisions it made.

    >>> life = Life()
    >>> first, second = life.next_id(), life.next_id()
    >>> first < second, first[LIFE_AT:] == second[LIFE_AT:] == life.name
    (True, True)
    """

    def __init__(self) -> None:
        self.name = _new_name()
        self.made = 0
        self.latest = 0
        self._start = ""  # of the ids of the latest moment, up to the last byte of the counter

    def next_id(self, moment: int | None = None) -> str:
        """The id of its next decision at a moment (milliseconds since 1970, now unless given).

        Ids of one life increase, even when the clock is set back. When its numbers are used up another life begins.
        """
        made = self.made = self.made + 1
        if moment is None:
            moment = time.time_ns() // 1_000_000
        if moment > self.latest or made & 255 == 0 or made == 1:
            if made >> COUNTER_BITS:
                self.name, self.made, made = _new_name(), 1, 1
            self.latest = max(moment, self.latest)
            digits = f"{self.latest & 0xFFFFFFFFFFFF:012x}"
            high, low = made >> LOW_BITS, made & ((1 << LOW_BITS) - 1)
            rest = f"{(2 << LOW_BITS | low) >> 8:04x}"
            self._start = f"{digits[:8]}-{digits[8:]}-7{high:03x}-{rest}-"
        return self._start + _BYTES[made & 255] + self.name


def _new_name() -> str:
    return os.urandom(LIFE_BITS // 8).hex()


def is_id(name: str) -> bool:
    """Whether a word is the id of a decision, of whatever player."""
    return _is_id(name) is not None


def moment_of(name: str) -> int:
    """When the decision of an id was made, in milliseconds since 1970; 0 for anything else.

    >>> moment_of(Life().next_id(moment=1_700_000_000_000))
    1700000000000
    """
    return int(name[:8] + name[9:13], 16) if is_id(name) else 0
