"""Parsers of the five classification sets of the paper's boosting experiment, and of scikit-learn's digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets import formats
from abex.datasets.catalogue import CatalogueEntry, Contents, entry_from
from abex.datasets.dataset import Dataset, smallest
from abex.errors import UserError
from abex.extras import needed
from abex.randomness import GOLDEN, STEP, mix

DIGITS = tuple("0123456789")
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
STROKES = tuple(f"{axis}{point}" for point in range(1, 9) for axis in "xy")
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
    "pendigits": STROKES,
    "isolet": tuple(f"f{k}" for k in range(1, 618)),
    "digits": pixels(8),
}


def split(X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, NDArray[Any]]:
    """The four arrays under their names."""
    return {"X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test}


def classes(labels: NDArray[Any], n_classes: int, where: str) -> NDArray[np.uint8]:
    """Labels 0..n-1 as bytes."""
    wrong = ~((labels >= 0) & (labels < n_classes) & (labels == np.rint(labels)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"{where} has the label {labels[row]:g} in row {row + 1}, expected 0 to {n_classes - 1}"
        )
    return labels.astype(np.uint8)


def read_mnist(contents: Contents) -> dict[str, NDArray[Any]]:
    """Images of 28 x 28 bytes."""
    arrays = []
    for half in ("train", "t10k"):
        images = formats.idx(contents[f"{half}-images-idx3-ubyte"], f"{half}-images-idx3-ubyte")
        labels = formats.idx(contents[f"{half}-labels-idx1-ubyte"], f"{half}-labels-idx1-ubyte")
        if images.ndim != 3 or labels.ndim != 1 or images.shape[0] != labels.size:
            raise UserError(f"MNIST's {half} files do not fit: images {images.shape}, labels {labels.shape}")
        arrays += [images.reshape(labels.size, -1), classes(labels, 10, f"{half}-labels-idx1-ubyte")]
    return split(*arrays)


def read_usps(contents: Contents) -> dict[str, NDArray[Any]]:
    """Label first, then 16 x 16 values in [-1, 1] with three decimals."""
    arrays = []
    for half in ("zip.train", "zip.test"):
        table = formats.numbers(contents[half], 257, half)
        arrays += [smallest(table[:, 1:], decimals=3), classes(table[:, 0], 10, half)]
    return split(*arrays)


def read_letter(contents: Contents) -> dict[str, NDArray[Any]]:
    """The first 16,000 rows are for training."""
    name = "letter-recognition.data"
    letters, table = formats.lettered(contents[name], 17, name)
    X = smallest(table)
    return split(X[:16_000], letters[:16_000], X[16_000:], letters[16_000:])


def read_pendigits(contents: Contents) -> dict[str, NDArray[Any]]:
    """Sixteen coordinates, the digit last."""
    arrays = []
    for half in ("pendigits.tra", "pendigits.tes"):
        table = formats.numbers(contents[half], 17, half, delimiter=",")
        arrays += [smallest(table[:, :-1]), classes(table[:, -1], 10, half)]
    return split(*arrays)


def read_isolet(contents: Contents) -> dict[str, NDArray[Any]]:
    """617 values in [-1, 1] with four decimals, the letter's number 1..26 last."""
    arrays = []
    for half in ("isolet1+2+3+4.data", "isolet5.data"):
        # each line ends with a stop after the class: "1." is a number to us
        table = formats.numbers(contents[half], 618, half, delimiter=",")
        arrays += [smallest(table[:, :-1], decimals=4), classes(table[:, -1] - 1.0, 26, half)]
    return split(*arrays)


def read_digits(contents: Contents) -> dict[str, NDArray[Any]]:
    """scikit-learn's digits; rows are shuffled by a fixed hash, the first 1,200 are for training."""
    with needed("data"):
        from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    with np.errstate(over="ignore"):
        # splitmix64's finaliser itself, not `word_at`: the split must outlive changes of the simulator's source
        words = mix(mix(GOLDEN) + np.arange(y.size, dtype=np.uint64) * STEP)
    order = np.argsort(words)
    X, y = smallest(X)[order], smallest(y)[order]
    return split(X[:1_200], y[:1_200], X[1_200:], y[1_200:])


def build(entry: CatalogueEntry, arrays: dict[str, Any]) -> Dataset:
    """The data set of an entry."""
    names = LETTERS if entry.name in ("letter", "isolet") else DIGITS
    return Dataset(
        name=entry.name,
        feature_names=FEATURES[entry.name],
        class_names=names,
        description=entry.description,
        citation=entry.citation,
        licence=entry.licence,
        checksum=entry.checksum or "",
        **arrays,
    )


ENTRIES = tuple(
    entry_from(name, read, build)
    for name, read in (
        ("mnist", read_mnist),
        ("usps", read_usps),
        ("letter", read_letter),
        ("pendigits", read_pendigits),
        ("isolet", read_isolet),
        ("digits", read_digits),
    )
)
