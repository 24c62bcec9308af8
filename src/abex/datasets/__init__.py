"""Data sets: ``load(name)`` finds, checks, fetches and parses them.

>>> from abex.datasets import load
>>> load("digits")
Dataset('digits': 1,200 + 597 rows, 64 features (uint8), 10 classes)
"""

from abex.datasets.completion import Recommendation, recommendation
from abex.datasets.records import Dataset, Network, Ratings
from abex.datasets.registry import load, names
from abex.datasets.socialmf import SocialMF
from abex.datasets.synthetic import synthetic_ratings
from abex.datasets.table import BinaryTable

__all__ = [
    "BinaryTable",
    "Dataset",
    "Network",
    "Ratings",
    "Recommendation",
    "SocialMF",
    "load",
    "names",
    "recommendation",
    "synthetic_ratings",
]
