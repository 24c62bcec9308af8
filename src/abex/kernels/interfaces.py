"""What decides how code is compiled here: whether at all, with bounds checked, and with records by reference.

``ABEX_BOUNDS=1`` compiles everything with checks of array bounds; vector instructions have none, so it goes without them.
"""

from __future__ import annotations

import os
import warnings
from functools import cache

from abex.kernels.cache import CompilerWarning


@cache
def bounds_checked() -> bool:
    """Whether compiled code checks the bounds of arrays."""
    return os.environ.get("ABEX_BOUNDS", "") not in ("", "0")


@cache
def interpreted() -> bool:
    """Whether nothing is to be compiled: ``NUMBA_DISABLE_JIT=1``, for a debugger to see Python."""
    import numba

    return bool(numba.config.DISABLE_JIT)


@cache
def layouts_known() -> bool:
    """Whether this Numba holds arrays and generators as records by reference have them; a warning if it does not."""
    if interpreted():
        return False
    from abex.kernels.reference_type import layouts_are_known

    known = layouts_are_known()
    if not known:
        warnings.warn(
            "this version of Numba holds arrays otherwise than those that abex knows: records go by value, which is slower",
            CompilerWarning,
            stacklevel=3,
        )
    return known
