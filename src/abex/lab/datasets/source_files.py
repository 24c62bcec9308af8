"""The files of upstream: looked for in ``$ABEX_DATA`` and in the user's cache, else fetched; unpacked in memory and checked."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.private_cache import user_cache
from abex.support.reading import gunzip, read_bytes, reader_errors, short_path, up_to

PACKINGS = ("", ".gz", ".Z")  # how a single file may be packed
MAX_BYTES = 2**30  # nothing of ours unpacks to more; a bomb does
TIMEOUT = 30.0  # seconds without a byte
AGAIN = ": delete it and fetch it again"


@dataclass(frozen=True)
class SourceFile:
    """One file of a data set under its unpacked name, and the addresses of it, tried in turn.

    An address may be that of the plain file, of the packed one or of an archive that holds it. ``sha256`` is that of the plain
    bytes, so the packing does not matter; None where copies differ in form: the checksum of the values decides then.
    """

    name: str
    sha256: str | None
    urls: tuple[str, ...]

    @property
    def expected(self) -> str:
        """The name under which upstream gives the file."""
        upstream = name_at(self.urls[0])
        return f"{self.name} (it is in {upstream})" if is_archive(upstream) else upstream


def cache() -> Path:
    """The folder of fetched data and completed tables: ``data`` in the user's cache."""
    return user_cache() / "data"


def roots() -> list[Path]:
    """The folders that are searched, in this order."""
    given = os.environ.get("ABEX_DATA")
    return ([Path(given).expanduser()] if given else []) + [cache()]


def place_of(part: SourceFile, folder: str, folders: list[Path] | None = None) -> Path | None:
    """The first copy of ``part`` in the folders or in their sub-folder ``folder``: loose, then packed, then its archive."""
    archives = [name for name in map(name_at, part.urls) if is_archive(name)]
    candidates = [part.name + packing for packing in PACKINGS] + archives
    for root in roots() if folders is None else folders:
        for place in (root / folder, root):
            for name in candidates:
                if (place / name).is_file():
                    return place / name
    return None


def read(part: SourceFile, path: Path) -> bytes:
    """The plain bytes of ``part`` from the file or archive at ``path``, checked."""
    content = unpacked(read_bytes(path, packed=False), path.name, part.name, short_path(path))
    if not is_right(part, content):
        raise UserError(
            f"{path} is not the upstream file: {part.name} has another SHA-256 than registered; "
            "delete it and fetch it again"
        )
    return content


def is_right(part: SourceFile, content: bytes) -> bool:
    """Whether the plain bytes are the registered ones."""
    return part.sha256 in (None, hashlib.sha256(content).hexdigest())


# -- downloads ----------------------------------------------------------------------------------------------------


def fetch(part: SourceFile, fetched: dict[str, bytes]) -> bytes:
    """The plain bytes of ``part`` from the first address whose copy is right; ``fetched`` keeps what was loaded, by name.

    Where none is, the error says why, each reason with the first host that gave it.
    """
    reasons: dict[str, str] = {}
    for url in part.urls:
        name = name_at(url)
        try:
            packed = fetched[name] if name in fetched else download(url)
            content = unpacked(packed, name, part.name, url)
            if not is_right(part, content):
                raise UserError(f"{url} has another SHA-256 than registered")
        except (OSError, ValueError, UserError) as error:
            reasons.setdefault(_why(error), url.split("/")[2])
        else:
            fetched[name] = packed
            return content
    raise UserError("; ".join(f"{host}: {reason}" for reason, host in reasons.items()))


def download(url: str) -> bytes:
    """All bytes at an address."""
    import urllib.request  # most runs find what they need on this machine
    from http.client import HTTPException

    request = urllib.request.Request(url, headers={"User-Agent": "abex"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            total = int(answer.headers.get("Content-Length") or 0)
            content: bytes = answer.read(MAX_BYTES + 1)
    except HTTPException as error:
        raise ConnectionError(f"no sound answer ({type(error).__name__})") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{url} has more than {MAX_BYTES >> 20} MB: it is not the upstream file")
    if len(content) < total:
        raise ConnectionError(f"the connection broke after {len(content):,} of {total:,} bytes")
    return content


def _why(error: Any) -> str:
    reason = getattr(error, "reason", None) or error
    if hasattr(error, "code"):
        return f"HTTP {error.code} {reason}"
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__


def name_at(url: str) -> str:
    """The name of the file at an address.

    >>> name_at("https://example.org/isolet/isolet1%2B2.data.Z")
    'isolet1+2.data.Z'
    """
    return unquote(url.rsplit("/", 1)[-1])


# -- packed files: never written out ------------------------------------------------------------------------------


def is_archive(name: str) -> bool:
    """Whether the name is that of a file of files."""
    return name.endswith((".zip", ".tar.gz"))


def unpacked(content: bytes, packed: str, name: str, where: str) -> bytes:
    """The plain bytes of the file ``name``, of which ``packed`` (a name, too) is a packed copy or an archive with one."""
    with reader_errors(f"unpack {where}", AGAIN):
        if packed.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                packed = _member(archive.namelist(), name, where)
                with archive.open(packed) as stream:
                    content = up_to(stream, MAX_BYTES, where)
        elif packed.endswith(
            ".tar.gz"
        ):  # unpacked before it is looked into: headers inside may be of any size
            inside = gunzip(content, where, MAX_BYTES, AGAIN)
            with tarfile.open(fileobj=io.BytesIO(inside), mode="r:") as tar:
                packed = _member([entry.name for entry in tar.getmembers() if entry.isfile()], name, where)
                content = tar.extractfile(packed).read()  # type: ignore[union-attr]
    if packed.endswith(".gz"):
        return gunzip(content, where, MAX_BYTES, AGAIN)
    return uncompress(content, where) if packed.endswith(".Z") else content


def _member(names: list[str], name: str, where: str) -> str:
    for one in names:
        if PurePosixPath(one).name in (name, f"{name}.gz", f"{name}.Z"):
            return one
    raise UserError(f"{where} holds no file called {name}")


def uncompress(content: bytes, where: str) -> bytes:
    """The bytes that Unix ``compress`` packed (LZW with codes of up to 10 to 16 bits; Welch 1984)."""
    with needed("data"):
        import ncompress

    with reader_errors(f"unpack {where} as a .Z file", AGAIN):
        if len(content) < 3 or content[2] & 0x1F < 9:  # which the library does not notice
            raise ValueError("codes of less than 9 bits")
        out = _Bounded()
        ncompress.decompress(content, out)
        return out.getvalue()


class _Bounded(io.BytesIO):
    """Takes no more than `MAX_BYTES`."""

    def write(self, part: Any) -> int:
        """Append, or refuse."""
        if self.tell() + len(part) > MAX_BYTES:
            raise ValueError(f"it grows beyond {MAX_BYTES >> 20} MB")
        return super().write(part)
