"""Moved to `abex.players.decision_ids`."""

from abex.deprecation import moved

__getattr__ = moved(__name__, "abex.players.decision_ids")
