"""Fetch files from upstream: mirrors, retries, resumed where they stopped, checked before they are seen."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import socket
import time
import urllib.error
import urllib.request
import uuid
from contextlib import suppress
from pathlib import Path

from abex.datasets.catalogue import CatalogueEntry, FileLocation, Remote, SourceFile
from abex.datasets.storage import cache, find, keep, missing, parse, read, roots
from abex.datasets.unpack import is_archive
from abex.errors import UserError
from abex.progress import Progress

ATTEMPTS = 3  # per mirror
PAUSE = 1.0  # seconds before the second attempt, doubled for each further one
TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 16
QUIET = 10.0  # a partial file nobody has written to for so many seconds has lost its writer
KEEP_DAYS = 7.0


class UnreachableError(Exception):
    """No mirror gave the file; the text says why."""


def obtain(entry: CatalogueEntry) -> None:
    """Fetch the missing files of ``entry`` into the cache; all of them are checked before any is kept."""
    staging = cache() / "partial" / f"{entry.name}-{uuid.uuid4().hex[:8]}"
    target = cache() / entry.folder
    try:
        for part in missing(entry):
            if find(entry, part, [staging]) is None:  # it may have come in the archive of another part
                fetch_part(part, staging / entry.folder)
        parse(entry, [staging, *roots()])
        target.mkdir(parents=True, exist_ok=True)
        for staged in sorted((staging / entry.folder).iterdir()):
            os.replace(staged, target / staged.name)
    except UnreachableError as reason:
        raise UserError(offline_message(entry, str(reason))) from None
    except OSError as error:
        raise UserError(f"cannot write to the cache {cache()}: {error.strerror or error}") from None
    finally:
        _remove(staging)


def import_from(entry: CatalogueEntry, folder: Path) -> list[Path]:
    """Check the files of ``entry`` that a person has in ``folder`` and copy them into the cache."""
    places = [(part, find(entry, part, [folder])) for part in entry.parts]
    absent = [part for part, found in places if found is None]
    if absent:
        names = ", ".join(expected_name(part) for part in absent)
        raise UserError(f"{folder} has no {names}, which {entry.name} needs")
    parse(entry, [folder])
    copied = []
    for path in dict.fromkeys(found.path for _, found in places if found is not None):
        target = cache() / entry.folder / path.name
        keep(target, path.read_bytes())
        copied.append(target)
    return copied


def offline_message(entry: CatalogueEntry, reason: str) -> str:
    """One sentence: which files to put where."""
    absent = missing(entry)
    names = [expected_name(part) for part in absent]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    origin = absent[0].remotes[0].urls[0].rsplit("/", 1)[0]
    return (
        f"{entry.name} is not on this machine and could not be downloaded ({reason}): put {listed} "
        f"from {origin} into {cache() / entry.folder}, or into a folder that the variable ABEX_DATA names"
    )


def expected_name(part: SourceFile) -> str:
    """The name under which upstream gives the part."""
    file = part.remotes[0].file
    return f"{part.name} (it is in {file})" if is_archive(file) else file


# -- one file -----------------------------------------------------------------------------------------------


def fetch_part(part: SourceFile, folder: Path) -> None:
    """Put a file that holds ``part`` into ``folder``, from the first address whose copy is right."""
    reasons: dict[str, str] = {}  # reason -> the first host that gave it
    for remote in part.remotes:
        for url in remote.urls:
            try:
                return fetch_file(part, remote, url, folder)
            except (UnreachableError, UserError) as reason:
                reasons.setdefault(str(reason), url.split("/")[2])
    raise UnreachableError("; ".join(f"{host}: {reason}" for reason, host in reasons.items()))


def fetch_file(part: SourceFile, remote: Remote, url: str, folder: Path) -> None:
    """Put the file at ``url`` into ``folder`` if it is whole and holds ``part``."""
    member = part.name if is_archive(remote.file) else None
    place = folder / remote.file
    while True:
        downloader = Resuming(remote)
        downloader.save(url, place)
        try:
            if remote.sha256 is not None and hashlib.sha256(place.read_bytes()).hexdigest() != remote.sha256:
                raise UserError(f"{url} has another SHA-256 than registered")
            read(part, FileLocation(place, member))
            return
        except UserError:
            place.unlink(missing_ok=True)
            if not downloader.resumed:  # else once more from the start: upstream's file may have changed
                raise


class Resuming:
    """Goes on with what an earlier attempt left in the folder ``partial``."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.resumed = False  # whether what an earlier process left was used

    def save(self, url: str, place: Path) -> None:
        """Write the file at ``url`` to ``place``."""
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = claim(self.remote.file, url)
        self.resumed = partial.exists()
        for attempt in range(ATTEMPTS):
            try:
                self.fetch(url, partial)
                os.replace(partial, place)
                return
            except (OSError, ValueError) as error:  # includes URLError, timeouts and broken connections
                if hopeless(error) or attempt == ATTEMPTS - 1:
                    raise UnreachableError(_why(error)) from None
                time.sleep(PAUSE * 2**attempt)

    def fetch(self, url: str, partial: Path) -> None:
        """Append the bytes that ``partial`` lacks."""
        done = partial.stat().st_size if partial.exists() else 0
        request = urllib.request.Request(url, headers={"User-Agent": "abex"})
        if done:
            request.add_header("Range", f"bytes={done}-")
        try:
            answer = urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            if error.code == 416 and done:  # nothing lies beyond what is there: it is whole, or another file
                partial.unlink()
                return self.fetch(url, partial)
            raise
        with answer:
            if answer.status != 206:
                done = 0  # the server sends all of it again
            length = answer.headers.get("Content-Length")
            total = done + int(length) if length else None
            with (
                open(partial, "ab" if done else "wb") as stream,
                Progress(
                    f"fetch {self.remote.file}", total or math.inf, show=None if total else False
                ) as bar,
            ):
                bar.advance(done)
                while chunk := answer.read(CHUNK):
                    stream.write(chunk)
                    done += len(chunk)
                    bar.advance(len(chunk))
            if total is not None and done < total:
                raise ConnectionError(f"the connection broke after {done:,} of {total:,} bytes")


def claim(file: str, url: str) -> Path:
    """A private partial file for ``url``: one that lost its writer if there is any, else a new name."""
    folder = cache() / "partial"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{file}.{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    own = folder / f"{stem}.{uuid.uuid4().hex[:8]}"
    now = time.time()
    for left in sorted(folder.glob(f"{stem}.*")):
        with suppress(OSError):
            if now - left.stat().st_mtime > QUIET:
                os.rename(left, own)
                break
    for old in folder.iterdir():
        with suppress(OSError):
            if old.is_file() and now - old.stat().st_mtime > KEEP_DAYS * 86_400:
                old.unlink()
    return own


def hopeless(error: Exception) -> bool:
    """Whether asking again cannot help: no such host, no such file."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500 and error.code not in (408, 429)
    return isinstance(getattr(error, "reason", None), socket.gaierror)


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__


def _remove(staging: Path) -> None:
    shutil.rmtree(staging, ignore_errors=True)
    with suppress(OSError):
        staging.parent.rmdir()  # only if nothing is left to resume
