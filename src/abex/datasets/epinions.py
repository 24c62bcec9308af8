"""Epinions: ratings of products and trust between the people who wrote them (Tang's crawl)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets import formats
from abex.datasets.catalogue import Contents, Entry, Part, Remote
from abex.datasets.records import Ratings
from abex.errors import UserError

OFFICIAL = Remote("epinions.zip", ("https://www.cse.msu.edu/~tangjili/datasetcode/epinions.zip",))
MIRROR = (
    "https://raw.githubusercontent.com/HKUDS/HGCL/80fe3ca0ad7f9f1bae567bc9be8e3bc9287fcdf6/"
    "dataset/Epinions/rawdata/"
)


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


def build(entry: Entry, arrays: dict[str, Any]) -> Ratings:
    """The ratings of the entry."""
    return Ratings(
        name=entry.name,
        description=entry.description,
        citation=entry.citation,
        licence=entry.licence,
        **arrays,
    )


def _part(name: str, sha256: str) -> Part:
    return Part(name, sha256, (OFFICIAL, Remote(name, (MIRROR + name,), sha256)))


ENTRY = Entry(
    name="epinions",
    kind="ratings",
    folder="epinions",
    parts=(
        _part("rating.mat", "4fe1dd12896dbfc3d2b3e696c749947382d9725add4545cb6c44ee11c8e22159"),
        _part("trustnetwork.mat", "9cd648ab98c2e02799bfed0ae186dbc8736e97178d18bf471cc168770f39cf0a"),
    ),
    read=read_epinions,
    build=build,
    checksum="5cd15153aaf97d7a40a5f37ab455a1e2a254a815637cb0ec524cf0194f951905",
    rows="922,267 ratings, 355,754 trust pairs",
    description="Product reviews with ratings 1..5 and the reviewers' web of trust, crawled in 2011.",
    brief="Tang et al. 2012",
    citation="J. Tang, H. Gao, H. Liu, mTrust: discerning multi-faceted trust in a connected world, WSDM "
    '2012; "Trust study data sets: Epinions", Michigan State University.',
    licence="none stated",
)
