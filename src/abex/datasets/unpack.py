"""Packed files: gzip, Unix compress (.Z), zip and tar, read in memory and never written out."""

from __future__ import annotations

import io
import tarfile
import zipfile
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from abex.errors import UserError
from abex.kernels import compiled, kernel
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


# -- Unix compress ----------------------------------------------------------------------------------------


def uncompress(content: bytes, where: str = "the file") -> bytes:
    """The bytes that Unix ``compress`` packed (LZW with codes of 9 to 16 bits; Welch 1984)."""
    if len(content) < 3 or content[:2] != b"\x1f\x9d":
        raise UserError(
            f"{where} is not a .Z file (it does not begin with 1F 9D): delete it and fetch it again"
        )
    widest = content[2] & 0x1F
    if not 9 <= widest <= 16:
        raise UserError(f"{where} is damaged (codes of {widest} bits): delete it and fetch it again")
    packed = np.frombuffer(content, dtype=np.uint8)[3:]
    prefix = np.zeros(1 << widest, dtype=np.int32)
    suffix = np.zeros(1 << widest, dtype=np.uint8)
    stack = np.zeros(1 << widest, dtype=np.uint8)
    room = min(4 * packed.size + 4096, MOST_BYTES)
    while True:
        out = np.empty(room, dtype=np.uint8)
        length = _decoder()(packed, widest, content[2] >= 0x80, out, prefix, suffix, stack)
        if length == DAMAGED:
            raise UserError(f"{where} is damaged (a code that means nothing): delete it and fetch it again")
        if length != FULL:
            return out[:length].tobytes()
        if room >= MOST_BYTES:
            raise UserError(
                f"{where} unpacks to more than {MOST_BYTES >> 20} MB: it is not the upstream file"
            )
        room = min(4 * room, MOST_BYTES)


FULL, DAMAGED = -1, -2
CLEAR = 256  # the code that empties the table


@cache
def _decoder() -> Any:
    @compiled(decode)
    def run(packed: Any, widest: int, clears: bool, out: Any, prefix: Any, suffix: Any, stack: Any) -> int:
        return decode(packed, widest, clears, out, prefix, suffix, stack)

    return run


@kernel
def decode(packed: Any, widest: int, clears: bool, out: Any, prefix: Any, suffix: Any, stack: Any) -> int:
    """Unpack LZW codes into ``out``; the length, FULL if ``out`` is too short, or DAMAGED."""
    for byte in range(256):
        suffix[byte] = byte
    n_bits = 8 * packed.size
    width = 9
    free = CLEAR + 1 if clears else CLEAR
    last = -1
    first_byte = 0
    length = 0
    position = 0
    mark = 0  # where codes of this width began: a change of width skips the rest of a group of eight codes
    while True:
        # "9 bits" has always meant a table for 9, codes of 10
        if free > (1 << width) - 1 and width < max(widest, 10):
            rest = (position - mark) % (8 * width)
            position += 8 * width - rest if rest > 0 else 0
            mark = position
            width += 1
        if position + width > n_bits:
            return length
        word = 0
        at = position >> 3
        for k in range(3):
            if at + k < packed.size:
                word |= int(packed[at + k]) << (8 * k)
        code = (word >> (position & 7)) & ((1 << width) - 1)
        position += width
        if last < 0:
            if code > 255 or out.size == 0:
                return DAMAGED
            out[0] = code
            length = 1
            last = code
            first_byte = code
            continue
        if code == CLEAR and clears:
            rest = (position - mark) % (8 * width)
            position += 8 * width - rest if rest > 0 else 0
            mark = position
            width = 9
            free = CLEAR
            continue
        if code > free or code >= 1 << widest:
            return DAMAGED
        depth = 0
        step = code
        if code == free:  # the string being defined: the last one and its own first byte
            stack[0] = first_byte
            depth = 1
            step = last
        while step > 255:
            stack[depth] = suffix[step]
            depth += 1
            step = prefix[step]
        first_byte = step
        if length + depth + 1 > out.size:
            return FULL
        out[length] = first_byte
        length += 1
        for k in range(depth):
            out[length] = stack[depth - 1 - k]
            length += 1
        if free < 1 << widest:
            prefix[free] = last
            suffix[free] = first_byte
            free += 1
        last = code
