r"""The arm of the largest index :math:`f_k(\ell)`, where the level :math:`\ell` grows with time.

Few arms are scanned, many play a `Tournament`. A policy of this kind (UCB1, UCB-V, KL-UCB, MOSS) is a class
of states, with kernels for its formulas: `level_at` and `index_of` are enough to scan, `reaching_level` (the inverse
of the index) lets the tournament serve a million arms. A state has ``observations``, ``means``, ``sampler`` and ``memory``,
and whatever else its index needs.
"""

from __future__ import annotations

import math
from typing import Any

from abex.kernels import kernel, single_dispatch

NEVER = 1e300
SAFETY = 1e-12  # by so much rounding, and Newton's method, may err


@single_dispatch
def level_at(state: Any, t: float) -> float:
    """What the indices of all arms have in common at step t; it does not fall with t (kernel)."""
    return t


@single_dispatch
def stretch_of(memory: Any) -> float:
    """How many times as large as they should be counts are, in a state with this memory (kernel)."""
    return 1.0


@single_dispatch
def stretched(state: Any, level: float, stretch: float) -> float:
    """The level at which counts that are ``stretch`` times as large have the same indices (kernel).

    This holds where the level stands over the observations; where it stands over their root, the state says so.
    """
    return level * stretch


@kernel
def level_of(state: Any, t: float) -> float:
    """The level of step t for the counts of a state."""
    return stretched(state, level_at(state, t), stretch_of(state.memory))


@single_dispatch
def times_differ(memory: Any) -> bool:
    """Whether arms have times of their own (kernel)."""
    return False


@single_dispatch
def time_of_arm(memory: Any, arm: int, t: float) -> float:
    """The time of an arm at step t, where they differ (kernel)."""
    return t


@single_dispatch
def index_of(state: Any, arm: int, level: float) -> float:
    """The index of an arm, +inf if it was never observed; it does not fall with the level (kernel)."""
    return math.inf


@single_dispatch
def contending_index(state: Any, arm: int, level: float, best: float) -> float:
    """The index of an arm, or anything below ``best`` if the index is: a bound may tell without computing it (kernel)."""
    return index_of(state, arm, level)


@single_dispatch
def first_contender(state: Any) -> int:
    """The arm with which a scan begins, for `contending_index` to know a large index soon; -1 where that is no gain (kernel)."""
    return -1


@single_dispatch
def reaching_level(state: Any, arm: int, value: float) -> float:
    """The level at which the index of an arm reaches a value that is above its mean (kernel)."""
    return 0.0


@single_dispatch
def flat_until(state: Any, arm: int) -> float:
    """The level up to which the index of an arm does not move (kernel)."""
    return 0.0


@single_dispatch
def winner_certain_until(state: Any, champion: int, index: float, loser: int) -> float:
    """A level up to which the loser's index stays below that of the champion, now ``index`` (kernel).

    It cannot win before it has reached what the champion's index was already.
    """
    level = 0.0
    if index - SAFETY > state.means[loser]:
        level = min(reaching_level(state, loser, index - SAFETY), NEVER)
    return max(level, flat_until(state, loser))


@single_dispatch
def same_forever(state: Any, one: int, two: int) -> bool:
    """Whether two arms of about the same mean have the same index at every level: they have seen the same (kernel)."""
    return bool(state.observations[one] == state.observations[two])
