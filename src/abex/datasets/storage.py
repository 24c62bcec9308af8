"""Where data files are: ``$ABEX_DATA``, the user's cache, upstream; and the cache of what was parsed."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.datasets.catalogue import CatalogueEntry, Contents, FileLocation, SourceFile
from abex.datasets.dataset import checksum_of
from abex.datasets.unpack import PACKINGS, is_archive, unpack
from abex.errors import UserError
from abex.files import write_atomically
from abex.kernels import user_cache
from abex.reading import arrays_of

FORMAT = 1  # of the parsed arrays; a new number makes old ones invisible


def cache() -> Path:
    """The folder of fetched and parsed data: ``data`` in the user's cache."""
    return user_cache() / "data"


def roots() -> list[Path]:
    """The folders that are searched, in this order."""
    given = os.environ.get("ABEX_DATA")
    return ([Path(given).expanduser()] if given else []) + [cache()]


def find(entry: CatalogueEntry, part: SourceFile, folders: list[Path] | None = None) -> FileLocation | None:
    """The first copy of ``part`` in the folders: loose, then packed, then inside its archive."""
    for root in roots() if folders is None else folders:
        for folder in (root / entry.folder, root):
            for packing in PACKINGS:
                if (folder / (part.name + packing)).is_file():
                    return FileLocation(folder / (part.name + packing))
            for remote in part.remotes:
                if is_archive(remote.file) and (folder / remote.file).is_file():
                    return FileLocation(folder / remote.file, part.name)
    return None


def read(part: SourceFile, found: FileLocation) -> bytes:
    """The plain bytes of ``part``, checked."""
    content = unpack(found.path, found.member)
    if part.sha256 is not None and hashlib.sha256(content).hexdigest() != part.sha256:
        raise UserError(
            f"{found.path} is not the upstream file: {part.name} has another SHA-256 than registered; "
            "delete it and fetch it again"
        )
    return content


def missing(entry: CatalogueEntry, folders: list[Path] | None = None) -> list[SourceFile]:
    """The parts that are nowhere in the folders."""
    return [part for part in entry.parts if find(entry, part, folders) is None]


def load_arrays(entry: CatalogueEntry, obtain: Callable[[CatalogueEntry], None]) -> dict[str, NDArray[Any]]:
    """The arrays of ``entry``: from the parsed cache, else parsed now; ``obtain`` fetches what is missing."""
    kept = cache() / "parsed" / f"{entry.name}-{(entry.checksum or 'unchecked')[:16]}-{FORMAT}.npz"
    if entry.checksum is not None:
        arrays = read_arrays(kept)
        if arrays is not None and checksum_of(arrays.values()) == entry.checksum:
            return arrays
    if missing(entry):
        obtain(entry)
    arrays = parse(entry)
    if entry.checksum is not None:
        with suppress(UserError):  # a cache that cannot be written costs time, nothing else
            write_arrays(kept, arrays)
    return arrays


def parse(entry: CatalogueEntry, folders: list[Path] | None = None) -> dict[str, NDArray[Any]]:
    """Parse the files of ``entry`` and compare the arrays with its checksum."""
    arrays = entry.read(read_parts(entry, folders))
    if entry.checksum is not None and checksum_of(arrays.values()) != entry.checksum:
        found = find(entry, entry.parts[0], folders) if entry.parts else None
        place = found.path.parent if found else "scikit-learn"
        raise UserError(
            f"the values in {place} are not those of {entry.name} (their checksum is not the registered one): "
            "delete the files and fetch them again"
        )
    return arrays


def read_parts(entry: CatalogueEntry, folders: list[Path] | None = None) -> Contents:
    """The checked bytes of all parts."""
    contents: Contents = {}
    for part in entry.parts:
        found = find(entry, part, folders)
        if found is None:
            raise UserError(f"{entry.name} is incomplete: {part.name} is missing")
        contents[part.name] = read(part, found)
    return contents


# -- arrays on disk -----------------------------------------------------------------------------------------


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Keep arrays in an uncompressed .npz, whole or not at all."""
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    keep(path, stream.getvalue())


def keep(path: Path, content: bytes) -> None:
    """Put a file into the cache, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to the cache {path.parent}: {error.strerror or error}") from None
    write_atomically(path, content)


def read_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays kept in ``path``; None if there are none or they cannot be read, whatever has happened to them."""
    try:
        return arrays_of(path)
    except UserError:
        return None
