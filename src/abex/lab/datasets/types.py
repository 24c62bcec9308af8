"""What a loader returns, and the checksum of its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, one_of
from abex.support.files import checksum_of


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A classification problem with its official split.

    Features are in the smallest type that gives back every number of the file; labels are the positions
    0, 1, ... in ``class_names``. ``checksum`` is the SHA-256 of the four arrays (`checksum_of`).
    """

    name: str
    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    description: str = ""
    citation: str = ""
    licence: str = ""
    checksum: str = field(default="")

    def __post_init__(self) -> None:
        if not self.checksum:
            object.__setattr__(self, "checksum", checksum_of(self.arrays().values()))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The four arrays by name."""
        return {
            "X_train": self.X_train,
            "y_train": self.y_train,
            "X_test": self.X_test,
            "y_test": self.y_test,
        }

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X_train.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def __repr__(self) -> str:
        train, test = self.y_train.size, self.y_test.size
        return (
            f"Dataset({self.name!r}: {train:,} + {test:,} rows, {self.n_features} features "
            f"({self.X_train.dtype}), {self.n_classes} classes)"
        )


def smallest(values: NDArray[Any], decimals: int | None = None) -> NDArray[Any]:
    """``values`` in the smallest type that keeps them: integers of 8 to 64 bits, then float32, float64.

    ``decimals`` says that the numbers were printed with so many digits: float32 then keeps them when
    rounding to those digits gives them back.

    >>> smallest(np.array([0.0, 255.0])).dtype, smallest(np.array([0.25, -1.0])).dtype
    (dtype('uint8'), dtype('float32'))
    >>> smallest(np.array([0.1])).dtype, smallest(np.array([0.1]), decimals=3).dtype
    (dtype('float64'), dtype('float32'))
    """
    if values.dtype.kind not in "iufb":
        raise UserError(f"expected numbers, got an array of {values.dtype}")
    if values.size == 0 or values.dtype.kind == "b":
        return values.astype(np.uint8)
    low, high = values.min(), values.max()
    whole = values.dtype.kind in "iu" or (
        np.isfinite([low, high]).all() and bool(np.all(values == np.rint(values)))
    )
    if whole:
        for kind in (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64):
            limits = np.iinfo(kind)
            if limits.min <= low and high <= limits.max:
                return values.astype(kind)
        return values
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    back = short.astype(np.float64)
    kept = np.array_equal(back, values, equal_nan=True)
    if not kept and decimals is not None:
        kept = np.array_equal(np.round(back, decimals), np.round(values, decimals), equal_nan=True)
    # adding zero turns -0.0 into 0.0, which files print either way
    return (short if kept else values.astype(np.float64)) + np.float32(0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A graph as a list of edges.

    As a feedback graph: ``Graph.from_edges(network.edges, network.n_nodes, directed=network.directed)``.

    ``labels[k]`` is what node k is called in the file. An undirected edge is listed once.
    """

    name: str
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    labels: NDArray[Any]
    directed: bool = False
    description: str = ""
    citation: str = ""
    licence: str = ""

    @property
    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Both ends of every edge."""
        return self.sources, self.targets

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.labels.size)

    @property
    def checksum(self) -> str:
        """SHA-256 of ends and labels."""
        return checksum_of([self.sources, self.targets, self.labels])

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"Network({self.name!r}: {self.n_nodes:,} nodes, {self.sources.size:,} {kind} edges)"


Edges = tuple[NDArray[np.int32], NDArray[np.int32]]
DIRECTIONS = ("out", "in", "both")


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """Who rated what how, and who trusts whom.

    Users and items are numbered 0..; ``user_labels`` and ``item_labels`` are their names in the file.
    A pair (user, item) may be there more than once, as in Epinions.
    """

    name: str
    users: NDArray[np.int32]  # (ratings,)
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]
    trusters: NDArray[np.int32]  # (trust pairs,)
    trustees: NDArray[np.int32]
    user_labels: NDArray[Any]
    item_labels: NDArray[Any]
    lowest: float = 1.0  # ends of the scale
    highest: float = 5.0
    description: str = ""
    citation: str = ""
    licence: str = ""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.user_labels.size)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.item_labels.size)

    def trust_edges(self, direction: str = "out") -> Edges:
        """Feedback edges (source, target): pulling the source shows the target.

        ``"out"``: pulling u shows those whom u trusts (the default of the recommendation experiment);
        ``"in"``: those who trust u; ``"both"``: either.
        """
        return trust_edges(self.trusters, self.trustees, direction)

    def __repr__(self) -> str:
        return (
            f"Ratings({self.name!r}: {self.n_users:,} users, {self.n_items:,} items, "
            f"{self.ratings.size:,} ratings, {self.trusters.size:,} trust pairs)"
        )


def trust_edges(trusters: NDArray[np.int32], trustees: NDArray[np.int32], direction: str = "out") -> Edges:
    """The feedback edges of a trust network; see `Ratings.trust_edges`."""
    one_of("direction", direction, DIRECTIONS)
    if direction == "out":
        return trusters, trustees
    if direction == "in":
        return trustees, trusters
    return np.concatenate([trusters, trustees]), np.concatenate([trustees, trusters])
