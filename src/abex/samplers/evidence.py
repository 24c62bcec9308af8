r"""Draws by the weights :math:`w_k=\mathrm{erfc}\sqrt{x_k}`, :math:`x_k=N_kD(\hat\mu_k,V_k,\hat\mu^*,b)`, of many arms.

An arm that does not lead is drawn with probability :math:`w_k/K`, the leader with what is left. Every pull of the leader moves
the largest mean :math:`\hat\mu^*` and the highest reward b, and with them the weight of every other arm; yet nothing is summed:
take one of the K arms, all alike, and play it with probability :math:`w_k`, which is at most 1, else the leader.

**Proof that this is exact.** Arm k is taken and played with probability :math:`\frac1K\cdot w_k`; all else is the leader's.
Up to rounding: a number between 0 and 1 is a multiple of :math:`2^{-53}`, so a weight below that is drawn as if it were
:math:`2^{-53}`, and a weight of more than 700 nats is 0.

**Newcomers.** The last n arms may have come later than the others. Every second time the arm is taken among them alone, so
that arm k is taken with probability :math:`q_k=\frac1{2K}+\frac1{2n}` if it is one of them, else :math:`\frac1{2K}`, and
drawn with :math:`q_kw_k`. While it was never observed it is drawn with 1/K all the same, by the weight
:math:`\frac1{Kq_k}`: where rewards come late it may not have more than its share before anything is known of it.

**Cost.** One weight for each draw. An observation replays the matches of its arm in a tournament of means, which knows who
leads: :math:`O(\log K)`. Most draws of an arm with much evidence against it need no logarithm: with
:math:`g=\hat\mu^*-\hat\mu_k` and :math:`r=b-\hat\mu_k`, Pinsker's inequality says
:math:`x_k\ge y=2N_k\big(\frac{gr}{V_k+r^2}\big)^2`, and :math:`w_k\le e^{-y}\le1/(1+y+\frac{y^2}2+\frac{y^3}6)`.

Where counts fade, the weight of the arm that is looked at is worked out from what is left of them: who leads depends on means
alone, and on counts beside each other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, compile_alone, kernel, rare_kernel, single_dispatch
from abex.samplers.interface import changed, draw, stretch_of
from abex.support.divergence import two_moment_divergence
from abex.support.randomness import below

UPPER_END = 1.0  # of rewards
NEWCOMERS = 0.5  # how often an arm is taken among them alone
MAX_LOG = 700.0  # weights below exp(-700) are 0
INTERPRETED = 2_000  # arms up to which Python plays the tournament of a new record


class MeanTournament(Record):
    """Who has the largest mean, and would have it among the arms below every node of a tree."""

    winners: NDArray[np.int32]  # (2P,), root at 1, arm k at P + k, -1 where none was observed
    newcomers: int  # n


def new_mean_tournament(state: Any) -> MeanTournament:
    """The tournament of the means of a state."""
    n_arms = state.observations.size
    sampler = MeanTournament(winners=np.full(2 << (n_arms - 1).bit_length(), -1, np.int32))
    play = play_all if n_arms <= INTERPRETED else compile_alone(play_all)
    play(sampler, state)
    return sampler


@kernel
def count_of(state: Any, arm: int) -> float:
    """How many observations of an arm speak."""
    return state.observations[arm] / stretch_of(state.memory)  # type: ignore[no-any-return]


@kernel
def leads(state: Any, one: int, other: int) -> bool:
    """Whether an arm comes before another: by its mean, among equals the less observed, then by number; -1 is none."""
    if one < 0 or other < 0:
        return one >= 0
    if state.means[one] != state.means[other]:
        return bool(state.means[one] > state.means[other])
    if state.observations[one] != state.observations[other]:
        return bool(state.observations[one] < state.observations[other])
    return one < other


@rare_kernel
def play_all(sampler: Any, state: Any) -> None:
    """Every match."""
    winners = sampler.winners
    size = winners.size >> 1
    for k in range(state.observations.size):
        winners[size + k] = k if state.observations[k] > 0.0 else -1
    for node in range(size - 1, 0, -1):
        one, other = winners[2 * node], winners[2 * node + 1]
        winners[node] = one if leads(state, one, other) else other


@changed.register(MeanTournament)
@kernel
def replay(sampler: Any, state: Any, arm: int) -> None:
    """The matches of an arm that was observed, or of which nothing is known any more."""
    winners = sampler.winners
    node = (winners.size >> 1) + arm
    winners[node] = arm if state.observations[arm] > 0.0 else -1
    while node > 1:
        rival = winners[node ^ 1]
        winner = winners[node] if leads(state, winners[node], rival) else rival
        node >>= 1
        if winners[node] == winner and winner != arm:
            return  # nothing changes further up
        winners[node] = winner


@kernel
def leading_arm(sampler: Any) -> int:
    """The arm of the largest mean, among equals the least observed; -1 before the first observation."""
    return int(sampler.winners[1])


@kernel
def take_arm(sampler: MeanTournament, n_arms: int, rng: Any) -> int:
    """An arm, all alike; every second time one of the newcomers."""
    if sampler.newcomers > 0 and rng.random() < NEWCOMERS:
        return n_arms - 1 - below(sampler.newcomers, rng)
    return below(n_arms, rng)


@kernel
def rarity_of(sampler: MeanTournament, arm: int, n_arms: int) -> float:
    """One over the probability that an arm is taken."""
    if sampler.newcomers == 0:
        return float(n_arms)
    chance = (1.0 - NEWCOMERS) / n_arms
    if arm >= n_arms - sampler.newcomers:
        chance += NEWCOMERS / sampler.newcomers
    return 1.0 / chance


@kernel
def unseen_weight(state: Any, arm: int) -> float:
    """The weight of an arm that was never observed."""
    n_arms = state.observations.size
    return float(min(rarity_of(state.sampler, arm, n_arms) / n_arms, 1.0))


@kernel
def highest_reward(state: Any, cautious: bool) -> float:
    """What the evidence allows for: a cautious step for rewards higher than those seen."""
    return UPPER_END if cautious else float(state.largest_reward)


@single_dispatch
def moments_of(state: Any, arm: int) -> tuple[float, float]:
    """Mean and variance of an arm that was observed (kernel)."""
    return state.means[arm], state.squares[arm] / state.observations[arm]


@kernel
def weight_of(state: Any, arm: int, lead: int, cautious: bool) -> float:
    """The weight of an arm that does not lead."""
    if state.observations[arm] == 0.0:
        return unseen_weight(state, arm)
    highest = highest_reward(state, cautious)
    mean, variance = moments_of(state, arm)
    goal, _ = moments_of(state, lead)
    x = count_of(state, arm) * two_moment_divergence(mean, variance, goal, highest)
    return 0.0 if x > MAX_LOG else math.erfc(math.sqrt(x))


@kernel
def surely_above(state: Any, arm: int, lead: int, cautious: bool, u: float) -> bool:
    """Whether a number is above the weight of an observed arm by a bound that costs little; False says nothing."""
    mean, variance = moments_of(state, arm)
    goal, _ = moments_of(state, lead)
    room = highest_reward(state, cautious) - mean
    total = variance + room * room
    if total <= 0.0:
        return False
    apart = (goal - mean) * room / total
    y = 2.0 * count_of(state, arm) * apart * apart
    return bool(u * (1.0 + y * (1.0 + y * (0.5 + y / 6.0))) > 1.0)


@draw.register(MeanTournament)
@kernel
def draw_by_evidence(sampler: Any, state: Any, cautious: bool, rng: Any) -> int:
    """An arm that is taken, if its weight lets it, else the leader."""
    arm = take_arm(sampler, state.observations.size, rng)
    lead = leading_arm(sampler)
    if lead < 0 or arm == lead:
        return arm
    if state.observations[arm] == 0.0:
        weight = unseen_weight(state, arm)
        return arm if weight == 1.0 or rng.random() < weight else lead
    u = rng.random()
    if surely_above(state, arm, lead, cautious, u) or u >= weight_of(state, arm, lead, cautious):
        return lead
    return arm
