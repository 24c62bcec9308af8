"""A person's own tables by column: data frames, and files of CSV and Parquet."""

from __future__ import annotations

import io
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, shown
from abex.support.extras import needed
from abex.support.reading import MAX_COLUMNS, check_size, read_bytes, reader_errors, short_path

Columns = dict[str, NDArray[Any]]
Source = str | os.PathLike[str] | Any  # the name of a file, or a data frame

SUFFIXES = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".parquet": "parquet",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "numpy",
    ".npy": "numpy",
}


def is_file(source: Source) -> bool:
    """Whether ``source`` is the name of a file, and not a data frame."""
    return isinstance(source, str | os.PathLike)


def is_text(source: Source) -> bool:
    """Whether ``source`` is a file of lines."""
    return is_file(source) and kind_of(Path(source)) == "text"


def name_of(source: Source) -> str:
    """What ``source`` is called in a message."""
    return short_path(os.fspath(source)) if is_file(source) else "the data frame"


def file_name(source: Source) -> str:
    """The last part of a path."""
    return Path(source).name if is_file(source) else "data frame"


def kind_of(path: Path) -> str:
    """The format, told by the ending of the name."""
    endings = [ending.lower() for ending in path.suffixes if ending.lower() != ".gz"]
    if not endings or endings[-1] not in SUFFIXES:
        raise UserError(
            f"cannot tell the format of {short_path(path)} by its name; known endings: {', '.join(SUFFIXES)}; "
            "or give a data frame"
        )
    if not os.path.isfile(path):  # unlike the method it answers for every name
        raise UserError(f"there is no file {short_path(path)}")
    return SUFFIXES[endings[-1]]


def content_of(path: str | os.PathLike[str]) -> bytes:
    """The bytes, unpacked if the name ends with .gz."""
    path = Path(path)
    return read_bytes(path, packed=path.name.lower().endswith(".gz"))


def read_columns(source: Source, *, header: bool = True, words: Collection[str] = ()) -> Columns:
    """The columns of a table, in order; numbers stay numbers, everything else is words, and so is what ``words`` names."""
    where = name_of(source)
    kind = kind_of(Path(source)) if is_file(source) else "frame"
    if kind == "text":
        frame = _text(Path(source), header, words)
    elif kind == "parquet":
        frame = _parquet(Path(source))
    elif kind == "frame":
        frame = source.to_pandas() if hasattr(source, "to_pandas") else source
        if not hasattr(frame, "iloc"):
            raise UserError(f"expected the name of a file or a data frame, got {shown(source)}")
    else:
        raise UserError(f"{where} has no names of columns: a table is needed, such as a CSV file")
    if 0 in frame.shape:
        raise UserError(f"{where} has no rows")
    columns: Columns = {}
    for position, name in enumerate(map(str, frame.columns)):
        if name in columns:
            raise UserError(f"{where} has two columns called {shown(name)}")
        columns[name] = _values(frame.iloc[:, position])
    return columns


def position_of(target: str | int) -> int | None:
    """The position that a number, or a text that is one, stands for."""
    try:
        return int(target)
    except (ValueError, TypeError, OverflowError):
        return None


def words_of(values: NDArray[Any], name: str, where: str | Path) -> NDArray[Any]:
    """The values of the column ``name`` as words, an array of objects; a missing one is an error.

    >>> words_of(np.array([10.0, 12.5]), "size", "shirts.csv").tolist()
    ['10', '12.5']
    """
    with needed():
        import pandas as pd

    if pd.isna(values).any() or any(value == "" for value in values.tolist()):
        raise UserError(
            f"{short_path(where)} has a missing value in column {shown(name)}: fill or drop such rows"
        )
    words = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in values.tolist()
    ]
    return np.array(words, dtype=object)  # as long as each is: a common width would be that of the longest


def _values(column: Any) -> NDArray[Any]:
    """The values of a pandas column: an array of numbers, or of objects."""
    with needed():
        from pandas.api.types import is_extension_array_dtype, is_numeric_dtype

    if is_extension_array_dtype(column.dtype) and is_numeric_dtype(column.dtype):
        column = column.astype(
            "float64" if column.hasnans else getattr(column.dtype, "numpy_dtype", "float64")
        )
    values: NDArray[Any] = column.to_numpy()
    return values if values.dtype.kind in "biuf" else values.astype(object)


def _text(path: Path, header: bool, words: Collection[str]) -> Any:
    with needed():
        import pandas as pd

    content = content_of(path)
    first = content.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    counts = {mark: first.count(mark.encode()) for mark in (",", "\t", ";")}
    separator = max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else r"\s+"
    # short lines are filled up to the width of the first one
    _check_cells(content.count(b"\n") + 1, max(counts.values()) + 1, path)
    with reader_errors(f"read {short_path(path)} as a table"):
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
    if n_columns > MAX_COLUMNS:
        raise UserError(f"{short_path(path)} has {n_columns:,} columns, at most {MAX_COLUMNS:,} can be read")
    check_size(8 * n_rows * n_columns, f"{short_path(path)} with {n_rows:,} rows and {n_columns:,} columns")


def _parquet(path: Path) -> Any:
    with needed():
        import pyarrow as pa
        from pyarrow import parquet

    with reader_errors(f"read {short_path(path)} as Parquet"), parquet.ParquetFile(path) as file:
        schema, about = file.schema_arrow, file.metadata
        for field in schema:
            if pa.types.is_nested(field.type):
                raise UserError(
                    f"{short_path(path)} has lists or records in column {shown(field.name)}: remove it"
                )
        _check_cells(about.num_rows, len(schema), path)
        unpacked = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        check_size(unpacked, short_path(path))
        words = [
            field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
        ]
    # a word that stands in many rows is kept once
    with (
        reader_errors(f"read {short_path(path)} as Parquet"),
        parquet.ParquetFile(path, read_dictionary=words) as file,
    ):
        return file.read().to_pandas()
