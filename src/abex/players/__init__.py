"""Policies driven by hand, inside an application: in one process, or shared by many through a journal."""

from abex.players.journal import UnavailableError
from abex.players.player import Decision, Player, UnknownDecisionError
from abex.players.store import Store
from abex.players.summary import ArmSummary, Summary

__all__ = ["ArmSummary", "Decision", "Player", "Store", "Summary", "UnavailableError", "UnknownDecisionError"]
