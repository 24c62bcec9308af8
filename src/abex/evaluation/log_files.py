"""Files of logs: tables with named columns, and Vowpal Wabbit's dsjson."""

from __future__ import annotations

import codecs
import json
import os
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from abex.evaluation.batches import counted
from abex.evaluation.log import Floats, Label, Log, Side, check_numbers
from abex.support.errors import UserError, brief, shown
from abex.support.reading import check_size, opened, short_path
from abex.support.table_files import line_of, read_columns

#: what a log needs -> the names under which others write it
NAMES = {
    "decision": ("decision", "decision_id", "event_id"),
    "arm": ("arm", "action", "item_id"),
    "probability": ("probability", "propensity", "propensity_score", "pscore"),
    "reward": ("reward", "click"),
    "time": ("time", "timestamp"),
    "observed": ("observed",),
    "batch": ("batch",),
    "batch_size": ("batch_size",),
    "also": ("also",),
    "status": ("status",),
}
DSJSON = (".dsjson", ".json", ".jsonl")
MAX_LINE = 10**7  # characters of an event
ROW = 64  # bytes that a decision, or a side observation, takes while it is valued
CHECKED = 4096  # rows from check to check of what they take
MAX_ACTIONS = 10**6


def ending(path: str | os.PathLike[str]) -> str:
    """The last ending of a name but .gz."""
    return next((e.lower() for e in reversed(Path(path).suffixes) if e.lower() != ".gz"), "")


def read_log(path: str | os.PathLike[str], arms: Sequence[Label] | None) -> Log:
    """The log of a file."""
    target = Path(path)
    if ending(target) in DSJSON:
        return _read_dsjson(target, arms)
    return log_of_columns(read_columns(target, row=ROW), arms, short_path(target))


class Rows(NamedTuple):
    """The rows of a table that a log is made of, for messages."""

    where: str
    number: NDArray[np.int64]

    def at(self, row: int) -> str:
        """Where a row stands."""
        return f"{line_of(int(self.number[row]), self.where)} of {self.where}"


def log_of_columns(columns: Mapping[str, Any], arms: Sequence[Label] | None, where: str) -> Log:
    """The log of columns under the names of `NAMES`."""
    found: dict[str, NDArray[Any]] = {}
    for wanted, names in NAMES.items():
        here = [name for name in names if name in columns]
        if len(here) > 1:
            raise UserError(f"{where} has both a column {here[0]!r} and {here[1]!r}: keep one")
        if here:
            found[wanted] = np.asarray(columns[here[0]])
    missing = [name for name in ("arm", "probability", "reward") if name not in found]
    if missing:
        raise UserError(
            f"{where} has no column {missing[0]!r}; a log has decision, arm, probability, reward, time"
        )
    rows = Rows(where, np.arange(found["arm"].size))
    if "batch" in found and "batch_size" not in found:  # those without a reward count too
        found["batch_size"] = counted(found["batch"])
    if (
        "status" in found
    ):  # of a player: what waits has no reward yet, and what has no probability cannot be weighed
        complete = np.logical_and.reduce(
            [np.isfinite(_numbers(found[name], name, rows)) for name in ("probability", "reward")]
        )
        rows = Rows(where, rows.number[complete])
        found = {name: values[complete] for name, values in found.items()}
    for name in (
        "observed",
        "also",
        "batch",
    ):  # a player without side observations or batches leaves them empty
        if name in found and all(value in (None, "") or value != value for value in found[name].tolist()):
            del found[name]
    labels, arm = _arms(found["arm"], arms, rows)
    side = None
    if "also" in found and "observed" in found and found["observed"].dtype.kind == "O":
        own = _numbers(found["probability"], "probability", rows)
        side = _side(found["also"], found["observed"], own, labels, arm, rows)
        found["observed"] = own
    numbers_of = {
        name: _numbers(found[name], name, rows)
        for name in ("probability", "reward", "observed")
        if name in found
    }
    for name, values in numbers_of.items():
        check_numbers(name, values, name != "reward", rows.at)
    sizes = None
    if "batch" in found:  # a row by itself may leave its size out
        sizes = _numbers(found["batch_size"], "batch_size", rows)
        sizes = np.where(np.isfinite(sizes), sizes, 1.0).astype(np.int64)
    return Log(
        labels, arm, numbers_of["probability"], numbers_of["reward"],
        found.get("decision"), found.get("time"), numbers_of.get("observed"), side, found.get("batch"), sizes,
    )  # fmt: skip


def _arms(
    values: NDArray[Any], arms: Sequence[Label] | None, rows: Rows
) -> tuple[list[Label], NDArray[np.int64]]:
    """The names of the arms, and each row's place among them."""
    if values.dtype.kind == "f" and np.isfinite(values).all() and (values == np.round(values)).all():
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu":
        for row, value in enumerate(values.tolist()):
            if value is None or value != value or value == "":
                raise UserError(f"there is no arm in {rows.at(row)}")
        values = np.array([str(value) for value in values.tolist()], dtype=object)
    if arms is None:
        labels, place = np.unique(values, return_inverse=True)
        return labels.tolist(), place.astype(np.int64)
    known = {str(label): place for place, label in enumerate(arms)}
    for row, value in enumerate(values.tolist()):
        if str(value) not in known:
            raise UserError(f"{rows.at(row)} has arm {shown(value)}, which is none of those given")
    return list(arms), np.array([known[str(value)] for value in values.tolist()], dtype=np.int64)


def _numbers(values: NDArray[Any], name: str, rows: Rows) -> NDArray[np.float64]:
    """A column as numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        row, value = next((row, value) for row, value in enumerate(values.tolist()) if not _is_number(value))
        wrong = brief(shown(value), 40)
        raise UserError(f"cannot take {wrong}, the {name} in {rows.at(row)}, for a number") from error


def _is_number(value: Any) -> bool:
    try:
        return isinstance(float(value), float)
    except (ValueError, TypeError, OverflowError):
        return False


def _side(
    also: NDArray[Any], observed: NDArray[Any], own: Floats, labels: Sequence[Label], arm: NDArray[np.int64], rows: Rows
) -> Side:  # fmt: skip
    """Side observations from the columns ``also`` (arm: reward) and ``observed`` (arm: probability of being observed), JSON both.

    The probabilities of the chosen arms themselves go into ``own``.
    """
    places = {str(label): place for place, label in enumerate(labels)}
    names = list(places)
    start, arms, rewards, probabilities = array("q", [0]), array("q"), array("d"), array("d")
    for row, cells in enumerate(zip(also.tolist(), observed.tolist(), strict=True)):
        try:
            paid, chances = (
                msgspec.json.decode(cell, type=dict[str, float]) if isinstance(cell, str) and cell else {}
                for cell in cells
            )
        except msgspec.DecodeError as error:
            raise UserError(f"cannot read the side observations in {rows.at(row)}: {error}") from error
        own[row] = chances.get(names[arm[row]], own[row])
        for label, reward in paid.items():
            if label in chances and label in places:
                arms.append(places[label])
                rewards.append(reward)
                probabilities.append(chances[label])
        start.append(len(arms))
        if len(start) % CHECKED == 0:
            check_size(ROW * (len(start) + len(arms)), rows.where)
    return Side(
        np.array(start, dtype=np.int64), np.array(arms, dtype=np.int64), np.array(rewards), np.array(probabilities)
    )  # fmt: skip


# -- Vowpal Wabbit ------------------------------------------------------------------------------------------------


class DsjsonEvent(msgspec.Struct):
    """A line of dsjson: what is looked at. One without a label is a dangling reward, or a decision that had none."""

    cost: float | None = msgspec.field(default=None, name="_label_cost")  # minus the reward
    probability: float | None = msgspec.field(default=None, name="_label_probability")
    action: Annotated[int, msgspec.Meta(ge=1, le=MAX_ACTIONS)] | None = msgspec.field(
        default=None, name="_label_Action"
    )
    id: str = msgspec.field(default="", name="EventId")
    time: str = msgspec.field(default="", name="Timestamp")
    offered: Annotated[list[int], msgspec.Meta(max_length=MAX_ACTIONS)] = msgspec.field(
        default_factory=list, name="a"
    )


def _read_dsjson(path: Path, arms: Sequence[Label] | None) -> Log:
    """One event a line, its actions counted from 1."""
    where = short_path(path)
    if not os.path.isfile(path):
        raise UserError(f"there is no file {where}")
    ids: list[str] = []
    times: list[str] = []
    action, probability, reward = array("q"), array("d"), array("d")
    offered, words = 1, 0
    for number, event in _events(path):
        if event.cost is None:
            continue
        if event.probability is None or event.action is None:
            raise UserError(f"line {number} of {where} has no label of numbers: action, probability and cost")
        ids.append(event.id or str(number))
        times.append(event.time)
        action.append(event.action)
        probability.append(event.probability)
        reward.append(-event.cost)
        offered, words = max(offered, len(event.offered), event.action), words + sys.getsizeof(ids[-1])
        words += sys.getsizeof(event.time) * bool(event.time)
        if len(ids) % CHECKED == 0:
            check_size(ROW * len(ids) + words, where)
    check_size(ROW * len(ids) + words, where)
    if not ids:
        raise UserError(f"{where} has no event with a label")
    labels: Sequence[Label] = range(1, offered + 1) if arms is None else arms
    if max(action) > len(labels):
        raise UserError(f"{where} has action {max(action)}, but there are {len(labels)} arms")
    return Log(
        labels, np.array(action) - 1, np.array(probability), np.array(reward),
        np.array(ids, dtype=object), np.array(times, dtype=object),
    )  # fmt: skip


def _events(path: Path) -> Iterator[tuple[int, DsjsonEvent]]:
    """The events of a file with the numbers of their lines; it is unpacked on the way."""
    where, decode = short_path(path), msgspec.json.Decoder(DsjsonEvent).decode
    with opened(path, packed=path.name.lower().endswith(".gz")) as file:
        for number in count(1):
            line = file.readline(MAX_LINE + 1)
            if len(line) > MAX_LINE:
                raise UserError(f"line {number} of {where} is longer than an event can be")
            if not line:
                return
            if line.strip():
                try:
                    yield number, decode(line.removeprefix(codecs.BOM_UTF8))
                except msgspec.DecodeError as error:
                    raise UserError(f"cannot read line {number} of {where} as dsjson: {error}") from error


# -- writing --------------------------------------------------------------------------------------------------------


def dsjson_of(log: Log) -> bytes:
    """The content of a file of Vowpal Wabbit's dsjson."""
    if log.has_batches:
        raise UserError("dsjson has no place for decisions that were made at once: take .csv or .parquet")
    return "".join(_dsjson_lines(log)).encode()


def _dsjson_lines(log: Log) -> Iterator[str]:
    """Side observations have no place in dsjson; the arms are actions 1, 2, ..."""
    for row in range(len(log)):
        place, probability = int(log.arm[row]), float(log.probability[row])
        others = [other + 1 for other in range(log.n_arms) if other != place]
        rest = (1.0 - min(probability, 1.0)) / max(len(others), 1)  # the log knows the chosen one's alone
        event = {
            "_label_cost": -float(log.reward[row]),
            "_label_probability": probability,
            "_label_Action": place + 1,
            "_labelIndex": place,
            "Timestamp": "" if log.time is None else str(log.time[row]),
            "Version": "1",
            "EventId": str(row if log.decision is None else log.decision[row]),
            "a": [place + 1, *others],
            "c": {"_multi": [{"arm": str(label)} for label in log.arms]},
            "p": [probability, *[rest] * len(others)],
        }
        yield json.dumps(event) + "\n"
