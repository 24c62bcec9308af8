"""Sweeps: cells (policy x problem x seed) through an executor (threads, processes, Dask) into the durable store."""

from abex.lab.sweeps.cells import bandit_cell, run_cell
from abex.lab.sweeps.sweep import sweep

__all__ = ["bandit_cell", "run_cell", "sweep"]
