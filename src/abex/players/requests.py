"""Requests of many users of a shared player, carried out in one commit.

A service has hundreds of requests under way. One after the other, each would wait for a commit of its own; together they share
one, and a distribution that is worked out once. Unlike `Player.decide`, a decision made here is on disk when it is handed out.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from abex.players.arms import NamedArms
from abex.players.events import Decided, Rewarded
from abex.players.ids import is_id
from abex.players.journal import UnavailableError
from abex.players.player import Decision, UnknownDecisionError
from abex.players.shared_player import Proposal, SharedPlayer
from abex.support.errors import UserError, checked_name, shown, whole_number

SLOW = 0.005  # CPU seconds: a player whose requests take longer works in a thread of its own, so that others need not wait
MOMENT = 0.001  # seconds that a batch may wait for more


Mark = tuple[str, str]  # a unit or a key, by which a decision is found again


class TooManyPendingError(UserError):
    """Too many decisions wait for their rewards."""


class DecideRequest(NamedTuple):
    """Decisions, please; each is for a unit, or for nobody in particular (None).

    A unit that has a decision which waits gets that one. A request that comes again under its ``key`` is answered by
    the decisions that it was answered by, as long as they wait.
    """

    units: Sequence[str | None] = (None,)
    key: str | None = None
    distinct: bool = False  # all on different arms


class RewardRequest(NamedTuple):
    """Rewards of decisions, ``(id, reward, also, key, corrects)``: all are learned, or none if one of them is wrong."""

    rewards: Sequence[tuple[Any, ...]]

    def check(self, player: SharedPlayer) -> None:
        """See that none of them is wrong, as far as is known now; nothing changes."""
        with player._lock:
            for reward in self.rewards:
                _reward(player, *reward)


class ObserveRequest(NamedTuple):
    """What an arm paid that was tried without a decision of the player; it counts once under its key."""

    arm: Any
    reward: Any
    also: Mapping[Any, Any] | None
    key: str


Request = DecideRequest | RewardRequest | ObserveRequest


class RequestQueue:
    """A player as an event loop has it: requests that come while others are written are the next batch.

    A `DecideRequest` is answered by a list of `Decision`, a `RewardRequest` by a list of whether each reward was the first
    one of its decision, an `ObserveRequest` by whether it was new.

    Parameters
    ----------
    player : SharedPlayer
        Whose requests they are.
    most_open : int, optional
        Beyond so many decisions that wait for a reward, a `DecideRequest` is refused.
    counters : sequence, optional
        Four with a method ``inc``, as `prometheus_client` has them: of decisions, of rewards, of their sum, of corrections. Each
        event counts where it was written, and no void one.

    Examples
    --------
    >>> import tempfile
    >>> from abex import Player
    >>> async def asked(player):
    ...     queue = RequestQueue(player)
    ...     (first,), (again,) = await asyncio.gather(*(queue.submit(DecideRequest(["ann"])) for _ in range(2)))
    ...     return first == again, await queue.submit(RewardRequest([(first.id, 1.0, None), (first.id, 0.0, None)]))
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Player.open(f"sqlite:///{folder.name}/shop.db", "banner", "UCB1", n_arms=3) as player:
    ...     asyncio.run(asked(player))
    (True, [True, False])
    """

    def __init__(
        self,
        player: SharedPlayer,
        most_open: int | None = None,
        counters: Sequence[Any] = (),
    ) -> None:
        self.player = player
        self._most_open, self._counters = most_open, counters
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Work] = []
        self._working: asyncio.Task[None] | None = None
        self._took = 0.0

    def submit(self, request: Request) -> asyncio.Future[Any]:
        """Have a request carried out; the future has the answer, or the error."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append(_Work(request, future))
        if self._working is None:
            self._working = self._loop.create_task(self._work())
        return future

    async def _work(self) -> None:
        """Propose what waits, until it is written and answered; what comes meanwhile is the next batch.

        Where many shared the last commit they may share this one, too: it waits a moment for as many.
        """
        crowd, lasted = 0, 0.0
        while self._waiting:
            if len(self._waiting) < crowd:
                await asyncio.sleep(min(MOMENT, lasted / 2.0))
            batch, self._waiting, began = self._waiting, [], self._loop.time()
            try:
                await self._carry_out(batch)
                self._answer(batch)
            except Exception as error:
                for one in batch:
                    if not one.future.done():
                        one.future.set_exception(error)
            crowd, lasted = len(batch), self._loop.time() - began
        self._working = None

    async def _carry_out(self, batch: list[_Work]) -> None:
        """Decide, check what is reported, and return when it is written."""
        if any(_stands(self.player, one.request) for one in batch):
            with suppress(UnavailableError):  # another process may have learned its reward a moment ago
                await self.refresh()
        if self._took > SLOW:
            await asyncio.to_thread(self._propose, batch)
        else:
            self._propose(batch)
        late = [one for one in batch if isinstance(one.error, UnknownDecisionError)]
        if late:  # another process may have made it a moment ago
            try:
                await self.refresh()
                self._propose(late)
            except UserError as error:
                for one in late:
                    one.error = error
        try:
            await self._written([entry for one in batch for entry in one.entries])
        except UnavailableError as error:
            for one in batch:
                if one.error is None and not all(entry.done for entry in one.entries):
                    one.error = UnavailableError(error.why)  # whoever hears so asks again
                    self.player.withdraw(one.entries)

    def _propose(self, batch: list[_Work]) -> None:
        began = time.thread_time()
        with self.player._lock:
            self.player._catch_up()
            _prepare(self.player, batch, self._most_open)
        self._took = time.thread_time() - began

    def _answer(self, batch: list[_Work]) -> None:
        """Tell all who have not gone."""
        made, corrected, paid, shown_reward = 0, 0, list[float](), self.player.settings.shown
        with self.player._lock:
            for one in batch:
                for entry in one.entries:
                    event = entry.event
                    if isinstance(event, Decided):
                        made += entry.done and entry.outcome.id == event.id
                    elif isinstance(event, Rewarded) and event.decision is not None and entry.outcome is True:
                        corrected += event.corrects
                        if not event.corrects:
                            paid.append(shown_reward(event.reward))
                if one.future.done():
                    continue
                if one.error is None:
                    one.future.set_result(_answer(self.player, one))
                else:
                    one.future.set_exception(one.error)
        for counter, count in zip(self._counters, (made, len(paid), sum(paid), corrected), strict=False):
            counter.inc(count)

    async def _written(self, entries: list[Proposal]) -> None:
        """Return when these are on disk; it wakes up the event loop once for all of them."""
        ticket = self.player.ticket(entries)
        if ticket.left:
            self.player.store.hurry()
            await self._in_time(asyncio.wrap_future(ticket))

    async def refresh(self) -> None:
        """Read what other processes wrote."""
        store = self.player.store
        await self._in_time(asyncio.wrap_future(store.submit(lambda _: store.read(self.player))))

    async def _in_time(self, future: asyncio.Future[None]) -> None:
        """Wait no longer than the deadline of the store."""
        store = self.player.store
        try:
            async with asyncio.timeout(store.deadline):
                await future
        except TimeoutError:
            raise store.silent(store.deadline) from None

    async def close(self) -> None:
        """Answer what waits."""
        if self._working is not None:
            await self._working


def _stands(player: SharedPlayer, request: Request) -> bool:
    """Whether a request may be answered by a decision that waits already."""
    if not isinstance(request, DecideRequest) or (request.key is None and request.units == (None,)):
        return False
    with player._lock:
        return any(
            player._state.pending.open_decision(unit, request.key) is not None for unit in request.units
        )


class _Work:
    """A request, what is to be written for it, and what its answer is made of."""

    __slots__ = ("entries", "error", "future", "parts", "request")

    def __init__(self, request: Request, future: asyncio.Future[Any]) -> None:
        self.request, self.future = request, future
        self.entries: list[Proposal] = []
        self.parts: list[Any] = []  # entries, or the decisions that stand already
        self.error: UserError | None = None


def _prepare(player: SharedPlayer, work: Sequence[_Work], most_open: int | None) -> None:
    """Propose what the requests ask for; the player is locked."""
    t = player._steps + 1  # nothing is learned in between, so all decisions are of one distribution
    room = math.inf if most_open is None else most_open - len(player._state.pending) - player._deciding
    asked: dict[Mark, Proposal] = {}
    proposals: list[Proposal] = []
    made = 0  # decisions
    for one in work:
        one.parts, one.entries, one.error = [], [], None
        try:
            if isinstance(one.request, DecideRequest):
                asked.update(_ask(player, one, one.request, t, made, asked, room))
                made += len(one.entries)
            elif isinstance(one.request, RewardRequest):
                one.entries = [Proposal(_reward(player, *reward)) for reward in one.request.rewards]
            else:
                one.entries = [Proposal(_observation(player, one.request))]
        except UserError as error:
            one.parts, one.entries, one.error = [], [], error
        proposals += one.entries
    player._propose(proposals)


def _ask(
    player: SharedPlayer,
    one: _Work,
    request: DecideRequest,
    t: int,
    made: int,
    asked: Mapping[Mark, Proposal],
    room: float,
) -> dict[Mark, Proposal]:
    """Draw what has to be drawn; returns the entries by unit and key, for requests of the same commit."""
    state, settings = player._state, player.settings
    if request.distinct:
        whole_number("count", len(request.units), least=1, most=state.n_arms)
    new: list[tuple[str | None, str | None]] = []  # units and keys of what is to be drawn
    mine: dict[Mark, int] = {}
    for number, unit in enumerate(request.units):
        key = f"{request.key}#{number}" if request.key is not None and number else request.key
        named = [(kind, name) for kind, name in (("key", key), ("unit", unit)) if name is not None]
        marks = [(kind, checked_name(f"a {kind}", name)) for kind, name in named]
        there: Any = state.pending.open_decision(unit, key) if marks else None
        if there is None:
            there = next((known[mark] for mark in marks for known in (asked, mine) if mark in known), None)
        if there is None:
            there = len(new)
            new.append((unit, key))
            mine.update(dict.fromkeys(marks, there))
        one.parts.append(there)
    if made + len(new) > room:
        open_now = len(state.pending) + player._deciding + made
        raise TooManyPendingError(
            f"the player {player.name!r} has {open_now:,} decisions that wait for their rewards, and too many would: "
            "report rewards, or give the player a shorter time until decisions expire"
        )
    now = state.setting.graph is None and settings.propensities is not False
    drawn = player._drawn(t, len(new)) if request.distinct else [state.draw(t, player._rng) for _ in new]
    batch = player._batch_of(len(new)) if request.distinct else None
    for ahead, ((place, memory), (unit, key)) in enumerate(zip(drawn, new, strict=True), made):
        entry = Proposal(
            *player._chosen(place, memory, t + ahead, t, now, unit, key, batch, seen=player.seq())
        )
        entry.settled = now
        one.entries.append(entry)
    one.parts = [one.entries[part] if isinstance(part, int) else part for part in one.parts]
    return {mark: one.entries[place] for mark, place in mine.items()}


def arm_named(arms: NamedArms, word: Any) -> Any:
    """An arm by its name as text, which is all that the keys of a JSON object and the path of an address can be."""
    digits = word.removeprefix("-") if isinstance(word, str) else ""
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(word) if is_number and (arms.labels is None or not arms.knows(word)) else word


def _side(player: SharedPlayer, also: Mapping[Any, Any] | None) -> dict[Any, Any] | None:
    arms = player._state.arms
    return None if also is None else {arm_named(arms, arm): paid for arm, paid in also.items()}


def _reward(
    player: SharedPlayer, name: str, reward: Any, also: Mapping[Any, Any] | None = None, *more: Any
) -> Rewarded:
    if not (isinstance(name, str) and is_id(name)):
        raise UserError(f"decision must be the id of a decision, got {shown(name)}")
    return player._checked(name, reward, _side(player, also), *more)


def _observation(player: SharedPlayer, request: ObserveRequest) -> Rewarded:
    arms = player._state.arms
    label = arms.label(arms.number(arm_named(arms, request.arm)))
    return player._checked(label, request.reward, _side(player, request.also), request.key)


def _answer(player: SharedPlayer, one: _Work) -> Any:
    if isinstance(one.request, DecideRequest):
        return [_decision(player, part) for part in one.parts]
    outcomes = [entry.outcome is True for entry in one.entries]
    return outcomes if isinstance(one.request, RewardRequest) else outcomes[0]


def _decision(player: SharedPlayer, part: Proposal | Decided) -> Decision:
    if isinstance(part, Decided):
        return player._handed_out(part)
    found = player._handed_out(part.outcome)
    return part.decision if part.decision == found else found
