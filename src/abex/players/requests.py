"""Requests of many users of a shared player, carried out in one commit.

A service has hundreds of requests under way. One after the other, each would wait for a commit of its own; together they share
one, and a distribution that is worked out once. Unlike `Player.decide`, a decision made here is on disk when it is handed out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from abex.players.arms import NamedArms
from abex.players.events import Batch, Decided, Rewarded
from abex.players.ids import is_id
from abex.players.journal import UnavailableError
from abex.players.player import Decision, UnknownDecisionError
from abex.players.shared_player import Proposal, SharedPlayer
from abex.support.errors import UserError, checked_name, shown, whole_number


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


class ObserveRequest(NamedTuple):
    """What an arm paid that was tried without a decision of the player; it counts once under its key."""

    arm: Any
    reward: Any
    also: Mapping[Any, Any] | None
    key: str


Request = DecideRequest | RewardRequest | ObserveRequest


def carry_out(player: SharedPlayer, requests: Sequence[Request], most_open: int | None = None) -> list[Any]:
    """Carry out requests in one commit; the answer to each, or the `UserError` that says why there is none.

    A `DecideRequest` is answered by a list of `Decision`, a `RewardRequest` by a list of whether each reward was the first
    one of its decision, an `ObserveRequest` by whether it was new. Beyond ``most_open`` decisions that wait, a
    `DecideRequest` is refused.

    >>> import tempfile
    >>> from abex import Player
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Player.open(f"sqlite:///{folder.name}/shop.db", "banner", "UCB1", n_arms=3) as player:
    ...     (first,), (again,) = carry_out(player, [DecideRequest(["ann"]), DecideRequest(["ann"])])
    ...     first == again, carry_out(player, [RewardRequest([(first.id, 1.0, None)]), RewardRequest([(first.id, 0.0, None)])])
    (True, [[True], [False]])
    """
    batch = RequestBatch(player, requests, most_open)
    if batch.may_stand():
        with suppress(UnavailableError):
            player.store.refresh(player, player.store.deadline)
    batch.propose()
    if batch.late:
        try:
            player.refresh()
        except UserError as error:
            batch.refuse_late(error)
        else:
            batch.propose_late()
    try:
        player.wait_for(batch.entries())
    except UnavailableError as error:
        batch.withdraw(error)
    return batch.answers()


class RequestBatch:
    """Requests of a shared player on their way: proposed at once, answered when they are on disk.

    No step waits for the store. `carry_out` waits in the thread that calls; an event loop does without a thread of its own.
    """

    def __init__(
        self, player: SharedPlayer, requests: Sequence[Request], most_open: int | None = None
    ) -> None:
        self._player, self._most_open = player, most_open
        self._work = [_Work(request) for request in requests]
        self.late: list[_Work] = []

    def may_stand(self) -> bool:
        """Whether a decision that waits may be an answer: another process may have learned its reward a moment ago."""
        asked = [one.request for one in self._work if isinstance(one.request, DecideRequest)]
        return any(_stands(self._player, request) for request in asked)

    def propose(self) -> None:
        """Decide, and check what is reported; ``late`` speaks of decisions that another process may have made a moment ago."""
        with self._player._lock:
            self._player._catch_up()
            _prepare(self._player, self._work, self._most_open)
        self.late = [one for one in self._work if isinstance(one.error, UnknownDecisionError)]

    def propose_late(self) -> None:
        """Once more, now that the player has read what others wrote."""
        with self._player._lock:
            _prepare(self._player, self.late, self._most_open)

    def refuse_late(self, error: UserError) -> None:
        """What others wrote could not be read."""
        for one in self.late:
            one.error = error

    def entries(self) -> list[Proposal]:
        """What has to be written."""
        return [entry for one in self._work for entry in one.entries]

    def withdraw(self, error: UnavailableError) -> None:
        """It could not be written: whoever hears so asks again."""
        for one in self._work:
            if one.error is None and not all(entry.done for entry in one.entries):
                one.error = UnavailableError(error.why)
                self._player.withdraw(one.entries)

    def answers(self) -> list[Any]:
        """The answer to each request, or the error that says why there is none."""
        with self._player._lock:
            return [_answer(self._player, one) for one in self._work]


def _stands(player: SharedPlayer, request: DecideRequest) -> bool:
    """Whether a request may be answered by a decision that waits already."""
    if request.key is None and request.units == (None,):
        return False
    with player._lock:
        return any(player._state.open_decision(unit, request.key) is not None for unit in request.units)


class _Work:
    """A request, what is to be written for it, and what its answer is made of."""

    __slots__ = ("entries", "error", "parts", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.entries: list[Proposal] = []
        self.parts: list[Any] = []  # entries, or the decisions that stand already
        self.error: UserError | None = None


def _prepare(player: SharedPlayer, work: Sequence[_Work], most_open: int | None) -> None:
    """Propose what the requests ask for; the player is locked."""
    t = player._steps + 1  # nothing is learned in between, so all decisions are of one distribution
    room = math.inf if most_open is None else most_open - len(player._state.pending) - player._deciding
    asked: dict[tuple[str, str], Proposal] = {}
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
    asked: Mapping[tuple[str, str], Proposal],
    room: float,
) -> dict[tuple[str, str], Proposal]:
    """Draw what has to be drawn; returns the entries by unit and key, for requests of the same commit."""
    replica, taken = player._state, list[int]()
    settle = replica.setting.graph is None and player._settings.propensities is not False
    mine: dict[tuple[str, str], Proposal] = {}
    if request.distinct:
        whole_number("count", len(request.units), least=1, most=replica.n_arms)
    for number, unit in enumerate(request.units):
        key = f"{request.key}#{number}" if request.key is not None and number else request.key
        marks, there = list[tuple[str, str]](), None
        if unit is not None or key is not None:
            marks = [
                (kind, checked_name(f"a {kind}", name))
                for kind, name in (("key", key), ("unit", unit))
                if name is not None
            ]
            there = replica.open_decision(unit, key) or next(
                (known[mark] for mark in marks for known in (asked, mine) if mark in known), None
            )
        if there is None:
            ahead = made + len(one.entries)
            if ahead >= room:
                open_now = len(replica.pending) + player._deciding + ahead
                raise TooManyPendingError(
                    f"the player {player.name!r} has {open_now:,} decisions that wait for their rewards, and no more may: "
                    "report rewards, or give the player a shorter time until decisions expire"
                )
            place, memory = _draw(player, t, taken if request.distinct else [])
            taken.append(place)
            now = settle and not request.distinct
            event, decision = player._chosen(place, memory, t + ahead, t, now, unit, key, seen=player.seq())
            there = Proposal(event, decision)
            there.settled = now
            for mark in marks:
                mine[mark] = there
            one.entries.append(there)
        one.parts.append(there)
    if request.distinct:
        _join(player, one.entries, settle)
    return mine


def _join(player: SharedPlayer, entries: Sequence[Proposal], settle: bool) -> None:
    """Make a batch of the decisions that were drawn on different arms; those that stood before are none of it."""
    batch = Batch(player._event_id()[0], len(entries)) if len(entries) > 1 else None
    for entry in entries:
        decision, event = entry.decision, entry.event
        assert decision is not None
        assert isinstance(event, Decided)
        if batch is not None:
            decision.join(batch)
        probability = decision.compute_probability() if settle else None
        entry.event, entry.settled = replace(event, batch=batch, probability=probability), settle


def _draw(player: SharedPlayer, t: int, taken: list[int]) -> tuple[int, Any]:
    """An arm, not among those taken."""
    if not taken:
        return player._state.draw(t, player._rng)
    rest = np.setdiff1d(np.arange(player._state.n_arms), taken)
    return player._state.draw_among(rest, t, player._rng)


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
    if one.error is not None:
        return one.error
    if isinstance(one.request, DecideRequest):
        return [_decision(player, part) for part in one.parts]
    outcomes = [entry.outcome is True for entry in one.entries]
    return outcomes if isinstance(one.request, RewardRequest) else outcomes[0]


def _decision(player: SharedPlayer, part: Proposal | Decided) -> Decision:
    if isinstance(part, Decided):
        return player._handed_out(part)
    found = player._handed_out(part.outcome)
    return part.decision if part.decision == found else found
