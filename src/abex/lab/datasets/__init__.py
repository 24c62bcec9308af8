"""Data sets: ``load(name)`` finds, checks, fetches and parses them; a path reads a person's own file.

>>> from abex.lab.datasets import load
>>> load("digits")
Dataset('digits': 1,200 + 597 rows, 64 features (uint8), 10 classes)
"""

from abex.lab.datasets.completion import RecommendationData, recommendation
from abex.lab.datasets.own_ratings import read_ratings
from abex.lab.datasets.own_tables import read
from abex.lab.datasets.registry import load, names
from abex.lab.datasets.socialmf import SocialMF
from abex.lab.datasets.synthetic import synthetic_ratings
from abex.lab.datasets.types import Dataset, Network, Ratings

__all__ = [
    "Dataset",
    "Network",
    "Ratings",
    "RecommendationData",
    "SocialMF",
    "load",
    "names",
    "read",
    "read_ratings",
    "recommendation",
    "synthetic_ratings",
]
