"""One player of many processes: a replica that follows a journal, and an outbox of what the journal does not have yet.

Two locks. ``_lock`` guards the replica and is held for microseconds. ``_io`` is held by the one thread that talks to the store. A
thread that holds ``_lock`` never waits for ``_io``. Whoever gets ``_io`` writes *everything* that is in the outbox in one
transaction, so threads that wait for their rewards to be on disk share one commit.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from abex.players import tending
from abex.players.decision_ids import moment_of
from abex.players.decisions import Decision
from abex.players.definitions import (
    Definition,
    from_snapshot,
    replica_text,
    snapshot_of,
    template_of,
)
from abex.players.events import Decided, Event, Expired, apply
from abex.players.journal import Journal, UnavailableError, journal_at
from abex.players.journal_rows import Row, event_of, row_of
from abex.players.observing import observed_with
from abex.players.outbox import Outbox, OutboxEntry
from abex.players.player import Player, UnknownDecisionError
from abex.players.saving import DAMAGE, reason_of
from abex.players.seeding import SequenceStream
from abex.support.errors import UserError, shown
from abex.support.randomness import stream

PAGE = 5_000  # events that are read at once
MOST_UNSAVED = 10_000  # decisions that may wait for a journal that cannot be reached
LATE_DECISIONS = 1.0  # seconds to wait for a decision that another process has just made
RECENT = 60_000  # milliseconds for which a decision is "just made"
KEPT_SNAPSHOTS = 2
EVERY = 10_000  # events from snapshot to snapshot, at least
FRESHNESS = 0.05  # seconds
MOMENT = 0.002  # seconds that a commit may wait for more


class SharedPlayer(Player, AbstractContextManager["SharedPlayer"]):
    """A player that many processes share through a journal: what `Player.open` returns.

    It does all that a `Player` does. A decision is local: it applies what is new in the journal, chooses, and returns; its
    event is written within 50 milliseconds, at the latest together with the next reward of this process. A reward is on
    disk when `update` returns. See "Players that many processes share" in the documentation.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        compiled: bool | None = None,
        seed: int | None = None,
        clock: Callable[[], float] | None = None,
        freshness: float = FRESHNESS,
        snapshot_every: int = EVERY,
        journal: Journal | None = None,
    ) -> None:
        self.url, self.name = url, name
        self._options = {"compiled": compiled, "freshness": freshness, "snapshot_every": snapshot_every}
        self._journal = journal_at(url) if journal is None else journal
        self._wants_compiled, self._freshness, self._every = compiled, freshness, snapshot_every
        self._rng = stream(int.from_bytes(os.urandom(16), "little") if seed is None else seed, "player")
        self._io = threading.Lock()
        self._turn = threading.Condition()
        self._leading = False  # whether a thread is writing for all that wait
        self._crowd, self._commit_time = 0, 0.0  # entries that shared the last commit, and how long it took
        self._outbox = Outbox()
        self._uncertain = False  # an append may have been carried out although it failed
        self._trouble: UserError | None = None  # why the journal could not be reached
        self._looked = -1.0  # when the journal was last read
        self._expiring = 0  # up to when decisions were last told to expire
        self._snapshot_due = False
        self._warm = False  # whether the kernel of the probabilities is compiled, where that pays
        self._closed = False
        self._begin(clock)
        with self._io:
            self._journal.connect(create=False)
            self._rebuild()
            self._verified = True
        self._tender = tending.start(self)

    # -- the replica ----------------------------------------------------------------------------------

    def _rebuild(self) -> None:
        """The state of the journal, from its latest snapshot and the events after it; ``_io`` is held."""
        record = self._journal.player(self.name)
        if record is None:
            raise UnavailableError(f"there is no player {self.name!r} in the journal {self._journal.shown}")
        where = f"the player {self.name!r} in {self._journal.shown}"
        definition = Definition(record.definition, where)
        snapshot = self._journal.snapshot(record.id)
        if snapshot is not None:
            replica, seq = from_snapshot(definition, snapshot[1], self._wants_compiled)
        elif record.pruned:
            raise UnavailableError(
                f"cannot open {where}: its first events are pruned and there is no snapshot"
            )
        else:
            replica, seq = definition.replica(self._wants_compiled), 0
        with self._lock:
            if hasattr(self, "_replica"):
                self._settle()
                replica.spent = self._replica.spent
            self._id, self._definition, self._terms = record.id, definition, definition.terms
            self._replica, self._seq, self._last = replica, seq, ""
            self._template = template_of(replica)
            self._learning = SequenceStream(definition.key)
        self._read_news()

    def _read_news(self, until: int | None = None) -> None:
        """Apply what is new in the journal; ``_io`` is held."""
        while until is None or self._seq < until:
            limit = PAGE if until is None else min(PAGE, until - self._seq)
            found = self._journal.read(self._id, self._seq, limit)
            if found and found[0][0] != self._seq + 1:
                self._rebuild()  # what is missing was pruned, a snapshot has it
                return
            with self._lock:
                self._settle()
                for seq, row in found:
                    try:
                        event = event_of(row, self._replica, self._template)
                    except DAMAGE as error:
                        place = f"event {seq} of {self.name!r} in {self._journal.shown}"
                        raise UserError(f"the journal is damaged at {place}: {reason_of(error)}") from error
                    self._follow(seq, event)
            if len(found) < limit:
                break
        self._looked = time.monotonic()

    def _follow(self, seq: int, event: Event) -> None:
        """Apply one event, and tell whoever waits for it; ``_lock`` is held."""
        draws = self._replica.draws_to_learn and not isinstance(event, Decided)
        rng = self._learning.at(seq) if draws else self._learning.resting
        outcome = apply(self._replica, event, self._terms, rng)
        self._seq, self._last = seq, event.id
        self._outbox.written(event.id, outcome)

    def _verify(self) -> None:
        """After a new connection: the journal must still be the one that this replica follows."""
        record = self._journal.player(self.name)
        if record is None:
            raise UnavailableError(f"the player {self.name!r} is gone from the journal {self._journal.shown}")
        same = record.id == self._id and record.head >= self._seq
        if same and self._last and record.pruned < self._seq:
            found = self._journal.read(self._id, self._seq - 1, 1)
            same = bool(found) and found[0][1].id == self._last
        if not same:
            self._rebuild()

    # -- writing --------------------------------------------------------------------------------------

    def _sync(self) -> None:
        """Write the outbox, read what is new; ``_io`` is held."""
        if not self._journal.is_open:
            self._journal.connect(create=False)
            self._verified = False
        if not self._verified:
            self._verify()
            self._verified = True
        if self._uncertain:
            self._read_news()
            self._uncertain = False
        if not self._outbox.entries:
            self._read_news()
        else:
            batch: list[OutboxEntry] = []

            def collect() -> list[Row]:
                with self._lock:
                    self._settle()
                    batch[:] = self._outbox.batch()
                    return [row_of(entry.event) for entry in batch]

            self._uncertain = True
            began = time.monotonic()
            last = self._journal.append(self._id, collect)
            self._commit_time = time.monotonic() - began
            self._uncertain = False
            self._take(batch, last)
        self._trouble = None

    def _take(self, batch: list[OutboxEntry], last: int) -> None:
        """Apply what others wrote before, then our own events."""
        first = last - len(batch) + 1
        if first <= self._seq:
            self._rebuild()  # the journal had lost events that this process knew
            return
        self._read_news(first - 1)
        if self._seq != first - 1:  # rebuilt beyond it
            self._read_news()
            return
        with self._lock:
            self._settle()
            for seq, entry in enumerate(batch, first):
                self._follow(seq, entry.event)
        self._looked = time.monotonic()
        every = max(self._every, len(self._replica.pending) + self._replica.n_arms // 10)
        if (first - 1) // every < last // every:
            self._snapshot_due = True
            self._tender.wake()

    def _happen(self, events: list[Any]) -> list[Any]:
        """Put events into the journal; they are on disk, and applied, when it returns."""
        entries = [OutboxEntry(event) for event in events]
        with self._lock:
            self._refuse_if_closed()
            self._outbox.add(entries)
        self._wait_for(entries)
        for entry in entries:
            if entry.error is not None:
                raise entry.error
        return [entry.outcome for entry in entries]

    def _wait_for(self, entries: list[OutboxEntry], gather: bool = True) -> None:
        """Return when entries of the outbox are written, and applied, or have failed."""
        while self._waits(entries):
            try:
                with self._io:
                    if not all(entry.done for entry in entries):
                        if gather:
                            self._gather()
                        self._try_sync()
            finally:
                with self._turn:
                    self._leading = False
                    self._turn.notify_all()

    def _waits(self, entries: list[OutboxEntry]) -> bool:
        """Wait until another thread has written these entries; True if this one is to write them itself."""
        with self._turn:
            while self._leading and not all(entry.done for entry in entries):
                self._turn.wait()
            if all(entry.done for entry in entries):
                return False
            self._leading = True
            return True

    def _gather(self) -> None:
        """Where many threads shared the last commit, give them a moment to share this one; ``_io`` is held."""
        if self._outbox.waiting < self._crowd:
            time.sleep(min(MOMENT, self._commit_time / 10.0))
        self._crowd = self._outbox.waiting

    def _try_sync(self) -> bool:
        """Write and read; where that fails, whoever waits is told, and decisions stay in the outbox. ``_io`` is held."""
        try:
            self._sync()
            return True
        except BaseException as error:
            trouble = error if isinstance(error, UserError) else UserError(f"the journal failed: {error!r}")
            with self._lock:
                self._trouble = trouble
                self._outbox.fail(trouble)
            if not isinstance(error, UserError):
                raise
            return False

    def _settle(self) -> None:
        """Work out the probabilities of decisions while the state that made them is there; ``_lock`` is held."""
        if self._terms.propensities is False:
            return
        for entry in self._outbox.unsettled():
            if entry.decision is not None and isinstance(entry.event, Decided):
                observed = observed_with(self._replica, entry.event)
                entry.event = entry.event._replace(probability=entry.decision.settle(), observed=observed)

    # -- what a player does ---------------------------------------------------------------------------

    @property
    def _steps(self) -> int:
        """Steps of the policy's life so far, decisions on their way to the journal included."""
        return self._replica.steps + self._outbox.decisions

    def _note(self, event: Decided, decision: Decision) -> None:
        self._outbox.add([OutboxEntry(event._replace(seen=self._seq), decision, awaited=False)])
        self._tender.wake()

    def _catch_up(self) -> None:
        """Apply what is new; ``_lock`` is held, so the store is left alone if another thread talks to it."""
        self._refuse_if_closed()
        if self._outbox.decisions >= MOST_UNSAVED:
            why = self._trouble or "the journal does not keep up with the decisions"
            raise UnavailableError(f"{MOST_UNSAVED:,} decisions wait to be written: {why}")
        journal = self._journal
        if not journal.cheap_look and time.monotonic() - self._looked < self._freshness:
            return
        if not self._verified or not self._io.acquire(blocking=False):
            return
        try:
            if journal.is_open and journal.looks_new():
                self._read_news()
        except UnavailableError as error:
            self._trouble = error  # deciding goes on; the tender tries again
            self._tender.wake()
        finally:
            self._io.release()

    def _expire(self) -> None:
        """Tell decisions whose time is over to expire; called by the tender, and by `refresh`."""
        with self._lock:
            if self._terms.expire is None or not self._replica.pending:
                return
            name = self._next_id()
            cutoff = self._others.latest - self._terms.expire
            oldest = next(iter(self._replica.pending.values())).moment
            if self._expiring < oldest <= cutoff or (oldest <= cutoff and not self._outbox.entries):
                self._expiring = cutoff
                self._outbox.add([OutboxEntry(Expired(name, self._others.latest, cutoff))])

    def _arm_of(self, name: str) -> int | None:
        entry = self._outbox.find(name)
        if entry is not None and isinstance(entry.event, Decided):
            return entry.event.arm
        return super()._arm_of(name)

    def update_many(self, rewards: Iterable[Any]) -> int:
        """Learn several rewards as `Player.update_many` does; all are in the journal, on disk, when it returns.

        Should the store fail, `abex.players.UnavailableError` is raised. A reward of a decision may then simply be reported
        again, since it counts once; a reward of an arm alone might count twice.
        """
        rewards = list(rewards)
        until: float | None = None
        while True:
            try:
                return super().update_many(rewards)
            except UnknownDecisionError as error:  # another process may have made it a moment ago
                now = time.monotonic()
                until = now + LATE_DECISIONS if until is None else until
                self.refresh()
                age = self._now() - moment_of(error.id)
                with self._lock:
                    known = self._replica.pending.get(error.id) or self._replica.has_made(error.id)
                if known:
                    continue
                if age > RECENT or now > until:
                    raise
                time.sleep(0.02)

    def _now(self) -> int:
        moment = self._moment()
        return time.time_ns() // 1_000_000 if moment is None else moment

    def pending(self) -> list[Decision]:
        """The decisions that wait for a reward, oldest first; those on their way to the journal are last."""
        with self._lock:
            label = self._replica.arms.label
            found = super().pending()
            for entry in self._outbox.batch():
                if isinstance(entry.event, Decided):
                    found.append(Decision(entry.event.id, label(entry.event.arm), entry.event.probability))
            return found

    # -- the journal ----------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Write what waits to be written, and read what is new."""
        self._refuse_if_closed()
        self._expire()
        with self._io:
            if not self._try_sync():
                assert self._trouble is not None
                raise self._trouble

    def flush(self) -> None:
        """Return when every decision made so far is in the journal, on disk."""
        if self._outbox.entries:
            self.refresh()

    def seq(self) -> int:
        """The number of the last event that this process has applied."""
        return self._seq

    def text(self) -> str:
        """The state as text: a function of the events up to `seq`, equal in every process."""
        with self._lock:
            return replica_text(self._replica, self._seq)

    def snapshot(self) -> int:
        """Keep the present state in the journal, so that opening need not begin at the first event; returns its number."""
        with self._lock:
            replica, seq = self._replica.copy(), self._seq
        body = snapshot_of(replica, seq)
        with self._io:
            self._journal.connect(create=False)
            self._journal.add_snapshot(self._id, seq, body, KEPT_SNAPSHOTS)
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
        seq = self.snapshot()
        if keep is not None:
            cutoff = self._now() - keep.total_seconds() * 1000.0
            with self._io:
                for number, row in self._journal.events(self._id):
                    if row.moment >= cutoff:
                        seq = min(seq, number - 1)
                        break
        with self._io:
            return self._journal.prune(self._id, seq) if seq > 0 else 0

    def log(self) -> Any:
        """The decisions in the journal with their rewards, as a pandas DataFrame: what off-policy evaluation needs.

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
        with self._io:
            self._journal.connect(create=False)
            return decision_log(self._journal.events(self._id), self._definition)

    def close(self) -> None:
        """Write what waits to be written and leave the journal."""
        if self._closed:
            return
        try:
            self.flush()
        finally:
            self._closed = True
            self._tender.stop()
            with self._io:
                self._journal.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise UserError(f"the player {self.name!r} is closed")

    # -- the tender -----------------------------------------------------------------------------------

    def _tend(self) -> bool:
        """What is done in the background; False if the store cannot be reached."""
        self._expire()
        fine = True
        if self._outbox.decisions and not self._warm and self._terms.propensities is not False:
            self._warm_up()
        if self._outbox.entries or self._trouble is not None:
            with self._io:
                fine = self._try_sync()
        if fine and self._snapshot_due:
            self._snapshot_due = False
            try:
                self.snapshot()
            except UnavailableError as error:
                self._trouble, fine = error, False
        return fine

    def _warm_up(self) -> None:
        """Compile the kernel of the probabilities where that pays; on a copy, so that nobody waits."""
        self._warm = True
        with self._lock:
            twin = self._replica.copy()
        twin.warm_up()
        with self._lock:
            self._replica.spent = twin.spent

    def _locks(self) -> list[Any]:
        return [self._io, self._turn, self._lock]

    def _after_fork(self) -> None:
        """In the child: a connection, ids and random numbers of its own; the parent writes what is in its outbox."""
        super()._after_fork()
        self._io, self._turn, self._leading = threading.Lock(), threading.Condition(), False
        self._journal.abandon()
        self._verified = False
        self._outbox = Outbox()
        self._uncertain, self._snapshot_due, self._trouble = False, False, None
        self._tender = tending.start(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle is the address: it opens the same player."""
        return _reopened, (self.url, self.name, self._options)

    def __repr__(self) -> str:
        return f"<Player {self.name!r} of {self.policy} with {self.n_arms} arms at event {self._seq} of {self._journal.shown}>"


def _reopened(url: str, name: str, options: dict[str, Any]) -> SharedPlayer:
    return SharedPlayer(url, name, **options)
