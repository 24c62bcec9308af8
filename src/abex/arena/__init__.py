"""The arena: every policy on the same many problems, and a score for each; see `abex.arena.grids`."""

from abex.arena.grids import GRIDS, GROUPS, grid_of
from abex.arena.instances import Instance

__all__ = ["GRIDS", "GROUPS", "Instance", "grid_of"]
