"""Moved to `abex.players.player`."""

from abex.deprecation import moved

__getattr__ = moved(__name__, "abex.players.player")
