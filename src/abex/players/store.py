"""A store of many players: one thread of the process writes and reads for all of them.

A player decides by what it knows, proposes events, and lists itself as having something to write. The thread takes what all
players have proposed, appends it in *one transaction*, applies it, and wakes who waits: threads that report rewards at the
same time share a commit, be it of one player or of many. It reads what other processes wrote, too, so that no decision ever
waits for a network, and a wait for a reward ends at a deadline, whatever the store does.

Asked in the last second, a player is looked after every ``freshness`` seconds; otherwise once a second.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from abex.players import forking
from abex.players.arms import declare
from abex.players.changes import (
    ALIAS_REMOVED,
    ALIAS_ROLLED_BACK,
    ALIAS_SET,
    AliasError,
    Aliases,
    Change,
    Split,
    change,
    checked_split,
)
from abex.players.journal import (
    CHANGES,
    PATIENCE,
    ArchivedError,
    Journal,
    PlayerRow,
    Row,
    UnavailableError,
    journal_at,
)
from abex.players.player import MOST_PENDING
from abex.players.player_file import definition_text
from abex.players.player_settings import new_state, terms
from abex.players.state import PlayerState
from abex.support.errors import UserError, checked_name, nearest, one_of, real_number, shown, whole_number

if TYPE_CHECKING:
    from abex.players.shared_player import SharedPlayer, Ticket
    from abex.policies.policy import Policy

T = TypeVar("T")

DEADLINE = 2.0  # seconds that a reward waits to be on disk
FRESHNESS = 0.05  # seconds
EVERY = 10_000  # events from snapshot to snapshot, at least
SOON = 0.05  # seconds until a decision is written, unless a reward takes it along
TICK = 1.0  # seconds between looks at all players, and at what may have expired
SILENT = PATIENCE + 2.0  # seconds without an answer after which a connection is broken
LONGEST = 2.0  # seconds between attempts to reach a store that is away
MOMENT = 0.002  # seconds that a commit may wait for more
PAGE = 5_000  # events that are read at once
MOST_RESTORED = 3  # snapshots in a row that do not lead to the end of the journal
AT_ONCE = 100  # players that are looked at before those who wait have a turn
FAR = 20_000  # events behind, from which the latest snapshot is looked for


class Bell:
    """Tells the thread of a store when there is work: now, or soon."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.due = 0.0
        self._rung = False

    def ring(self) -> None:
        """Now."""
        with self.condition:
            self._rung = True
            self.condition.notify_all()

    def soon(self, seconds: float) -> None:
        """At the latest in so many seconds."""
        due = time.monotonic() + seconds
        if due < self.due:
            with self.condition:
                if due < self.due:
                    self.due = due
                    self.condition.notify_all()

    def wait(self) -> None:
        """Return when there is work."""
        with self.condition:
            while not self._rung and (left := self.due - time.monotonic()) > 0.0:
                self.condition.wait(left)
            self._rung, self.due = False, time.monotonic() + TICK


class Store(AbstractContextManager["Store"]):
    """Players of one address. `Store.open` gives it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.open(f"sqlite:///{folder.name}/shop.db") as store:
    ...     banner = store.player("home/banner", "Thompson", arms=["red", "green"])
    ...     banner.update(banner.decide(), reward=True), store.names()
    (True, ['home/banner'])
    """

    def __init__(
        self, url: str, deadline: float = DEADLINE, freshness: float = FRESHNESS, snapshot_every: int = EVERY
    ) -> None:
        self.url = url
        self.deadline = real_number("deadline", deadline, least=0.001, most=3600.0)
        self.freshness = real_number("freshness", freshness, least=0.0, most=3600.0)
        self.snapshot_every = whole_number("snapshot_every", snapshot_every, least=1)
        self._journal = journal_at(url)
        self.display_url = self._journal.display_url
        self.offset = 0  # milliseconds by which the clock of the store is ahead of this machine's
        self.known_aliases = Aliases()  # to this process
        self._changes = 0  # number of the last administrative change that was looked at
        self._users = 1
        self._players: weakref.WeakSet[SharedPlayer] = weakref.WeakSet()
        self._named: weakref.WeakValueDictionary[str, SharedPlayer] = weakref.WeakValueDictionary()
        self._begin()
        forking.watch(self, last=True)
        _stores.add(self)

    def _begin(self) -> None:
        """What a process has for itself."""
        self._bell = Bell()
        self._thread: threading.Thread | None = None
        self._aside: threading.Thread | None = None  # a piece of work that takes long
        self._dirty: deque[SharedPlayer] = deque()  # with something to write
        self._recent: deque[SharedPlayer] = deque()  # asked for something since the last tick
        self._snapshots: deque[SharedPlayer] = deque()  # due for one
        self._errands: deque[tuple[Callable[[Journal], Any], bool, Future[Any]]] = deque()
        self._busy: float | None = None  # since when the thread has been talking to the store
        self._trouble: UserError | None = None
        self._pause = SOON
        self._waiting, self._crowd, self._commit_time = 0, 0, 0.0
        self._ticked = self._looked = self._timed = -10.0
        self._news = True  # for players that were not asked for anything
        self._round = deque(weakref.ref(player) for player in self._players)  # those that are open, by turns
        self._left = 0  # how many of them are still to be looked at in this second
        self._look_at_all = True  # whether the journal may have something new for them
        self._stopped = False

    @classmethod
    def open(
        cls,
        url: str,
        *,
        deadline: float = DEADLINE,
        freshness: float = FRESHNESS,
        snapshot_every: int = EVERY,
    ) -> Store:
        """The store at an address; one that is open in this process is shared.

        Parameters
        ----------
        url : str
            ``sqlite:///shop.db`` (a file, all processes on one machine) or ``postgresql://user:password@host/database``.
        deadline : float
            Seconds after which a reward that is not on disk raises `UnavailableError`. It is kept, and written when the
            store is back.
        freshness : float
            A decision knows everything that was written this many seconds ago.
        snapshot_every : int
            Events between snapshots, which make opening a player fast.
        """
        with _sharing:
            key = url, deadline, freshness, snapshot_every
            store = _shared.get(key)
            if store is not None and not store._stopped:
                store._users += 1
                return store
            store = _shared[key] = cls(*key)
            return store

    # -- players --------------------------------------------------------------------------------------

    def player(
        self,
        name: str,
        policy: Policy[Any] | str | None = None,
        n_arms: int | None = None,
        *,
        seed: int | None = None,
        compiled: bool | None = None,
        clock: Callable[[], float] | None = None,
        **definition: Any,
    ) -> SharedPlayer:
        """The player of a name, made if there is none; all arguments are those of `Player.open`.

        With its name alone, a player that is open is given again.
        """
        found = self._named.get(name) if isinstance(name, str) else None
        given = [one for one in (policy, n_arms, seed, compiled, clock) if one is not None]
        if found is not None and not (found.is_closed or given or definition):
            return found
        wanted = wanted_player(policy, n_arms, **definition)
        player = self._named[name] = self.follow(name, wanted, seed, compiled, clock)
        return player

    def follow(
        self,
        name: str,
        wanted: Wanted | None,
        seed: int | None,
        compiled: bool | None,
        clock: Callable[[], float] | None,
    ) -> SharedPlayer:
        """A player of the caller's own, be the name open in this process or not; ``wanted`` is what it is to be."""
        from abex.players.shared_player import SharedPlayer

        name = checked_name("the name of a player", name)
        if seed is not None:
            seed = whole_number("seed", seed, least=0)
        made = None if wanted is None else player_made(name, wanted)
        found = self.do(lambda journal: self._find(journal, name, wanted, made), create=wanted is not None)
        player = SharedPlayer(self, name, found, compiled=compiled, seed=seed, clock=clock)
        if wanted is not None:
            try:
                conform(player, wanted, f"the player {name!r} in {self.display_url}")
            except BaseException:
                player.close()
                raise
        return player

    def _find(self, journal: Journal, name: str, wanted: Wanted | None, made: Change | None) -> Found:
        """What the journal has of a player, which is made now if it is not there and ``wanted`` says what it is to be."""
        self._ask_the_time()
        record = journal.player(name)
        if record is None and wanted is None:
            names = journal.names()
            journal.follow(self.known_aliases)
            self.known_aliases.refuse(name)
            there = f": there are {', '.join(names[:5])}" if names else ": it has none yet"
            raise UserError(
                f"there is no player {shown(name)} in {journal.display_url}{nearest(name, names)}{there}; "
                "`abex player create`, or Player.open with arms, makes one"
            )
        if record is None and wanted is not None and made is not None:
            journal.add_player(made, definition_text(wanted.replica))
            record = journal.player(name)  # perhaps another process was quicker, with another definition
        assert record is not None
        if record.archived:
            raise ArchivedError(name)
        snapshot = journal.snapshot(record.id) if record.head else None
        return Found(record, snapshot, journal.connections)

    def _ask_the_time(self) -> None:
        """Once a second, and at the beginning."""
        now = time.monotonic()
        if now - self._timed >= TICK:
            self._timed, self.offset = now, self._journal.now() - time.time_ns() // 1_000_000

    def names(self) -> list[str]:
        """The players of this store, open or not."""
        return self.do(lambda journal: journal.names())

    # -- aliases, and who changed what ----------------------------------------------------------------

    def aliases(self) -> dict[str, Split]:
        """Where each alias sends units: per cent by player."""
        self.do(self.follow_aliases, self.deadline)
        return {name: alias.split for name, alias in self.known_aliases.present.items()}

    def players_of(self, name: str, unit: str | None = None) -> Iterator[SharedPlayer]:
        """The player of a name; of an alias, that to which a unit falls, then the others that it has ever named."""
        if name not in self.known_aliases.present:
            with contextlib.suppress(AliasError):  # it is known by now
                yield self.player(name)
                return
        first = self.known_aliases.present[name].player_of(name, unit)
        yield self.player(first)
        for other in self.known_aliases.players[name]:
            if other != first:
                with contextlib.suppress(UserError):  # it was deleted or archived since
                    yield self.player(other)

    def alias(self, name: str, split: Split) -> None:
        """Let a name stand for players, each for so many per cent of the units; a changed split moves only the units it must.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Store.open(f"sqlite:///{folder.name}/shop.db") as store:
        ...     players = [store.player(name, arms=["red", "green"]) for name in ("banner-v1", "banner-v2")]
        ...     store.alias("home/banner", {"banner-v1": 100})
        ...     store.alias("home/banner", {"banner-v1": 90, "banner-v2": 10})
        ...     store.rollback("home/banner")
        ...     store.aliases(), [one["what"] for one in store.changes(3)]
        ({'home/banner': {'banner-v1': 100}}, ['alias rolled back', 'alias set', 'alias set'])
        """
        self._change_alias(ALIAS_SET, checked_name("the name of an alias", name), checked_split(split))

    def rollback(self, name: str, key: str | None = None) -> None:
        """Bring back what an alias was before its last change; once more, what it was before that.

        Sent again under its ``key``, it counts once.
        """
        self._change_alias(ALIAS_ROLLED_BACK, name, key=key)

    def remove_alias(self, name: str) -> None:
        """Let a name stand for nothing any more."""
        self._change_alias(ALIAS_REMOVED, name)

    def _change_alias(self, what: str, name: str, split: Split | None = None, key: str | None = None) -> None:
        wanted = change(what, name, after=split, key=key)

        def changed(journal: Journal) -> None:
            journal.change_alias(wanted)
            self.follow_aliases(journal)

        self.do(changed, self.deadline)

    def follow_aliases(self, journal: Journal) -> None:
        """In the thread of the store: take notice of what is new."""
        journal.follow(self.known_aliases)

    def changes(self, last: int = 100, before: int | None = None) -> list[dict[str, Any]]:
        """Who changed what: the last administrative changes, or those before a number ``seq``; the latest first."""
        whole_number("last", last, least=1, most=10_000)
        end = 2**62 if before is None else whole_number("before", before, least=1, most=2**62)
        return self.do(lambda journal: journal.changes(end, last), self.deadline)

    def close(self) -> None:
        """Write what waits to be written and leave the store, unless it is open elsewhere in this process."""
        with _sharing:
            self._users -= 1
            if self._users > 0 or self._stopped:
                return
        try:
            for player in list(self._players):
                player.flush()
        finally:
            for player in list(self._players):
                player.is_closed = True
            self._stopped = True
            thread = self._thread
            self._bell.ring()
            if thread is not None:
                thread.join(timeout=5.0)

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- what players ask -----------------------------------------------------------------------------

    def submit(self, work: Callable[[Journal], T], create: bool = False) -> Future[T]:
        """Have the thread of the store call a function with the journal, after what waits has been written.

        Tables that are missing are made if it may ``create`` them.
        """
        future: Future[T] = Future()
        self._errands.append((work, create, future))
        self.hurry()
        return future

    def do(self, work: Callable[[Journal], T], patience: float = 2.0 * PATIENCE, create: bool = False) -> T:
        """The same, and wait for what comes of it."""
        future = self.submit(work, create)
        try:
            return future.result(patience)
        except TimeoutError:
            raise self.silent(patience) from None

    def hurry(self) -> None:
        """There is something to do that somebody waits for."""
        self._start()
        self._bell.ring()

    def dirty(self, player: SharedPlayer) -> None:
        """A player has something to write soon; its lock is held."""
        self._dirty.append(player)
        self._start()
        self._bell.soon(SOON)

    def asked(self, player: SharedPlayer) -> None:
        """A player was asked for something: it is kept fresh for a while."""
        self._recent.append(player)
        self._bell.soon(self.freshness)

    def wait(self, ticket: Ticket) -> None:
        """Return when what a thread waits for is on disk; at the deadline, or when the store fails, an error."""
        if not ticket.left:
            return
        self._waiting += 1
        self.hurry()
        try:
            ticket.result(self.deadline)
        except TimeoutError:
            raise self.silent(self.deadline, kept=True) from None
        finally:
            self._waiting -= 1

    def silent(self, seconds: float, kept: bool = False) -> UnavailableError:
        """The store has not answered for so long; a connection that hangs is broken."""
        self.unblock()
        why = "" if self._trouble is None else f" ({self._trouble})"
        sentence = f"the journal {self.display_url} has not answered within {seconds:g} seconds{why}"
        return UnavailableError(sentence, kept)

    def unblock(self) -> None:
        """Break the connection to a store that has not answered for long."""
        busy = self._busy
        if busy is not None and time.monotonic() - busy > SILENT:
            self._busy = None
            self._journal.interrupt()

    def trouble(self) -> UserError | None:
        """Why the journal could not be reached."""
        return self._trouble

    def enter(self, player: SharedPlayer) -> None:
        """A player was opened."""
        self._players.add(player)
        self._round.append(weakref.ref(player))

    def leave(self, player: SharedPlayer) -> None:
        """A player was closed."""
        self._players.discard(player)

    # -- the thread -----------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None:
            with self._bell.condition:
                if self._thread is None and not self._stopped:
                    bell, reference = self._bell, weakref.ref(self, lambda _: bell.ring())
                    self._thread = threading.Thread(
                        target=_serve, args=(reference, bell), name=f"abex {self.display_url}", daemon=True
                    )
                    self._thread.start()

    def _serve(self) -> bool:
        """What there is to do now; False when that was the last time."""
        self._busy = time.monotonic()
        fine = True
        for step in (self._write, self._run_errands, self._look):
            try:
                step()
            except Exception as error:
                fine = False
                self._failed(
                    error if isinstance(error, UserError) else UserError(f"the journal failed: {error!r}")
                )
        self._busy = None
        if self._stopped:
            self._journal.close()
            return False
        if fine:
            self._trouble, self._pause = None, SOON
        else:
            self._pause = min(LONGEST, 2.0 * self._pause)
            self._bell.soon(self._pause)
        if self._snapshots and fine and self.aside(self._snapshots[0].snapshot):
            self._snapshots.popleft()
        return True

    def _failed(self, error: UserError) -> None:
        """Tell all who wait; what they wait for is kept."""
        self._trouble = error
        for player in list(self._dirty):
            player.failed(error)

    def _write(self) -> None:
        """Append what all players have proposed."""
        if not self._dirty:
            return
        if self._waiting < self._crowd:  # where many threads shared the last commit, they may share this one
            time.sleep(min(MOMENT, self._commit_time / 10.0))
        self._crowd = self._waiting
        self._journal.connect(create=False)
        again: list[SharedPlayer] = []  # must wait, be it for the next append
        batch: dict[int, list[Row]] = {}
        writing: dict[int, SharedPlayer] = {}
        changes: list[Change] = []  # of arms, in the same transaction
        players = [self._dirty.popleft() for _ in range(len(self._dirty))]
        try:
            while players:
                player = players[-1]
                if player.id in writing:
                    again.append(player)
                    self._bell.ring()
                elif not self._caught_up(player):
                    again.append(player)
                elif rows := player.rows():
                    batch[player.id], writing[player.id] = rows, player
                    changes += player.changes
                players.pop()
            if changes:
                batch[CHANGES] = [self._journal.row_of(one) for one in changes]
            if batch:
                began = time.monotonic()
                heads = self._journal.append(batch)
                self._news = True  # for a player of this process that is open twice
                self._commit_time = time.monotonic() - began
                again += self._written(writing, heads)
                writing = {}
        finally:
            for player in writing.values():
                player.append_failed()
            for player in (*again, *players, *writing.values()):
                player.is_listed = True
                self._dirty.append(player)

    def _written(self, writing: dict[int, SharedPlayer], heads: dict[int, int]) -> list[SharedPlayer]:
        """Tell the players whose events were appended; returns those that must read before they know what came of it."""
        reading = []
        for number, player in writing.items():
            if number not in heads:
                player.gone()
                continue
            if player.appended(heads[number]):
                self._snapshots.append(player)
            if player.is_behind(self._journal.connections):
                reading.append(player)
                self._bell.ring()
        return reading

    def _run_errands(self) -> None:
        for _ in range(len(self._errands)):
            work, create, future = self._errands.popleft()
            if not future.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                self._journal.connect(create)
                future.set_result(work(self._journal))
            except BaseException as error:
                future.set_exception(error)

    def _look(self) -> None:
        """Read what others wrote: of players in use every ``freshness`` seconds, of all once a second, some at a time."""
        now = time.monotonic()
        if now - self._ticked >= TICK and self._left == 0:
            self._begin_tick(now)
        in_use = list(dict.fromkeys(self._recent)) if now - self._looked >= self.freshness else []
        if in_use:
            self._journal.connect(create=False)
            self._looked, self._news = now, self._news or self._journal.has_changed()
            if self._news:
                self._look_at(in_use)
        players = self._next_players()
        if players and self._look_at_all:
            self._look_at(players)
        for player in players:
            player.expire()
        if self._left:
            self._bell.ring()  # who reports a reward now does not wait for all of them
        else:
            self._bell.soon(self.freshness if self._recent else TICK)

    def _begin_tick(self, now: float) -> None:
        """Once a second: all players are to be looked at, where there is any news, and their decisions to expire."""
        self._ticked = now
        for _ in range(len(self._recent)):
            self._recent.popleft().is_fresh = False
        self._left = len(self._round)
        if self._left or self.known_aliases.seq:
            self._journal.connect(create=False)
            self._look_at_all, self._news = self._news or self._journal.has_changed(), False
            self._ask_the_time()
            if self._look_at_all:
                self._look_at([])

    def _next_players(self) -> list[SharedPlayer]:
        """Some of those that are still to be looked at in this second."""
        players = []
        for _ in range(min(AT_ONCE, self._left)):
            self._left -= 1
            player = self._round.popleft()()
            if player is not None and not player.is_closed:
                players.append(player)
                self._round.append(weakref.ref(player))
        return players

    def _look_at(self, players: list[SharedPlayer]) -> None:
        heads = self._journal.heads([CHANGES, *{player.id for player in players}])
        changes = heads.get(CHANGES, (0, 0))[0]
        if changes < self._changes:  # it is a copy of former days
            self.known_aliases = Aliases()
        if changes != self._changes:
            with contextlib.suppress(UserError):  # who needs one is told
                self.follow_aliases(self._journal)
            self._changes = changes
        for player in players:
            if heads.get(player.id, (-1, 0))[0] != player.seq():
                self._caught_up(player, look=True)

    def _caught_up(self, player: SharedPlayer, look: bool = False) -> bool:
        """Whether a player is fit to append; it reads first where it must, or is told to.

        What the journal holds of one player may be damaged or gone. Who waits for that one is told; the others go on.
        """
        try:
            if look or player.is_behind(self._journal.connections):
                self.read(player)
            return True
        except UserError as error:
            if not self._journal.is_open:
                raise
            player.failed(error)
            return False

    def read(self, player: SharedPlayer) -> None:
        """In the thread of the store: read until the player is where the journal is."""
        journal, tries = self._journal, MOST_RESTORED
        while True:
            journal.connect(create=False)
            record = journal.player(player.name)
            if record is None or record.archived:
                raise player.gone()
            at = player.seq()
            if player.connection != journal.connections or record.id != player.id:
                there = at > 0 and record.pruned < at <= record.head
                last = journal.read(record.id, at - 1, 1) if there else []
                player.reconnected(journal.connections, record.id, last)
            what = player.looked(record.head, record.pruned)
            if what == "there":
                return
            if what == "read" and record.head - at > FAR and journal.latest_snapshot(record.id) - at > PAGE:
                what = "restore"
            if what == "restore" or not player.read(journal.read(record.id, at, PAGE)):
                if tries == 0:
                    raise UserError(
                        f"the journal is damaged: events after number {at} of {player.name!r} in {self.display_url} are missing"
                    )
                tries -= 1
                player.restore(record, journal.snapshot(record.id))

    def refresh(self, player: SharedPlayer, patience: float = 2.0 * PATIENCE) -> None:
        """Bring a player to where the journal is."""
        self.do(lambda _: self.read(player), patience)

    def aside(self, work: Callable[[], Any]) -> bool:
        """Do what takes long in a thread that ends with it; False if there is such a thread already."""
        if self._aside is not None and self._aside.is_alive():
            return False

        def run() -> None:
            with contextlib.suppress(UserError):  # a snapshot is tried again with the next one
                work()

        self._aside = threading.Thread(target=run, name=f"abex {self.display_url} aside", daemon=True)
        self._aside.start()
        return True

    # -- forks ----------------------------------------------------------------------------------------

    def _locks(self) -> list[Any]:
        return [self._bell.condition]

    def _after_fork(self) -> None:
        """In the child: a connection and a thread of its own; the parent writes what was under way."""
        self._journal.forget_after_fork()
        stopped = self._stopped
        self._begin()
        self._stopped = stopped

    def __repr__(self) -> str:
        return f"<Store {self.display_url} with {len(self._players)} players open>"


class Found(NamedTuple):
    """What the journal has of a player that is opened."""

    record: PlayerRow
    snapshot: tuple[int, bytes] | None  # the latest one
    connection: int  # by which it was found


class Wanted(NamedTuple):
    """What a player is to be, and what is done where its arms are others by now."""

    replica: PlayerState
    on_new_arms: str
    on_missing_arms: str


def player_made(name: str, wanted: Wanted) -> Change:
    """The change that makes a player."""
    after = {"policy": str(wanted.replica.policy), "arms": wanted.replica.n_arms}
    return change("player made", name, after=after)


def wanted_player(
    policy: Any = None,
    n_arms: Any = None,
    *,
    arms: Any = None,
    graph: Any = None,
    horizon: Any = None,
    max_pending: Any = MOST_PENDING,
    on_new_arms: Any = "refuse",
    on_missing_arms: Any = "refuse",
    **agreement: Any,
) -> Wanted | None:
    """What a player is to be, checked, its ``agreement`` by `terms`; None if it is taken as it is."""
    on_new = one_of("on_new_arms", on_new_arms, ("refuse", "add"))
    on_missing = one_of("on_missing_arms", on_missing_arms, ("refuse", "keep", "retire"))
    if policy is None and n_arms is None and arms is None:
        return None
    replica = new_state(terms(**agreement), policy, n_arms, arms, graph, horizon, False, max_pending)
    return Wanted(replica, on_new, on_missing)


def conform(player: SharedPlayer, wanted: Wanted, where: str) -> None:
    """Refuse a player, which ``where`` names, that is not as wanted; bring its arms to those that are declared."""
    difference = player.definition.first_difference(wanted.replica)
    if difference is not None:
        raise UserError(f"{where} is another one: {difference}")
    declare(player, wanted.replica.arms, wanted.on_new_arms, wanted.on_missing_arms, where)


def _serve(reference: weakref.ref[Store], bell: Bell) -> None:
    """The thread of a store, which ends with it."""
    while True:
        bell.wait()
        store = reference()
        if store is None or store._bell is not bell or not store._serve():
            return
        del store


_sharing = threading.Lock()
_shared: weakref.WeakValueDictionary[Any, Store] = weakref.WeakValueDictionary()
_stores: weakref.WeakSet[Store] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Write what waits to be written before the process ends."""
    for store in list(_stores):
        with contextlib.suppress(Exception):  # the store is away: nothing can be done any more
            store._users = 1
            store.close()
