"""Packed files: gzip, Unix compress (.Z), zip and tar, read in memory and never written out."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from abex.errors import UserError, brief
from abex.extras import needed
from abex.reading import gunzip, named, read_bytes, reading, up_to

PACKINGS = ("", ".gz", ".Z")  # how a single file may be packed
MOST_BYTES = 2**30  # nothing of ours unpacks to more; a bomb does
AGAIN = ": delete it and fetch it again"


def is_archive(name: str) -> bool:
    """Whether the name is that of a file of files."""
    return name.endswith((".zip", ".tar.gz", ".tgz", ".tar"))


def unpack(path: Path, member: str | None = None) -> bytes:
    """The plain bytes of ``path``, or of the file called ``member`` inside the archive ``path``.

    ``member`` may itself be packed in the archive as ``member.gz`` or ``member.Z``.
    """
    if member is not None:
        return _from_archive(path, member)
    return plain(read_bytes(path, packed=False), path.name, named(path))


def plain(content: bytes, name: str, where: str) -> bytes:
    """``content`` without the packing that ``name`` ends with."""
    if name.endswith(".gz"):
        return gunzip(content, where, MOST_BYTES, AGAIN)
    if name.endswith(".Z"):
        return uncompress(content, where)
    return content


def _from_archive(path: Path, member: str) -> bytes:
    wanted = [member + packing for packing in PACKINGS]
    with reading(f"unpack {named(path)}", AGAIN):
        if path.name.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                name = _find(archive.namelist(), wanted, path)
                where = f"{name} in {named(path)}"
                with archive.open(name) as stream:
                    content = up_to(stream, MOST_BYTES, where)
        else:  # unpacked before it is looked into: names and headers inside may be of any size
            packed = path.name.endswith("gz")
            inside = read_bytes(path, packed=False)
            inside = gunzip(inside, named(path), MOST_BYTES, AGAIN) if packed else inside
            with tarfile.open(fileobj=io.BytesIO(inside), mode="r:") as tar:
                name = _find([entry.name for entry in tar.getmembers()], wanted, path)
                where = f"{name} in {named(path)}"
                opened = tar.extractfile(name)
                if opened is None:
                    raise UserError(f"{where} is not a regular file")
                content = opened.read()
    return plain(content, name, where)


def _find(names: list[str], wanted: list[str], path: Path) -> str:
    for name in names:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[:1]:
            raise UserError(
                f"{path} holds a file with an unsafe name ({name!r}): it is not the upstream archive"
            )
    for name in names:
        if PurePosixPath(name).name in wanted:
            return name
    raise UserError(f"{path} holds no file called {wanted[0]}")


def uncompress(content: bytes, where: str = "the file") -> bytes:
    """The bytes that Unix ``compress`` packed (LZW with codes of up to 10 to 16 bits; Welch 1984)."""
    with needed("data"):
        import ncompress

    out = _Bounded(where)
    widest = content[2] & 0x1F if len(content) > 2 else 0
    try:
        if widest < 9:  # which the library does not notice
            raise ValueError(f"codes of {widest} bits")
        ncompress.decompress(content, out)
    except UserError:
        raise
    except Exception as error:  # the library's words: "not in LZW-compressed format", "corrupt input - ..."
        reason = brief(str(error).partition(" - ")[0])
        raise UserError(f"{where} is no .Z file, or a damaged one ({reason}){AGAIN}") from None
    return out.getvalue()


class _Bounded(io.BytesIO):
    """Takes no more than `MOST_BYTES`."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def write(self, part: Any) -> int:
        """Append, or refuse."""
        if self.tell() + len(part) > MOST_BYTES:
            raise UserError(
                f"{self.where} unpacks to more than {MOST_BYTES >> 20} MB: it is not the upstream file"
            )
        return super().write(part)
