"""Fields of a saved state under the names that they have now: files of former versions hold them under others."""

from __future__ import annotations

from typing import Any

from abex.files import decode_array
from abex.kernels import Record, Scalars
from abex.schema import agree

#: Present name -> former name.
FORMER_NAMES = {
    "observations": "pulls",
    "probabilities": "chances",
    "exploration": "spread",
    "squares": "spread",
}

#: Named numbers -> the former arrays that held them, one after the other, in the order of the names.
FORMER_NUMBERS = {"clock": ("clock", "due"), "leader": ("lead", "runner_up"), "sums": ("spent",)}


def present_fields(saved: Any, fresh: Any) -> Any:
    """The fields of a state as a file holds them, in the likeness of ``fresh``."""
    agree(isinstance(saved, dict), "state must be a record")
    if isinstance(fresh, Record):
        return saved
    fields = getattr(fresh, "_fields", ())
    renamed = {
        former: name
        for name, former in FORMER_NAMES.items()
        if name in fields and former not in fields and name not in saved
    }
    present = {renamed.get(name, name): value for name, value in saved.items()}
    for name, made in zip(fields, fresh, strict=True):
        if not isinstance(made, Scalars):
            continue
        parts = [former for former in FORMER_NUMBERS.get(name, (name,)) if _is_array(saved.get(former))]
        if parts:
            numbers = [number for part in parts for number in decode_array(saved[part]).tolist()]
            agree(len(numbers) == len(made.fields), f"{name} must be {len(made.fields)} numbers")
            for part in parts:
                present.pop(part, None)
            present[name] = dict(zip(made.fields, numbers, strict=True))
    return present


def _is_array(value: Any) -> bool:
    return isinstance(value, dict) and "dtype" in value
