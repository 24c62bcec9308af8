"""What a record of arrays from a file must look like before compiled code may read it, derived from its class.

The annotation of a field says the type of its array, its shape in letters and the range of its values. A letter stands for one
number throughout a record (T classifiers, L labels), so that arrays have to fit together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray


class Stored(NamedTuple):
    """Shape and range of an array in a file."""

    shape: str
    least: float = -math.inf
    most: float = math.inf


def array_fields(kind: type) -> dict[str, tuple[np.dtype[Any], Stored]]:
    """The arrays of a class by name: their type, shape and range."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            array, limits = get_args(hint)
            found[name] = (np.dtype(get_args(get_args(array)[1])[0]), limits)
    return found


def checked_arrays(
    kind: type, arrays: Mapping[str, NDArray[Any]], sizes: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """The arrays of a record of class ``kind``, contiguous and in this machine's byte order, or a `ValueError`.

    ``sizes`` has the numbers that letters stand for; letters it does not know are learnt and entered.

    >>> class Pair:
    ...     low: Annotated[NDArray[np.int32], Stored("N", least=0)]
    ...     high: Annotated[NDArray[np.int32], Stored("N", most=9)]
    >>> numbers = np.array([1, 2], np.int32)
    >>> sorted(checked_arrays(Pair, {"low": numbers, "high": numbers}, {}))
    ['high', 'low']
    >>> checked_arrays(Pair, {"low": numbers, "high": numbers + 9}, {})
    Traceback (most recent call last):
    ...
    ValueError: 'high' has values that it cannot have
    """
    found = {}
    for name, (dtype, limits) in array_fields(kind).items():
        if name not in arrays:
            raise ValueError(f"{name!r} is missing")
        array = arrays[name]
        if array.dtype.newbyteorder("=") != dtype:
            raise ValueError(f"{name!r} has numbers of another type")
        letters = limits.shape.split()
        if array.ndim != len(letters) or any(
            sizes.setdefault(letter, size) != size for letter, size in zip(letters, array.shape, strict=True)
        ):
            raise ValueError(f"{name!r} has another shape")
        if not ((array >= limits.least) & (array <= limits.most)).all():  # NaN is neither
            raise ValueError(f"{name!r} has values that it cannot have")
        found[name] = np.ascontiguousarray(array, dtype=dtype)
    return found
