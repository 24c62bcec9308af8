"""The data sets of the paper: upstream's files become arrays, which the registered checksum of the values judges."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.lab.datasets.types import Dataset, Network, Ratings, smallest
from abex.support.extras import needed
from abex.support.randomness import GOLDEN, STEP, mix

if TYPE_CHECKING:
    from abex.lab.datasets.registry import CatalogueEntry

Contents = dict[str, bytes]  # plain name of a file -> its plain bytes
Arrays = dict[str, NDArray[Any]]

DIGITS = tuple("0123456789")
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LETTER_FEATURES = (
    "x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar",
    "y2bar", "xybar", "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx",
)  # fmt: skip


def pixels(side: int) -> tuple[str, ...]:
    """Names of the pixels of a square image, row by row."""
    return tuple(f"pixel {row},{column}" for row in range(side) for column in range(side))


FEATURES = {
    "mnist": pixels(28),
    "usps": pixels(16),
    "letter": LETTER_FEATURES,
    "pendigits": tuple(f"{axis}{point}" for point in range(1, 9) for axis in "xy"),
    "isolet": tuple(f"f{k}" for k in range(1, 618)),
    "digits": pixels(8),
}
CLASSES = dict.fromkeys(("mnist", "usps", "pendigits", "digits"), DIGITS) | dict.fromkeys(
    ("letter", "isolet"), LETTERS
)


# -- classification -----------------------------------------------------------------------------------------------


def table(content: bytes, delimiter: str | None = None, **options: Any) -> NDArray[Any]:
    """Lines of numbers."""
    return np.loadtxt(io.BytesIO(content), delimiter=delimiter, ndmin=2, **options)


def split(X: Any, y: Any, X_test: Any, y_test: Any) -> Arrays:
    """The four arrays under their names; labels as bytes."""
    return {
        "X_train": X,
        "y_train": y.astype(np.uint8),
        "X_test": X_test,
        "y_test": y_test.astype(np.uint8),
    }


def read_mnist(contents: Contents) -> Arrays:
    """Images of 28 x 28 bytes after 16 bytes of sizes, labels after 8."""
    arrays = []
    for half in ("train", "t10k"):
        images = np.frombuffer(contents[f"{half}-images-idx3-ubyte"], np.uint8, offset=16)
        labels = np.frombuffer(contents[f"{half}-labels-idx1-ubyte"], np.uint8, offset=8)
        arrays += [images.reshape(-1, 28 * 28).copy(), labels]
    return split(*arrays)


def read_usps(contents: Contents) -> Arrays:
    """Label first, then 16 x 16 values in [-1, 1] with three decimals."""
    train, test = table(contents["zip.train"]), table(contents["zip.test"])
    return split(
        smallest(train[:, 1:], decimals=3), train[:, 0], smallest(test[:, 1:], decimals=3), test[:, 0]
    )


def read_letter(contents: Contents) -> Arrays:
    """A capital letter, then 16 numbers; the first 16,000 rows are for training."""
    rows = table(contents["letter-recognition.data"], ",", converters={0: lambda letter: ord(letter) - 65})
    X, y = smallest(rows[:, 1:]), rows[:, 0]
    return split(X[:16_000], y[:16_000], X[16_000:], y[16_000:])


def read_pendigits(contents: Contents) -> Arrays:
    """Sixteen coordinates, the digit last."""
    train, test = table(contents["pendigits.tra"], ","), table(contents["pendigits.tes"], ",")
    return split(smallest(train[:, :-1]), train[:, -1], smallest(test[:, :-1]), test[:, -1])


def read_isolet(contents: Contents) -> Arrays:
    """617 values in [-1, 1] with four decimals, the letter's number 1..26 last."""
    train, test = (table(contents[name], ",") for name in ("isolet1+2+3+4.data", "isolet5.data"))
    X, X_test = (smallest(half[:, :-1], decimals=4) for half in (train, test))
    return split(X, train[:, -1] - 1, X_test, test[:, -1] - 1)


def read_digits(contents: Contents) -> Arrays:
    """scikit-learn's digits; rows are shuffled by a fixed hash, the first 1,200 are for training."""
    with needed("data"):
        from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    with np.errstate(over="ignore"):
        # splitmix64's finaliser itself, not `word_at`: the split must outlive changes of the simulator's source
        words = mix(mix(GOLDEN) + np.arange(y.size, dtype=np.uint64) * STEP)
    order = np.argsort(words)
    X, y = smallest(X)[order], y[order]
    return split(X[:1_200], y[:1_200], X[1_200:], y[1_200:])


def dataset(entry: CatalogueEntry, arrays: Arrays) -> Dataset:
    """The classification problem of an entry."""
    return Dataset(
        **described(entry, arrays),
        feature_names=FEATURES[entry.name],
        class_names=CLASSES[entry.name],
        checksum=entry.checksum or "",
    )


# -- networks and ratings -----------------------------------------------------------------------------------------


def read_edges(contents: Contents) -> Arrays:
    """Pairs of node numbers; each edge once, smaller end first, in order; nodes renumbered 0.. with their ids as labels."""
    (content,) = contents.values()
    pairs = table(content, dtype=np.int64)
    labels, ends = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], return_inverse=True)
    edges = np.unique(np.sort(ends.reshape(-1, 2), axis=1), axis=0).astype(np.int32)
    sources, targets = edges.T.copy()
    return {"sources": sources, "targets": targets, "labels": labels}


def network(entry: CatalogueEntry, arrays: Arrays) -> Network:
    """The undirected network of an entry."""
    return Network(**described(entry, arrays))


def read_epinions(contents: Contents) -> Arrays:
    """Rows (user, item, category, rating) and (truster, trustee), renumbered from 0."""
    with needed("data"):
        from scipy.io import loadmat

    # SciPy's reader follows the sizes in a damaged file out of its memory: these bytes have the registered SHA-256
    rows = loadmat(io.BytesIO(contents["rating.mat"]))["rating"]
    trust = loadmat(io.BytesIO(contents["trustnetwork.mat"]))["trustnetwork"].astype(np.int32)
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


def ratings(entry: CatalogueEntry, arrays: Arrays) -> Ratings:
    """The ratings of an entry."""
    return Ratings(**described(entry, arrays))


def described(entry: CatalogueEntry, arrays: Arrays) -> dict[str, Any]:
    """The arrays, and what every data set says of itself."""
    return {
        "name": entry.name,
        "description": entry.description,
        "citation": entry.citation,
        "licence": entry.licence,
        **arrays,
    }


class Reader(NamedTuple):
    """How the files of a folder become what `load` returns."""

    read: Callable[[Contents], Arrays]
    build: Callable[[CatalogueEntry, Arrays], Any]


READERS = {
    "mnist": Reader(read_mnist, dataset),
    "usps": Reader(read_usps, dataset),
    "letter": Reader(read_letter, dataset),
    "pendigits": Reader(read_pendigits, dataset),
    "isolet": Reader(read_isolet, dataset),
    "digits": Reader(read_digits, dataset),
    "facebook": Reader(read_edges, network),
    "epinions": Reader(read_epinions, ratings),
}
