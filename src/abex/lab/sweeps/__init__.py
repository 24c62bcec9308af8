"""Sweeps: cells (policy x problem x seed) through any executor of `concurrent.futures` into the durable store."""

from abex.lab.sweeps.cells import bandit_cell, run_cell
from abex.lab.sweeps.executors import executor_of
from abex.lab.sweeps.sweep import sweep

__all__ = ["bandit_cell", "executor_of", "run_cell", "sweep"]
