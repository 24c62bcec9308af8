"""A person's own tables by column: data frames, and files of CSV and Parquet."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, brief, nearest, shown
from abex.support.extras import needed
from abex.support.reading import MAX_COLUMNS, check_size, opened, read_bytes, reader_errors, short_path

Columns = dict[str, NDArray[Any]]
Source = str | os.PathLike[str] | Any  # the name of a file, or a data frame

CELLS = 2**16  # of a table that are read at once
DIFFERENT_WORDS = 10  # times their bytes: pyarrow takes as much, and more, to find those that come again
MAX_KNOWN = 10_000  # different words of a column that are looked for when they come again
SUFFIXES = {".csv": "text", ".tsv": "text", ".txt": "text", ".parquet": "parquet"}


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


def line_of(row: int, where: str | Path) -> str:
    """Where a row stands: its line in a file of text, whose first has the names of the columns; else its number from 0.

    >>> line_of(0, "fruit.csv"), line_of(0, "fruit.parquet")
    ('line 2', 'row 0')
    """
    ends = "".join(Path(where).suffixes).lower().removesuffix(".gz")
    if SUFFIXES.get(ends[ends.rfind(".") :]) != "text":
        return f"row {row}"
    begins = _lines(Path(where)) if os.path.isfile(where) else count(1)
    return f"line {next(islice(begins, row + 1, None), row + 2)}"


def _lines(path: Path) -> Iterator[int]:
    """The lines in which the rows of a file begin, that of the header first: blank ones are no rows, cells may have several."""
    with opened(path, path.name.lower().endswith(".gz")) as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8", errors="replace", newline=""))
        begin = 1
        with suppress(csv.Error):
            for cells in rows:
                if len(cells) > 1 or "".join(cells).strip():
                    yield begin
                begin = rows.line_num + 1


def content_of(path: str | os.PathLike[str]) -> bytes:
    """The bytes, unpacked if the name ends with .gz."""
    path = Path(path)
    return read_bytes(path, packed=path.name.lower().endswith(".gz"))


def read_columns(
    source: Source, *, header: bool = True, words: Collection[str] = (), row: int = 0
) -> Columns:
    """The columns of a table, in order; numbers stay numbers, everything else is words, and so is what ``words`` names.

    Of a file, whose rows will take ``row`` bytes each, if not more.
    """
    where = name_of(source)
    kind = kind_of(Path(source)) if is_file(source) else "frame"
    if kind == "text":
        return _text(Path(source), header, words, row)
    if kind == "parquet":
        return _parquet(Path(source), row)
    frame: Any = source.to_pandas() if hasattr(source, "to_pandas") else source
    if not hasattr(frame, "iloc"):
        raise UserError(f"expected the name of a file or a data frame, got {shown(source)}")
    if 0 in frame.shape:
        raise UserError(f"{where} has no rows")
    columns: Columns = {}
    for position, name in enumerate(map(str, frame.columns)):
        _refuse_twice(name, columns, where)
        columns[name] = _values(frame.iloc[:, position])
    return columns


def column_named(columns: Columns, wanted: Any, where: str) -> str:
    """The column that is meant; a text is a name if there is one such, else it may be a position, as a number is."""
    names = list(columns)
    if isinstance(wanted, str) and wanted in columns:
        return wanted
    with suppress(ValueError, IndexError):
        return names[int(str(wanted))]
    raise UserError(
        f"{where} has no column {shown(wanted)}{nearest(str(wanted), names)}; it has: {brief(', '.join(names))}"
    )


def words_of(values: NDArray[Any], name: str, where: str | Path) -> NDArray[Any]:
    """The values of the column ``name`` as words, an array of objects; a missing one is an error.

    >>> words_of(np.array([10.0, 12.5]), "size", "shirts.csv").tolist()
    ['10', '12.5']
    """
    with needed():
        import pandas as pd

    missing = [row for row, value in enumerate(values.tolist()) if value == "" or pd.isna(value)]
    if missing:
        place = f"column {shown(name)}, {line_of(missing[0], where)}"
        raise UserError(f"{short_path(where)} has a missing value in {place}: fill or drop such rows")
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


def _text(path: Path, header: bool, words: Collection[Any], row: int) -> Columns:
    """A table of lines, piece by piece; a column that is not of one kind in all of them is read again as words."""
    with needed():
        import pandas as pd

    packed = path.name.lower().endswith(".gz")
    with opened(path, packed) as file:
        first = re.split(rb"[\r\n]", file.readline().removeprefix(b"\xef\xbb\xbf"), maxsplit=1)[0]
    counts = {mark: first.count(mark.encode()) for mark in (",", "\t", ";")}
    separator = max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else r"\s+"
    width = max(counts.values()) + 1  # short lines are filled up to the width of the first one
    _check_cells(1, width, path)
    parts = _Parts(short_path(path), row)
    with opened(path, packed) as file, reader_errors(f"read {short_path(path)} as a table"):
        pieces = pd.read_csv(
            file,
            sep=separator,
            header=0 if header else None,
            encoding="utf-8-sig",
            skipinitialspace=True,
            low_memory=False,
            dtype=dict.fromkeys(words, object),
            chunksize=max(1, CELLS // width),
        )
        for piece in pieces:
            parts.add(piece)
    loose = parts.loose()
    return _text(path, header, {*words, *loose}, row) if loose else parts.joined()


class _Parts:
    """A table that comes in pieces, up to `max_bytes` of memory; words that come again are held once."""

    def __init__(self, where: str, row: int) -> None:
        self._where, self._row = where, row
        self._size = self._rows = 0
        self._names: list[Any] = []
        self._columns: dict[int, list[NDArray[Any]]] = {}
        self._known: dict[int, dict[Any, Any]] = {}

    def add(self, frame: Any) -> None:
        """The next rows."""
        self._names = list(frame.columns)
        for place in range(len(self._names)):
            column = frame.iloc[:, place]
            values = self._words(place, column) if _has_words(column) else _values(column)
            self._columns.setdefault(place, []).append(values)
            self._size += values.nbytes
        self._rows += len(frame)
        check_size(max(self._size, self._row * self._rows), self._where)

    def _words(self, place: int, column: Any) -> NDArray[Any]:
        """As objects, equal ones the same."""
        with needed():
            import pandas as pd

        known = self._known.setdefault(place, {})
        codes, found = pd.factorize(column)
        table = np.full(len(found) + 1, np.nan, dtype=object)  # a missing one has the code -1
        for code, word in enumerate(found.tolist()):
            if word not in known:
                self._size += sys.getsizeof(word)
            table[code] = known.setdefault(word, word) if len(known) < MAX_KNOWN else known.get(word, word)
        values: NDArray[Any] = table[codes]
        return values

    def loose(self) -> list[Any]:
        """The columns that are numbers in one piece and words in another."""
        groups = ({_group(part) for part in parts} for parts in self._columns.values())
        return [name for name, found in zip(self._names, groups, strict=False) if len(found) > 1]

    def joined(self) -> Columns:
        """The columns, whole; the pieces are gone."""
        if not self._names or not self._rows:
            raise UserError(f"{self._where} has no rows")
        columns: Columns = {}
        for place, name in enumerate(map(str, self._names)):
            _refuse_twice(name, columns, self._where)
            columns[name] = np.concatenate(self._columns.pop(place))
        return columns


def _refuse_twice(name: str, columns: Columns, where: str) -> None:
    if name in columns:
        raise UserError(f"{where} has two columns called {shown(name)}")


def _has_words(column: Any) -> bool:
    return str(column.dtype) in ("object", "str", "string", "category")


def _group(part: NDArray[Any]) -> str:
    """Parts of one group are joined as the whole column would have been read."""
    return "number" if part.dtype.kind in "iuf" else part.dtype.kind


def _check_cells(n_rows: int, n_columns: int, path: Path) -> None:
    """Refuse a table that is far larger than its file."""
    if n_columns > MAX_COLUMNS:
        raise UserError(f"{short_path(path)} has {n_columns:,} columns, at most {MAX_COLUMNS:,} can be read")
    check_size(8 * n_rows * n_columns, f"{short_path(path)} with {n_rows:,} rows and {n_columns:,} columns")


def _parquet(path: Path, row: int = 0) -> Columns:
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
        check_size(max(unpacked, row * about.num_rows), short_path(path))
        words = [
            field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
        ]
        check_size(DIFFERENT_WORDS * _bytes_of(about, words), f"the words of {short_path(path)}")
    # a word that stands in many rows is kept once
    parts = _Parts(short_path(path), row)
    with (
        reader_errors(f"read {short_path(path)} as Parquet"),
        parquet.ParquetFile(path, read_dictionary=words) as file,
    ):
        for batch in file.iter_batches(max(1, CELLS // max(1, len(schema))), use_threads=False):
            compact = [_without_unused(column) for column in batch.columns]
            parts.add(pa.RecordBatch.from_arrays(compact, schema=batch.schema).to_pandas())
    return parts.joined()


def _bytes_of(about: Any, names: list[str]) -> int:
    """Of columns, unpacked, where a word that comes again in a part of the file counts once."""
    groups = [about.row_group(k) for k in range(about.num_row_groups)]
    columns = [group.column(k) for group in groups for k in range(group.num_columns)]
    return sum(int(one.total_uncompressed_size) for one in columns if one.path_in_schema in names)


def _without_unused(column: Any) -> Any:
    """A column of words: a part of a file brings the words of all."""
    import pyarrow as pa
    from pyarrow import compute

    if not pa.types.is_dictionary(column.type):
        return column
    used = compute.unique(column.indices.drop_null())
    codes = compute.index_in(column.indices, value_set=used)
    return pa.DictionaryArray.from_arrays(codes, column.dictionary.take(used)).cast(column.type)
