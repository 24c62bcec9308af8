"""Data sets: ``load(name)`` finds, checks, fetches and parses them; a path reads a person's own file.

>>> from abex.datasets import load
>>> load("digits")
Dataset('digits': 1,200 + 597 rows, 64 features (uint8), 10 classes)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abex.datasets.accuracy import rating_errors
    from abex.datasets.completion import Recommendation, recommendation
    from abex.datasets.own import read
    from abex.datasets.own_ratings import read_ratings
    from abex.datasets.records import Dataset, Network, Ratings
    from abex.datasets.registry import load, names
    from abex.datasets.socialmf import SocialMF
    from abex.datasets.synthetic import synthetic_ratings
    from abex.datasets.table import BinaryTable

_HOME = {
    "BinaryTable": "table",
    "Dataset": "records",
    "Network": "records",
    "Ratings": "records",
    "Recommendation": "completion",
    "SocialMF": "socialmf",
    "load": "registry",
    "names": "registry",
    "rating_errors": "accuracy",
    "read": "own",
    "read_ratings": "own_ratings",
    "recommendation": "completion",
    "synthetic_ratings": "synthetic",
}

__all__ = [
    "BinaryTable",
    "Dataset",
    "Network",
    "Ratings",
    "Recommendation",
    "SocialMF",
    "load",
    "names",
    "rating_errors",
    "read",
    "read_ratings",
    "recommendation",
    "synthetic_ratings",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"abex.datasets.{_HOME[name]}"), name)
    raise AttributeError(f"module 'abex.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
