"""A state that follows a journal, without input and output: which events it has applied, and which of its own are on their way.

Somebody else asks the journal and tells the follower what it said (`Store`). So every order in which answers can come, be lost or
come late can be tried out: `tests/players/test_follower.py` tries all of them.

**Own events are written once.** An append may fail although it was carried out (the answer was lost), and its events may stand
behind those of others. In both cases the follower is *unsure*: it appends nothing before it has read as far as the journal
reached *after* that append, and takes what it finds there of its own as written.

**An empty answer is not "up to date".** Events that a snapshot covers may be deleted; only the number of the journal's last event
(`looked`) tells how far there is to go, and whether the way leads over a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol


class Own(Protocol):
    """An event of this process on its way into the journal."""

    event: Any

    def written(self, outcome: Any) -> None:
        """It is in the journal, and applied."""
        ...


class Follower:
    """Follows the journal of one player.

    Parameters
    ----------
    apply : callable
        Lets the event of a number happen, ``apply(seq, event)``, and returns what came of it.
    seq : int
        The number of the last event in the state.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> follower = Follower(lambda seq, event: print(f"event {seq} is {event.id}"))
    >>> events = [SimpleNamespace(id="a"), SimpleNamespace(id="b")]
    >>> follower.propose([SimpleNamespace(event=event, written=lambda outcome: None) for event in events])
    >>> len(follower.to_append())
    2
    >>> follower.appended(2)
    event 1 is a
    event 2 is b
    """

    def __init__(self, apply: Callable[[int, Any], Any], seq: int = 0) -> None:
        self._apply = apply
        self.seq = seq
        self.own: dict[str, Any] = {}  # by id, in the order of their proposal: not known to be written
        self.unsure = False  # own events may stand in the journal where this follower has not read yet
        self.astray = False  # the journal has lost events that are in the state
        self._under_way: list[Any] = []
        self._unwanted: set[str] = set()
        self._head: int | None = None  # how far the journal reaches, asked after the last append

    # -- own events -----------------------------------------------------------------------------------

    def propose(self, events: Iterable[Own]) -> None:
        """To be written with the next append."""
        self.own.update((own.event.id, own) for own in events)

    def withdraw(self, events: Iterable[Own]) -> None:
        """Nobody waits for these any more: they are not written, unless they are found to have been."""
        self._unwanted.update(own.event.id for own in events)

    def to_append(self) -> Sequence[Any]:
        """What is to be appended now: nothing while the fate of the last append is unknown."""
        if self.unsure or self._under_way:
            return ()
        for name in self._unwanted:
            self.own.pop(name, None)
        self._unwanted.clear()
        self._under_way = list(self.own.values())
        return self._under_way

    def appended(self, last: int) -> None:
        """What `to_append` gave is in the journal, up to number ``last``."""
        written, self._under_way = self._under_way, []
        before = last - len(written)
        if before != self.seq:  # others wrote before: they come first
            self.unsure, self._head, self.astray = True, None, before < self.seq
            return
        for own in written:
            self._follow(own.event)

    def failed(self) -> None:
        """The append of what `to_append` gave failed, or its answer was lost: it may have been carried out."""
        if self._under_way:
            self.unsure, self._head, self._under_way = True, None, []

    def forget(self) -> None:
        """Nothing is on its way any more: in a forked process, where the parent writes it, or when the player was deleted."""
        self.own, self._under_way, self.unsure = {}, [], False

    # -- the journal ----------------------------------------------------------------------------------

    def looked(self, head: int, pruned: int) -> Literal["there", "read", "restore"]:
        """The journal has events up to ``head``, and no longer those up to ``pruned``: what is to be done."""
        self._head = head
        self.astray |= head < self.seq
        if self.astray or pruned > self.seq:
            return "restore"
        self._arrived()
        return "there" if head == self.seq else "read"

    def read(self, rows: Iterable[tuple[int, Any]]) -> bool:
        """Apply events that were read; False if the first ones are missing, and a snapshot is needed."""
        for seq, event in rows:
            if seq > self.seq + 1:
                return False
            if seq == self.seq + 1:
                self._follow(event)
        self._arrived()
        return True

    def restored(self, seq: int) -> None:
        """The state is that of a snapshot now, after event ``seq``.

        Own events that it holds cannot be told from others; they are written again, and a state takes no event twice.
        """
        self.seq, self.astray = seq, False
        self._arrived()

    def _arrived(self) -> None:
        if self._head is not None and self.seq >= self._head:
            self.unsure = False

    def _follow(self, event: Any) -> None:
        outcome = self._apply(self.seq + 1, event)
        self.seq += 1
        own = self.own.pop(event.id, None)
        if own is not None:
            own.written(outcome)
