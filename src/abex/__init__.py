"""abex: exploration policies to use, to simulate at compiled speed, and to boost with.

Importing it imports NumPy and nothing heavier: the compiler, matplotlib and scikit-learn come when they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abex import environments, policies
from abex.environments import *  # noqa: F403
from abex.graphs import DropOut, ErdosRenyiEachStep, FeedbackGraph, Graph, GraphSequence
from abex.kernels import Record, kernel
from abex.players import Decision, Player
from abex.policies import *  # noqa: F403
from abex.support.errors import UserError
from abex.support.plugins import lazy_names

if TYPE_CHECKING:
    from abex.inference.experiment import experiment
    from abex.simulation import simulate
    from abex.simulation.curves import Curves

__version__ = "0.1.0"

__all__ = [
    "Curves",
    "Decision",
    "DropOut",
    "ErdosRenyiEachStep",
    "FeedbackGraph",
    "Graph",
    "GraphSequence",
    "Player",
    "Record",
    "UserError",
    "__version__",
    "experiment",
    "kernel",
    "simulate",
    *environments.__all__,
    *policies.__all__,
]

__getattr__ = lazy_names(
    "abex", {"simulate": "simulation", "Curves": "simulation.curves", "experiment": "inference.experiment"}
)


def __dir__() -> list[str]:
    return sorted(__all__)
