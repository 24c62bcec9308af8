"""Ways to damage bytes and texts, and the values that readers stumble over."""

from __future__ import annotations

from typing import Any

import numpy as np

Rng = np.random.Generator

NUMBERS = (
    "0", "-0", "1", "-1", "1e5", "0.5", "1e-300", "1e300", "1e400", "-1e400", "nan", "inf", "-inf", "NaN", "1_000", "0x10",
    "2147483647", "2147483648", "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "1" + "0" * 30, "1" + "0" * 400, "9" * 5000, "1e", "--1", "+1", "1.2.3", "1,5", "true", "",
)  # fmt: skip
WORDS = (
    "", " ", "a", "ann", "?", "'", '"', '"a', "a b", "a,b", "#", "%", "{a,b}", "\x00", "\ufeff", "\u202e", "é", "日本",
    "\U0001f600",
    "None", "NA", "null", "x" * 300, "../../etc/passwd", "<!--<script>", "\r", "\t", "\\", "=", ":", "{", "}", "%s%n", "true",
)  # fmt: skip
PLAIN: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 0.5, -0.5, 1e-300, 1e300, 1e12, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, float("nan"),
    float("inf"), -float("inf"), "", "x", "UCB1", True, False, [], [1], [[0.5]], {}, {"name": "x"}, {"name": 7}, ["a", 1],
)  # fmt: skip


def one(rng: Rng, values: Any) -> Any:
    """One of ``values``, as it is."""
    return values[int(rng.integers(len(values)))]


def damaged(content: bytes, rng: Rng) -> bytes:
    """One to three pieces of damage: flipped bits, lost, doubled, overwritten or inserted bytes, an early end."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        size = max(len(data), 1)
        at, length = int(rng.integers(size)), int(rng.integers(1, 1 + min(size, 64)))
        kind = int(rng.integers(7))
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length]
        elif kind == 4:
            data[at : at + length] = rng.bytes(length)
        elif kind == 5:
            data[at:at] = one(
                rng, (b"\x00", b"\r", b"\n", b"\xff\xff\xff\x7f", b"\xff" * 8, b",", b" ", b"\x00" * 16)
            )
        elif data:
            data[at % len(data)] = one(rng, (0, 0x7F, 0x80, 0xFF, 13, 10))
    return bytes(data)


def maybe_damaged(content: bytes, rng: Rng, share: float = 0.5) -> bytes:
    """Damaged as often as ``share``."""
    return damaged(content, rng) if rng.random() < share else content


def token(rng: Rng) -> str:
    """A word or a number: mostly a tame one."""
    kind = rng.random()
    if kind < 0.6:
        return str(int(rng.integers(0, 5)))
    if kind < 0.8:
        return str(one(rng, "abc"))
    return str(one(rng, NUMBERS if kind < 0.9 else WORDS))


def grid(rng: Rng, rows: int, width: int) -> list[list[str]]:
    """Cells of a table: tame ones with classes in the last column, one or two wild ones among them, or all wild."""
    kind = rng.random()
    if kind < 0.25:
        return [[token(rng) for _ in range(width)] for _ in range(rows)]
    words = rng.random() < 0.3
    cells = [
        [str(one(rng, "ab")) if words else str(int(rng.integers(9))) for _ in range(width)]
        for _ in range(rows)
    ]
    for row, line in enumerate(cells):
        line[-1:] = [str(row % 3)][:width]
    if kind > 0.5 and rows and width:
        for _ in range(int(rng.integers(1, 3))):
            cells[int(rng.integers(rows))][int(rng.integers(width))] = one(rng, (*NUMBERS, *WORDS))
    return cells
