"""What `benchmarks.same` hashes: each subject yields its parts, a name and a text that says all that must stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np

Part = tuple[str, str]


class Absent(Exception):  # noqa: N818 - it is no error
    """What a subject needs is not on this machine."""


def exact(values: Any) -> str:
    """Numbers to the last bit, as text."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return " ".join(float(value).hex() for value in array.ravel())
    return " ".join(str(value) for value in array.ravel().tolist())
