"""Experiments: data that can be run, stored, drawn and judged; every figure of the paper among them."""

from abex.experiments.base import Claim, Experiment, Line, experiment_of, known_experiments, register
from abex.experiments.files import read_experiment
from abex.experiments.outcomes import Outcome, collect
from abex.experiments.running import run_experiment

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
