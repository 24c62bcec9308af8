"""Experiments: data that can be run, stored, drawn and judged; every figure of the paper among them."""

from typing import TYPE_CHECKING

from abex.experiments.execution import run_experiment
from abex.experiments.experiment import Claim, Experiment, Line, experiment_of, known_experiments, register
from abex.experiments.outcomes import Outcome, collect
from abex.lazy import lazy_names

if TYPE_CHECKING:
    from abex.experiments.toml_file import read_experiment

__all__ = [
    "Claim",
    "Experiment",
    "Line",
    "Outcome",
    "collect",
    "experiment_of",
    "known_experiments",
    "read_experiment",
    "register",
    "run_experiment",
]

# it needs pydantic, which not everybody has who wants to know what there is
__getattr__ = lazy_names("abex.experiments", {"read_experiment": "toml_file"})
