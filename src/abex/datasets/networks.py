"""Facebook ego networks (SNAP) as lists of edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets import formats
from abex.datasets.catalogue import CatalogueEntry, Contents, Remote, SourceFile, entry_from
from abex.datasets.dataset import Network
from abex.errors import UserError

SNAP = "https://snap.stanford.edu/data"
EGOS = Remote("facebook.tar.gz", (f"{SNAP}/facebook.tar.gz",))
CITATION = (
    "J. McAuley, J. Leskovec, Learning to discover social circles in ego networks, NIPS 2012; "
    'SNAP, "Social circles: Facebook".'
)

#: ego -> (friends with an edge among themselves, edges, checksum); None where no copy was at hand
KNOWN: dict[int, tuple[int, int, str] | None] = {
    0: (333, 2519, "1a633e3139c2206f107778dd0c3ae0df906f914e01cf6a8c2e2515deaddda479"),
    107: None,
    348: (224, 3192, "1a28feef369e3fc29282dfc1c513bf185e90435afb0bd4635f122511e89fddce"),
    414: (150, 1693, "aa1bc0f05963d3bbba54acfb3249f2b5ab893b811d885f8840f82b27c0862d1c"),
    686: (168, 1656, "6f434cd1fc0de132e8379b5685a1ae0fa7900c4c1b1ae756c6fae8ecf8e9f30d"),
    698: None,
    1684: (786, 14024, "437a84cffb99dd9d8411253bbd20e489e9c01d045e225aff2faa78b2ac9a8940"),
    1912: None,
    3437: (534, 4813, "90f979e70b4d25ebe0327200a64acceddc52a5cfabf79ad34e4c65ecd4843b23"),
    3980: (52, 146, "ea8d7377d9716136b30925d2c484cef0b6c4cc15efb7d54f33f60df4dd04137e"),
}


def undirected(pairs: NDArray[np.int64], where: str) -> dict[str, NDArray[Any]]:
    """Each edge once, smaller end first, in order; nodes renumbered 0.. with their ids as labels."""
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if pairs.size == 0:
        raise UserError(f"{where} has no edge between two nodes")
    labels, ends = np.unique(pairs, return_inverse=True)
    distinct = np.unique(np.sort(ends.reshape(-1, 2), axis=1), axis=0).astype(np.int32)
    return {
        "sources": np.ascontiguousarray(distinct[:, 0]),
        "targets": np.ascontiguousarray(distinct[:, 1]),
        "labels": labels,
    }


def read_edges(contents: Contents) -> dict[str, NDArray[Any]]:
    """The one file of a network."""
    ((name, content),) = contents.items()
    return undirected(formats.edges(content, name), name)


def build(entry: CatalogueEntry, arrays: dict[str, Any]) -> Network:
    """The network of an entry."""
    return Network(
        name=entry.name,
        directed=False,
        description=entry.description,
        citation=entry.citation,
        licence=entry.licence,
        **arrays,
    )


def ego_entry(ego: int) -> CatalogueEntry:
    """The network among the friends of one person, who is not in it."""
    known = KNOWN[ego]
    return CatalogueEntry(
        name=f"facebook-{ego}",
        folder="facebook",
        parts=(SourceFile(f"{ego}.edges", None, (EGOS,)),),
        read=read_edges,
        build=build,
        checksum=None if known is None else known[2],
        rows="?" if known is None else f"{known[0]:,} nodes, {known[1]:,} edges",
        description=f"Who knows whom among the Facebook friends of person {ego}; undirected.",
        brief="McAuley, Leskovec 2012",
        citation=CITATION,
        licence="none stated",
    )


ENTRIES = (
    *(ego_entry(ego) for ego in KNOWN),
    entry_from("facebook-combined", read_edges, build),
)
