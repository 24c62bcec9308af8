"""ABE's schedule: how many exploration sweeps precede the Boltzmann slots of each outer iteration."""

from __future__ import annotations

import math

from abex.kernels import kernel

LAST_DOUBLING = 40  # K * 2^40 slots outlast every horizon we can play; a larger shift would overflow


@kernel
def exploration_rate(c: float, alpha: float, epoch: int) -> float:
    r"""Sweeps due in outer iteration ``epoch`` before rounding, :math:`c\,i^\alpha`."""
    return float(c * float(epoch) ** alpha)


@kernel
def whole_sweeps(rate: float) -> int:
    r"""The paper's rounding :math:`\lfloor c\,i^\alpha\rfloor`; a hair below a whole number counts as it (0.1 * 10 ** 1.0)."""
    return math.floor(rate + 1e-9)


@kernel
def boltzmann_slots(n_arms: int, epoch: int) -> int:
    r"""Length of the Boltzmann phase, :math:`K\,2^i`."""
    return n_arms << min(epoch, LAST_DOUBLING)
