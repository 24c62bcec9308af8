"""The arena: scores of every policy on the same many problems, which are in ``instances.toml``."""

from abex.lab.arena.instances import GRIDS, GROUPS, Instance, grid_of

__all__ = ["GRIDS", "GROUPS", "Instance", "grid_of"]
