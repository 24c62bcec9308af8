r"""The schedule of ABE: exploration sweeps and Boltzmann slots of outer iteration i.

Iteration i = 1, 2, ... first sweeps :math:`c\,i^\alpha` times over the arms, rounded, then plays :math:`K\,2^i` Boltzmann slots.
Sweeps are counted in arms: an iteration has K arms to show for each sweep, an exploration pull takes away the arms that it is the
first of its sweep to show, and the phase lasts while one arm is due. `abex.theory.Schedule` answers questions about it.
"""

from __future__ import annotations

import math

from abex.kernels import kernel

ROUNDINGS = ("floor", "carry", "ceil")  # their positions are the kernels' codes
MAX_ALPHA = 100.0
MAX_DUE = 2.0**53  # arms: more outlast every horizon, and whole floats end here
LAST_DOUBLING = 40  # K * 2^40 slots outlast every horizon that can be played; a larger shift would overflow
TOLERANCE = 1e-9  # 0.29 * 100 is 28.999999999999996 in floating point, and counts as 29


@kernel
def exploration_rate(c: float, alpha: float, iteration: int) -> float:
    r"""Sweeps due in outer iteration i before rounding, :math:`c\,i^\alpha`."""
    return float(c * float(iteration) ** alpha)


@kernel
def whole_sweeps(rate: float) -> int:
    r"""The paper's rounding :math:`\lfloor c\,i^\alpha\rfloor`; TOLERANCE below a whole number counts as it."""
    return math.floor(rate + TOLERANCE)


@kernel
def arms_due(rounding: int, rate: float, n_arms: int, left: float) -> float:
    """Arms that the sweeps of an iteration show: whole sweeps, or with ``carry`` the exact number and what was ``left``."""
    rate = min(rate, MAX_DUE / n_arms)
    if rounding == 0:
        return float(n_arms * whole_sweeps(rate))
    if rounding == 1:
        return left + n_arms * rate
    return float(n_arms * -whole_sweeps(-rate))


@kernel
def explores(due: float) -> bool:
    """Whether the slot is an exploration slot: its sweeps are not over."""
    return due > 1.0 - TOLERANCE


@kernel
def boltzmann_slots(n_arms: int, iteration: int) -> int:
    r"""Length of the Boltzmann phase, :math:`K\,2^i`."""
    return n_arms << min(iteration, LAST_DOUBLING)
