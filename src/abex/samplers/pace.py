r"""How a sampler keeps pace with counts that fade at every step, looking at few arms a step.

All counts shrink by :math:`\gamma` a step, so what a sampler has filed of an arm holds for a moment only. It files *bounds* that
hold for the next :math:`\lceil K/r\rceil+1` steps, and renews those of r arms a step, in turn: no bound is ever older than it may
be, and the draws, which accept an arm with the quotient of what it has now and its bound, are exact. Where K is far beyond the
memory :math:`1/(1-\gamma)` such bounds are loose, but then nearly nothing is known of nearly all arms, and what there is to be
known soon fades.
"""

from __future__ import annotations

from typing import Annotated, Any

from abex.kernels import Scalars, kernel, single_dispatch
from abex.schema import MOST_COUNT, Count, Within

UNPACED = -1


class Pace(Scalars):
    """By how much the counts in the state are too large now, and how far the bounds have been renewed."""

    step: Annotated[int, Count()]
    factor: Annotated[float, Within(1.0, MOST_COUNT)]  # counts are so many times as large as they should be
    root: Annotated[float, Within(1.0, MOST_COUNT)]  # its square root
    renewed: Annotated[
        int, Within(UNPACED, MOST_COUNT)
    ]  # the step up to which bounds are; UNPACED if none is
    cursor: Annotated[int, Count()]  # the arm whose turn is next


@single_dispatch
def set_pace(sampler: Any, step: int, factor: float, root: float) -> None:
    """Counts are ``factor`` times too large at this step (kernel)."""


@single_dispatch
def renew_bound(sampler: Any, state: Any, arm: int) -> None:
    """File a bound that holds from now on until all have been renewed (kernel)."""
    raise TypeError


@single_dispatch
def renew_all(sampler: Any, state: Any) -> None:
    """File bounds for all arms (kernel)."""
    raise TypeError


def lasting(n_arms: int, each: int) -> int:
    """For how many steps a bound must hold where so many are renewed at each."""
    return -(-n_arms // each) + 1


@kernel
def move_pace(sampler: Any, step: int, factor: float, root: float) -> None:
    """`set_pace` of samplers whose bounds go by a `Pace`: write what the memory says."""
    pace = sampler.pace
    pace.step = step
    pace.factor = factor
    pace.root = root


@kernel
def keep_renewed(sampler: Any, state: Any, n_arms: int, each: int) -> None:
    """Renew so many bounds for each step since the last decision; all, where that was long ago or steps have gone backwards."""
    pace = sampler.pace
    due = (pace.step - pace.renewed) * each
    if due == 0:
        return
    if pace.renewed == UNPACED or due < 0 or due > n_arms:
        renew_all(sampler, state)
    else:
        for _ in range(due):
            renew_bound(sampler, state, pace.cursor)
            pace.cursor = pace.cursor + 1 if pace.cursor + 1 < n_arms else 0
    pace.renewed = pace.step
