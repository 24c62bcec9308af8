"""Files of logs: tables with named columns, and Vowpal Wabbit's dsjson."""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.evaluation.batches import counted
from abex.evaluation.log import Floats, Label, Log, Side, check_numbers
from abex.support.errors import UserError, brief, shown
from abex.support.reading import check_json, check_size, opened, reader_errors, short_path
from abex.support.table_files import is_text, read_columns

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
}
DSJSON = (".dsjson", ".json", ".jsonl")
MAX_LINE = 10**7  # characters of an event
ROW = 64  # bytes that a decision, or a side observation, takes while it is valued
CHECKED = 4096  # rows from check to check of what they take
Seen = Sequence[Sequence[Any]]  # arms with what they paid and how probable it was to see that
MAX_ACTIONS = 10**6


def ending(path: str | os.PathLike[str]) -> str:
    """The last ending of a name but .gz."""
    return next((e.lower() for e in reversed(Path(path).suffixes) if e.lower() != ".gz"), "")


def read_log(path: str | os.PathLike[str], arms: Sequence[Label] | None) -> Log:
    """The log of a file."""
    target = Path(path)
    if ending(target) in DSJSON:
        return _read_dsjson(target, arms)
    return log_of_columns(
        read_columns(target, row=ROW), arms, short_path(target), 2 if is_text(target) else None
    )


class Rows(NamedTuple):
    """Where rows stand, for messages: in lines of a file, whose header is line 1, or numbered from 0."""

    where: str
    number: NDArray[np.int64]
    of_lines: bool

    def at(self, row: int) -> str:
        """Where a row stands."""
        return f"{'line' if self.of_lines else 'row'} {self.number[row]:,} of {self.where}"


def log_of_columns(
    columns: Mapping[str, Any], arms: Sequence[Label] | None, where: str, first_line: int | None = None
) -> Log:
    """The log of columns under the names of `NAMES`; ``first_line`` is the line of a file in which the first row stands."""
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
    rows = Rows(where, np.arange(found["arm"].size) + (first_line or 0), first_line is not None)
    if "batch" in found and "batch_size" not in found:  # those without a reward count too
        found["batch_size"] = counted(found["batch"])
    if (
        "status" in columns
    ):  # of a player: what waits has no reward yet, and what has no probability cannot be weighed
        numbers = [_numbers(found[name], name, rows) for name in ("probability", "reward")]
        complete = np.isfinite(numbers[0]) & np.isfinite(numbers[1])
        rows = rows._replace(number=rows.number[complete])
        columns = {name: np.asarray(values)[complete] for name, values in columns.items()}
        found = {name: values[complete] for name, values in found.items()}
    for name in (
        "observed",
        "also",
        "batch",
    ):  # a player without side observations or batches leaves them empty
        if name in columns and all(value in (None, "") or value != value for value in list(columns[name])):
            columns = {key: values for key, values in columns.items() if key != name}
            found.pop(name, None)
    if "batch" not in found:
        found.pop("batch_size", None)
    labels, arm = _arms(found["arm"], arms, rows)
    places = {str(label): place for place, label in enumerate(labels)}
    side = None
    if "also" in columns and "observed" in found and found["observed"].dtype.kind == "O":
        own = _numbers(found["probability"], "probability", rows)
        side = _side(_side_rows(columns["also"], found["observed"], own, labels, arm, where), places, where)
        found["observed"] = own
    numbers_of = {
        name: _numbers(found[name], name, rows)
        for name in ("probability", "reward", "observed")
        if name in found
    }
    for name, values in numbers_of.items():
        check_numbers(name, values, name != "reward", rows.at)
    return Log(
        labels, arm, numbers_of["probability"], numbers_of["reward"],
        found.get("decision"), found.get("time"), numbers_of.get("observed"), side,
        found.get("batch"), _sizes(found, rows),
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
    except (ValueError, TypeError, OverflowError):
        for row, value in enumerate(values.tolist()):
            with reader_errors(f"take {brief(shown(value), 40)}, the {name} in {rows.at(row)}, for a number"):
                float(value)
        raise


def _sizes(found: Mapping[str, Any], rows: Rows) -> NDArray[np.int64] | None:
    """Of the batches; a row by itself may leave it out."""
    if "batch" not in found:
        return None
    sizes = _numbers(found["batch_size"], "batch_size", rows)
    return np.where(np.isfinite(sizes), sizes, 1.0).astype(np.int64)


def _side(rows: Iterable[Seen], places: Mapping[str, int], where: str) -> Side:
    """Side observations, row by row."""
    start, arms, rewards, probabilities = array("q", [0]), array("q"), array("d"), array("d")
    for seen in rows:
        with reader_errors(f"read the side observations of row {len(start):,} of {where}"):
            for arm, reward, probability in seen:
                arms.append(places[str(arm)])
                rewards.append(float(reward))
                probabilities.append(float(probability))
        start.append(len(arms))
        if len(start) % CHECKED == 0:
            check_size(ROW * (len(start) + len(arms)), where)
    return Side(
        np.array(start, dtype=np.int64), np.array(arms, dtype=np.int64), np.array(rewards), np.array(probabilities)
    )  # fmt: skip


def _side_rows(
    also: Any, observed: Any, own: Floats, labels: Sequence[Label], arm: NDArray[np.int64], where: str
) -> Iterator[Seen]:
    """Side observations from the columns ``also`` (arm: reward) and ``observed`` (arm: probability of being observed), JSON both.

    The probabilities of the chosen arms themselves go into ``own``.
    """
    names = list(map(str, labels))
    known_names = set(names)
    for row, (paid, known) in enumerate(zip(np.asarray(also).tolist(), observed.tolist(), strict=True)):
        seen: Seen = []
        if isinstance(known, str) and known:
            with reader_errors(f"read the observations {brief(known, 40)!r} of {where}"):
                chances = {label: float(chance) for label, chance in _json(known, where).items()}
                own[row] = chances.get(names[int(arm[row])], own[row])
                rewards = _json(paid, where).items() if isinstance(paid, str) and paid else ()
                seen = [
                    (label, reward, chances[label])
                    for label, reward in rewards
                    if label in chances and label in known_names
                ]
        yield seen


def _json(text: str, where: str) -> Any:
    check_json(text, where)
    return json.loads(text)


# -- Vowpal Wabbit ------------------------------------------------------------------------------------------------


def _read_dsjson(path: Path, arms: Sequence[Label] | None) -> Log:
    """One event a line: ``_label_cost`` is minus the reward, ``_label_Action`` counts from 1, ``_label_probability``."""
    where = short_path(path)
    if not os.path.isfile(path):
        raise UserError(f"there is no file {where}")
    ids: list[str] = []
    times: list[str] = []
    action, probability, reward = array("q"), array("d"), array("d")
    offered, words = 1, 0
    for event in _events(path):
        ids.append(event.id)
        times.append(event.time)
        action.append(event.action)
        probability.append(event.probability)
        reward.append(event.reward)
        offered, words = max(offered, event.n_arms, event.action), words + sys.getsizeof(event.id)
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


class _Event(NamedTuple):
    """A line of dsjson."""

    id: str
    action: int
    probability: float
    reward: float
    time: str
    n_arms: int


def _events(path: Path) -> Iterator[_Event]:
    where = short_path(path)
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        with reader_errors(f"read line {number} of {where} as dsjson"):
            event = _json(line.decode("utf-8-sig" if number == 1 else "utf-8"), f"line {number} of {where}")
        if not isinstance(event, dict):
            raise UserError(f"line {number} of {where} is no event of dsjson")
        if "_label_cost" not in event:
            continue  # a dangling reward, or a decision that had none
        numbers = [event.get(key) for key in ("_label_Action", "_label_probability", "_label_cost")]
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
            raise UserError(f"line {number} of {where} has no label of numbers: action, probability and cost")
        with reader_errors(f"read line {number} of {where} as dsjson"):
            action, probability, cost = numbers[0], float(numbers[1] or 0.0), float(numbers[2] or 0.0)
            name, moment = str(event.get("EventId", number)), str(event.get("Timestamp", ""))
        if not isinstance(action, int) or not 1 <= action <= MAX_ACTIONS:
            raise UserError(
                f"line {number} of {where} has action {shown(action)}, which is no number from 1 to {MAX_ACTIONS:,}"
            )
        offered = event.get("a")
        n_arms = min(len(offered), MAX_ACTIONS) if isinstance(offered, list) else 1
        yield _Event(name, action, probability, -cost, moment, n_arms)


def _lines(path: Path) -> Iterator[bytes]:
    """One after the other, unpacked on the way."""
    with opened(path, packed=path.name.lower().endswith(".gz")) as file:
        number = 1
        while line := file.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise UserError(f"line {number} of {short_path(path)} is longer than an event can be")
            yield line
            number += 1


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
