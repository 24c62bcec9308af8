"""One player of many processes: a replica that follows a journal, and what this process has proposed to it.

Deciding, checking and applying happen under the player's lock, for microseconds. All talking to the store is done by the store's
thread (`Store`), which takes that lock only between its statements: nobody who decides ever waits for the store.
"""

from __future__ import annotations

import copy
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from abex.players.arms import Label, NamedArms
from abex.players.changes import Change, change
from abex.players.events import (
    ArmAdded,
    ArmRemoved,
    ArmRenamed,
    Decided,
    Event,
    Expired,
    decode,
    encode,
)
from abex.players.follower import Follower
from abex.players.ids import moment_of
from abex.players.journal import PlayerRow, Row, UnavailableError
from abex.players.player import Decision, Player, UnknownDecisionError
from abex.players.player_file import (
    DAMAGE,
    Definition,
    from_snapshot,
    reason_of,
    snapshot_of,
    state_text,
    template_of,
)
from abex.players.store import Found, Store
from abex.players.summary import Summary
from abex.support.errors import UserError, shown
from abex.support.randomness import stream

MOST_UNSAVED = 10_000  # events that may wait for a journal that cannot be reached
LATE_DECISIONS = 1.0  # seconds to wait for a decision that another process has just made
RECENT = 60_000  # milliseconds for which a decision is "just made"
KEPT_SNAPSHOTS = 2
AT_ONCE = 200  # events that are applied before somebody who decides may have a turn
PRUNED_AT_ONCE = 50_000
READ_AT_ONCE = 2_000
LEAST_READ = 50_000  # decisions that are looked through whatever is wanted: rewards come late
EVENTS_EACH = 4  # that are read for each decision wanted


class SequenceStream:
    """A generator that `at` sets to the numbers of one event: learning from it draws the same ones in every process.

    >>> one, two = SequenceStream(7), SequenceStream(7)
    >>> one.at(3).random() == two.at(3).random(), one.at(4).random() == two.at(3).random()
    (True, False)
    """

    resting: ClassVar = np.random.Generator(np.random.PCG64(0))  # for who draws nothing

    def __init__(self, key: int) -> None:
        self._key = key.to_bytes(16, "little")
        self._generator: np.random.Generator | None = None  # made at the first draw

    def at(self, seq: int) -> np.random.Generator:
        """The generator, at the numbers of event ``seq``."""
        if self._generator is None:
            self._generator = np.random.Generator(np.random.PCG64(0))
        digest = hashlib.blake2b(seq.to_bytes(8, "little"), key=self._key, digest_size=32).digest()
        state = int.from_bytes(digest[:16], "little")
        step = int.from_bytes(digest[16:], "little") | 1
        self._generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": step},
            "has_uint32": 0,
            "uinteger": 0,
        }
        return self._generator


class Ticket(Future[None]):
    """Of who waits until some events are written."""

    def __init__(self, proposals: Iterable[Proposal]) -> None:
        super().__init__()
        self.left = 0
        for one in proposals:
            if not one.done:
                one.tickets.append(self)
                self.left += 1
        if not self.left:
            self.set_result(None)

    def written(self) -> None:
        """One of the events is."""
        self.left -= 1
        if not self.left and not self.done():
            self.set_result(None)

    def fail(self, error: UserError, kept: bool) -> None:
        """The store failed; whether the events are written once it is back."""
        if not self.done():
            why = UnavailableError(error, kept)
            why.__cause__ = error
            self.set_exception(why)


class Proposal:
    """An event of this process on its way into the journal, and what came of it."""

    __slots__ = ("change", "decision", "done", "event", "outcome", "settled", "tickets")

    def __init__(self, event: Event, decision: Decision | None = None, change: Change | None = None) -> None:
        self.event = event
        self.decision = decision
        self.change = change  # where the event is an administrative one
        self.settled = decision is None  # whether its probability is worked out
        self.done = False
        self.outcome: Any = None
        self.tickets: list[Ticket] = []

    def written(self, outcome: Any) -> None:
        """It is in the journal, and applied."""
        self.outcome, self.done = outcome, True
        for ticket in self.tickets:
            ticket.written()


class SharedPlayer(Player, AbstractContextManager["SharedPlayer"]):
    """A player that many processes share through a journal: what `Player.open` and `Store.player` return.

    It does all that a `Player` does. A decision is local: it is made by what this process knows, and written within 50
    milliseconds, at the latest together with the next reward of this process. A reward is on disk when `update` returns.
    See "Players that many processes share" in the documentation.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        found: Found,
        *,
        compiled: bool | None = None,
        seed: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.store, self.name = store, name
        self._wants_compiled = compiled
        self._follower = Follower(self._apply)
        self._expiring = 0  # up to when decisions were last told to expire
        self.ends_store = False  # whether the store is left with the player
        self._last = ""  # id of the last event
        self.changes: list[Change] = []  # administrative ones among what is being appended
        self.connection = found.connection  # by which the journal was last seen to be this one
        self.is_closed = self.is_listed = self.is_fresh = self.is_gone = False
        self._begin(
            stream(int.from_bytes(os.urandom(16), "little") if seed is None else seed, "player"), clock
        )
        self.restore(found.record, found.snapshot)
        if self.looked(found.record.head, found.record.pruned) != "there":
            store.refresh(self)
        store.enter(self)

    @property
    def url(self) -> str:
        """The address of its store."""
        return self.store.url

    # -- what the store's thread asks -----------------------------------------------------------------

    def restore(self, record: PlayerRow, snapshot: tuple[int, bytes] | None) -> None:
        """Go on from a snapshot, or from the beginning."""
        where = f"the player {self.name!r} in {self.store.display_url}"
        definition = Definition(record.definition, where)
        if snapshot is not None:
            replica, seq = from_snapshot(definition, snapshot[1], self._wants_compiled)
        elif record.pruned:
            raise UnavailableError(
                f"cannot open {where}: its first events are pruned and there is no snapshot"
            )
        else:
            replica, seq = definition.replica(self._wants_compiled), 0
        with self._lock:
            if hasattr(self, "_state"):
                self._settle()
            self.id, self.definition = record.id, definition
            self.is_gone = False
            self._state, self._last = replica, ""
            self._template = template_of(replica)
            self._learning = SequenceStream(definition.key)
            self._follower.restored(seq)

    def is_behind(self, connection: int) -> bool:
        """Whether the journal must be read before anything is written."""
        return self._follower.unsure or self._follower.astray or self.connection != connection

    def reconnected(self, connection: int, number: int, last: Sequence[tuple[int, bytes]] | None) -> None:
        """There is a new connection: the journal must still have the ``last`` event that was applied."""
        with self._lock:
            same = number == self.id and (not last or not self._last or decode(last[0][1]).id == self._last)
            self._follower.astray |= not same
            self.connection = connection

    def looked(self, head: int, pruned: int) -> str:
        """The journal reaches up to ``head``; what is to be done."""
        with self._lock:
            return self._follower.looked(head, pruned)

    def read(self, rows: Sequence[tuple[int, bytes]]) -> bool:
        """Apply events of the journal; False if the next ones are not among them."""
        for start in range(0, len(rows), AT_ONCE):
            with self._lock:
                self._settle()
                if not self._follower.read(self._events(rows[start : start + AT_ONCE])):
                    return False
            time.sleep(0.0)  # somebody may be waiting for the lock
        return bool(rows)

    def _events(self, rows: Iterable[tuple[int, bytes]]) -> Iterable[tuple[int, Event]]:
        for seq, body in rows:
            try:
                event = decode(body)
                self._state.check(event, self._template)
            except DAMAGE as error:
                place = f"event {seq} of {self.name!r} in {self.store.display_url}"
                raise UserError(f"the journal is damaged at {place}: {reason_of(error)}") from error
            yield seq, event

    def rows(self) -> list[Row]:
        """What is to be appended."""
        with self._lock:
            self.is_listed = False
            self._settle()
            under_way = self._follower.to_append()
            self.changes = [own.change for own in under_way if own.change is not None]
            events = [own.event for own in under_way]
            self._deciding = sum(isinstance(own.event, Decided) for own in self._follower.own.values())
        return [Row(str(event.__struct_config__.tag), event.moment, encode(event)) for event in events]

    def appended(self, last: int) -> bool:
        """It is in the journal, up to number ``last``; whether that makes a snapshot due."""
        with self._lock:
            self._settle()
            before = self._follower.seq
            self._follower.appended(last)
            every = max(self.store.snapshot_every, len(self._state.pending) + self._state.n_arms // 10)
            return before // every < last // every

    def append_failed(self) -> None:
        """Nobody knows whether it is in the journal."""
        with self._lock:
            self._follower.failed()

    def failed(self, error: UserError, kept: bool = True) -> None:
        """The store failed: tell those who wait."""
        with self._lock:
            for own in self._follower.own.values():
                for ticket in own.tickets:
                    ticket.fail(error, kept)

    def gone(self) -> UnavailableError:
        """Somebody has deleted the player: what was on its way is lost."""
        error = UnavailableError(
            f"the player {self.name!r} is gone from the journal {self.store.display_url}"
        )
        with self._lock:
            self.is_gone = True
            self.failed(error, kept=False)
            self._follower.forget()
            self._deciding = 0
        return error

    def expire(self) -> None:
        """Tell decisions whose time is over to expire, and rewards to be final, by the clock of the store."""
        if not (self._state.pending or self._state.bets.changing):
            return
        with self._lock:
            end, now = self._state.over_at(), self._now()
            if end is not None and end <= now and (self._expiring < end or not self._follower.own):
                self._expiring = now
                cutoff = max(0, now - (self.settings.expire or 0))
                self._propose([Proposal(Expired(*self._event_id(), cutoff))])

    # -- events ---------------------------------------------------------------------------------------

    def _apply(self, seq: int, event: Event) -> Any:
        """Apply one event; ``_lock`` is held."""
        draws = self._state.draws_to_learn and not isinstance(event, Decided)
        rng = self._learning.at(seq) if draws else self._learning.resting
        self._last = event.id
        if isinstance(event, Decided) and event.id in self._follower.own:
            self._deciding -= 1
        return self._state.apply(event, rng)

    def _propose(self, proposals: Sequence[Proposal]) -> None:
        """To be written soon; ``_lock`` is held."""
        self._follower.propose(proposals)
        self._deciding += sum(isinstance(one.event, Decided) for one in proposals)
        if not self.is_listed:
            self.is_listed = True
            self.store.dirty(self)

    def _happen(self, events: list[Any]) -> list[Any]:
        """Put events into the journal; they are on disk, and applied, when it returns."""
        with self._lock:
            self._refuse_if_closed()
            proposals = [Proposal(event, change=self._change_by(event)) for event in events]
            ticket = Ticket(proposals)
            self._propose(proposals)
        self.store.wait(ticket)
        return [one.outcome for one in proposals]

    def _change_by(self, event: Event) -> Change | None:
        """The administrative change that an event is; ``_lock`` is held."""
        if not isinstance(event, ArmAdded | ArmRemoved | ArmRenamed):
            return None
        arms, before, after = self._state.arms, None, None
        if isinstance(event, ArmAdded):
            after = arms.next_number if event.label is None else event.label
        else:
            before = arms.label(event.arm)
        if isinstance(event, ArmRenamed):
            after = event.label
        return change(str(event.__struct_config__.tag), self.name, before, after)

    def ticket(self, proposals: Iterable[Proposal]) -> Ticket:
        """For who waits until these are written."""
        with self._lock:
            return Ticket(proposals)

    def withdraw(self, proposals: Iterable[Proposal]) -> None:
        """Whoever waited for these was told that they are not written."""
        with self._lock:
            self._follower.withdraw([one for one in proposals if not one.done])

    def _settle(self) -> None:
        """Work out the probabilities of decisions while the state that made them is there; ``_lock`` is held."""
        if self.settings.propensities is False:
            return
        for own in self._follower.own.values():
            if not own.settled:
                own.settled = True
                observed = self._state.observed_with(own.event)
                probability, law, epoch = own.decision.work_out(self.settings.propensities)
                if own.event.probability is None:
                    own.event = replace(own.event, probability=probability, law=law, epoch=epoch)
                own.event = replace(own.event, observed=observed)

    # -- what a player does ---------------------------------------------------------------------------

    def _moment(self) -> int | None:
        """By the clock of the store, where that is another one than this machine's."""
        moment = super()._moment()
        if moment is None and abs(self.store.offset) > 1_000:
            return time.time_ns() // 1_000_000 + self.store.offset
        return moment

    def _now(self) -> int:
        moment = self._moment()
        return time.time_ns() // 1_000_000 if moment is None else moment

    def _event_id(self) -> tuple[str, int]:
        return self._others.next_id(self._moment()), self._others.latest

    def _note(self, event: Decided, decision: Decision) -> None:
        self._propose([Proposal(replace(event, seen=self._follower.seq), decision)])

    def _catch_up(self) -> None:
        """The store's thread keeps the replica fresh; ``_lock`` is held."""
        self._refuse_if_closed()
        self._state.settle()
        self.store.unblock()
        if len(self._follower.own) >= MOST_UNSAVED:
            why = self.store.trouble() or "the journal does not keep up"
            raise UnavailableError(f"{MOST_UNSAVED:,} decisions and rewards wait to be written: {why}")
        if not self.is_fresh:
            self.is_fresh = True
            self.store.asked(self)

    def _arm_of(self, name: str) -> int | None:
        own = self._follower.own.get(name)
        if own is not None and isinstance(own.event, Decided):
            return own.event.arm
        return super()._arm_of(name)

    def _open_decision(self, unit: str) -> Decision | None:
        own = (one for one in self._follower.own.values() if getattr(one.event, "unit", None) == unit)
        found = next(own, None)
        return super()._open_decision(unit) if found is None else found.decision

    def update(
        self,
        decision: Label | Decision,
        reward: float,
        also: Mapping[Any, float] | None = None,
        key: str | None = None,
    ) -> bool:
        """Learn a reward as `Player.update` does; see `update_many`."""
        return self._learned([(decision, reward, also, key)])[0]

    def update_many(self, rewards: Iterable[Any]) -> int:
        """Learn several rewards as `Player.update_many` does; all are in the journal, on disk, when it returns.

        Should the store fail or be silent for its ``deadline``, `abex.players.UnavailableError` is raised. Its ``kept`` tells
        whether this process keeps the rewards, and writes them when the store is back.
        """
        return super().update_many(rewards)

    def _learned(self, rewards: list[tuple[Any, ...]]) -> list[bool]:
        until: float | None = None
        while True:
            try:
                return super()._learned(rewards)
            except UnknownDecisionError as error:  # another process may have made it a moment ago
                now = time.monotonic()
                until = now + LATE_DECISIONS if until is None else until
                self.refresh()
                if self.has_made(error.id):
                    continue
                if not self.is_recent(error.id) or now > until:
                    raise
                time.sleep(0.02)

    def pending(self) -> list[Decision]:
        """The decisions that wait for a reward, oldest first; those on their way to the journal are last."""
        with self._lock:
            own = (one.event for one in self._follower.own.values())
            return super().pending() + [self._handed_out(one) for one in own if isinstance(one, Decided)]

    def summary(self) -> Summary:
        """The table of the arms as `Player.summary` has it; what this process decided is in it, unless the store is away."""
        with suppress(UnavailableError):
            self.flush()
        return super().summary()

    # -- the journal ----------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Write what waits to be written, and read what is new."""
        self._refuse_if_closed()
        self.expire()
        self.flush()
        self.store.refresh(self)

    def flush(self) -> None:
        """Return when everything decided and reported so far is in the journal, on disk."""
        self.store.wait(self.ticket(self._follower.own.values()))

    def is_recent(self, decision: str) -> bool:
        """Whether a decision may have been made a moment ago, by a process that is about to write it."""
        return self._now() - moment_of(decision) <= RECENT

    def seq(self) -> int:
        """The number of the last event that this process has applied."""
        return self._follower.seq

    def text(self) -> str:
        """The state as text: a function of the events up to `seq`, equal in every process."""
        with self._lock:
            return state_text(self._state, self._follower.seq)

    def snapshot(self) -> int:
        """Keep the present state in the journal, so that opening need not begin at the first event; returns its number."""
        with self._lock:
            replica, seq, number = self._state.copy(), self._follower.seq, self.id
        body = snapshot_of(replica, seq)
        self.store.do(lambda journal: journal.add_snapshot(number, seq, body, KEPT_SNAPSHOTS))
        return seq

    def compact(self, keep: timedelta | None = None) -> int:
        """Take a snapshot and delete the events that it covers; returns how many.

        Parameters
        ----------
        keep : timedelta, optional
            Events of so long ago up to now stay, for the log.

        Notes
        -----
        The state does not change, and waiting decisions go on waiting; but `log` knows only what is kept.
        """
        if keep is not None and (not isinstance(keep, timedelta) or keep < timedelta(0)):
            raise UserError(f"keep must be a timedelta, got {shown(keep)}")
        self.refresh()
        seq, number, count = self.snapshot(), self.id, 0
        if keep is not None:
            cutoff = self._now() - int(keep.total_seconds() * 1000.0)
            first = self.store.do(lambda journal: journal.first_since(number, cutoff))
            seq = seq if first is None else min(seq, first - 1)
        begin = self.store.do(lambda journal: journal.heads([number]).get(number, (0, 0))[1])
        for end in (*range(begin + PRUNED_AT_ONCE, seq, PRUNED_AT_ONCE), seq):
            if end > begin:
                count += self.store.do(lambda journal, end=end: journal.prune(number, end))  # type: ignore[misc]
        return count

    def log(self, last: int | None = None) -> Any:
        """The decisions in the journal with their rewards, as a pandas DataFrame: what off-policy evaluation needs.

        Parameters
        ----------
        last : int, optional
            Only so many latest decisions; rewards that came much later than others may be missing.

        Returns
        -------
        DataFrame
            A row for each decision, in order: ``decision`` (its id), ``arm``, ``probability``, ``reward`` (not a number while it
            waits), ``time``, ``step``, ``status`` ("rewarded", "waiting", "expired", "forgotten"), ``also`` (JSON: side
            observations), ``observed`` (JSON: with which probability each arm that it reveals is observed), ``batch`` and
            ``batch_size`` (of decisions made at once: their common id, and how many they were).
        """
        from abex.players.journal_log import decision_log

        self.refresh()
        after = self.first_kept(None if last is None else EVENTS_EACH * max(last, LEAST_READ))
        frame = decision_log(self.events(after), self.definition, self.arms_after(after))
        return frame if last is None else frame.tail(last)

    def first_kept(self, most: int | None = None) -> int:
        """The number before the first event that the journal still has, or before the last ``most`` of them."""
        record = self.store.do(lambda journal: journal.player(self.name))
        if record is None:
            raise self.gone()
        return record.pruned if most is None else max(record.pruned, record.head - most)

    def arms_after(self, seq: int) -> NamedArms | None:
        """The arms that a reader of the events after ``seq`` takes for those that were there: None for the first ones."""
        with self._lock:
            return copy.deepcopy(self._state.arms) if seq > 0 else None

    def events(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """The events of the journal after a number, page by page, so that the store's thread writes in between."""
        number = self.id
        while page := self.store.do(lambda journal, after=after: journal.read(number, after, READ_AT_ONCE)):  # type: ignore[misc]
            yield from page
            after = page[-1][0]

    def close(self) -> None:
        """Write what waits to be written and leave the store."""
        if self.is_closed:
            return
        try:
            self.flush()
        finally:
            self.is_closed = True
            self.store.leave(self)
            if self.ends_store:
                self.store.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _refuse_if_closed(self) -> None:
        if self.is_closed:
            raise UserError(f"the player {self.name!r} is closed")

    def _after_fork(self) -> None:
        """In the child: ids and random numbers of its own; the parent writes what it has proposed."""
        super()._after_fork()
        self._follower.forget()
        self._deciding = 0
        self.is_listed = self.is_fresh = False

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle is the address: it opens the same player."""
        store = self.store
        options = {
            "deadline": store.deadline,
            "freshness": store.freshness,
            "snapshot_every": store.snapshot_every,
        }
        return _reopened, (self.url, self.name, self._wants_compiled, options)

    def __repr__(self) -> str:
        where = f"event {self.seq()} of {self.store.display_url}"
        return f"<Player {self.name!r} of {self.policy} with {self.n_arms} arms at {where}>"


def _reopened(url: str, name: str, compiled: bool | None, options: dict[str, Any]) -> SharedPlayer:
    return Player.open(url, name, compiled=compiled, **options)
