"""Whether a player fits into memory, asked before it is made."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from abex.kernels import Record, fields_of
from abex.policies.policy import Setting
from abex.support.errors import UserError

FEW = 1_000_000  # so many arms fit anywhere
PER_ARM = 40  # bytes: tallies, names
SHARE = 0.75  # of the memory that a player may take


def check_room(policy: Any, setting: Setting) -> None:
    """Refuse a player that would take more than most of the machine's memory, by what a smaller one takes."""
    if setting.n_arms <= FEW or setting.graph is not None or policy.needs_graph:
        return
    small, double = (_bytes(policy.start(setting._replace(n_arms=n))) for n in (4_096, 8_192))
    needed = (PER_ARM + (double - small) / 4_096) * setting.n_arms
    there = SHARE * memory()
    if needed > there:
        raise UserError(
            f"{setting.n_arms:,} arms of {policy} would take {needed / 1e9:,.1f} GB of memory, "
            f"and a player may take {there / 1e9:,.1f} GB here: use fewer arms"
        )


def memory() -> float:
    """Bytes of the machine, or what its control group allows."""
    found = [float(2**33)]
    try:
        found = [float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")]
        with open("/sys/fs/cgroup/memory.max") as file:
            found.append(float(file.read()))  # "max" is no number
    except (AttributeError, ValueError, OSError):
        pass
    return min(found)


def _bytes(record: Any) -> int:
    if isinstance(record, np.ndarray):
        return record.nbytes
    if isinstance(record, Record):
        return sum(_bytes(getattr(record, name)) for name in fields_of(record))
    if isinstance(record, tuple):
        return sum(_bytes(part) for part in record)
    return 0
