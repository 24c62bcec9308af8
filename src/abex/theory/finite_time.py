"""A finite-time regret bound for the exact schedule, at horizons that can be played."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from abex.support.errors import UserError, real_number, whole_number
from abex.theory.bounds import check_gaps
from abex.theory.lemma4 import leak_integral
from abex.theory.schedule import Schedule

SHARES = np.linspace(0.05, 0.95, 19)  # how the gap may be split in `lemma_4_sharp`; each is valid

MAX_STEPS = 10**308  # steps that a float can count


def finite_time_bound(gaps: Iterable[float], horizon: int, schedule: Schedule, eta: float) -> float:
    r"""A regret bound of ours for any rounding and any horizon: the exact schedule with `lemma_4_sharp`.

    .. math:: \mathbb{E}[R(T)] \le \sum_{i\le i_T}\Big[\sum_k\Delta_k e_{i,k}
              + \min\Big\{L_i\max_k\Delta_k,\ \sum_k\Delta_k\min_\theta\big(2L_i e^{-n_i\theta^2\Delta_k^2/2}
              + \sum_{t\in\text{phase }i}e^{-\eta(1-\theta)\Delta_k\sqrt{t-1}}\big)\Big\}\Big]

    where epoch i has :math:`e_{i,k}` exploration pulls of arm k and :math:`L_i` Boltzmann slots up to T,
    and every arm has been observed :math:`n_i` times before them. In a graph all pulls of a sweep are
    charged the largest gap.

    >>> bandit = Schedule(n_arms=4, c=8.0, alpha=0.5, rounding="carry")
    >>> round(finite_time_bound([0.5] * 3, 10**5, bandit, eta=1.0))
    521
    """
    gaps = check_gaps(gaps)
    if gaps.size + 1 != schedule.n_arms:
        raise UserError(f"gaps must be those of {schedule.n_arms - 1} sub-optimal arms, got {gaps.size}")
    horizon = whole_number("horizon", horizon, least=1, most=MAX_STEPS)
    eta = real_number("eta", eta, above=0.0)
    values, counts = np.unique(gaps, return_counts=True)
    weights, largest = values * counts, float(values[-1])
    regret = 0.0
    for epoch in schedule.epochs():
        if epoch.first > horizon:
            break
        slots = min(epoch.boltzmann, horizon - epoch.last_exploration)
        if slots > 0:
            first = float(epoch.last_exploration)  # t - 1 for the first Boltzmann slot t
            observations = (epoch.explored_before + epoch.exploration) // schedule.sweep
            exponent = values[:, None] * (1.0 - SHARES) * eta
            leak = np.exp(-exponent * math.sqrt(first)) + leak_integral(exponent, first, first + slots - 1.0)
            misjudged = 2.0 * slots * np.exp(-observations * (values[:, None] * SHARES) ** 2 / 2.0)
            regret += min(slots * largest, float(weights @ np.min(leak + misjudged, axis=1)))
    explored = schedule.exploration_slots(horizon)
    if schedule.covers is None:
        regret += float(weights.sum()) * -(-explored // schedule.sweep)
    else:
        regret += largest * explored
    return min(regret, horizon * largest)
