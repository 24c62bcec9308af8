"""What decides how code is compiled here: whether at all, and with bounds checked.

``ABEX_BOUNDS=1`` compiles everything with checks of array bounds; vector instructions have none, so it goes without them.
"""

from __future__ import annotations

import os
from functools import cache


@cache
def bounds_checked() -> bool:
    """Whether compiled code checks the bounds of arrays."""
    return os.environ.get("ABEX_BOUNDS", "") not in ("", "0")


@cache
def interpreted() -> bool:
    """Whether nothing is to be compiled: ``NUMBA_DISABLE_JIT=1``, for a debugger to see Python."""
    import numba

    return bool(numba.config.DISABLE_JIT)
