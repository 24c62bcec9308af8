"""Kinds of learned fields: what of a state is saved, checked and moved with its arms.

A field of a state that is annotated with a kind is saved, checked when a file is loaded, and moves with its arms. All else is
made by `Policy.start` and `Policy.prepare`: parameters, tables, samplers; no file ever holds it. A state is a `Record`::

    class IndexState(Record):
        observations: Count
        means: Mean
        scale: float
        sampler: Any = None

Compiled kernels trust their state, so each kind has a range, and an array has the type and shape that `start` gives it. What
must agree between fields is the business of `prepare`, which makes from them what follows.

===========  ========================================================================================================
`Count`      (K,) observations, or weights of them
`Mean`       (K,) means of rewards where the first `Count` is above 0, elsewhere what `start` makes
`Total`      (K,) sums on top of a prior: never below what `start` makes
`Score`      (K,) finite numbers
`Chance`     probabilities of the last decision, by which its reward is weighed; kept with it until that comes
`Decision`   other finite numbers that belong to a decision
`Arms`       arms, -1 for none
`Arm`        an arm, -1 for none
`Series`     finite numbers that are not one an arm
`Whole`      a whole number from 0 on
`Number`     a finite number
===========  ========================================================================================================

Where arms come or go, arrays of one number an arm keep the entries of the arms that stay, and numbers stay. A record
that has an `Arm`, `Arms` or a `Series` starts afresh as a whole.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, fields_of
from abex.support.errors import UserError, shown
from abex.support.files import decode_array, encode_array

Count = Annotated[NDArray[Any], "count"]
Mean = Annotated[NDArray[Any], "mean"]
Total = Annotated[NDArray[Any], "total"]
Score = Annotated[NDArray[Any], "score"]
Chance = Annotated[NDArray[Any], "chance"]
Decision = Annotated[NDArray[Any], "decision"]
Arms = Annotated[NDArray[Any], "arms"]
Series = Annotated[NDArray[Any], "series"]
Arm = Annotated[int, "arms"]
Whole = Annotated[int, "count"]
Number = Annotated[float, "score"]

MOST_COUNT = 2.0**53  # beyond, adding 1 changes nothing
LARGEST = 1e150
TOLERANCE = 1e-9  # by which rounding may carry a number over its bound
SOUND = {  # kind -> whether a value is valid, beside what `start` makes
    "count": lambda value, fresh, n_arms: (value >= 0) & (value <= MOST_COUNT),
    "mean": lambda value, fresh, n_arms: is_mean(value) | (value == fresh),
    "total": lambda value, fresh, n_arms: (value >= fresh) & (value <= MOST_COUNT),
    "score": lambda value, fresh, n_arms: np.abs(value) <= LARGEST,
    "chance": lambda value, fresh, n_arms: (value >= 0) & (value <= 1 + TOLERANCE),
    "decision": lambda value, fresh, n_arms: np.abs(value) <= LARGEST,
    "arms": lambda value, fresh, n_arms: (value >= -1) & (value < n_arms),
    "series": lambda value, fresh, n_arms: np.abs(value) <= LARGEST,
}
WORDS = {
    "count": "numbers >= 0",
    "mean": "means of rewards",
    "total": "no less than where it started",
    "score": "finite numbers",
    "chance": "probabilities",
    "decision": "finite numbers",
    "arms": "numbers of arms",
    "series": "finite numbers",
}
NOT_BY_ARM = ("arms", "series")


def is_mean(value: Any) -> Any:
    """Whether it can be the mean of rewards in [0, 1]."""
    return (value >= -TOLERANCE) & (value <= 1 + TOLERANCE)


@cache
def learned(cls: Any) -> dict[str, str]:
    """The kinds of the fields of a class of records that have one."""
    hints = get_type_hints(cls, include_extras=True)
    found = {name: getattr(hints[name], "__metadata__", (None,))[0] for name in fields_of(cls)}
    return {name: kind for name, kind in found.items() if kind in SOUND}


def kept_with_decisions(record: Any) -> tuple[str, ...]:
    """The fields of a record that belong to a decision."""
    cls: Any = type(record)
    return _kept_with_decisions(cls) if isinstance(record, Record) else ()


@cache
def _kept_with_decisions(cls: Any) -> tuple[str, ...]:
    return tuple(name for name, kind in learned(cls).items() if kind in ("chance", "decision"))


def weighed_by(record: Any) -> str | None:
    """The field of a record with the probabilities by which rewards are weighed."""
    return next((name for name in kept_with_decisions(record) if kinds_of(record)[name] == "chance"), None)


def kinds_of(record: Any) -> dict[str, str]:
    """The kinds of the fields of a record that have one."""
    cls: Any = type(record)
    return learned(cls)


def saved(record: Any) -> dict[str, Any]:
    """What is learned of a record and of the records within: what a file, a snapshot or another process needs of a state."""
    if not isinstance(record, Record):
        raise UserError(
            f"a state that is a {type(record).__name__} cannot be saved, shared or given other arms: "
            "nothing says what of it was learned. Make it an abex.Record whose fields have kinds (docs/own_policy.md)"
        )
    values: dict[str, Any] = {name: getattr(record, name) for name in kinds_of(record)}
    for name, part in records_in(record).items():
        if inner := saved(part):
            values[name] = inner
    return values


def records_in(record: Record) -> dict[str, Record]:
    """The records within a record, by name."""
    parts = {name: getattr(record, name) for name in fields_of(record)}
    return {name: part for name, part in parts.items() if isinstance(part, Record)}


def restore(record: Record, values: Any, n_arms: int, keep: NDArray[np.int64] | None = None) -> None:
    """Write what `saved` gave into a fresh record: all of it, or that of the arms ``keep``, which come first.

    ValueError where a value is not valid.
    """
    kinds, parts = kinds_of(record), records_in(record)
    name_of = type(record).__name__
    agree(isinstance(values, dict), f"{name_of} must be a record")
    needed = {*kinds, *(name for name, part in parts.items() if saved(part))}
    wrong = sorted(needed ^ values.keys())
    agree(not wrong, f"{name_of} has other fields than its class: {shown(wrong[:1])[:60]}")
    if keep is None or not any(kind in NOT_BY_ARM for kind in kinds.values()):
        fresh = {name: getattr(record, name) for name in kinds}
        found = {name: taken_over(name, fresh[name], values[name], keep) for name in kinds}
        for name, kind in kinds.items():
            check_kind(name, kind, found[name], fresh[name], n_arms)
        check_means(kinds, found, fresh)
        for name, value in found.items():
            if isinstance(value, np.ndarray):
                fresh[name][:] = value
            else:
                setattr(record, name, value)
    for name in needed.difference(kinds):
        restore(parts[name], values[name], n_arms, keep)


def taken_over(name: str, fresh: Any, value: Any, keep: NDArray[np.int64] | None) -> Any:
    """The value for a field, of its type and shape."""
    if not isinstance(fresh, np.ndarray):
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        agree(
            whole or (isinstance(fresh, float) and isinstance(value, float)), f"{name} must be like {fresh!r}"
        )
        return type(fresh)(value)
    if keep is not None:
        by_arm = len(value) > keep.max(initial=0) and len(fresh) >= keep.size
        value = np.concatenate([value[keep], fresh[keep.size :]]) if by_arm else fresh
    is_array = isinstance(value, np.ndarray)
    agree(
        is_array and value.dtype == fresh.dtype and value.shape == fresh.shape,
        f"{name} must be an array of {fresh.dtype}{fresh.shape}"
        + (f", not of {value.dtype}{value.shape}" if is_array else ""),
    )
    return value


def check_kind(name: str, kind: str, value: Any, fresh: Any, n_arms: int) -> None:
    """Refuse a value that is not valid for a field of this kind."""
    sound = np.all(SOUND[kind](value, fresh, n_arms))  # not-a-number is in no range
    agree(bool(sound), f"{name} must be {WORDS[kind]}")


def check_means(kinds: dict[str, str], values: dict[str, Any], fresh: dict[str, Any]) -> None:
    """Refuse means of arms that were not observed, and arms without one that were."""
    counts = next((values[name] for name, kind in kinds.items() if kind == "count"), None)
    if not isinstance(counts, np.ndarray):
        return
    for name, kind in kinds.items():
        value = values[name]
        if kind == "mean" and value.shape == counts.shape:
            fine = np.where(counts > 0, is_mean(value), value == fresh[name])
            agree(bool(fine.all()), f"{name} must be means of rewards, and untouched where none was seen")


def check_kept(record: Any, arrays: Any, n_arms: int) -> None:
    """See that these are the arrays of `kept_with_decisions` of a record like this one."""
    names = kept_with_decisions(record)
    agree(len(arrays) == len(names), "a decision remembers something else")
    for name, array in zip(names, arrays, strict=True):
        fresh = getattr(record, name)
        check_kind(name, kinds_of(record)[name], taken_over(name, fresh, array, None), fresh, n_arms)


def agree(condition: bool, message: str) -> None:
    """Raise ValueError with ``message`` unless the condition holds."""
    if not condition:
        raise ValueError(message)


def written(values: Any) -> Any:
    """What `saved` gave, as a JSON value."""
    if isinstance(values, dict):
        return {name: written(value) for name, value in values.items()}
    return encode_array(values) if isinstance(values, np.ndarray) else values


def read(text: Any, record: Record) -> Any:
    """What `written` wrote, for a record like this one."""
    agree(isinstance(text, dict), f"{type(record).__name__} must be a record")
    fresh = {name: getattr(record, name, None) for name in text}
    return {
        name: decode_array(value)
        if isinstance(fresh[name], np.ndarray)
        else read(value, fresh[name])  # type: ignore[arg-type]
        if isinstance(fresh[name], Record)
        else value
        for name, value in text.items()
    }
