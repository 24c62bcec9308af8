"""Decisions with their probabilities and rewards, in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.evaluation.batches import Units, counted, units_of
from abex.inference.columns import laws_of
from abex.support.errors import UserError, nearest, shown

Label = str | int
Floats = NDArray[np.float64]
TINY = 1e-12  # by so much a probability may exceed 1
STEADY = 1e-3  # by so much the probabilities of a log that never change may miss their sum


class Side(NamedTuple):
    """Side observations: what arms beside the chosen one paid, row i's from ``start[i]`` to ``start[i + 1]``."""

    start: NDArray[np.int64]  # (rows + 1,)
    arm: NDArray[np.int64]
    reward: Floats
    probability: Floats  # of being observed at that decision


@dataclass(frozen=True, eq=False)
class Log:
    """Decisions that had a reward, oldest first.

    Parameters
    ----------
    arms : sequence of str or int
        The names of the arms.
    arm : array, (rows,)
        The arm of each decision: its position in ``arms``, or its name where names are text.
    probability : array, (rows,), or float
        The probability with which the arm was chosen, in (0, 1]; in a batch, that the arm is in it. A number is that of each.
    reward : array, (rows,)
        What it paid.
    decision, time : array, optional
        Ids and moments; they are carried, not used.
    observed : array, optional
        The probability that the chosen arm was *observed*, on a feedback graph; else that of choosing it.
    side : Side, optional
        Side observations.
    batch : array, optional
        The id of the batch of each row, of decisions that were made at once (`abex.Player.decide_many`); None or "" for a
        decision by itself. Rows of a batch stand next to each other.
    batch_size : array of int, optional
        How many decisions each batch had, those without a reward included; counted from the rows unless given.
    law : array, (rows, arms), optional
        The probabilities of all arms at each decision, which make an interval narrower that holds at every moment. They follow
        where they never change and where there are two arms.

    Examples
    --------
    >>> log = Log(["red", "blue"], ["red", "blue", "blue"], 0.5, [1.0, 0.0, 1.0])
    >>> log
    <Log of 3 decisions on 2 arms>
    >>> log.counts().tolist(), log.means().tolist()
    ([1, 2], [1.0, 0.5])
    """

    arms: Sequence[Label]
    arm: Any
    probability: Any
    reward: Any
    decision: Any = None
    time: Any = None
    observed: Any = None
    side: Side | None = None
    batch: Any = None
    batch_size: Any = None
    law: Any = None

    def __post_init__(self) -> None:
        arms = tuple(self.arms)
        if not arms or len(set(arms)) < len(arms):
            raise UserError("a log needs arms with different names")
        object.__setattr__(self, "arms", arms)
        arm = _column("arm", _places(self.arm, arms), np.int64)
        if arm.size == 0:
            raise UserError("the log has no decisions with a reward")
        if arm.min() < 0 or arm.max() >= len(arms):
            raise UserError(f"arm must be a position among the {len(arms)} arms, got {arm.max()}")
        object.__setattr__(self, "arm", arm)
        if np.ndim(self.probability) == 0 and self.probability is not None:
            object.__setattr__(self, "probability", np.full(arm.size, self.probability, np.float64))
        for name in ("probability", "reward", "observed"):
            if getattr(self, name) is not None:
                values = _column(name, getattr(self, name), np.float64)
                _same_length(name, values, arm)
                check_numbers(name, values, name != "reward")
                object.__setattr__(self, name, values)
        if self.probability is None or self.reward is None:
            raise UserError("a log needs a probability and a reward for each decision")
        for name in ("decision", "time"):
            if getattr(self, name) is not None:
                values = np.asarray(getattr(self, name))
                _same_length(name, values, arm)
                object.__setattr__(self, name, values)
        if self.side is not None:
            object.__setattr__(self, "side", _checked_side(self.side, arm, len(arms)))
        self._check_batches(arm)
        if self.law is not None:
            object.__setattr__(self, "law", _checked_law(self.law, self))

    def _check_batches(self, arm: NDArray[np.int64]) -> None:
        if self.batch is None:
            if self.batch_size is not None:
                raise UserError("batch_size needs a column batch that says which rows belong together")
            return
        batch = np.asarray(self.batch)
        _same_length("batch", batch, arm)
        given = counted(batch) if self.batch_size is None else self.batch_size
        size = _column("batch_size", given, np.int64)
        _same_length("batch_size", size, arm)
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "batch_size", size)
        sizes = self.units.sizes[self.units.kind]
        if sizes.max() > len(self.arms):
            raise UserError(
                f"a batch of {sizes.max()} decisions cannot be on {len(self.arms)} different arms"
            )
        if self.side is not None and (np.diff(self.side.start)[sizes > 1] > 0).any():
            raise UserError("side observations of a batch cannot be weighed: leave them out")

    @cached_property
    def units(self) -> Units:
        """What was decided at once: batches, and rows by themselves."""
        return units_of(self.arm, self.batch, self.batch_size)

    @cached_property
    def laws(self) -> Floats | None:
        """The probabilities of all arms at each decision, (1, arms) where they never change; None where they are not known."""
        if self.law is not None or self.has_batches:
            return None if self.has_batches else self.law
        return laws_of(self.probability, self.arm, self.n_arms)[0]

    @property
    def has_batches(self) -> bool:
        """Whether any decisions were made at once."""
        return bool(self.units.sizes[-1] > 1)

    @cached_property
    def is_steady(self) -> bool:
        """Whether the probabilities never change and all arms that can be chosen are there: every weight is known then.

        >>> Log(["a", "b"], [0, 1, 1], [0.2, 0.8, 0.8], [1, 0, 1]).is_steady
        True
        >>> Log(["a", "b"], [0, 1, 1], [0.2, 0.8, 0.7], [1, 0, 1]).is_steady
        False
        """
        cell = self.units.kind * self.n_arms + self.arm
        known = _of_cells(cell, self.probability, self.units.sizes.size * self.n_arms)
        if known is None or (
            self.observed is not None and _of_cells(cell, self.observed, known.size) is None
        ):
            return False
        if self.side is not None and _of_cells(self.side.arm, self.side.probability, self.n_arms) is None:
            return False
        total = known.reshape(-1, self.n_arms).sum(axis=1)
        return bool((np.abs(total - self.units.sizes) <= STEADY * self.units.sizes).all())

    def __len__(self) -> int:
        return int(self.arm.size)

    def __repr__(self) -> str:
        beside = "" if self.side is None else f" with {self.side.arm.size} side observations"
        made = f" made {self.units.start.size} times" if self.has_batches else ""
        return f"<Log of {len(self)} decisions{made} on {len(self.arms)} arms{beside}>"

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    def counts(self) -> NDArray[np.int64]:
        """How often each arm was chosen."""
        return np.bincount(self.arm, minlength=self.n_arms)

    def means(self) -> Floats:
        """The mean reward of each arm, NaN where there is none."""
        with np.errstate(invalid="ignore"):
            return np.bincount(self.arm, self.reward, self.n_arms) / self.counts()

    def rows(self, which: slice) -> Log:
        """A part of the log."""
        begin, end, _ = which.indices(len(self))
        given = {one.name: getattr(self, one.name) for one in fields(self)[1:]}
        found = {name: value[which] for name, value in given.items() if value is not None and name != "side"}
        if self.side is not None:
            start = self.side.start[begin : max(begin, end) + 1]
            part = slice(int(start[0]), int(start[-1]))
            whole = self.side
            found["side"] = Side(
                start - start[0], whole.arm[part], whole.reward[part], whole.probability[part]
            )
        return Log(self.arms, **found)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        arm: str | None = None,
        reward: str | None = None,
        probability: str | float | None = None,
        arms: Sequence[Label] | None = None,
    ) -> Log:
        """A log from a data frame of pandas or polars, or a mapping of columns: arm, probability, reward, decision, time, batch.

        Columns may have names of their own, and ``probability`` may be that of every choice; the Open Bandit Dataset's names
        (item_id, click, propensity_score, timestamp) are understood too.

        >>> frame = {"variant": ["A", "B"], "clicked": [0, 1]}
        >>> Log.from_frame(frame, arm="variant", reward="clicked", probability=0.5).means().tolist()
        [0.0, 1.0]
        """
        from abex.evaluation.log_files import NAMES, log_of_columns

        columns = {str(name): np.asarray(frame[name]) for name in getattr(frame, "columns", frame)}
        found = {}
        for what, name in (("arm", arm), ("reward", reward), ("probability", probability)):
            if isinstance(name, str):
                if name not in columns:
                    raise UserError(
                        f"the log has no column {shown(name)} for the {what}{nearest(name, columns)}"
                    )
                found[what] = columns[name]
            elif name is not None:
                found[what] = np.full(len(next(iter(columns.values()))), name, np.float64)
        other = {name for what in found for name in NAMES[what]}
        rest = {name: values for name, values in columns.items() if name not in other}
        return log_of_columns({**rest, **found}, arms, "the log")

    @classmethod
    def read(cls, path: str | PathLike[str], *, arms: Sequence[Label] | None = None) -> Log:
        """A log from a file: CSV or Parquet (see `from_frame`), or Vowpal Wabbit's dsjson (.json, .dsjson, .jsonl); .gz too."""
        from abex.evaluation.log_files import read_log

        return read_log(path, arms)

    @classmethod
    def from_player(cls, player: Any) -> Log:
        """The log of a shared player (`abex.Player.open`): decisions that had their reward and know their probability.

        Names of arms that are never in the journal are not in the log.
        """
        return cls.from_frame(player.log())


def _of_cells(cell: NDArray[np.int64], values: Floats, n_cells: int) -> Floats | None:
    """The one value of each cell, 0 where there is none; None where a cell has several."""
    known = np.zeros(n_cells)
    known[cell] = values
    return known if np.allclose(known[cell], values, rtol=1e-9, atol=0.0) else None


def as_log(log: Any) -> Log:
    """``log`` if it is a `Log`, else an error."""
    if not isinstance(log, Log):
        raise UserError(
            f"log must be a Log, got {type(log).__name__}: see Log.read, Log.from_frame and Log.from_player"
        )
    return log


def _places(values: Any, arms: Sequence[Label]) -> Any:
    """Positions of arms that are given by their names."""
    given = np.asarray(values)
    if given.dtype.kind not in "OU":
        return values
    known = {label: place for place, label in enumerate(arms)}
    strange = [value for value in given.tolist() if value not in known]
    if strange:
        raise UserError(f"{shown(strange[0])} is no name of an arm{nearest(str(strange[0]), map(str, arms))}")
    return [known[value] for value in given.tolist()]


def _column(name: str, values: Any, kind: Any) -> Any:
    try:
        array = np.array(values, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name} must be a column of numbers, got {shown(values)}") from None
    if array.ndim != 1:
        raise UserError(f"{name} must be one column, got an array of {array.ndim} dimensions")
    return array


def _same_length(name: str, values: NDArray[Any], arm: NDArray[Any]) -> None:
    if values.shape[:1] != arm.shape:
        raise UserError(f"{name} has {values.size} entries, but there are {arm.size} decisions")


def check_numbers(
    name: str, values: Floats, probability: bool, at: Callable[[int], str] = lambda row: f"row {row}"
) -> None:
    """Refuse what is no number, and what is no probability that something happened with; ``at`` says where a row stands."""
    wrong = ~np.isfinite(values)
    if probability:
        with np.errstate(invalid="ignore"):
            wrong |= ~((values > 0.0) & (values <= 1.0 + TINY))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        must = "above 0 and at most 1" if probability else "a finite number"
        raise UserError(f"{name} must be {must}, got {values[row]:g} in {at(row)}")


def _checked_law(law: Any, log: Log) -> Floats:
    try:
        found = np.array(law, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"law must be an array of numbers, got {shown(law)}") from None
    if found.shape != (len(log), log.n_arms):
        raise UserError(
            f"law must have {len(log):,} rows of {log.n_arms} probabilities, got an array of shape {found.shape}"
        )
    rows = np.arange(len(log))
    wrong = ~((found >= 0.0).all(axis=1) & (np.abs(found.sum(axis=1) - 1.0) <= STEADY))
    wrong |= ~np.isclose(found[rows, log.arm], log.probability, rtol=STEADY)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"law must be probabilities that sum to 1 and have that of the arm chosen: row {row} is {shown(found[row].tolist())}"
        )
    return found


def _checked_side(side: Side, arm: NDArray[np.int64], n_arms: int) -> Side:
    start = _column("side.start", side.start, np.int64)
    seen = _column("side.arm", side.arm, np.int64)
    reward, probability = (
        _column(name, values, np.float64)
        for name, values in (("side.reward", side.reward), ("side.probability", side.probability))
    )
    if start.size != arm.size + 1 or start[0] != 0 or start[-1] != seen.size or (np.diff(start) < 0).any():
        raise UserError(
            "side.start must rise from 0 to the number of side observations, one entry more than rows"
        )
    if not reward.size == probability.size == seen.size:
        raise UserError("the columns of side observations must be of one length")
    if seen.size and (seen.min() < 0 or seen.max() >= n_arms):
        raise UserError(f"a side observation must be of one of the {n_arms} arms")
    check_numbers("side.reward", reward, False)
    check_numbers("side.probability", probability, True)
    pairs = np.repeat(np.arange(arm.size), np.diff(start)) * n_arms + seen
    if np.unique(np.append(pairs, np.arange(arm.size) * n_arms + arm)).size < pairs.size + arm.size:
        raise UserError("a row observes an arm twice")
    return Side(start, seen, reward, probability)
