"""Moved to `abex.players.saving`."""

from abex.deprecation import moved

__getattr__ = moved(__name__, "abex.players.saving")
