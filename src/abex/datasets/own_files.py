"""Readers of a person's own tables: columns of CSV, Parquet and ARFF."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError

Columns = dict[str, NDArray[Any]]

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
    ".mat": "matlab",
}


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


def read_columns(path: Path, *, header: bool = True, words: Collection[str] = ()) -> Columns:
    """The columns of a table, in order; numbers stay numbers, everything else is words, and so is what ``words`` names."""
    kind = kind_of(path)
    if kind == "text":
        frame = _text(path, header, words)
    elif kind == "parquet":
        frame = _parquet(path)
    elif kind == "arff":
        frame = _arff(path)
    else:
        raise UserError(f"{path} has no names of columns: a table is needed, such as a CSV file")
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise UserError(f"{path} has no rows")
    columns: Columns = {}
    for position, name in enumerate(frame.columns):
        if str(name) in columns:
            raise UserError(f"{path} has two columns called {str(name)!r}")
        values = frame.iloc[:, position].to_numpy()
        columns[str(name)] = values if values.dtype.kind in "biuf" else values.astype(object)
    return columns


def position_of(target: str | int) -> int | None:
    """The position that a number, or a text that is one, stands for."""
    try:
        return int(target)
    except ValueError:
        return None


def words_of(values: NDArray[Any], name: str, path: str | Path) -> NDArray[Any]:
    """The values of the column ``name`` as words; a missing one is an error.

    >>> words_of(np.array([10.0, 12.5]), "size", "shirts.csv").tolist()
    ['10', '12.5']
    """
    import pandas as pd

    if pd.isna(values).any() or any(value == "" for value in values.tolist()):
        raise UserError(f"{path} has a missing value in column {name!r}: fill or drop such rows")
    return np.array(
        [
            str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
            for value in values.tolist()
        ]
    )


def _text(path: Path, header: bool, words: Collection[str]) -> Any:
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
            low_memory=False,
            dtype=dict.fromkeys(words, object),
        )
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise UserError(f"cannot read {path} as a table: {str(error).strip().splitlines()[0]}") from None


def _parquet(path: Path) -> Any:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise UserError(f"reading {path} needs the package pyarrow: pip install pyarrow") from None
    except Exception as error:  # pyarrow's errors have no common base
        raise UserError(f"cannot read {path} as Parquet: {str(error).strip().splitlines()[0]}") from None


def _arff(path: Path) -> Any:
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
            decoded = frame[name].str.decode("utf-8").astype(object)
            frame[name] = decoded.where(decoded != "?", None)
    return frame
