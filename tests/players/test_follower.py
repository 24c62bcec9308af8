"""The protocol of a journal, tried in every order: appends whose answers are lost, reads of any length, pruning, crashes.

A *world* is a journal with some processes that follow it, each by the `Follower` that shared players use. From the first world
on, everything that can happen next is tried in every world that can come about, so whatever order of events breaks a promise is
found.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from abex.players.follower import Follower


class Event(NamedTuple):
    id: str


class Own:
    """An event on its way; `written` is the acknowledgement."""

    def __init__(self, process: Process, name: str) -> None:
        self.process, self.event = process, Event(name)

    def written(self, outcome: Any) -> None:
        self.process.acknowledged += (self.event.id,)


class Process:
    """A follower whose state is the list of the events that counted; none counts twice."""

    def __init__(self, kind: type[Follower], number: int, events: int) -> None:
        self.number, self.kind = number, kind
        self.left = events  # to be proposed
        self.lives = 0
        self.acknowledged: tuple[str, ...] = ()
        self.start((), 0)

    def start(self, state: tuple[str, ...], seq: int) -> None:
        self.state = state
        self.follower = self.kind(self.apply)
        self.follower.restored(seq)

    def apply(self, seq: int, event: Event) -> bool:
        new = event.id not in self.state
        self.state += (event.id,) if new else ()
        return new

    def key(self) -> Any:
        one = self.follower
        on_the_way = (
            tuple(one.own),
            tuple(sorted(one._unwanted)),
            tuple(own.event.id for own in one._under_way),
        )
        told = one.seq, one.unsure, one.astray, one._head
        return self.left, self.lives, self.acknowledged, self.state, on_the_way, told


@dataclass
class World:
    """A journal, its followers, and how often something may still go wrong.

    Appends of the first process alone fail: the processes are alike, and one fault a world is enough for it to be anybody's.
    """

    processes: list[Process]
    faults: int  # appends that fail
    crashes: int
    compactions: int
    late: int  # appends that fail and are carried out later
    withdrawn: int = 0  # events that nobody waits for any more
    history: tuple[str, ...] = ()  # all events ever written, in their order
    pruned: int = 0
    snapshots: tuple[tuple[int, tuple[str, ...]], ...] = ()
    sent: tuple[tuple[str, ...], ...] = ()  # by connections that broke, not arrived yet
    resent: set[str] = field(default_factory=set)  # that may stand in the journal twice

    def key(self) -> Any:
        limits = self.faults, self.crashes, self.compactions, self.late, self.withdrawn
        journal = self.history, self.pruned, self.snapshots, self.sent
        return limits, journal, tuple(process.key() for process in self.processes)

    def copy(self) -> World:
        twin = copy.copy(self)
        twin.resent = set(self.resent)
        twin.processes = []
        for process in self.processes:
            same = copy.copy(process)
            same.follower = copy.copy(process.follower)
            same.follower._apply = same.apply
            own = {name: Own(same, name) for name in process.follower.own}
            same.follower.own, same.follower._unwanted = own, set(process.follower._unwanted)
            same.follower._under_way = [own.get(one.event.id, one) for one in process.follower._under_way]
            twin.processes.append(same)
        return twin

    # -- what can happen ------------------------------------------------------------------------------

    def propose(self, process: Process) -> None:
        name = f"{process.number}.{process.lives}.{process.left}"
        process.left -= 1
        process.follower.propose([Own(process, name)])

    def _sent(self, process: Process) -> tuple[str, ...]:
        return tuple(own.event.id for own in process.follower.to_append())

    def append(self, process: Process) -> None:
        self.history += self._sent(process)
        process.follower.appended(len(self.history))

    def append_fails_before(self, process: Process) -> None:
        self._sent(process)
        process.follower.failed()
        self.faults -= 1

    def append_fails_after(self, process: Process) -> None:
        self.history += self._sent(process)
        process.follower.failed()
        self.faults -= 1

    def append_is_late(self, process: Process) -> None:
        events = self._sent(process)
        process.follower.failed()
        self.sent += (events,)
        self.resent.update(events)
        self.late -= 1

    def arrives(self) -> None:
        self.history, self.sent = self.history + self.sent[0], self.sent[1:]

    def look(self, process: Process) -> None:
        if process.follower.looked(len(self.history), self.pruned) == "restore":
            self._restore(process)

    def read(self, process: Process, count: int) -> None:
        begin = process.follower.seq
        kept = [
            (seq, Event(name)) for seq, name in enumerate(self.history, 1) if seq > max(begin, self.pruned)
        ]
        if not process.follower.read(kept[:count]):
            self._restore(process)

    def _restore(self, process: Process) -> None:
        seq, state = self.snapshots[-1] if self.snapshots else (0, ())
        if process.follower.unsure or process.follower._under_way:
            self.resent.update(process.follower.own)  # nobody can tell whether the snapshot holds them
        process.state = state
        process.follower.restored(seq)

    def withdraw(self, process: Process) -> None:
        process.follower.withdraw([next(iter(process.follower.own.values()))])
        self.withdrawn -= 1

    def compact(self, process: Process) -> None:
        self.snapshots = (*self.snapshots, (process.follower.seq, process.state))[-2:]
        self.pruned = max(self.pruned, process.follower.seq)
        self.compactions -= 1

    def crash(self, process: Process) -> None:
        process.lives += 1
        self.crashes -= 1
        process.start(*reversed(self.snapshots[-1] if self.snapshots else (0, ())))

    def next(self) -> list[World]:
        """All worlds that can come next."""
        found = []

        def then(what: str, process: int | None = None, *more: Any) -> None:
            twin = self.copy()
            arguments = () if process is None else (twin.processes[process],)
            getattr(twin, what)(*arguments, *more)
            found.append(twin)

        for number, process in enumerate(self.processes):
            follower = process.follower
            if process.left:
                then("propose", number)
            if follower.own and not follower.unsure:
                then("append", number)
                if self.faults and number == 0:
                    then("append_fails_before", number)
                    then("append_fails_after", number)
                if self.late and number == 0:
                    then("append_is_late", number)
            if follower._head != len(self.history):
                then("look", number)
            for count in range(1, len(self.history) - follower.seq + 1):
                then("read", number, count)
            if self.withdrawn and follower.own:
                then("withdraw", number)
            if self.compactions and follower.seq > self.pruned:
                then("compact", number)
            if self.crashes and (follower.own or follower.unsure):
                then("crash", number)
        if self.sent:
            then("arrives")
        return found

    # -- promises -------------------------------------------------------------------------------------

    def check(self) -> None:
        twice = {name for name in self.history if self.history.count(name) > 1}
        assert twice <= self.resent, f"{twice} were written twice"
        for process in self.processes:
            seq = process.follower.seq
            counted = tuple(dict.fromkeys(self.history[:seq]))
            assert process.state == counted, "equal numbers mean equal states"
            assert set(process.acknowledged) <= set(self.history), "an acknowledged event is lost"

    def settled(self) -> None:
        """Nothing goes wrong any more: everybody gets what he wrote acknowledged, and comes to the end of the journal."""
        while self.sent:
            self.arrives()
        for _ in range(2):
            for process in self.processes:
                follower = process.follower
                for _ in range(3):
                    self.look(process)
                    self.read(process, len(self.history))
                    if follower.own and follower.to_append():
                        self.history += tuple(own.event.id for own in follower._under_way)
                        follower.appended(len(self.history))
                assert not follower.own, "an event was never acknowledged"
        for process in self.processes:
            self.look(process)
            self.read(process, len(self.history))
            assert process.follower.seq == len(self.history), "somebody stayed behind"
            assert set(self.history) == set(process.state), "a valid id is not known"
        self.check()


def explored(kind: type[Follower], processes: int, events: int, most: int = 10**6, **faults: int) -> int:
    """Try everything; returns how many worlds there are."""
    limits = {"faults": 0, "crashes": 0, "compactions": 0, "late": 0} | faults
    first = World([Process(kind, number, events) for number in range(processes)], **limits)
    seen, front = {first.key()}, [first]
    while front:
        world = front.pop()
        world.check()
        world.copy().settled()
        for one in world.next():
            key = one.key()
            if key not in seen:
                seen.add(key)
                front.append(one)
        assert len(seen) < most
    return len(seen)


CASES = {
    "answers are lost": {"processes": 2, "events": 2, "faults": 1},
    "answers are lost again": {"processes": 2, "events": 1, "faults": 3},
    "a process crashes": {"processes": 2, "events": 1, "faults": 1, "crashes": 1},
    "events are deleted": {"processes": 2, "events": 1, "faults": 1, "compactions": 2},
    "events are deleted while many are written": {"processes": 2, "events": 2, "compactions": 1},
    "what was sent arrives late": {"processes": 2, "events": 1, "faults": 1, "late": 1},
    "everything": {"processes": 2, "events": 1, "faults": 1, "crashes": 1, "compactions": 1},
    "events are withdrawn": {"processes": 2, "events": 1, "faults": 2, "withdrawn": 2},
    "three processes": {"processes": 3, "events": 1, "faults": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_order_of_events_keeps_the_promises(case):
    assert explored(Follower, **CASES[case]) > 500


class ForgetsThatItMayBeWritten(Follower):
    def failed(self) -> None:
        self._under_way = []


class AppliesItsOwnBeforeThoseOfOthers(Follower):
    def appended(self, last: int) -> None:
        self.seq = last - len(self._under_way)
        super().appended(last)


class BelievesAnOldHead(Follower):
    def failed(self) -> None:
        head = self._head
        super().failed()
        self._head = head


class TakesAnEmptyAnswerForTheEnd(Follower):
    def looked(self, head: int, pruned: int) -> Any:
        return super().looked(head, 0)


class DropsWhatFailed(Follower):
    def failed(self) -> None:
        for own in self._under_way:
            self.own.pop(own.event.id)
            own.written(None)
        super().failed()


class SkipsWhatIsMissing(Follower):
    def read(self, rows: Any) -> bool:
        for seq, event in rows:
            self.seq = seq - 1
            super().read([(seq, event)])
        return True


class IsSureTooEarly(Follower):
    def read(self, rows: Any) -> bool:
        found = super().read(rows)
        self.unsure = False
        return found


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (ForgetsThatItMayBeWritten, "answers are lost"),
        (AppliesItsOwnBeforeThoseOfOthers, "answers are lost"),
        (BelievesAnOldHead, "answers are lost"),
        (TakesAnEmptyAnswerForTheEnd, "events are deleted"),
        (DropsWhatFailed, "answers are lost"),
        (SkipsWhatIsMissing, "events are deleted"),
        (IsSureTooEarly, "answers are lost"),
    ],
)
def test_a_mistake_in_the_follower_is_found(kind, case):
    with pytest.raises(AssertionError):
        explored(kind, **CASES[case])


def test_a_journal_that_has_lost_events_is_followed_from_its_snapshot():
    state = []
    follower = Follower(lambda seq, event: state.append(event.id))
    follower.read((seq, Event(f"{seq}")) for seq in range(1, 6))
    assert follower.looked(3, 0) == "restore"
    follower.restored(0)
    assert follower.looked(3, 0) == "read"
    lost = Follower(lambda seq, event: None, seq=5)
    lost.propose([Own(Process(Follower, 0, 0), "a")])
    lost.to_append()
    lost.appended(4)  # a file that was put back held three events
    assert lost.looked(9, 0) == "restore"
