"""The log of a shared player: each decision of the journal with its probability and what came of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from abex.players.answers import Answer, Answers
from abex.players.arms import NamedArms
from abex.players.events import (
    ArmAdded,
    ArmRemoved,
    ArmRenamed,
    Decided,
    Event,
    Expired,
    Rewarded,
    decode,
)
from abex.players.player_file import Definition
from abex.players.player_settings import PlayerSettings
from abex.players.state import Pending
from abex.support.errors import UserError
from abex.support.extras import needed

COLUMNS = (
    *("decision", "arm", "probability", "reward", "time", "step", "status", "also", "observed"),
    *("batch", "batch_size", "conversions"),
)


def decision_log(
    events: Iterable[tuple[int, bytes]], definition: Definition, arms: NamedArms | None = None
) -> Any:
    """A pandas DataFrame with a row for each decision, in the order of the journal.

    Where the first events are left out, ``arms`` are those that were there then; they change as the events do.
    """
    with needed():
        import pandas

    columns = log_columns(events, definition, arms)
    frame = pandas.DataFrame({name: pandas.Series(column, dtype=object) for name, column in columns.items()})
    frame["time"] = pandas.to_datetime(frame["time"].astype("int64"), unit="ms", utc=True)
    for name in ("probability", "reward"):
        frame[name] = frame[name].astype("float64")
    return frame


def log_columns(
    events: Iterable[tuple[int, bytes]], definition: Definition, arms: NamedArms | None = None
) -> dict[str, tuple[Any, ...]]:
    """The columns of `decision_log`, without pandas."""
    columns = list(zip(*LogReader(definition, arms).rows(events), strict=True)) or [()] * len(COLUMNS)
    return dict(zip(COLUMNS, columns, strict=True))


class LogReader:
    """Follows names of arms and waiting decisions through the events."""

    def __init__(self, definition: Definition, arms: NamedArms | None = None) -> None:
        self.terms: PlayerSettings = definition.terms
        said = definition.declared
        self.arms = NamedArms(said.n_arms, said.labels) if arms is None else arms
        self.pending = Pending(said.max_pending)
        self.waiting: dict[str, list[Any]] = {}  # rows of decisions that wait
        self.answers = None if self.terms.kept is None else Answers(self.terms, self.pending.most)
        self.answered: dict[str, list[Any]] = {}  # rows of decisions whose reward may change

    def rows(self, events: Iterable[tuple[int, bytes]]) -> Iterator[list[Any]]:
        """All decisions; what comes later is filled in, so the rows are complete at the end."""
        found = [entry for _, body in events if (entry := self.follow(decode(body))) is not None]
        yield from found

    def follow(self, event: Event) -> list[Any] | None:
        """Take notice of an event; returns the row of a decision."""
        if isinstance(event, Decided):
            return self._decided(event) if self.pending.stands_for(event) is None else None
        if isinstance(event, Rewarded):
            self._rewarded(event)
        elif isinstance(event, Expired):
            self._expired(event)
        else:
            self._changed(event)
        return None

    def closed(self, entry: list[Any], moment: int) -> None:
        """A decision has its reward, or will have none: for those who want to know."""

    def revised(self, entry: list[Any], before: float, moment: int) -> None:
        """The reward of a decision is another than before: for those who want to know."""

    def _close(self, event: Decided, status: str, moment: int, reward: float = math.nan) -> list[Any]:
        """A decision waits no more."""
        entry = self.waiting.pop(event.id)
        entry[3], entry[6] = reward, status
        self.closed(entry, moment)
        return entry

    def _decided(self, event: Decided) -> list[Any]:
        observed = {str(self.arms.label(arm)): chance for arm, chance in (event.observed or {}).items()}
        text = json.dumps(observed) if observed else None
        made = (None, 1) if event.batch is None else event.batch
        entry = [
            event.id,
            self.arms.label(event.arm),
            event.probability,
            math.nan,
            event.moment,
            event.t,
            "waiting",
            None,
            text,
            *made,
            None,
        ]
        if self.answers is not None:
            self._forget(self.answers.forget(event.moment))
        self.waiting[event.id] = entry
        forgotten = self.pending.add(event) if self.arms.has(event.arm) else event  # which does not wait
        if forgotten is not None:
            self._close(forgotten, "forgotten", event.moment)
        return entry

    def _rewarded(self, event: Rewarded) -> None:
        name = event.decision
        if name is None and event.key is not None:
            return  # tried elsewhere
        if name is None:  # of an arm: its latest decision that waits
            name = self.pending.latest_of(event.arm or 0)
        if name is None:
            return
        pending, answer = self.pending.get(name), None
        if pending is None:
            self._revise(name, event)
            return
        if self.answers is not None:
            answer = self.answers.first(name, pending.moment, pending.arm, event)
            if answer is None:
                return  # too late
        reward = self.terms.shown(event.reward)
        entry = self._close(self.pending.drop(name), "rewarded", event.moment, reward)
        if answer is not None:
            self._paid(answer, entry)
        also = {str(self.arms.label(arm)): self.terms.shown(paid) for arm, paid in event.also.items()}
        entry[7] = json.dumps(also) if also else None

    def _revise(self, name: str, event: Rewarded) -> None:
        """A decision that had a reward had another conversion, or a correction."""
        before = None if self.answers is None else self.answers.find(name)
        if self.answers is None or before is None or not self.arms.has(before.arm):
            return
        after = self.answers.revised(before, event)
        if after is not None:
            entry = self.answered[name]
            entry[3] = self.terms.shown(after.reward)
            self._paid(after, entry)
            self.revised(entry, self.terms.shown(before.reward), event.moment)

    def _paid(self, answer: Answer, entry: list[Any]) -> None:
        """What a decision paid, by conversion where there are several."""
        assert self.answers is not None
        self.answered[answer.id] = entry
        self._forget(self.answers.keep(answer))
        if answer.parts.keys() != {""}:
            paid = {
                key: None if part is None else self.terms.shown(part) for key, part in answer.parts.items()
            }
            entry[11] = json.dumps(paid)

    def _forget(self, names: Iterable[str]) -> None:
        """The rewards of these will not change any more."""
        for name in names:
            self.answered.pop(name, None)

    def _expired(self, event: Expired) -> None:
        if self.answers is not None:
            self._forget(self.answers.forget(event.moment))
        if self.terms.expire is None:
            return
        unrewarded = self.terms.unrewarded
        for name in self.pending.due(event.cutoff):
            reward = math.nan if unrewarded is None else unrewarded
            self._close(self.pending.drop(name), "expired", event.moment, reward)

    def _changed(self, event: Event) -> None:
        """Arms that come, go, or change their names; what could not be done was not."""
        known = self.arms
        if isinstance(event, ArmAdded):
            with suppress(UserError):  # it was there already
                known.add(known.check_new(event.label))
        elif isinstance(event, ArmRemoved | ArmRenamed) and known.has(event.arm):
            if isinstance(event, ArmRenamed):
                if not known.knows(event.label):
                    known.rename(event.arm, event.label)
            elif known.numbers.size > 1:
                known.remove(event.arm)
                for name in self.pending.of_arm(event.arm):
                    self._close(self.pending.drop(name), "forgotten", event.moment)
