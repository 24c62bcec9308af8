"""Data sets: ``load(name)`` finds, checks, fetches and parses them.

>>> from abex.datasets import load
>>> load("digits")
Dataset('digits': 1,200 + 597 rows, 64 features (uint8), 10 classes)
"""

from abex.datasets.records import Dataset, Network, Ratings
from abex.datasets.registry import load, names

__all__ = ["Dataset", "Network", "Ratings", "load", "names"]
