"""What stands in the store: cells, what they computed, and how one tells that the bytes are still those written."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError
from abex.support.files import decode_array, encode_array

Cell = dict[str, Any]  # plain JSON: what is computed; see `abex.lab.sweeps.cells`


@dataclass(frozen=True, eq=False)
class CellResult:
    """What a cell computed.

    ``arrays`` and ``numbers`` depend on the cell alone; ``measured`` (CPU seconds) depends on the machine too.
    """

    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, float] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)


def canonical(value: Any) -> str:
    """The one JSON text of a plain value: keys sorted, no spaces, no NaN.

    >>> canonical({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(f"a cell must hold plain JSON values: {error}") from error


def key_of(cell: Cell) -> str:
    """The content key of a cell: SHA-256 of its canonical text.

    >>> key_of({"seed": 1, "policy": "UCB1"}) == key_of({"policy": "UCB1", "seed": 1})
    True
    """
    return checksum_of(canonical(cell))


def checksum_of(*texts: str) -> str:
    """SHA-256 of texts that belong together."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def row_of(cell: Cell, payload: CellResult) -> tuple[str, str, bytes, str, str]:
    """Key, cell, payload, checksum of both, and what was measured: a row of the table of cells."""
    text, packed = canonical(cell), _pack(payload)
    compressed = zlib.compress(packed.encode(), 6)
    return checksum_of(text), text, compressed, checksum_of(text, packed), canonical(payload.measured)


def payload_of(key: Any, cell: Any, packed: Any, checksum: Any, measured: Any) -> CellResult | None:
    """The payload of a row if everything in it fits together, else None: damaged bytes may be of any type."""
    try:
        text = zlib.decompress(packed).decode()
        if checksum_of(cell) != key or checksum_of(cell, text) != checksum:
            return None
        plain, times = json.loads(text), plain_object(measured)
        if times is None:
            return None
        return CellResult(
            arrays={name: decode_array(value) for name, value in plain["arrays"].items()},
            numbers={name: float(decode_array(value)) for name, value in plain["numbers"].items()},
            measured=times,
        )
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return None


def definition_of(name: Any, definition: Any, checksum: Any) -> dict[str, Any] | None:
    """The definition of an experiment if it fits its checksum, else None."""
    try:
        return plain_object(definition) if checksum_of(name, definition) == checksum else None
    except TypeError:
        return None


def plain_object(text: Any) -> dict[str, Any] | None:
    """The dictionary that a JSON text holds, None if it is another thing or none."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _pack(payload: CellResult) -> str:
    arrays = {name: encode_array(np.asarray(array)) for name, array in payload.arrays.items()}
    numbers = {name: encode_array(np.asarray(value, np.float64)) for name, value in payload.numbers.items()}
    return canonical({"arrays": arrays, "numbers": numbers})  # numbers as bytes: NaN and -0.0 survive
