"""abex: exploration policies to use, to simulate at compiled speed, and to boost with.

Importing it imports NumPy and nothing heavier: the compiler, matplotlib and scikit-learn come when they are needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from abex import environments, policies
from abex.environments import *  # noqa: F403
from abex.errors import UserError
from abex.graphs import DropOut, ErdosRenyiEachStep, FeedbackGraph, Graph, GraphSequence
from abex.kernels import kernel
from abex.policies import *  # noqa: F403
from abex.policies.player import Decision, Player

if TYPE_CHECKING:
    from abex.curves import Curves
    from abex.simulation import simulate

__version__ = "0.1.0"

_LAZY = {"simulate": "abex.simulation", "Curves": "abex.curves"}

__all__ = [
    "Curves",
    "Decision",
    "DropOut",
    "ErdosRenyiEachStep",
    "FeedbackGraph",
    "Graph",
    "GraphSequence",
    "Player",
    "UserError",
    "__version__",
    "kernel",
    "simulate",
    *environments.__all__,
    *policies.__all__,
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'abex' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
