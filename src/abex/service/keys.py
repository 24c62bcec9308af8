"""API keys: who may decide, reward, read, administer.

A key is 256 random bits, so its SHA-256 tells nothing about it and needs no salt or slow hash, which are for passwords that
people think of. A file holds hashes alone; what is sent is hashed, and compared with all of them in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import time

from abex.support.errors import UserError, one_of, shown
from abex.support.files import read_text

#: role -> what it may do
ROLES = {
    "decide": "ask for decisions",
    "reward": "report rewards and observations",
    "read": "look: summaries, probabilities, timeline, metrics",
    "admin": "everything: make players, change arms, download logs",
}
PREFIX = "abex_"
LOOK_SECONDS = 1.0  # between two looks at a file of keys

logger = logging.getLogger("abex.serve")


Hashes = tuple[tuple[str, bytes, str], ...]  # of keys, each after its role and before its name


class KeyFile:
    """The keys of a file, read again when it has changed: a key that is deleted ends, and a new one begins, within a second."""

    def __init__(self, path: str) -> None:
        self._path, self._looked = path, time.monotonic()
        self._stamp, self._hashes = _stamp(path), read_keys(path)
        if not self._hashes:
            raise UserError(f"there are no keys in {shown(path)}: `abex serve --new-key ROLE` prints one")

    def allows(self, key: str, role: str) -> str | None:
        """Who has a key of a role; "" if it is of another role, None if it is unknown. Every hash is looked at."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._look()
        digest = hash_of(key)
        found = {held: name for held, known, name in self._hashes if hmac.compare_digest(digest, known)}
        may = next((held for held in (role, "admin") if held in found), None)
        return (f"{may} {found[may]}" if may else "") if found else None

    def _look(self) -> None:
        """Read the file if it is another one; where it cannot be read the former keys hold, and the log says so once."""
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._hashes = read_keys(self._path)
        except UserError as error:
            logger.error("the former API keys hold", extra={"fields": {"error": str(error)}})
        else:
            logger.info("API keys read again", extra={"fields": {"keys": len(self._hashes)}})


def _stamp(path: str) -> tuple[int, int, int] | None:
    """What changes when a file does."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def hash_of(key: str) -> bytes:
    """SHA-256 of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def new_key(text: str) -> tuple[str, str]:
    """A new key, and the line that stands for it in a file of keys: of a role, which a name may follow."""
    role, _, name = text.partition(" ")
    one_of("role", role, ROLES)
    key = PREFIX + secrets.token_urlsafe(32)
    return key, " ".join([role, f"sha256:{hash_of(key).hex()}", *name.split()])


def read_keys(path: str) -> Hashes:
    """The keys of a file: a line each, role and hash, then its name, whatever you like; # begins a comment."""
    hashes = []
    for number, line in enumerate(read_text(path, "file of keys").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        role, (kind, _, digits) = words[0], (words[1] if len(words) > 1 else "").partition(":")
        if role not in ROLES or kind != "sha256" or not re.fullmatch("[0-9a-fA-F]{64}", digits):
            raise UserError(
                f"line {number} of the keys in {shown(path)} must be a role ({', '.join(ROLES)}) and sha256:HASH; "
                "`abex serve --new-key ROLE` prints one"
            )
        hashes.append((role, bytes.fromhex(digits), " ".join(words[2:]) or digits[:8].lower()))
    return tuple(hashes)
