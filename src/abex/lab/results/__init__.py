"""The durable store: what a sweep has computed, kept under the hash of everything that determines it."""

from abex.lab.results.claims import Claims
from abex.lab.results.store import Cell, CellResult, Store, canonical, key_of

__all__ = ["Cell", "CellResult", "Claims", "Store", "canonical", "key_of"]
