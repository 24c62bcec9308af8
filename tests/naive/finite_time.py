"""The finite-time bound once more, in mpmath with 60 digits: sums and integrals as they are written down."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import mpmath

from abex.theory import Schedule

SHARES = [mpmath.mpf(k) / 20 for k in range(1, 20)]


def leak_integral(a: Any, start: int, end: int) -> Any:
    """Integral of exp(-a sqrt(x)): the difference of two values of its antiderivative."""

    def antiderivative(x: int) -> Any:
        y = a * mpmath.sqrt(x)
        return -2 / a**2 * (1 + y) * mpmath.exp(-y)

    return antiderivative(end) - antiderivative(start)


def finite_time_bound(gaps: list[float], horizon: int, schedule: Schedule, eta: float) -> Any:
    """Bandit feedback only."""
    with mpmath.workdps(60):
        eta, exact = mpmath.mpf(eta), [mpmath.mpf(gap) for gap in gaps]
        regret = sum(exact) * -(-schedule.exploration_slots(horizon) // schedule.sweep)
        for epoch in takewhile(lambda epoch: epoch.first <= horizon, schedule.epochs()):
            before = epoch.last_exploration
            slots = min(epoch.boltzmann, horizon - before)
            if slots <= 0:
                continue
            seen = (epoch.explored_before + epoch.exploration) // schedule.sweep
            total = mpmath.mpf(0)
            for gap in exact:
                total += gap * min(
                    2 * slots * mpmath.exp(-seen * (share * gap) ** 2 / 2)
                    + mpmath.exp(-eta * (1 - share) * gap * mpmath.sqrt(before))
                    + leak_integral(eta * (1 - share) * gap, before, before + slots - 1)
                    for share in SHARES
                )
            regret += min(slots * max(exact), total)
        return min(regret, horizon * max(exact))


def certain_regret(gaps: list[float], horizon: int, schedule: Schedule, eta: float) -> Any:
    r"""What ABE loses in every bandit with these gaps: whole sweeps, and the least chances softmax can leave.

    Observed means lie in [0, 1], so that an arm has at least :math:`e^{-\eta\sqrt{t-1}}/K` in a Boltzmann slot t.
    """
    with mpmath.workdps(30):
        total = sum(mpmath.mpf(gap) for gap in gaps)
        regret = total * schedule.sweeps(horizon)
        for epoch in takewhile(lambda epoch: epoch.first <= horizon, schedule.epochs()):
            last = min(epoch.last, horizon)
            slots = max(0, last - epoch.last_exploration)
            regret += total * slots * mpmath.exp(-mpmath.mpf(eta) * mpmath.sqrt(last - 1)) / (1 + len(gaps))
        return regret


def two_point_bound(gap: float, horizon: int) -> Any:
    r"""What every policy loses in one of two two-armed bandits with this gap (Bretagnolle and Huber 1979).

    Arms 1/2 and 1/2 - gap, or 1/2 and 1/2 + gap: :math:`\max R \ge \frac{T\Delta}{8}e^{-T\,\mathrm{kl}}`.
    """
    with mpmath.workdps(30):
        low, high = mpmath.mpf(0.5) - gap, mpmath.mpf(0.5) + gap
        kl = low * mpmath.log(low / high) + (1 - low) * mpmath.log((1 - low) / (1 - high))
        return horizon * mpmath.mpf(gap) / 8 * mpmath.exp(-horizon * kl)
