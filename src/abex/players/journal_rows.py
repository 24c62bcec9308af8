"""Events as rows of a journal, and back: everything that is read is checked, since others may have written it."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from abex.kinds import agree, read_kept
from abex.players.decisions import Batch
from abex.players.events import ArmAdded, ArmRemoved, ArmRenamed, Decided, Event, Expired, Rewarded
from abex.players.replica import Replica
from abex.players.saving import MOST_MOMENT, check_memory, read_probability, read_word
from abex.support.files import encode_array

KINDS = {
    Decided: "decision",
    Rewarded: "reward",
    Expired: "expiry",
    ArmAdded: "arm added",
    ArmRemoved: "arm removed",
    ArmRenamed: "arm renamed",
}
COLUMNS = ("kind", "id", "moment", "decision", "arm", "value", "seen", "detail")


class Row(NamedTuple):
    """An event as a journal holds it, beside its sequence number; what a column means depends on the kind."""

    kind: str
    id: str
    moment: int
    decision: str | None  # whose reward this is
    arm: int | None  # number of the arm
    value: float | None  # probability of a decision, or a reward in [0, 1]
    seen: int | None  # sequence number at which a decision was made, or the cutoff of an expiry
    detail: str | None  # JSON: whatever else belongs to it


def row_of(event: Event) -> Row:
    """The row of an event."""
    kind = KINDS[type(event)]
    match event:
        case Decided():
            if not (event.memory or event.observed or event.unit or event.key or event.batch):  # as most are
                text = f'{{"t": {event.t}}}'
                return Row(kind, event.id, event.moment, None, event.arm, event.probability, event.seen, text)
            detail: dict[str, Any] = {"t": event.t}
            if event.memory:
                detail["memory"] = [encode_array(array) for array in event.memory]
            if event.observed:
                detail["observed"] = event.observed
            if event.unit is not None:
                detail["unit"] = event.unit
            if event.key is not None:
                detail["key"] = event.key
            if event.batch is not None:
                detail["batch"] = list(event.batch)
            return Row(
                kind,
                event.id,
                event.moment,
                None,
                event.arm,
                event.probability,
                event.seen,
                json.dumps(detail),
            )
        case Rewarded():
            more = {name: value for name, value in (("also", event.also), ("key", event.key)) if value}
            extra = json.dumps(more) if more else None
            return Row(kind, event.id, event.moment, event.decision, event.arm, event.reward, None, extra)
        case Expired():
            return Row(kind, event.id, event.moment, None, None, None, event.cutoff, None)
        case ArmRemoved():
            return Row(kind, event.id, event.moment, None, event.arm, None, None, None)
        case ArmRenamed():
            label = json.dumps({"label": event.label})
            return Row(kind, event.id, event.moment, None, event.arm, None, None, label)
    label = json.dumps({"label": event.label})
    return Row(kind, event.id, event.moment, None, None, None, None, label)


def event_of(row: Row, replica: Replica, fresh: Any) -> Event:
    """The event of a row, checked for a replica whose policy starts with the state ``fresh``; raises ValueError."""
    agree(isinstance(row.id, str) and len(row.id) < 60, "an event must have an id")
    _whole(row.moment, "moment", MOST_MOMENT)
    detail = {} if row.detail is None else json.loads(row.detail)
    agree(isinstance(detail, dict), "detail must be an object")
    match row.kind:
        case "decision":
            return _decided(row, detail, replica, fresh)
        case "reward":
            agree((row.decision is None) != (row.arm is None), "a reward must be of a decision or of an arm")
            agree(row.decision is None or isinstance(row.decision, str), "decision must be an id")
            if row.arm is not None:
                _whole(row.arm, "arm", 2**62)
            also = detail.get("also", {})
            agree(isinstance(also, dict), "also must be an object")
            rewards = {_number(arm): _share(paid) for arm, paid in also.items()}
            key = read_word(detail.get("key"), "key")
            agree(key is None or row.arm is not None, "a reward under a key must be of an arm")
            return Rewarded(row.id, row.moment, row.decision, row.arm, _share(row.value), rewards, key)
        case "expiry":
            return Expired(row.id, row.moment, _whole(row.seen, "cutoff", MOST_MOMENT))
        case "arm added":
            label = detail["label"]
            agree(label is None or type(label) in (int, str), "label must be a name")
            return ArmAdded(row.id, row.moment, label)
        case "arm removed":
            return ArmRemoved(row.id, row.moment, _whole(row.arm, "arm", 2**62))
        case "arm renamed":
            agree(type(detail["label"]) in (int, str), "label must be a name")
            return ArmRenamed(row.id, row.moment, _whole(row.arm, "arm", 2**62), detail["label"])
    raise ValueError(f"there is no event of kind {str(row.kind)[:40]!r}")


def _decided(row: Row, detail: dict[str, Any], replica: Replica, fresh: Any) -> Decided:
    arm = _whole(row.arm, "arm", 2**62)
    t = _whole(detail["t"], "t", 2**62)
    agree(t >= 1, "t must be a step")
    memory = read_kept(fresh, detail.get("memory", []), replica.n_arms)
    if memory and replica.arms.has(arm):
        check_memory(replica, memory, arm, fresh)
    seen = _whole(row.seen, "seen", 2**62)
    unit, key = read_word(detail.get("unit"), "unit"), read_word(detail.get("key"), "key")
    probability = read_probability(row.value)
    batch = read_batch(detail)
    return Decided(row.id, row.moment, arm, t, memory, probability, seen, None, unit, key, batch)


def read_batch(detail: dict[str, Any]) -> Batch | None:
    """Of the decisions that were made at once with the one whose detail this is; raises ValueError."""
    if "batch" not in detail:
        return None
    saved = detail["batch"]
    agree(isinstance(saved, list) and len(saved) == 2, "a batch must be an id and a size")
    name = read_word(saved[0], "batch")
    agree(name is not None and _whole(saved[1], "batch", 2**62) >= 2, "a batch must be an id and a size")
    return Batch(str(name), saved[1])


def _whole(value: Any, name: str, most: int) -> int:
    agree(type(value) is int and 0 <= value < most, f"{name} must be a whole number")
    return int(value)


def _number(text: Any) -> int:
    agree(
        isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 20, "also must be of arms"
    )
    return int(text)


def _share(value: Any) -> float:
    agree(
        type(value) in (int, float) and math.isfinite(value) and 0.0 <= value <= 1.0,
        "rewards must be within 0 to 1",
    )
    return float(value)
