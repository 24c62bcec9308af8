"""What a kind of cell is: how its problem is said, how it is computed, and about how long that takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abex.lab.results import Cell, Payload

Stopped = Callable[[], bool]


class Interrupted(Exception):  # noqa: N818 - not an error: the person pressed Ctrl-C
    """The cell was given up because the sweep is being stopped."""


@dataclass(frozen=True)
class CellKind:
    """The meaning of the cells that carry its ``name``; `abex.lab.sweeps.cells.KINDS` lists all of them.

    Attributes
    ----------
    name : str
        The value of ``kind`` in a cell.
    protocol : int
        Raised when the same cell would compute other numbers than before.
    length : str
        The key of a cell that says how long it is: ``horizon`` or ``iterations``.
    problem : dict
        The keys that its problem may have, and what each holds.
    run : function
        Computes a cell; raises `Interrupted` where ``stopped()`` turns true meanwhile.
    step_seconds : float
        CPU seconds of a step of most cells, until one of the same kind has been measured.
    """

    name: str
    protocol: int
    length: str
    problem: dict[str, type]
    run: Callable[[Cell, Stopped], Payload]
    step_seconds: float
