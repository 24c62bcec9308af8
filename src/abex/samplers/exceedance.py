r"""The largest of random draws, one an arm, without a draw for every arm: only for those that can win.

A level L is chosen above which few draws lie. What exceeds it are *points*, found by trials among exponential weights
(`abex.samplers.buckets`): arm k has :math:`\lambda_k` of them on average, or fewer, and :math:`\ln\lambda_k` is filed. Arms
with many points are excluded from the trials and treated by themselves. The highest point wins; if there is none, which happens
once in about K steps, all arms are drawn given that they are below L.

**Perturbed means** :math:`\hat\mu_k+Z_k/s_k`, :math:`s_k=\sqrt{N_k}/C`, with Gumbel noise. Each is the largest point of a
Poisson process of intensity :math:`s_k e^{-s_k(x-\hat\mu_k)}`: it has :math:`\lambda_k=e^{-s_k(L-\hat\mu_k)}` points above L
on average, none with probability :math:`\exp(-\lambda_k)=P(Z_k\le s_k(L-\hat\mu_k))`, and their heights above L are
exponential with rate :math:`s_k`. **So, exactly:** the number of points of all arms above L is Poisson with mean
:math:`\Lambda=\sum\lambda_k`, and each belongs to arm k with probability :math:`\lambda_k/\Lambda` (rejected trials thin a
Poisson process of the larger rate of the bounds). If there is none, the draws below L are
:math:`\hat\mu_k-\ln(E_k+\lambda_k)/s_k` with exponential :math:`E_k`. L is chosen such that :math:`\Lambda\approx\ln K`.
*The leader*, an arm with about the most points, is excluded. Of it only the largest point matters: it is no higher than the
highest point x of the others (or L) with probability :math:`\exp(-e^{-s(x-\hat\mu)})`, which one uniform number decides,
however many points it has. Late in a run, when one arm wins nearly always, the others have hardly a point above L and a step is
that one number.

**Beta draws** (Thompson sampling). Arm k's draw exceeds L with a probability :math:`p_k` that has no closed form, but for
:math:`a,b\ge 1` the Beta density f is log-concave and lies below its tangent at L,
:math:`g(x)=f(L)e^{-s(x-L)}`, :math:`s=\frac{b-1}{1-L}-\frac{a-1}{L}`, so that
:math:`p_k\le M_k=f(L)\,(1-e^{-s(1-L)})/s`. **So, exactly:** let arm k be called with probability :math:`M_k`,
independently; if called, draw x from g and let it exceed L with the draw x if a coin of chance :math:`f(x)/g(x)` falls;
that has probability :math:`M_k\cdot p_k/M_k`, and x then has the density f given :math:`x>L`. Calls come from a Poisson
process: arm k is called when it has at least one point of rate :math:`\lambda_k=-\ln(1-M_k)`. *Hot* arms, with
:math:`M_k>1/2`, are excluded and drawn as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel
from abex.samplers.bounded_softmax import new_bounded_softmax
from abex.samplers.buckets import ensure_bounds, invalidate, new_buckets, try_arm, unseen_arm
from abex.samplers.interface import changed, distribution, draw, swap_remove
from abex.samplers.largest_beta import largest_beta, stirling_series
from abex.samplers.largest_gumbel import largest_gumbel
from abex.samplers.scan import share_unseen

NO_LEVEL = 1e300
EXCLUDED = -1e4  # the logarithm filed for an arm that is treated by itself: no trial finds it
LEADER_SHARE = 0.5  # of a point of another arm
MAX_HOT = 64
REFITS_AFTER = 4.0  # decisions at which no draw exceeds the level
LOG_HALF = math.log(0.5)
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Exceedance(Record):
    """The level L, and how many points the arms have above it."""

    logs: NDArray[np.float64]  # (K,), ln lambda_k, or `EXCLUDED`
    bounds: Any  # `Buckets` of these, for few arms a `BoundedSoftmax`
    level: float  # L; NO_LEVEL before the first decision
    zero: float  # a zero of the bounds, see `average_points`
    unit: float  # points on average for a mass of 1 there


@kernel
def average_points(sampler: Any) -> float:
    """An upper bound on the average number of points above the level: the rate of trials."""
    bounds = sampler.bounds
    if sampler.zero != bounds.zero:  # the exponential is worth remembering
        sampler.zero = bounds.zero
        sampler.unit = math.exp(bounds.zero) / bounds.one
    return float(bounds.total * sampler.unit)


@kernel
def renew_bounds(sampler: Any) -> None:
    """The logarithms of all arms have changed."""
    invalidate(sampler.bounds)
    ensure_bounds(sampler.bounds, sampler.logs, 1.0)


# -- perturbed means ----------------------------------------------------------------------------------------


class GumbelExceedance(Exceedance):
    """Of means perturbed by Gumbel noise."""

    steep: NDArray[np.float64]  # (K,), s_k
    leader: int  # the arm excluded; -1 while there is no level


def new_gumbel_exceedance(state: Any, few: int) -> GumbelExceedance:
    """No level yet. Up to ``few`` arms have bounds of their own."""
    observations, n = state.observations, state.observations.size
    logs = np.where(observations > 0.0, 0.0, math.inf)
    return GumbelExceedance(
        logs=logs,
        bounds=new_bounded_softmax(n) if n <= few else new_buckets(observations, logs),
        level=NO_LEVEL,
        zero=NO_LEVEL,
        steep=np.sqrt(observations) / state.scale,
        leader=-1,
    )


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


@kernel
def log_exceeding(sampler: GumbelExceedance, state: Any, arm: int) -> float:
    """Ln lambda of an arm."""
    return sampler.steep[arm] * (state.means[arm] - sampler.level)  # type: ignore[no-any-return]


@kernel
def expected_points(others: float, leader: float) -> float:
    """What a step pays for points above the level: the leader's cost nothing, but a level far too low costs others."""
    return others + LEADER_SHARE * leader


@kernel
def level_is_adequate(points: float, target: float) -> bool:
    """Whether so many `expected_points` are near enough to those of a level that is chosen."""
    return 0.8 * target < points < 1.3 * target + 0.6


@rare_kernel
def choose_gumbel_level(sampler: GumbelExceedance, state: Any, target: float) -> None:
    """The level of ``target`` `expected_points`, by bisection; then the leader and all logarithms anew."""
    n_arms = state.means.size
    low, high = -math.inf, -math.inf
    for k in range(n_arms):
        spread = 1.0 / sampler.steep[k]
        low = max(low, state.means[k] - spread * math.log(target / LEADER_SHARE))  # so much for one arm alone
        high = max(high, state.means[k] - spread * math.log(target / n_arms))  # no arm does its share
    leader = 0
    for _ in range(40):
        sampler.level = 0.5 * (low + high)
        others = 0.0
        most = -math.inf
        for k in range(n_arms):
            log = min(log_exceeding(sampler, state, k), 50.0)
            others += math.exp(log)
            if log > most:
                leader, most = k, log
        average = expected_points(others - math.exp(most), math.exp(most))
        if average > 1.1 * target:
            low = sampler.level
        elif average < 0.9 * target:
            high = sampler.level
        else:
            break
    for k in range(n_arms):
        sampler.logs[k] = log_exceeding(sampler, state, k)
    sampler.leader = leader
    sampler.logs[leader] = EXCLUDED
    renew_bounds(sampler)


@rare_kernel
def highest_mean_below(sampler: GumbelExceedance, state: Any, rng: Any) -> int:
    """The largest perturbed mean given that none exceeds the level."""
    best, top = 0, -math.inf
    for k in range(state.means.size):
        spent = math.log(rng.standard_exponential() + math.exp(log_exceeding(sampler, state, k)))
        value = state.means[k] - spent / sampler.steep[k]
        if value > top:
            best, top = k, value
    return best


@draw.register(GumbelExceedance)
@kernel
def largest_perturbed_mean(sampler: GumbelExceedance, state: Any, t: int, rng: Any) -> int:
    """The arm of the largest perturbed mean."""
    bounds = sampler.bounds
    unseen = unseen_arm(bounds, sampler.logs, rng)
    if unseen >= 0:
        return unseen
    target = max(1.5, math.log(state.means.size) - 0.5)
    others, leading = 0.0, 0.0
    if sampler.level != NO_LEVEL:
        ensure_bounds(bounds, sampler.logs, 1.0)
        others = average_points(sampler)
        leading = math.exp(min(log_exceeding(sampler, state, sampler.leader), 50.0))
    if not level_is_adequate(expected_points(others, leading), target):
        choose_gumbel_level(sampler, state, target)
        others = average_points(sampler)
        leading = math.exp(log_exceeding(sampler, state, sampler.leader))
    best, top = -1, 0.0
    for _ in range(poisson(others, rng)):
        arm = try_arm(bounds, sampler.logs, 1.0, rng)
        if arm >= 0:
            height = rng.standard_exponential() / sampler.steep[arm]
            if height > top:
                best, top = arm, height
    leader = int(sampler.leader)
    if best >= 0:
        leading *= math.exp(-sampler.steep[leader] * top)  # the leader's points above the best of the others
    if rng.random() >= math.exp(-leading):
        return leader
    return best if best >= 0 else highest_mean_below(sampler, state, rng)


@changed.register(GumbelExceedance)
@kernel
def changed_mean(sampler: GumbelExceedance, state: Any, arm: int) -> None:
    """The arm has other points above the level; the leader is known by its mean."""
    sampler.steep[arm] = math.sqrt(state.observations[arm]) / state.scale
    if arm == sampler.leader:
        return
    log = 0.0 if sampler.level == NO_LEVEL else log_exceeding(sampler, state, arm)
    sampler.logs[arm] = log
    changed(sampler.bounds, sampler.logs, arm)
    if sampler.level != NO_LEVEL and log > log_exceeding(sampler, state, sampler.leader) + 1.0:
        replace_leader(sampler, state, arm)


@rare_kernel
def replace_leader(sampler: GumbelExceedance, state: Any, arm: int) -> None:
    """Another arm has the most points: the old leader goes back to the others."""
    old = sampler.leader
    sampler.leader = arm
    sampler.logs[arm] = EXCLUDED
    sampler.logs[old] = log_exceeding(sampler, state, old)
    changed(sampler.bounds, sampler.logs, arm)
    changed(sampler.bounds, sampler.logs, old)


@distribution.register(GumbelExceedance)
@kernel
def law_of_largest_perturbed_mean(sampler: GumbelExceedance, state: Any, t: int, out: Any) -> None:
    """As by a scan, which has to work out how steep the arms are."""
    if not share_unseen(state, out):
        largest_gumbel(state.means, sampler.steep, out)


# -- Beta draws ---------------------------------------------------------------------------------------------


class BetaExceedance(Exceedance):
    """Of draws from Beta posteriors."""

    norm: NDArray[np.float64]  # (K,), logarithm of the density's constant
    called: NDArray[np.int64]  # (K,), the last decision that called the arm
    place: NDArray[np.int32]  # (K,), where it stands among the hot arms, -1 elsewhere
    hot: NDArray[np.int64]  # (MAX_HOT,), the arms excluded
    n_hot: int
    log_level: float  # ln L
    rest: float  # 1 - L
    log_rest: float  # ln(1 - L)
    drift: float  # how much has happened since L was chosen
    serial: int  # decisions


def new_beta_exceedance(state: Any) -> BetaExceedance:
    """No level yet."""
    successes, failures = state.successes, state.failures
    n, seen = successes.size, successes + failures > state.prior_successes + state.prior_failures
    return BetaExceedance(
        logs=np.zeros(n),
        bounds=new_buckets(seen.astype(np.float64), np.zeros(n)),
        level=NO_LEVEL,
        zero=NO_LEVEL,
        norm=log_norms(successes, failures),
        called=np.zeros(n, np.int64),
        place=np.full(n, -1, np.int32),
        hot=np.zeros(MAX_HOT, np.int64),
    )


def log_norms(successes: NDArray[np.float64], failures: NDArray[np.float64]) -> NDArray[np.float64]:
    """`log_norm` of every posterior; most of many arms share theirs."""
    pairs, which = np.unique(
        successes + 1j * failures, return_inverse=True
    )  # complex numbers are sorted fast
    return np.array([log_norm(pair.real, pair.imag) for pair in pairs])[which]


@kernel
def log_gamma(x: float) -> float:
    """Ln Gamma(x) for x > 0 to about 1e-14 (Stirling); math.lgamma rounds differently in compiled code."""
    shift = 1.0
    while x < 10.0:
        shift *= x
        x += 1.0
    return (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + stirling_series(x) - math.log(shift)


@kernel
def log_norm(a: float, b: float) -> float:
    """Logarithm of the constant of the Beta density."""
    return log_gamma(a + b) - log_gamma(a) - log_gamma(b)


@kernel
def place_level(sampler: BetaExceedance, logit: float) -> None:
    """Move the level."""
    sampler.level = 1.0 / (1.0 + math.exp(-logit))
    sampler.log_level = -math.log1p(math.exp(-logit))
    sampler.rest = 1.0 / (1.0 + math.exp(logit))
    sampler.log_rest = -math.log1p(math.exp(logit))


@kernel
def steepness(sampler: BetaExceedance, state: Any, arm: int) -> float:
    """How fast the logarithm of the density falls at the level."""
    a, b = state.successes[arm], state.failures[arm]
    return float((b - 1.0) / sampler.rest - (a - 1.0) / sampler.level)


@kernel
def log_envelope(slope: float, width: float) -> float:
    """Logarithm of the integral of exp(-slope x) from 0 to the width."""
    fall = slope * width
    if fall < -50.0:
        return -fall - math.log(-slope)
    return math.log(-math.expm1(-fall) / slope if abs(fall) > 1e-9 else width)


@kernel
def log_density(sampler: BetaExceedance, state: Any, arm: int) -> float:
    """Logarithm of the posterior density at the level."""
    a, b = state.successes[arm], state.failures[arm]
    return float(sampler.norm[arm] + (a - 1.0) * sampler.log_level + (b - 1.0) * sampler.log_rest)


@kernel
def accept_point(sampler: BetaExceedance, state: Any, arm: int, above: float, slope: float, rng: Any) -> bool:
    """Whether a coin of chance f(x)/g(x) falls, so much above the level."""
    log = (state.successes[arm] - 1.0) * math.log1p(above / sampler.level)
    log = log + (state.failures[arm] - 1.0) * math.log1p(-above / sampler.rest) + slope * above
    return bool(log >= 0.0 or rng.random() < math.exp(log))


@kernel
def minus_log_probability_below(sampler: BetaExceedance, state: Any, arm: int) -> float:
    """About -ln(chance that the arm's draw is below the level)."""
    slope, height = steepness(sampler, state, arm), log_density(sampler, state, arm)
    chance = height + log_envelope(slope, sampler.rest)
    if chance <= LOG_HALF:
        return math.exp(chance)
    return max(0.5, -height - log_envelope(-slope, sampler.level))


@kernel
def set_rate(sampler: BetaExceedance, state: Any, arm: int) -> None:
    """The call rate of an arm at the present level; whether it is hot."""
    log = log_density(sampler, state, arm) + log_envelope(steepness(sampler, state, arm), sampler.rest)
    chance = math.exp(min(0.0, log))  # M: no smaller than the chance that the arm's draw exceeds the level
    if chance > 0.5:
        if sampler.place[arm] < 0:
            if sampler.n_hot == MAX_HOT:
                sampler.level = NO_LEVEL  # too many: the next decision chooses another level
                return
            sampler.place[arm] = sampler.n_hot
            sampler.hot[sampler.n_hot] = arm
            sampler.n_hot += 1
        sampler.logs[arm] = EXCLUDED
        return
    if sampler.place[arm] >= 0:
        sampler.n_hot = swap_remove(sampler.hot, sampler.place, sampler.n_hot, arm)
    sampler.logs[arm] = math.log(max(-math.log1p(-chance), 1e-300))


@kernel
def minus_log_probability_of_none(sampler: BetaExceedance, state: Any, logit: float) -> float:
    """Minus the logarithm of the chance that nobody exceeds a level, about; the level is moved there."""
    place_level(sampler, logit)
    total = 0.0
    for k in range(sampler.logs.size):
        total += minus_log_probability_below(sampler, state, k)
    return total


@kernel
def choose_beta_level(sampler: BetaExceedance, state: Any) -> None:
    """The level at which nobody exceeds it once in about K decisions, by bisection; then all rates anew."""
    target = max(2.0, math.log(sampler.logs.size))
    low, high = -30.0, 30.0
    for _ in range(14):
        logit = 0.5 * (low + high)
        if minus_log_probability_of_none(sampler, state, logit) > target:
            low = logit
        else:
            high = logit
    set_level(sampler, state, low)


@rare_kernel
def set_level(sampler: BetaExceedance, state: Any, logit: float) -> None:
    """Move the level there, or higher where too many arms would be hot; all rates anew."""
    n_arms = sampler.logs.size
    place_level(sampler, logit)
    again = True
    while again:
        sampler.n_hot = 0
        for k in range(n_arms):
            sampler.place[k] = -1
        for k in range(n_arms):
            set_rate(sampler, state, k)
        again = sampler.level == NO_LEVEL
        logit += 0.25
        if again:
            place_level(sampler, logit)
    sampler.drift = 0.0
    renew_bounds(sampler)


@rare_kernel
def highest_draw_below(sampler: BetaExceedance, state: Any, best: int, top: float, rng: Any) -> int:
    """The best arm given that none exceeds the level, where the hot arms are drawn and ``best`` has the largest draw."""
    for k in range(sampler.logs.size):
        if sampler.place[k] >= 0:
            continue
        value = 2.0
        a, b = state.successes[k], state.failures[k]
        while value > sampler.level:
            value = rng.beta(a, b)
        if value > top:
            best, top = k, value
    return best


@draw.register(BetaExceedance)
@kernel
def largest_beta_draw(sampler: BetaExceedance, state: Any, t: int, rng: Any) -> int:
    """The arm of the largest draw."""
    many = 8.0 * sampler.logs.size
    if sampler.level != NO_LEVEL:
        ensure_bounds(sampler.bounds, sampler.logs, 1.0)
    average = average_points(sampler)
    if sampler.level == NO_LEVEL or average > 2.0 * math.log(many) + 4.0 or sampler.drift > many:
        choose_beta_level(sampler, state)
        average = average_points(sampler)
    level, rest = sampler.level, sampler.rest
    best, top = -1, -1.0
    for j in range(sampler.n_hot):
        value = rng.beta(state.successes[sampler.hot[j]], state.failures[sampler.hot[j]])
        if value > top:
            best, top = sampler.hot[j], value
    sampler.serial += 1
    clock = rng.standard_exponential()
    while clock < average:
        arm = try_arm(sampler.bounds, sampler.logs, 1.0, rng)
        if arm >= 0 and sampler.called[arm] != sampler.serial:
            sampler.called[arm] = sampler.serial
            slope = steepness(sampler, state, arm)
            above = rng.random() * rest
            if abs(slope * rest) > 1e-9:
                above = -math.log1p(above / rest * math.expm1(-slope * rest)) / slope
            value = level + above
            if value > top and value < 1.0 and accept_point(sampler, state, arm, above, slope, rng):
                best, top = arm, value
        clock += rng.standard_exponential()
    if top > level:
        return int(best)
    sampler.drift += many / REFITS_AFTER
    return highest_draw_below(sampler, state, best, top, rng)


@changed.register(BetaExceedance)
@kernel
def changed_posterior(sampler: BetaExceedance, state: Any, arm: int) -> None:
    """The arm is called at another rate, or has become hot, or is hot no more."""
    sampler.norm[arm] = log_norm(state.successes[arm], state.failures[arm])
    sampler.drift += 1.0
    if sampler.level != NO_LEVEL:
        set_rate(sampler, state, arm)
    changed(sampler.bounds, sampler.logs, arm)


@distribution.register(BetaExceedance)
@kernel
def law_of_largest_beta_draw(sampler: BetaExceedance, state: Any, t: int, out: Any) -> None:
    """The probability of each arm to have the largest draw."""
    largest_beta(state.successes, state.failures, out)
