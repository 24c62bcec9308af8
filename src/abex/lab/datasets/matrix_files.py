"""Matrices in a person's own files: LIBSVM and NumPy."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, shown
from abex.support.extras import needed
from abex.support.reading import (
    MAX_COLUMNS,
    array_of,
    arrays_of,
    check_size,
    read_bytes,
    reader_errors,
    short_path,
)
from abex.support.table_files import content_of, kind_of, position_of

Labelled = tuple[NDArray[Any], NDArray[Any]]
Block = tuple[NDArray[Any], NDArray[Any] | None]


def read_matrix(path: Path, target: str | int | None, test: Path | None) -> list[Labelled]:
    """Numbers and labels of one file, or of the rows for training and those for the test."""
    sparse = kind_of(path) == "libsvm"
    if sparse and target is not None:
        raise UserError(
            f"{short_path(path)} is a LIBSVM file, which says itself what the target is: leave target out"
        )
    blocks = [_labelled(block, target, path) for block in read_blocks(path)]
    if test is not None:
        if len(blocks) == 2:
            raise UserError(f"{short_path(path)} has test rows of its own: leave test={test} out")
        if (kind_of(test) == "libsvm") != sparse:
            raise UserError(f"{short_path(test)} must be a file of the same kind as {short_path(path)}")
        blocks += [_labelled(block, target, test) for block in read_blocks(test)[:1]]
    if sparse:
        width = max(X.shape[1] for X, _ in blocks)
        blocks = [(_widened(X, width), y) for X, y in blocks]
    return blocks


def read_rows(path: Path, n_features: int, target: str | int | None = None) -> Block:
    """All rows for a model of ``n_features`` features, and their labels where the file has them.

    Of a NumPy file with a split these are the test rows; a LIBSVM file may leave out features that are zero at its end.
    """
    X, labels = read_blocks(path)[-1]
    if path.suffix.lower() == ".npy" and X.shape[1] == n_features + 1:
        X, labels = _labelled((X, None), target, path)
    if kind_of(path) == "libsvm":
        X = _widened(X, n_features)
    if X.shape[1] != n_features:
        raise UserError(
            f"{short_path(path)} has {X.shape[1]} columns of numbers, the model needs the {n_features} columns it was trained on"
        )
    if np.isinf(X).any():
        raise UserError(f"{short_path(path)} has an infinite value: correct or drop such rows")
    return X, labels


def read_blocks(path: Path) -> list[Block]:
    """What a file holds: a matrix of numbers, perhaps with labels, or one for training and one for the test."""
    if kind_of(path) == "libsvm":
        blocks = [_libsvm(path)]
    elif path.suffix.lower() == ".npy":
        blocks = [(array_of(read_bytes(path, packed=False), short_path(path)), None)]
    else:
        arrays = arrays_of(path)
        if "X" in arrays:
            blocks = [(arrays["X"], arrays.get("y"))]
        elif {"X_train", "y_train", "X_test", "y_test"} <= set(arrays):
            blocks = [(arrays["X_train"], arrays["y_train"]), (arrays["X_test"], arrays["y_test"])]
        else:
            raise UserError(
                f"{short_path(path)} must hold X and y, or X_train, y_train, X_test and y_test; it has {shown(sorted(arrays))}"
            )
    for X, y in blocks:
        if (
            X.ndim != 2
            or X.size == 0
            or X.dtype.kind not in "biuf"
            or (y is not None and y.shape != X.shape[:1])
        ):
            raise UserError(
                f"{short_path(path)} must hold a matrix of numbers, and as many labels as it has rows, got {shown(X.shape)}"
                f"{'' if y is None else f' and {shown(y.shape)}'}"
            )
    return blocks


def _labelled(block: Block, target: str | int | None, path: Path) -> Labelled:
    """Numbers and labels; those of an .npy file are a column of the matrix, by default the last."""
    X, labels = block
    if labels is not None:
        return X, labels
    if path.suffix.lower() != ".npy":
        raise UserError(f"{short_path(path)} has no labels, which are needed here")
    position = -1 if target is None else position_of(target)
    if position is None or not -X.shape[1] <= position < X.shape[1]:
        raise UserError(f"target must be the position of a column of {short_path(path)}, got {shown(target)}")
    if X.shape[1] < 2:
        raise UserError(f"{short_path(path)} has no column beside the target")
    return np.delete(X, position, axis=1), X[:, position]


def _widened(X: NDArray[Any], width: int) -> NDArray[Any]:
    return np.pad(X, ((0, 0), (0, max(0, width - X.shape[1]))))


def _libsvm(path: Path) -> Block:
    with needed("data"):
        from sklearn.datasets import load_svmlight_file

    content, where = content_of(path), short_path(path)
    bare = re.match(rb"(\s*#[^\n]*\n)*\s*\d+:", content) is not None  # no labels
    if bare:  # an empty line is a row of zeros
        lines = [line for line in content.splitlines() if not line.lstrip().startswith(b"#")]
        content = b"".join(b"0 " + line + b"\n" for line in lines)
    with reader_errors(f"read {where} as LIBSVM"):
        X, y = load_svmlight_file(io.BytesIO(content))
        if not 0 <= X.shape[1] <= MAX_COLUMNS:
            raise UserError(
                f"{where} has a feature of number {X.shape[1]:,}, at most {MAX_COLUMNS:,} can be read"
            )
        check_size(8 * X.shape[0] * X.shape[1], f"{where} without gaps, {X.shape[0]:,} x {X.shape[1]:,}")
        return X.toarray(), None if bare else y
