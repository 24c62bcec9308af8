"""Readers of a person's own tables: columns of CSV, Parquet and ARFF."""

from __future__ import annotations

import io
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError, shown
from abex.extras import needed
from abex.reading import MOST_COLUMNS, check_size, named, read_bytes, reading

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
        raise UserError(
            f"cannot tell the format of {named(path)} by its name; known endings: {', '.join(SUFFIXES)}"
        )
    if not os.path.isfile(path):  # unlike the method it answers for every name
        raise UserError(f"there is no file {named(path)}")
    return SUFFIXES[endings[-1]]


def content_of(path: Path) -> bytes:
    """The bytes, unpacked if the name ends with .gz."""
    return read_bytes(path, packed=path.name.lower().endswith(".gz"))


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
        raise UserError(f"{named(path)} has no names of columns: a table is needed, such as a CSV file")
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise UserError(f"{named(path)} has no rows")
    columns: Columns = {}
    for position, name in enumerate(frame.columns):
        if str(name) in columns:
            raise UserError(f"{named(path)} has two columns called {shown(str(name))}")
        values = frame.iloc[:, position].to_numpy()
        columns[str(name)] = values if values.dtype.kind in "biuf" else values.astype(object)
    return columns


def position_of(target: str | int) -> int | None:
    """The position that a number, or a text that is one, stands for."""
    try:
        return int(target)
    except (ValueError, TypeError, OverflowError):
        return None


def words_of(values: NDArray[Any], name: str, path: str | Path) -> NDArray[Any]:
    """The values of the column ``name`` as words, an array of objects; a missing one is an error.

    >>> words_of(np.array([10.0, 12.5]), "size", "shirts.csv").tolist()
    ['10', '12.5']
    """
    with needed():
        import pandas as pd

    if pd.isna(values).any() or any(value == "" for value in values.tolist()):
        raise UserError(f"{named(path)} has a missing value in column {shown(name)}: fill or drop such rows")
    words = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in values.tolist()
    ]
    return np.array(words, dtype=object)  # as long as each is: a common width would be that of the longest


def _text(path: Path, header: bool, words: Collection[str]) -> Any:
    with needed():
        import pandas as pd

    content = content_of(path)
    first = content.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    counts = {mark: first.count(mark.encode()) for mark in (",", "\t", ";")}
    separator = max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else r"\s+"
    # short lines are filled up to the width of the first one
    _check_cells(content.count(b"\n") + 1, max(counts.values()) + 1, path)
    with reading(f"read {named(path)} as a table"):
        return pd.read_csv(
            io.BytesIO(content),
            sep=separator,
            header=0 if header else None,
            encoding="utf-8-sig",
            skipinitialspace=True,
            low_memory=False,
            dtype=dict.fromkeys(words, object),
        )


def _check_cells(n_rows: int, n_columns: int, path: Path) -> None:
    """Refuse a table that is far larger than its file."""
    if n_columns > MOST_COLUMNS:
        raise UserError(f"{named(path)} has {n_columns:,} columns, at most {MOST_COLUMNS:,} can be read")
    check_size(8 * n_rows * n_columns, f"{named(path)} with {n_rows:,} rows and {n_columns:,} columns")


def _parquet(path: Path) -> Any:
    with needed():
        import pyarrow as pa
        from pyarrow import parquet

    with reading(f"read {named(path)} as Parquet"), parquet.ParquetFile(path) as file:
        schema, about = file.schema_arrow, file.metadata
        for field in schema:
            if pa.types.is_nested(field.type):
                raise UserError(
                    f"{named(path)} has lists or records in column {shown(field.name)}: remove it"
                )
        _check_cells(about.num_rows, len(schema), path)
        unpacked = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        check_size(unpacked, named(path))
        words = [
            field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
        ]
    # a word that stands in many rows is kept once
    with reading(f"read {named(path)} as Parquet"), parquet.ParquetFile(path, read_dictionary=words) as file:
        frame = file.read().to_pandas()
        for name in frame.columns[frame.dtypes == "category"]:
            frame[name] = frame[name].astype(object)
        return frame


def _arff(path: Path) -> Any:
    with needed():
        import pandas as pd
        from scipy.io import arff

    content = content_of(path)
    widths = [
        max(8, *map(len, line.split(b","))) if b"{" in line else 8
        for line in content.splitlines()
        if line[:10].lower() == b"@attribute"
    ]
    check_size(sum(widths) * (content.count(b"\n") + 1), f"the table of {named(path)}")
    with reading(f"read {named(path)} as ARFF"):
        records, meta = arff.loadarff(io.StringIO(content.decode("utf-8")))
        frame = pd.DataFrame(records)
        for name, kind in zip(meta.names(), meta.types(), strict=True):
            if kind == "nominal":
                decoded = frame[name].str.decode("utf-8").astype(object)
                frame[name] = decoded.where(decoded != "?", None)
        return frame
