"""The arena: every policy on the same many problems, and a score for each; the problems are in ``instances.toml``."""

from abex.lab.arena.instances import GRIDS, GROUPS, Instance, grid_of

__all__ = ["GRIDS", "GROUPS", "Instance", "grid_of"]
