"""The user's cache folder, and entries in it that nobody else can have written.

What is loaded from an entry may be run. So none is read unless it lies in a file of the user who runs us, in a folder of theirs
that nobody else may enter (0700), and carries the checksum of what was written. An entry is one file, so nothing can disagree
with an index; one that is damaged is deleted.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Any

UNUSED_DAYS = 14  # what nobody has used for so long is deleted
HEADER = b"abex kernel 1\n"
DIGEST = hashlib.sha256().digest_size


def user_cache() -> Path:
    """The user's cache folder: ``$ABEX_CACHE``, else the platform's."""
    import platformdirs

    return Path(os.environ.get("ABEX_CACHE") or platformdirs.user_cache_dir("abex"))


def private_folder(name: str) -> Path:
    """A folder of the cache, the user's own and nobody else's (0700); an OSError says why there cannot be one."""
    folder = user_cache() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not (is_mine(os.lstat(folder)) and is_mine(os.stat(folder))):
        raise PermissionError(errno.EACCES, "it belongs to another user")
    if os.name == "posix" and stat.S_IMODE(os.stat(folder).st_mode) & 0o077:
        folder.chmod(0o700)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "Permission denied")
    return folder


def is_mine(about: os.stat_result) -> bool:
    """Whether a file belongs to the user who runs us (where files have owners)."""
    return not hasattr(os, "geteuid") or about.st_uid == os.geteuid()


def read_entry(path: Path, key: bytes) -> bytes | None:
    """What was written under this key, or None: absent, not ours, or damaged (then it is deleted)."""
    flags = os.O_RDONLY | sum(
        getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    )
    try:
        with open(os.open(path, flags), "rb") as file:
            about = os.fstat(file.fileno())  # of what is open, whatever the name means by now
            if not (stat.S_ISREG(about.st_mode) and is_mine(about)):
                return None
            content = file.read()
    except OSError:
        return None
    start = len(HEADER) + DIGEST
    payload = content[start:]
    if content[:start] != HEADER + _checksum(key, payload):
        drop(path)
        return None
    if time.time() - about.st_mtime > 86_400:
        _ignoring_errors(os.utime, path)
    return payload


def write_entry(path: Path, key: bytes, payload: bytes) -> None:
    """Write an entry, whole or not at all, whoever else is writing it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with open(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb"
        ) as file:
            file.write(HEADER + _checksum(key, payload) + payload)
        os.replace(temporary, path)
    except BaseException:
        drop(temporary)
        raise


def drop(path: Path) -> None:
    """Delete a file if that is possible."""
    _ignoring_errors(os.unlink, path)


def prune(parent: Path, keep: Path | None = None, days: float = UNUSED_DAYS) -> None:
    """Delete what lies in ``parent`` and has not been used for ``days``, except ``keep``."""
    limit = time.time() - days * 86_400
    try:
        stale = [path for path in parent.iterdir() if path != keep and path.lstat().st_mtime < limit]
    except OSError:
        return
    for path in stale:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            drop(path)


def _checksum(key: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(key + payload).digest()


def _ignoring_errors(action: Any, path: Path) -> None:
    try:
        action(path)
    except OSError:
        return
