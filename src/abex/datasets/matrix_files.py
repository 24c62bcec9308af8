"""Matrices in a person's own files: LIBSVM and NumPy."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets.table_files import content_of, kind_of, position_of
from abex.errors import UserError, brief, shown
from abex.extras import needed
from abex.reading import MOST_COLUMNS, array_of, arrays_of, check_size, named, read_bytes, reading

Block = tuple[NDArray[Any], NDArray[Any]]
SPLIT = ("X_train", "y_train", "X_test", "y_test")


def read_matrix(path: Path, kind: str, target: str | int | None, test: Path | None) -> list[Block]:
    """Numbers and labels of one file, or of a training and a test file."""
    if kind == "libsvm":
        if target is not None:
            raise UserError(
                f"{named(path)} is a LIBSVM file, which says itself what the target is: leave target out"
            )
        return _libsvm([path] if test is None else [path, test])
    blocks = _numpy(path, target)
    if test is not None:
        if len(blocks) == 2:
            raise UserError(f"{named(path)} has test rows of its own: leave test={test} out")
        blocks += _numpy(test, target)
    return blocks


def read_rows(
    path: Path, n_features: int, target: str | int | None = None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """All rows for a model of ``n_features`` features, and their labels where the file has them.

    Of a NumPy file with a split these are the test rows; a LIBSVM file may leave out features that are zero at its end.
    """
    labels: NDArray[Any] | None
    if kind_of(path) == "libsvm":
        content = content_of(path)
        bare = re.match(rb"(\s*#[^\n]*\n)*\s*\d+:", content) is not None
        if bare:  # an empty line is a row of zeros
            lines = [line for line in content.splitlines() if not line.lstrip().startswith(b"#")]
            content = b"".join(b"0 " + line + b"\n" for line in lines)
        [(X, labels)] = _libsvm([path], content)
        labels = None if bare else labels
        X = np.pad(X, ((0, 0), (0, max(0, n_features - X.shape[1]))))
    else:
        arrays = _arrays(path)
        if "" in arrays:
            n_columns = arrays[""].shape[1] if arrays[""].ndim == 2 else 0
            if n_columns not in (n_features, n_features + 1):
                raise UserError(
                    f"{named(path)} must hold a matrix with the {n_features} columns of the model, and perhaps one of "
                    f"classes, got shape {shown(arrays[''].shape)}"
                )
            bare = n_columns == n_features
            X, labels = (arrays[""], None) if bare else _label_column(arrays[""], target, path)
        elif "X" in arrays:
            X, labels = arrays["X"], arrays.get("y")
        elif set(SPLIT) <= set(arrays):
            X, labels = arrays["X_test"], arrays["y_test"]
        else:
            raise UserError(
                f"{named(path)} must hold X, or X_train, y_train, X_test and y_test; it has {shown(sorted(arrays))}"
            )
        _check_block(X, np.zeros(X.shape[:1]) if labels is None else labels, path)
    if X.shape[1] != n_features:
        raise UserError(
            f"{named(path)} has {X.shape[1]} columns of numbers, the model was trained on {n_features}"
        )
    if np.isinf(X).any():
        raise UserError(f"{named(path)} has an infinite value: correct or drop such rows")
    return X, labels


def _libsvm(paths: list[Path], *contents: bytes) -> list[Block]:
    with needed("data"):
        from sklearn.datasets import load_svmlight_files

    for path in paths:
        if kind_of(path) != "libsvm":
            raise UserError(f"{named(path)} is not a LIBSVM file as the training file is")
    where = named(paths[0])
    with reading(f"read {where} as LIBSVM"):
        loaded = load_svmlight_files([io.BytesIO(content) for content in contents or map(content_of, paths)])
        blocks = []
        for X, y in zip(loaded[::2], loaded[1::2], strict=True):
            if X.shape[0] == 0:
                raise UserError(f"{where} has no rows")
            if not 0 <= X.shape[1] <= MOST_COLUMNS:
                raise UserError(
                    f"{where} has a feature of number {X.shape[1]:,}, at most {MOST_COLUMNS:,} can be read"
                )
            check_size(8 * X.shape[0] * X.shape[1], f"{where} without gaps, {X.shape[0]:,} x {X.shape[1]:,}")
            blocks.append((X.toarray(), y))
        return blocks


def _numpy(path: Path, target: str | int | None) -> list[Block]:
    arrays = _arrays(path)
    if "" in arrays:
        blocks = [_label_column(arrays[""], target, path)]
    elif set(SPLIT) <= set(arrays):
        blocks = [(arrays["X_train"], arrays["y_train"]), (arrays["X_test"], arrays["y_test"])]
    elif {"X", "y"} <= set(arrays):
        blocks = [(arrays["X"], arrays["y"])]
    else:
        raise UserError(
            f"{named(path)} must hold X and y, or X_train, y_train, X_test and y_test; it has {shown(sorted(arrays))}"
        )
    for X, y in blocks:
        _check_block(X, y, path)
    return blocks


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name; that of an .npy file has none."""
    kind_of(path)
    if path.suffix.lower() == ".npz":
        return arrays_of(path)
    return {"": array_of(read_bytes(path, packed=False), named(path))}


def _check_block(X: NDArray[Any], y: NDArray[Any], path: Path) -> None:
    if X.ndim != 2 or y.ndim != 1 or X.shape[0] != y.size or X.size == 0 or X.dtype.kind not in "biuf":
        raise UserError(
            f"{named(path)} must hold a matrix of numbers X and as many labels y, "
            f"got {brief(str(X.shape), 30)} and {brief(str(y.shape), 30)}"
        )


def _label_column(matrix: NDArray[Any], target: str | int | None, path: Path) -> Block:
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise UserError(
            f"{named(path)} must hold a matrix with a column of classes, got shape {shown(matrix.shape)}"
        )
    position = -1 if target is None else position_of(target)
    if position is None or not -matrix.shape[1] <= position < matrix.shape[1]:
        raise UserError(f"target must be the position of a column of {named(path)}, got {shown(target)}")
    return np.delete(matrix, position, axis=1), matrix[:, position]
