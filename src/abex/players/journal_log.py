"""The log of a shared player: each decision of the journal with its probability and what came of it."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from abex.players.definitions import Definition
from abex.players.journal_rows import Row, read_batch
from abex.players.named_arms import NamedArms
from abex.players.terms import Terms
from abex.support.extras import needed

COLUMNS = (
    *("decision", "arm", "probability", "reward", "time", "step", "status", "also", "observed"),
    *("batch", "batch_size"),
)


def decision_log(
    events: Iterable[tuple[int, Row]], definition: Definition, arms: NamedArms | None = None
) -> Any:
    """A pandas DataFrame with a row for each decision, in the order of the journal.

    Where the first events are left out, ``arms`` are those that were there then.
    """
    with needed():
        import pandas

    columns = list(zip(*LogReader(definition, arms).rows(events), strict=True)) or [()] * len(COLUMNS)
    frame = pandas.DataFrame(
        {name: pandas.Series(column, dtype=object) for name, column in zip(COLUMNS, columns, strict=True)}
    )
    frame["time"] = pandas.to_datetime(frame["time"].astype("int64"), unit="ms", utc=True)
    for name in ("probability", "reward"):
        frame[name] = frame[name].astype("float64")
    return frame


class LogReader:
    """Follows names of arms and waiting decisions through the events."""

    def __init__(self, definition: Definition, arms: NamedArms | None = None) -> None:
        self.terms: Terms = definition.terms
        self.most = int(definition.body["max_pending"])
        self.arms = NamedArms(definition.n_arms, definition.body["labels"]) if arms is None else arms.copy()
        self.waiting: OrderedDict[str, list[Any]] = OrderedDict()
        self.numbers: dict[str, int] = {}  # of the arms of waiting decisions
        self.asked: dict[tuple[str, str], str] = {}  # waiting decisions by their unit and key
        self.marks: dict[str, list[tuple[str, str]]] = {}  # unit and key of waiting decisions

    def rows(self, events: Iterable[tuple[int, Row]]) -> Iterator[list[Any]]:
        """All decisions; what comes later is filled in, so the rows are complete at the end."""
        found = [entry for _, row in events if (entry := self.follow(row)) is not None]
        yield from found

    def follow(self, row: Row) -> list[Any] | None:
        """Take notice of an event; returns the row of a decision."""
        detail = {} if row.detail is None else json.loads(row.detail)
        if row.kind == "decision":
            return None if self._is_void(row, detail) else self._decided(row, detail)
        if row.kind == "reward":
            self._rewarded(row, detail)
        elif row.kind == "expiry":
            self._expired(row)
        else:
            self._changed(row, detail)
        return None

    def closed(self, entry: list[Any], moment: int) -> None:
        """A decision has its reward, or will have none: for those who want to know."""

    def _close(self, name: str, status: str, moment: int, reward: float = math.nan) -> list[Any] | None:
        """A decision waits no more."""
        entry = self.waiting.pop(name, None)
        if entry is not None:
            entry[3], entry[6] = reward, status
            for mark in self.marks.pop(name, ()):
                del self.asked[mark]
            self.closed(entry, moment)
            del self.numbers[name]
        return entry

    def _label(self, number: Any) -> Any:
        return self.arms.label(int(number)) if self.arms.has(int(number)) else int(number)

    def _is_void(self, row: Row, detail: dict[str, Any]) -> bool:
        """Whether another decision waits for the unit or under the key of this one, and stands for it."""
        asked: list[tuple[str, str]] = [(name, detail[name]) for name in ("key", "unit") if name in detail]
        if any(one in self.asked for one in asked):
            return True
        if asked and row.arm is not None and self.arms.has(row.arm):  # else it does not wait
            self.marks[row.id] = asked
            self.asked.update((one, row.id) for one in asked)
        return False

    def _decided(self, row: Row, detail: dict[str, Any]) -> list[Any]:
        observed = {str(self._label(arm)): chance for arm, chance in detail.get("observed", {}).items()}
        text = json.dumps(observed) if observed else None
        arm = self._label(row.arm)
        batch = read_batch(detail)
        made = (None, 1) if batch is None else batch
        entry = [row.id, arm, row.value, math.nan, row.moment, detail["t"], "waiting", None, text, *made]
        self.waiting[row.id] = entry
        self.numbers[row.id] = int(row.arm or 0)
        if len(self.waiting) > self.most:
            self._close(next(iter(self.waiting)), "forgotten", row.moment)
        return entry

    def _rewarded(self, row: Row, detail: dict[str, Any]) -> None:
        name = row.decision
        if "key" in detail:
            return  # tried elsewhere
        if name is None:  # of an arm: its latest decision that waits
            name = next((one for one in reversed(self.waiting) if self.numbers[one] == row.arm), None)
        if name is None or row.value is None:
            return
        entry = self._close(name, "rewarded", row.moment, self.terms.shown(row.value))
        if entry is not None:
            also = {
                str(self._label(arm)): self.terms.shown(paid) for arm, paid in detail.get("also", {}).items()
            }
            entry[7] = json.dumps(also) if also else None

    def _expired(self, row: Row) -> None:
        while self.waiting:
            name, entry = next(iter(self.waiting.items()))
            if entry[4] > (row.seen or 0):
                return
            unrewarded = self.terms.unrewarded
            self._close(name, "expired", row.moment, math.nan if unrewarded is None else unrewarded)

    def _changed(self, row: Row, detail: dict[str, Any]) -> None:
        """Arms that come, go, or change their names; what could not be done was not."""
        label, known = detail.get("label"), self.arms
        if row.kind == "arm added":
            if known.labels is None or not known.knows(label):
                known.add(label)
        elif row.arm is not None and known.has(row.arm):
            if row.kind == "arm renamed":
                if label is not None and not known.knows(label):
                    known.rename(row.arm, label)
            elif known.numbers.size > 1:
                known.remove(row.arm)
                for name in [one for one in self.waiting if self.numbers[one] == row.arm]:
                    self._close(name, "forgotten", row.moment)
