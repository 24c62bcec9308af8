"""What Numba reads before it compiles anything, without SciPy's linear algebra.

Numba imports ``scipy.linalg`` to see whether it is there. That takes 0.15 to 0.2 s of a first start, and no kernel needs it;
functions that do, such as ``np.dot``, import it when they are compiled.
"""

from __future__ import annotations

import sys
from functools import cache

from abex.extras import installed


@cache
def without_linear_algebra() -> None:
    """Let Numba read its registries now, and take it for granted that SciPy is whole where it is installed."""
    if "numba.np.arraymath" in sys.modules or not installed("scipy"):
        return
    try:
        from numba.np import linalg

        usual = linalg.ensure_blas
    except (ImportError, AttributeError):  # another Numba
        return
    linalg.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401 - it asks
    finally:
        linalg.ensure_blas = usual
