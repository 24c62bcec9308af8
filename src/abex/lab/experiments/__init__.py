"""Experiments: data that can be run, stored, drawn and judged; every figure of the paper among them."""

from abex.lab.experiments.execution import run_experiment
from abex.lab.experiments.experiment import (
    Claim,
    Experiment,
    Line,
    experiment_of,
    known_experiments,
    register,
)
from abex.lab.experiments.outcomes import ExperimentResult, collect
from abex.lab.experiments.toml_file import read_experiment

__all__ = [
    "Claim",
    "Experiment",
    "ExperimentResult",
    "Line",
    "collect",
    "experiment_of",
    "known_experiments",
    "read_experiment",
    "register",
    "run_experiment",
]
