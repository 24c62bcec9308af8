"""Random numbers: named streams for policies, a counter-based generator for rewards.

`stream(seed, *key)` is a NumPy generator named by its key: adding a replication or a policy changes no
other stream. `word_at(key, t, arm)` is a random 64-bit word that depends on nothing but its arguments,
so the reward of an arm at a step is the same for everyone who asks, in any order, on any machine.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from abex.kernels import kernel
from abex.support.errors import UserError, whole_number

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, the increment of splitmix64
STEP = np.uint64(0xD1342543DE82EF95)  # another odd multiplier, for the arm's coordinate
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
U11, U27, U30, U31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
TINY = 2.0**-53


def seed_sequence(seed: int, *key: int | str) -> np.random.SeedSequence:
    """The seed sequence named by ``key``: words are hashed, numbers are used as they are."""
    seed = whole_number("seed", seed, least=0)
    numbers = [_number(part) for part in key]
    return np.random.SeedSequence(seed, spawn_key=tuple(numbers))


def stream(seed: int, *key: int | str) -> np.random.Generator:
    """An independent generator for each ``(seed, *key)``, the same in every process.

    >>> stream(1, 7, "policy").random() == stream(1, 7, "policy").random()
    True
    >>> stream(1, 7, "policy").random() == stream(1, 8, "policy").random()
    False
    """
    return np.random.Generator(np.random.PCG64(seed_sequence(seed, *key)))


def counter_key(seed: int, *key: int | str) -> np.uint64:
    """The 64-bit key of a counter-based source, for `word_at`."""
    return np.uint64(seed_sequence(seed, *key).generate_state(1, np.uint64)[0])


def _number(part: int | str) -> int:
    if isinstance(part, str):
        return int.from_bytes(hashlib.sha256(part.encode()).digest()[:8], "little")
    if part < 0:
        raise UserError(f"a stream's key must be non-negative, got {part}")
    return int(part)


@kernel
def mix(word: Any) -> Any:
    """Finaliser of splitmix64 (Stafford's variant 13): a bijection whose every output bit depends on every input bit."""
    word = (word ^ (word >> U30)) * FIRST
    word = (word ^ (word >> U27)) * SECOND
    return word ^ (word >> U31)


@kernel
def word_at(key: Any, t: int, arm: int) -> Any:
    """Random word of the cell (t, arm) of the table named ``key``.

    Along the steps of one arm this is splitmix64, along the arms of one step its twin with another increment. Two arms
    share a stretch of the sequence only if STEP times their difference is GOLDEN times a small number, modulo 2^64:
    for a million arms and a billion steps there is no such pair (a test looks).
    """
    return mix(key + np.uint64(t) * GOLDEN + np.uint64(arm) * STEP)


@kernel
def next_word(word: Any) -> Any:
    """The following word of a cell that needs more than one."""
    return mix(word + GOLDEN)


@kernel
def unit(word: Any) -> float:
    """A word as a uniform number in [0, 1): its upper 53 bits."""
    return np.int64(word >> U11) * TINY


@kernel
def uniform_at(key: Any, t: int, arm: int) -> float:
    """Uniform number in [0, 1) of the cell (t, arm)."""
    return unit(word_at(key, t, arm))


@kernel
def normal_from(word: Any) -> float:
    """Standard normal number made of ``word`` and its successor (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - unit(word)))
    return radius * math.cos(2.0 * math.pi * unit(next_word(word)))


@kernel
def gamma_from(word: Any, shape: float) -> float:
    """Gamma(shape, 1) number from the words that follow ``word`` (Marsaglia and Tsang 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = (1.0 - unit(word)) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    scale = 1.0 / math.sqrt(9.0 * d)
    while True:
        word = next_word(word)
        x = normal_from(word)
        word = next_word(next_word(word))
        v = 1.0 + scale * x
        v = v * v * v  # ** 3 rounds differently in compiled code
        if v > 0.0 and math.log(1.0 - unit(word)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v


@kernel
def argmax(values: Any, rng: Any) -> int:
    """Index of the largest value; ties are broken uniformly at random (``rng`` is used for ties only)."""
    best = 0
    top = values[0]
    ties = 1
    for k in range(1, values.size):
        value = values[k]
        if value >= top:  # one comparison for most arms
            if value > top:
                best = k
                top = value
                ties = 1
            else:
                ties += 1
                if rng.random() * ties < 1.0:
                    best = k
    return best


@kernel
def share_among_largest(values: Any, share: float, out: Any) -> None:
    """Add ``share``, in equal parts, to the arms of the largest value: the distribution of `argmax`."""
    top = values[0]
    ties = 0
    for k in range(out.size):
        if values[k] > top:
            top = values[k]
            ties = 0
        if values[k] == top:
            ties += 1
    for k in range(out.size):
        if values[k] == top:
            out[k] += share / ties


@kernel
def below(n: int, rng: Any) -> int:
    """Uniform integer in 0..n-1; ``rng.integers`` costs ten times as much to run and to compile."""
    return int(rng.random() * n)
