r"""Boltzmann-Gumbel exploration without a draw for every arm: only for those that can win.

The perturbed mean :math:`\hat\mu_k+Z_k/s_k`, :math:`s_k=\sqrt{N_k}/C`, with Gumbel noise is the largest point of a
Poisson process of intensity :math:`s_k e^{-s_k(x-\hat\mu_k)}`: it has :math:`\lambda_k=e^{-s_k(L-\hat\mu_k)}` points above a
level L on average, none with probability :math:`\exp(-\lambda_k)=P(Z_k\le s_k(L-\hat\mu_k))`, and their heights
above L are exponential with rate :math:`s_k`. **So, exactly:** the number of points of all arms above L is Poisson with mean
:math:`\Lambda=\sum\lambda_k`, each belongs to arm k with probability :math:`\lambda_k/\Lambda` (drawn from `Buckets` of
:math:`\ln\lambda_k`, whose rejected trials thin a Poisson process of the larger rate of the bounds), and the highest one wins.
If there is none, all arms are drawn given that they are below L: :math:`\hat\mu_k-\ln(E_k+\lambda_k)/s_k` with
exponential :math:`E_k`. L is chosen such that :math:`\Lambda\approx\ln K`: then that happens once in about K steps.

**The leader**, an arm with about the most points, is kept apart. Of it only the largest point matters: it is no higher than
the highest point x of the others (or L) with probability :math:`\exp(-e^{-s(x-\hat\mu)})`, which one uniform number decides,
however many points it has. Late in a run, when one arm wins nearly always, the others have hardly a point above L and a step
is that one number.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel, rare_kernel, single_dispatch
from abex.samplers import crossover
from abex.samplers.bounded_scan import BoundedScan, new_bounded_scan, sound_scan
from abex.samplers.buckets import Buckets, new_buckets
from abex.samplers.interface import changed, distribution, draw
from abex.samplers.largest_gumbel import largest_gumbel, largest_line
from abex.samplers.sound_buckets import sound_buckets
from abex.samplers.trials import drop_bounds, make_fit, refile, try_arm, unseen_arm
from abex.schema import ArmNumbers, Checked, Rebuilt, Scratch, Within, agree
from abex.support.randomness import argmax, share_among_largest

NOWHERE = 1e300
APART = -1e4  # the logarithm filed for an arm that is drawn anyway: no trial finds it
LEADER_SHARE = 0.5  # of a point of another arm


class GumbelScan(NamedTuple):
    """Room for the perturbed means of all arms."""

    score: Annotated[NDArray[np.float64], Scratch()]  # (K,)


class Threshold(Scalars):
    """The level L, and what is kept with it."""

    level: Annotated[float, Within(-NOWHERE, NOWHERE)]  # NOWHERE before the first decision
    leader: Annotated[
        int, ArmNumbers(least=-1)
    ]  # the arm kept apart: filed as `APART`; -1 while there is no L
    zero: Annotated[float, Checked()]  # a zero of the buckets' weights, see `average_exceeding`
    unit: Annotated[float, Checked()]  # points on average for a mass of 1 there


class GumbelExceedance(NamedTuple):
    """The logarithms of what exceeds the level L on average, filed, and L."""

    steep: Annotated[NDArray[np.float64], Rebuilt()]  # (K,), s_k
    logs: Annotated[NDArray[np.float64], Rebuilt()]  # (K,), ln lambda_k
    buckets: Annotated[Any, Checked()]  # `Buckets`, for few arms a `BoundedScan`
    threshold: Annotated[Threshold, Checked()]

    def restored(self, state: Any, fresh: Any) -> GumbelExceedance:
        """The logarithms follow from means, L and leader; buckets that do not file them are made anew, and so is L."""
        seen = state.observations > 0.0
        steep = np.sqrt(state.observations) / state.scale
        level, leader = self.threshold.level, self.threshold.leader
        nowhere = level == NOWHERE
        agree(nowhere == (leader < 0), "leader must be an arm where there is a level")
        if nowhere:
            logs = np.where(seen, 0.0, math.inf)
        else:
            agree(bool(seen.all()), "there must be no level before every arm was observed")
            logs = steep * (state.means - level)
            logs[leader] = APART
        if sound_bounds(self.buckets, logs, seen) is not self.buckets:
            return new_exceedance(state.observations, state.scale)
        threshold = Threshold(level=level, leader=leader, zero=NOWHERE)
        return self._replace(steep=steep, logs=logs, threshold=threshold)


def new_gumbel(
    observations: NDArray[np.float64], scale: float, independent: bool
) -> GumbelScan | GumbelExceedance:
    """A sampler of the largest perturbed mean for arms observed so often; noise that arms share is scanned."""
    n = observations.size
    if n <= crossover.GUMBEL or not independent:
        return GumbelScan(np.zeros(n))
    return new_exceedance(observations, scale)


def new_bounds(observations: NDArray[np.float64]) -> Buckets | BoundedScan:
    """For trials of arms observed so often."""
    if observations.size > crossover.SOFTMAX:
        return new_buckets(observations, math.inf)
    return new_bounded_scan(observations.size)


def sound_bounds(
    bounds: Buckets | BoundedScan, logs: NDArray[np.float64], seen: NDArray[np.bool_]
) -> Buckets | BoundedScan:
    """The bounds of a file if they hold, else new ones."""
    if isinstance(bounds, BoundedScan):
        return sound_scan(bounds, logs)
    return sound_buckets(bounds, logs, seen, math.inf)


def new_exceedance(observations: NDArray[np.float64], scale: float) -> GumbelExceedance:
    """No level yet."""
    return GumbelExceedance(
        steep=np.sqrt(observations) / scale,
        logs=np.where(observations > 0.0, 0.0, math.inf),
        buckets=new_bounds(observations),
        threshold=Threshold(level=NOWHERE, leader=-1, zero=NOWHERE),
    )


@draw.register(GumbelScan)
@kernel
def largest_of_all(sampler: GumbelScan, state: Any, t: int, rng: Any) -> int:
    """The largest perturbed mean, found by drawing the noise of every arm."""
    noise = 0.0
    if state.shared_noise:
        noise = -state.scale * math.log(rng.standard_exponential())
    for k in range(state.means.size):
        if not state.shared_noise and state.observations[k] > 0.0:
            noise = -state.scale * math.log(rng.standard_exponential())
        if state.observations[k] > 0.0:
            sampler.score[k] = state.means[k] + noise / math.sqrt(state.observations[k])
        elif state.shared_noise:
            sampler.score[k] = math.copysign(math.inf, noise)
        else:
            sampler.score[k] = math.inf
    return argmax(sampler.score, rng)


@changed.register(GumbelScan)
@kernel
def changed_by_scan(sampler: GumbelScan, state: Any, arm: int) -> None:
    """A scan remembers nothing."""


@kernel
def average_exceeding(buckets: Any, threshold: Any) -> float:
    """An upper bound on the average number of points above the level: the rate of trials."""
    grid = buckets.grid
    if threshold.zero != grid.zero:  # the exponential is worth remembering
        threshold.zero = grid.zero
        threshold.unit = math.exp(grid.zero) / grid.one
    return float(grid.total * threshold.unit)


@kernel
def poisson(average: float, rng: Any) -> int:
    """A Poisson number of a small average, by inversion: one uniform number, where a clock takes one a point."""
    rest = rng.random()
    count = 0
    if rest < 1.0 - average:  # below exp(-average)
        return count
    chance = math.exp(-average)
    while rest >= chance and count < 1000:
        rest -= chance
        count += 1
        chance *= average / count
    return count


@single_dispatch
def steep_of(sampler: Any, state: Any, arm: int) -> float:
    """S of an arm (kernel)."""
    return sampler.steep[arm]  # type: ignore[no-any-return]


@kernel
def log_exceeding(sampler: Any, state: Any, arm: int) -> float:
    """Ln lambda of an arm."""
    return steep_of(sampler, state, arm) * (state.means[arm] - sampler.threshold.level)  # type: ignore[no-any-return]


@single_dispatch
def filed_log(sampler: Any, state: Any, arm: int) -> float:
    """What is filed of an arm: at least ln lambda (kernel)."""
    return log_exceeding(sampler, state, arm)


@single_dispatch
def is_point(sampler: Any, state: Any, arm: int, rng: Any) -> bool:
    """Whether a point filed for the arm is one of its points (kernel)."""
    return True


@kernel
def burden(others: float, leader: float) -> float:
    """What a step pays for points above the level: the leader's cost nothing, but a level far too low costs others."""
    return others + LEADER_SHARE * leader


@single_dispatch
def bearable(sampler: Any, load: float, target: float) -> bool:
    """Whether a `burden` is near enough to that of the level's choice (kernel)."""
    return 0.8 * target < load < 1.3 * target + 0.6


@single_dispatch
def level_chosen(sampler: Any, load: float) -> None:
    """A level was chosen, with this `burden` (kernel)."""


@rare_kernel
def choose_level(sampler: Any, state: Any, target: float) -> None:
    """The level whose `burden` is ``target``, by bisection; then the leader and all logarithms anew."""
    n_arms, threshold = state.means.size, sampler.threshold
    low, high = -math.inf, -math.inf
    for k in range(n_arms):
        spread = 1.0 / steep_of(sampler, state, k)
        low = max(low, state.means[k] - spread * math.log(target / LEADER_SHARE))  # so much for one arm alone
        high = max(high, state.means[k] - spread * math.log(target / n_arms))  # no arm does its share
    leader = 0
    for _ in range(40):
        threshold.level = 0.5 * (low + high)
        others = 0.0
        most = -math.inf
        for k in range(n_arms):
            log = min(log_exceeding(sampler, state, k), 50.0)
            others += math.exp(log)
            if log > most:
                leader, most = k, log
        average = burden(others - math.exp(most), math.exp(most))
        if average > 1.1 * target:
            low = threshold.level
        elif average < 0.9 * target:
            high = threshold.level
        else:
            break
    for k in range(n_arms):
        sampler.logs[k] = filed_log(sampler, state, k)
    threshold.leader = leader
    sampler.logs[leader] = APART
    drop_bounds(sampler.buckets)
    make_fit(sampler.buckets, sampler.logs, 1.0)


@rare_kernel
def highest_below(sampler: Any, state: Any, rng: Any) -> int:
    """The best arm given that no arm exceeds the level."""
    best, top = 0, -math.inf
    for k in range(state.means.size):
        spent = math.log(rng.standard_exponential() + math.exp(log_exceeding(sampler, state, k)))
        value = state.means[k] - spent / steep_of(sampler, state, k)
        if value > top:
            best, top = k, value
    return best


@rare_kernel
def replace_leader(sampler: Any, state: Any, arm: int) -> None:
    """Another arm has the most points: the old leader goes back to the others."""
    old = sampler.threshold.leader
    sampler.threshold.leader = arm
    sampler.logs[arm] = APART
    sampler.logs[old] = filed_log(sampler, state, old)
    refile(sampler.buckets, arm, sampler.logs[arm])
    refile(sampler.buckets, old, sampler.logs[old])


@draw.register(GumbelExceedance)
@kernel
def draw_exceeding(sampler: GumbelExceedance, state: Any, t: int, rng: Any) -> int:
    """The largest perturbed mean."""
    return largest_of_exceeding(sampler, state, rng)


@kernel
def largest_of_exceeding(sampler: Any, state: Any, rng: Any) -> int:
    """The largest perturbed mean."""
    buckets, threshold = sampler.buckets, sampler.threshold
    unseen = unseen_arm(buckets, sampler.logs, rng)
    if unseen >= 0:
        return unseen
    target = max(1.5, math.log(state.means.size) - 0.5)
    others, leading = 0.0, 0.0
    if threshold.level != NOWHERE:
        make_fit(buckets, sampler.logs, 1.0)
        others = average_exceeding(buckets, threshold)
        leading = math.exp(min(log_exceeding(sampler, state, threshold.leader), 50.0))
    if not bearable(sampler, burden(others, leading), target):
        choose_level(sampler, state, target)
        others = average_exceeding(buckets, threshold)
        leading = math.exp(log_exceeding(sampler, state, threshold.leader))
        level_chosen(sampler, burden(others, leading))
    best, top = -1, 0.0
    for _ in range(poisson(others, rng)):
        arm = try_arm(buckets, sampler.logs, 1.0, rng)
        if arm >= 0 and is_point(sampler, state, arm, rng):
            height = rng.standard_exponential() / steep_of(sampler, state, arm)
            if height > top:
                best, top = arm, height
    leader = int(threshold.leader)
    if best >= 0:
        leading *= math.exp(
            -steep_of(sampler, state, leader) * top
        )  # the leader's points above the best of the others
    if rng.random() >= math.exp(-leading):
        return leader
    return best if best >= 0 else highest_below(sampler, state, rng)


@changed.register(GumbelExceedance)
@kernel
def changed_exceedance(sampler: GumbelExceedance, state: Any, arm: int) -> None:
    """How often a perturbed mean exceeds the level has changed."""
    sampler.steep[arm] = math.sqrt(state.observations[arm]) / state.scale
    learn_exceedance(sampler, state, arm)


@kernel
def learn_exceedance(sampler: Any, state: Any, arm: int) -> None:
    """File the arm where it belongs now."""
    threshold = sampler.threshold
    if arm != threshold.leader:
        log = 0.0
        if threshold.level != NOWHERE:
            log = filed_log(sampler, state, arm)
        sampler.logs[arm] = log
        refile(sampler.buckets, arm, log)
        if threshold.level != NOWHERE and log > log_exceeding(sampler, state, threshold.leader) + 1.0:
            replace_leader(sampler, state, arm)


@kernel
def share_unseen(state: Any, out: Any) -> bool:
    """Whether arms never observed, which come first, share all probability; if not, ``out`` is 0."""
    fresh = 0
    for k in range(out.size):
        fresh += 1 if state.observations[k] == 0.0 else 0
        out[k] = 0.0
    if fresh > 0:
        share_among_largest(state.means, 1.0, out)
    return fresh > 0


@distribution.register(GumbelScan)
@kernel
def distribution_of_scan(sampler: GumbelScan, state: Any, t: int, out: Any) -> None:
    """The probability of each arm to have the largest perturbed mean; arms never observed come first."""
    if state.shared_noise:
        for k in range(out.size):
            out[k] = 0.0
        largest_line(state.means, state.observations, state.scale, out)
    elif not share_unseen(state, out):
        if state.scale == 0.0:
            share_among_largest(state.means, 1.0, out)
            return
        for k in range(out.size):
            sampler.score[k] = math.sqrt(state.observations[k]) / state.scale
        largest_gumbel(state.means, sampler.score, out)


@distribution.register(GumbelExceedance)
@kernel
def distribution_of_exceedance(sampler: GumbelExceedance, state: Any, t: int, out: Any) -> None:
    """As by a scan, which has to work out how steep the arms are."""
    if not share_unseen(state, out):
        largest_gumbel(state.means, sampler.steep, out)
