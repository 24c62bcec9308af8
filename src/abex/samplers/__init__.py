"""How an arm is found among few or many; see `abex.samplers.interface`."""

from abex.samplers.interface import changed, distribution, draw

__all__ = ["changed", "distribution", "draw"]
