"""What each field of a state record may hold, declared beside the field and checked before a file's numbers are played.

Compiled kernels trust their state: an arm number out of range reads foreign memory, a damaged list loops for ever. So nothing
from a file reaches them that its field does not allow. A state class says so in its annotations::

    class LeaderMeans(NamedTuple):
        observations: Annotated[PerArm, Count()]
        means: Annotated[PerArm, MeanOf("observations")]
        lead: Annotated[NDArray[np.int64], Scratch()]
        rate: float

Type and shape are those of the record that `Policy.start` makes for the number of arms. A number of such a class cannot change
while it plays (the fields of a tuple are fixed), so it is what `start` makes, whatever a file says, unless it has a rule. What
must agree between fields, or follows from others, is the business of the method ``restored(fresh)`` of the class, if it
has one; a sampler is made anew. Fields without a rule in a class without any, such as those of a policy
of yours, must be finite where `start` makes them finite.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import BanditFeedback, Edges
from abex.kernels import Record, Scalars
from abex.kinds import check_kind, kinds_of, read, restore, saved, written
from abex.support.errors import shown
from abex.support.files import decode_array, encode_array

MOST_COUNT = 2.0**53  # beyond, adding 1 changes nothing
HAIR = 1e-9  # by so much rounding may carry a number over its end
LEAST_PROBABILITY = 1e-100  # of what was chosen: nobody will see a rarer choice


class About(NamedTuple):
    """What a rule may look at beside the value itself."""

    name: str
    fresh: Any  # the field as `start` makes it
    record: Any  # the whole record
    n_arms: int
    fractional: bool = False  # counts are sums of weights


class Rule:
    """What a field may hold; `check` raises ValueError where it does not."""

    stored: ClassVar[bool] = True  # whether a file holds the field

    def check(self, value: Any, about: About) -> None:
        """See that ``value`` may stand in the field."""


@dataclass(frozen=True)
class Scratch(Rule):
    """Written before it is read at every step: a file does not hold it."""

    stored = False


@dataclass(frozen=True)
class FixedAtStart(Rule):
    """What `start` makes, for ever: a file does not hold it."""

    stored = False


@dataclass(frozen=True)
class Rebuilt(Rule):
    """Follows from other fields, bit for bit: a file does not hold it, ``restored`` works it out."""

    stored = False


@dataclass(frozen=True)
class Checked(Rule):
    """Part of a structure that ``restored`` checks as a whole, or makes anew."""


@dataclass(frozen=True)
class Fractional(Rule):
    """A record whose counts of observations are sums of weights."""


@dataclass(frozen=True)
class Within(Rule):
    """Finite numbers from ``low`` to ``high``."""

    low: float = -1e150
    high: float = 1e150

    def check(self, value: Any, about: About) -> None:
        """Both ends belong to it."""
        agree(
            bool(np.all((value >= self.low) & (value <= self.high))),  # not-a-number is in no interval
            f"{about.name} must be numbers from {self.low:g} to {self.high:g}",
        )


@dataclass(frozen=True)
class Count(Rule):
    """Whole numbers from 0 on, whatever their type."""

    def check(self, value: Any, about: About) -> None:
        """Counted by ones."""
        fine = (value >= 0.0) & (value <= MOST_COUNT)
        if not about.fractional or np.asarray(value).dtype.kind != "f":
            agree(bool(np.all(fine & (value == np.floor(value)))), f"{about.name} must be whole numbers >= 0")
        agree(bool(np.all(fine)), f"{about.name} must be numbers >= 0")


@dataclass(frozen=True)
class Grown(Rule):
    """Never below what `start` makes: sums of rewards on top of a prior."""

    def check(self, value: Any, about: About) -> None:
        """At least the prior."""
        agree(
            bool(np.all((value >= about.fresh) & (value <= MOST_COUNT))),
            f"{about.name} must not be below where it started",
        )


@dataclass(frozen=True)
class MeanOf(Rule):
    """Means of rewards of the arms that ``counts`` says were observed; of the others what `start` makes."""

    counts: str

    def check(self, value: Any, about: About) -> None:
        """In [0, 1] where there was a reward."""
        seen = getattr(about.record, self.counts) > 0
        fine = np.where(seen, (value >= -HAIR) & (value <= 1.0 + HAIR), value == about.fresh)
        agree(bool(np.all(fine)), f"{about.name} must be means of rewards, and untouched where none was seen")


@dataclass(frozen=True)
class ArmNumbers(Rule):
    """Numbers of arms, from ``least`` (-1: also none) on."""

    least: int = 0

    def check(self, value: Any, about: About) -> None:
        """Below the number of arms."""
        agree(
            bool(np.all((value >= self.least) & (value < about.n_arms))),
            f"{about.name} must be numbers of arms",
        )


@dataclass(frozen=True)
class UpToArms(Rule):
    """Whole numbers from ``least`` to the number of arms."""

    least: int = 0

    def check(self, value: Any, about: About) -> None:
        """Both ends belong to it."""
        whole = (value >= self.least) & (value <= about.n_arms) & (value == np.floor(value))
        agree(bool(np.all(whole)), f"{about.name} must be whole numbers from {self.least} to {about.n_arms}")


@dataclass(frozen=True)
class Permutation(Rule):
    """Every arm once."""

    def check(self, value: Any, about: About) -> None:
        """In any order."""
        ArmNumbers().check(value, about)
        once = np.bincount(value, minlength=about.n_arms) == 1
        agree(value.size == about.n_arms and bool(once.all()), f"{about.name} must hold every arm once")


@dataclass(frozen=True)
class Distribution(Rule):
    """Rows of probabilities that sum to 1, or an empty array where `start` makes one."""

    def check(self, value: Any, about: About) -> None:
        """Up to what a linear program leaves."""
        inside = bool(np.all((value >= 0.0) & (value <= 1.0 + HAIR)))
        sums = np.abs(value.sum(axis=-1) - 1.0) < 1e-6 if value.size else np.ones(1, bool)
        agree(inside and bool(np.all(sums)), f"{about.name} must be probabilities that sum to 1")


@dataclass(frozen=True)
class Probabilities(Rule):
    """Probabilities of a decision (they need not sum to 1: some are older); at least ``floor`` / K if that field is named."""

    floor: str = ""

    def check(self, value: Any, about: About) -> None:
        """From the floor to 1."""
        least = getattr(about.record, self.floor) / about.n_arms * (1.0 - HAIR) if self.floor else 0.0
        agree(
            bool(np.all((value >= least) & (value <= 1.0 + HAIR))),
            f"{about.name} must be probabilities of at least {least:g}",
        )


@dataclass(frozen=True)
class AsStarted(Rule):
    """The rule of a field without one: as finite as what `start` makes."""

    def check(self, value: Any, about: About) -> None:
        """An infinite or undefined number is allowed if `start` makes the same one there."""
        if np.asarray(value).dtype.kind != "f":
            return
        strange, made = np.asarray(value), np.asarray(about.fresh)
        known = np.unique(made[~np.isfinite(made)])
        fine = np.isfinite(strange) | np.isin(strange, known)
        if np.isnan(known).any():
            fine |= np.isnan(strange)
        agree(bool(np.all(fine)), f"{about.name} must be finite (or declare it: see abex.schema)")


def agree(condition: bool, message: str) -> None:
    """Raise ValueError with ``message`` unless the condition holds."""
    if not condition:
        raise ValueError(message)


def positions(listed: NDArray[Any], count: int, like: NDArray[Any], name: str) -> NDArray[Any]:
    """Where each arm stands in the first ``count`` places of a list, -1 where it does not: none may stand there twice."""
    place = np.full_like(like, -1)
    place[listed[:count]] = np.arange(count)
    agree(int(np.count_nonzero(place >= 0)) == count, f"{name} must not hold an arm twice")
    return place


def rules_of(cls: Any) -> dict[str, Rule | None]:
    """The rule of each field of a state class; None for a number that is what `start` makes."""
    return _rules(cls)


def _names(cls: Any) -> tuple[str, ...]:
    return tuple(cls.fields) if issubclass(cls, Scalars) else cls._fields


@cache
def _rules(cls: Any) -> dict[str, Rule | None]:
    hints = get_type_hints(cls, include_extras=True)
    given = {
        name: next(
            (part for part in getattr(hints[name], "__metadata__", ()) if isinstance(part, Rule)), None
        )
        for name in _names(cls)
    }
    return given if any(given.values()) else dict.fromkeys(given, AsStarted())


def is_stored(rule: Rule | None, fresh: Any) -> bool:
    """Whether a file holds a field: what follows from the policy and its setting is not asked for."""
    if isinstance(fresh, BanditFeedback | Edges):
        return False  # the graph stands in the file once, and was checked
    if rule is None:
        return isinstance(fresh, np.ndarray | tuple | Scalars | Record)
    inside = isinstance(fresh, Record | tuple) and not isinstance(rule, FixedAtStart | Rebuilt)
    return rule.stored or inside


def write_record(record: Any) -> Any:
    """The fields of a state record that a file holds, as a JSON value."""
    if isinstance(record, Record):
        return written(saved(record))
    if isinstance(record, np.ndarray):
        return encode_array(record)
    if isinstance(record, Scalars):
        return record.asdict()
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        rules = rules_of(type(record))
        return {
            name: write_record(part)
            for name, part in zip(record._fields, record, strict=True)
            if is_stored(rules[name], part)
        }
    if isinstance(record, tuple):
        return [write_record(part) for part in record]
    if isinstance(record, np.generic):
        return encode_array(np.asarray(record))
    return record


def read_record(saved: Any, fresh: Any, n_arms: int) -> Any:
    """The record that `write_record` wrote, in the likeness of ``fresh``, every field checked.

    Fields that need not stand in a file are not looked at: older files hold them too.
    """
    if isinstance(fresh, Record):
        return _read_learned(saved, fresh, n_arms)
    record = _read(saved, fresh, "state", n_arms)
    check_record(record, fresh, n_arms)
    return record.restored(fresh) if hasattr(record, "restored") else record


def check_record(record: Any, fresh: Any, n_arms: int, fractional: bool = False) -> None:
    """Apply the rule of every field; within a `Fractional` one counts need not be whole."""
    for name, rule in rules_of(type(record)).items():
        value, made = getattr(record, name), getattr(fresh, name)
        if isinstance(made, Record):
            continue  # checked as it was read
        if isinstance(made, Scalars) or (isinstance(made, tuple) and hasattr(made, "_fields")):
            if is_stored(rule, made):
                check_record(value, made, n_arms, fractional or isinstance(rule, Fractional))
        elif rule is not None and is_stored(rule, made):
            check_field(record, fresh, name, value, n_arms, fractional)


def check_field(
    record: Any, fresh: Any, name: str, value: Any, n_arms: int, fractional: bool = False
) -> None:
    """Apply the rule of one field to a value that is to stand in it."""
    if isinstance(record, Record):
        check_kind(name, kinds_of(record)[name], value, getattr(fresh, name), n_arms)
        return
    rule = rules_of(type(record))[name] or AsStarted()
    about = About(name, getattr(fresh, name), record, n_arms, fractional)
    for part, made in (
        zip(value, about.fresh, strict=True) if isinstance(value, tuple) else [(value, about.fresh)]
    ):
        rule.check(part, about._replace(fresh=made))


def read_array(saved: Any, fresh: NDArray[Any], name: str) -> NDArray[Any]:
    """An array of the type and shape of ``fresh``."""
    array = decode_array(saved)
    agree(
        array.dtype == fresh.dtype and array.shape == fresh.shape,
        f"{name} is an array of {array.dtype}{array.shape} where {fresh.dtype}{fresh.shape} belongs",
    )
    return array


def _read_learned(saved: Any, fresh: Any, n_arms: int) -> Any:
    """A record like ``fresh`` with what is saved of it; `Policy.prepare` makes the rest."""
    record = copy.deepcopy(fresh)
    restore(record, read(saved, fresh), n_arms)
    return record


def _read(saved: Any, fresh: Any, name: str, n_arms: int) -> Any:
    if isinstance(fresh, Record):
        return _read_learned(saved, fresh, n_arms)
    if isinstance(fresh, np.ndarray):
        return read_array(saved, fresh, name)
    if isinstance(fresh, Scalars):
        agree(
            isinstance(saved, dict) and saved.keys() == fresh.fields.keys(),
            f"{name} must be {type(fresh).__name__}",
        )
        return type(fresh)(
            **{field: _read(saved[field], kind(), field, n_arms) for field, kind in fresh.fields.items()}
        )
    if isinstance(fresh, tuple) and hasattr(fresh, "_fields"):
        rules = rules_of(type(fresh))
        stored = {field: is_stored(rules[field], getattr(fresh, field)) for field in fresh._fields}
        agree(isinstance(saved, dict), f"{name} must be a record")
        wrong = [field for field in stored if stored[field] and field not in saved]
        wrong += [field for field in saved if field not in stored]
        agree(not wrong, f"{name} has other fields than {type(fresh).__name__}: {shown(wrong[:1])[:60]}")
        return type(fresh)(
            *(
                _read(saved[field], part, field, n_arms) if stored[field] else part
                for field, part in zip(fresh._fields, fresh, strict=True)
            )
        )
    if isinstance(fresh, tuple):
        agree(isinstance(saved, list) and len(saved) == len(fresh), f"{name} must hold {len(fresh)} parts")
        return tuple(_read(one, part, name, n_arms) for one, part in zip(saved, fresh, strict=True))
    if isinstance(fresh, np.generic):
        return read_array(saved, np.asarray(fresh), name)[()]
    if fresh is None or isinstance(fresh, str):
        agree(type(saved) is type(fresh), f"{name} must be like {fresh!r}")
        return saved
    right = isinstance(saved, int | float) and isinstance(saved, bool) is isinstance(fresh, bool)
    if isinstance(fresh, int):
        right = right and isinstance(saved, int) and abs(saved) < 2**63
    agree(right, f"{name} must be like {fresh!r}")
    return type(fresh)(saved)
