"""Algorithms 1 and 2 of the paper, line by line, without rewards: which arm of xi each step explores."""

from __future__ import annotations

import math
from fractions import Fraction


def play(
    n_arms: int,
    c: float,
    alpha: float,
    horizon: int,
    rounding: str = "floor",
    covers: list[int] | None = None,
):
    """Yield for t = 1..horizon the pair (outer iteration, position in xi or None in a Boltzmann slot)."""
    xi = list(range(n_arms)) if covers is None else list(range(len(covers)))
    covers = [1] * n_arms if covers is None else covers
    t = 0
    credit = Fraction(0)  # arms paid for, exactly
    pointer = 0
    i = 0
    while True:
        i += 1
        rate = c * i**alpha
        rate = Fraction(round(rate)) if abs(rate - round(rate)) < 1e-9 else Fraction(rate)
        if rounding == "carry":
            credit += n_arms * rate
            positions = []
            while credit >= 1 - Fraction(1, 10**9):
                positions.append(pointer)
                credit -= covers[pointer]
                pointer = (pointer + 1) % len(xi)
        else:
            sweeps = math.floor(rate) if rounding == "floor" else math.ceil(rate)
            positions = [j % len(xi) for j in range(len(xi) * sweeps)]  # the paper's j, from 0
        for position in positions:
            t += 1
            yield i, position
            if t == horizon:
                return
        for _ in range(n_arms * 2**i):
            t += 1
            yield i, None
            if t == horizon:
                return
