"""Readers of a person's own files: columns of CSV, Parquet and ARFF, matrices of LIBSVM and NumPy."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError

Columns = dict[str, NDArray[Any]]
Block = tuple[NDArray[Any], NDArray[Any]]

SUFFIXES = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".parquet": "parquet",
    ".arff": "arff",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "numpy",
    ".npy": "numpy",
}
MOST_CELLS = 2**31  # of a sparse file made dense


def kind_of(path: Path) -> str:
    """The format, told by the ending of the name."""
    endings = [ending.lower() for ending in path.suffixes if ending.lower() != ".gz"]
    if not endings or endings[-1] not in SUFFIXES:
        raise UserError(f"cannot tell the format of {path} by its name; known endings: {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    return SUFFIXES[endings[-1]]


def content_of(path: Path) -> bytes:
    """The bytes, unpacked if the name ends with .gz."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.name.lower().endswith(".gz") else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"cannot unpack {path}: it is damaged or cut off ({error})") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def read_columns(path: Path, *, header: bool = True) -> Columns:
    """The columns of a table, in order; numbers stay numbers, everything else is words."""
    kind = kind_of(path)
    frame = {"text": _text, "parquet": _parquet, "arff": _arff}[kind](path, header)
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise UserError(f"{path} has no rows")
    columns: Columns = {}
    for position, name in enumerate(frame.columns):
        if str(name) in columns:
            raise UserError(f"{path} has two columns called {str(name)!r}")
        values = frame.iloc[:, position].to_numpy()
        columns[str(name)] = values if values.dtype.kind in "biuf" else values.astype(object)
    return columns


def _text(path: Path, header: bool) -> Any:
    import pandas as pd

    content = content_of(path)
    first = content.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    counts = {mark: first.count(mark.encode()) for mark in (",", "\t", ";")}
    separator = max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else r"\s+"
    try:
        return pd.read_csv(
            io.BytesIO(content),
            sep=separator,
            header=0 if header else None,
            encoding="utf-8-sig",
            skipinitialspace=True,
        )
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise UserError(f"cannot read {path} as a table: {str(error).strip().splitlines()[0]}") from None


def _parquet(path: Path, header: bool) -> Any:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise UserError(f"reading {path} needs the package pyarrow: pip install pyarrow") from None
    except Exception as error:  # pyarrow's errors have no common base
        raise UserError(f"cannot read {path} as Parquet: {str(error).strip().splitlines()[0]}") from None


def _arff(path: Path, header: bool) -> Any:
    import pandas as pd
    from scipy.io import arff

    try:
        records, meta = arff.loadarff(io.StringIO(content_of(path).decode("utf-8")))
    except (arff.ParseArffError, ValueError, NotImplementedError, StopIteration, IndexError) as error:
        reason = str(error).strip().splitlines()[:1] or ["it is cut off"]
        raise UserError(f"cannot read {path} as ARFF: {reason[0]}") from None
    frame = pd.DataFrame(records)
    for name, kind in zip(meta.names(), meta.types(), strict=True):
        if kind == "nominal":
            frame[name] = frame[name].str.decode("utf-8")
            if (frame[name] == "?").any():
                raise UserError(f"{path} has a missing value in column {name!r}: fill or drop such rows")
    return frame


def read_matrix(path: Path, kind: str, target: str | int | None, test: Path | None) -> list[Block]:
    """Numbers and labels of one file, or of a training and a test file."""
    if kind == "libsvm":
        if target is not None:
            raise UserError(
                f"{path} is a LIBSVM file, which says itself what the target is: leave target out"
            )
        return _libsvm([path] if test is None else [path, test])
    blocks = _numpy(path, target)
    if test is not None:
        if len(blocks) == 2:
            raise UserError(f"{path} has test rows of its own: leave test={test} out")
        blocks += _numpy(test, target)
    return blocks


def _libsvm(paths: list[Path]) -> list[Block]:
    from sklearn.datasets import load_svmlight_files

    for path in paths:
        if kind_of(path) != "libsvm":
            raise UserError(f"{path} is not a LIBSVM file as the training file is")
    try:
        loaded = load_svmlight_files([io.BytesIO(content_of(path)) for path in paths])
    except ValueError as error:
        raise UserError(f"cannot read {paths[0]} as LIBSVM: {str(error).strip().splitlines()[0]}") from None
    blocks = []
    for X, y in zip(loaded[::2], loaded[1::2], strict=True):
        if X.shape[0] == 0:
            raise UserError(f"{paths[0]} has no rows")
        if X.shape[0] * X.shape[1] > MOST_CELLS:
            raise UserError(
                f"{paths[0]} has {X.shape[0]:,} x {X.shape[1]:,} cells, too many to hold without gaps"
            )
        blocks.append((X.toarray(), y))
    return blocks


def _numpy(path: Path, target: str | int | None) -> list[Block]:
    kind_of(path)
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = (
            {name: loaded[name] for name in loaded.files} if path.suffix.lower() == ".npz" else {"": loaded}
        )
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise UserError(f"cannot read {path} as NumPy data: {str(error).strip().splitlines()[0]}") from None
    if "" in arrays:
        blocks = [_label_column(arrays[""], target, path)]
    elif {"X_train", "y_train", "X_test", "y_test"} <= set(arrays):
        blocks = [(arrays["X_train"], arrays["y_train"]), (arrays["X_test"], arrays["y_test"])]
    elif {"X", "y"} <= set(arrays):
        blocks = [(arrays["X"], arrays["y"])]
    else:
        raise UserError(
            f"{path} must hold X and y, or X_train, y_train, X_test and y_test; it has {sorted(arrays)}"
        )
    for X, y in blocks:
        if X.ndim != 2 or y.ndim != 1 or X.shape[0] != y.size or X.size == 0 or X.dtype.kind not in "biuf":
            raise UserError(
                f"{path} must hold a matrix of numbers X and as many labels y, got {X.shape} and {y.shape}"
            )
    return blocks


def _label_column(matrix: NDArray[Any], target: str | int | None, path: Path) -> Block:
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise UserError(f"{path} must hold a matrix with a column of classes, got shape {matrix.shape}")
    position = -1 if target is None else target
    if not isinstance(position, int) or not -matrix.shape[1] <= position < matrix.shape[1]:
        raise UserError(f"target must be the position of a column of {path}, got {target!r}")
    return np.delete(matrix, position, axis=1), matrix[:, position]
