"""Random numbers that belong to the number of an event: learning from it draws the same ones in every process."""

from __future__ import annotations

import hashlib

import numpy as np


class SequenceStream:
    """A generator that `at` sets to the numbers of one event.

    >>> one, two = SequenceStream(7), SequenceStream(7)
    >>> one.at(3).random() == two.at(3).random(), one.at(4).random() == two.at(3).random()
    (True, False)
    """

    def __init__(self, key: int) -> None:
        self._key = key.to_bytes(16, "little")
        self.resting = np.random.Generator(np.random.PCG64(0))  # for who draws nothing
        self._generator = np.random.Generator(np.random.PCG64(0))

    def at(self, seq: int) -> np.random.Generator:
        """The generator, at the numbers of event ``seq``."""
        digest = hashlib.blake2b(seq.to_bytes(8, "little"), key=self._key, digest_size=32).digest()
        state = int.from_bytes(digest[:16], "little")
        step = int.from_bytes(digest[16:], "little") | 1
        self._generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": step},
            "has_uint32": 0,
            "uinteger": 0,
        }
        return self._generator
