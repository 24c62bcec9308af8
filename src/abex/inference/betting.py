r"""Bets on propensities: an e-process for each arm against "this arm is the best", which seasons do not fool.

Fixed before decision t: the leader l, the arm of the largest mean m so far, and the probabilities p with which the arm is drawn.
Against k is bet where the arm drawn is l or k and both had p > 0. With :math:`\pi_l=p_l/(p_l+p_k)`, :math:`\pi_k=1-\pi_l`,
:math:`c=\pi_lm_l+\pi_km_k` and the reward x, :math:`y=\pi_k(x-c)` if l was drawn and :math:`y=-\pi_l(x-c)` if k was,

.. math:: W_{kj}\leftarrow W_{kj}\Big(1+\min\Big\{\frac{b_j}{\sqrt{c(1-c)}},\frac{0.95}{\max\{c,1-c\}}\Big\}\,y\Big),
          \qquad b_j=0.01\cdot2^j.

Given the past the mean of y is :math:`\pi_l\pi_k(\mu_l-\mu_k)` whatever c is: at most 0 while k is the best. So the mean of
:math:`W_{kj}` over j reaches 1/risk with probability at most the risk while k is the best, and a wrong winner needs just that.
Levels may move as they like, together, as long as the best arm stays the best.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, compile_alone, kernel
from abex.kinds import Count, Score, Total

STAKES = tuple(0.01 * 2.0**j for j in range(8))  # the b_j
MOST_STAKE = 0.95  # of what a bet can lose
RICHEST = 1e140  # wealth beyond is given away
MOST_COMPARED = 1_000  # arms: of more than these only sums are kept


class Comparison(Record):
    """What is known of arms that are compared: sums of all plays, of those that an arm made as the leader, and bets."""

    observations: Count  # float64 (K,)
    sums: Total  # float64 (K,)
    squares: Total  # float64 (K,), sums of squares
    leading: Count  # float64 (K,), plays of the arm while it led
    leading_sums: Total  # float64 (K,)
    led: Count  # float64 (K,), decisions of which bets were settled while the arm led
    wealth: Score  # float64 (K, 8), of the bets against each arm
    evidence: Score  # float64 (K,), the largest mean wealth so far


def new_comparison(n_arms: int) -> Comparison:
    """Nothing observed, and nothing won."""
    compared = n_arms if n_arms <= MOST_COMPARED else 0
    return Comparison(
        observations=np.zeros(n_arms),
        sums=np.zeros(n_arms),
        squares=np.zeros(n_arms),
        leading=np.zeros(compared),
        leading_sums=np.zeros(compared),
        led=np.zeros(compared),
        wealth=np.ones((compared, len(STAKES))),
        evidence=np.ones(compared),
    )


@kernel
def leading_arm(state: Comparison) -> int:
    """The first arm of the largest mean among those observed, -1 before all observations."""
    best, top = -1, -1.0
    for k in range(len(state.sums)):
        if state.observations[k] > 0.0 and state.sums[k] > top * state.observations[k]:
            best, top = k, state.sums[k] / state.observations[k]
    return best


@kernel
def bet(state: Comparison, lead: int, rival: int, arm: int, reward: float, probabilities: Any) -> None:
    """Settle the bets against ``rival`` where it or the leader was drawn."""
    one, other = 1.0 * probabilities[lead], 1.0 * probabilities[rival]  # of 64 bits, whatever they were
    share = one / (one + other)
    c = share * (state.sums[lead] + 0.5) / (state.observations[lead] + 1.0)
    c += (1.0 - share) * (state.sums[rival] + 0.5) / (state.observations[rival] + 1.0)
    y = (1.0 - share) * (reward - c) if arm == lead else -share * (reward - c)
    scale, most = 1.0 / math.sqrt(c * (1.0 - c)), MOST_STAKE / max(c, 1.0 - c)
    wealth = state.wealth[rival]
    total = 0.0
    for j in range(len(wealth)):
        wealth[j] = min(wealth[j] * (1.0 + min(STAKES[j] * scale, most) * y), RICHEST)
        total += wealth[j]
    state.evidence[rival] = max(state.evidence[rival], total / len(wealth))


@kernel
def take_in(state: Comparison, arm: int, reward: float, probabilities: Any) -> None:
    """Learn that ``arm``, drawn with these probabilities, paid ``reward`` in [0, 1]; where they are all 0 nothing is bet."""
    if len(state.evidence) > 0:
        lead = leading_arm(state)
        if arm == lead:
            state.leading[arm] += 1.0
            state.leading_sums[arm] += reward
        if lead >= 0 and 0.0 < probabilities[lead] <= 1.0 and 0.0 < probabilities[arm] <= 1.0:
            state.led[lead] += 1.0
            if arm == lead:
                for k in range(len(state.sums)):
                    if k != lead and 0.0 < probabilities[k] <= 1.0:
                        bet(state, lead, k, arm, reward, probabilities)
            else:
                bet(state, lead, arm, arm, reward, probabilities)
    state.observations[arm] += 1.0
    state.sums[arm] += reward
    state.squares[arm] += reward * reward


@kernel
def left_over(state: Comparison, bar: float) -> int:
    """The one arm against which no bet has reached ``bar``; -1 while there are several, -2 where there is none."""
    found = -2
    for k in range(len(state.evidence)):
        if state.evidence[k] < bar:
            if found >= 0:
                return -1
            found = k
    return found


@kernel
def take_in_all(
    state: Comparison, arms: NDArray[np.int64], rewards: Any, probabilities: Any, bar: float
) -> int:
    """Take in decisions in their order, with a row of probabilities each or one for all; where one arm was left over, or -1."""
    found = -1
    for i in range(arms.size):
        take_in(state, arms[i], rewards[i], probabilities[min(i, probabilities.shape[0] - 1)])
        if found < 0 and left_over(state, bar) >= 0:
            found = i
    return found


def compared(
    arms: Any, rewards: Any, probabilities: Any, n_arms: int, risk: float = 0.05
) -> tuple[Comparison, int]:
    """What a log shows by betting, and the row at which the winner was clear, -1 if it never was.

    ``probabilities`` is (rows, K), or (1, K) where they never change. A winner stays: a moment at which one arm is left over is
    looked for row by row.

    >>> state, when = compared([0, 1] * 200, [0.0, 1.0] * 200, [[0.5, 0.5]], 2)
    >>> when, left_over(state, 20.0)
    (14, 1)
    """
    state = new_comparison(n_arms)
    columns = np.asarray(arms, np.int64), np.asarray(rewards, np.float64)
    chances = np.ascontiguousarray(probabilities, np.float64)
    return state, int(compile_alone(take_in_all)(state, *columns, chances, 1.0 / risk))
