"""Epinions: ratings of products and trust between the people who wrote them (Tang's crawl)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets import formats
from abex.datasets.catalogue import CatalogueEntry, Contents, entry_from
from abex.datasets.dataset import Ratings
from abex.errors import UserError


def read_epinions(contents: Contents) -> dict[str, NDArray[Any]]:
    """Rows (user, item, category, rating) and (truster, trustee), renumbered from 0."""
    rows = formats.matlab(contents["rating.mat"], "rating", 4, "rating.mat")
    trust = formats.matlab(contents["trustnetwork.mat"], "trustnetwork", 2, "trustnetwork.mat")
    if not (((rows[:, 3] >= 1) & (rows[:, 3] <= 5)).all() and rows.min() >= 0 and trust.min() >= 0):
        raise UserError("rating.mat must hold ratings 1..5 and ids >= 0")
    trust = trust.astype(np.int32)
    users = np.unique(np.concatenate([rows[:, 0], trust.ravel()])).astype(np.int32)
    items, item = np.unique(rows[:, 1], return_inverse=True)
    return {
        "users": np.searchsorted(users, rows[:, 0]).astype(np.int32),
        "items": item.astype(np.int32),
        "ratings": rows[:, 3].astype(np.float32),
        "trusters": np.searchsorted(users, trust[:, 0]).astype(np.int32),
        "trustees": np.searchsorted(users, trust[:, 1]).astype(np.int32),
        "user_labels": users,
        "item_labels": items.astype(np.int32),
    }


def build(entry: CatalogueEntry, arrays: dict[str, Any]) -> Ratings:
    """The ratings of the entry."""
    return Ratings(
        name=entry.name,
        description=entry.description,
        citation=entry.citation,
        licence=entry.licence,
        **arrays,
    )


ENTRY = entry_from("epinions", read_epinions, build)
