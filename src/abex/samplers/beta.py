r"""The largest of independent Beta draws (Thompson sampling) without a draw for every arm: only for those that can win.

Fix a level L. Arm k's draw exceeds L with a probability :math:`p_k` that has no closed form, but for
:math:`a,b\ge 1` the Beta density f is log-concave and lies below its tangent at L,
:math:`g(x)=f(L)e^{-s(x-L)}`, :math:`s=\frac{b-1}{1-L}-\frac{a-1}{L}`, so that
:math:`p_k\le M_k=f(L)\,(1-e^{-s(1-L)})/s`. **So, exactly:** let arm k be called with probability :math:`M_k`,
independently; if called, draw x from g and let it exceed L with the draw x if a coin of chance :math:`f(x)/g(x)` falls;
that has probability :math:`M_k\cdot p_k/M_k`, and x then has the density f given :math:`x>L`. Calls come from a Poisson
process: arm k is called when it has at least one point of rate :math:`\lambda_k=-\ln(1-M_k)` (trials from `Buckets` of
:math:`\ln\lambda_k`). *Hot* arms, with :math:`M_k>1/2`, are drawn as they are. The largest exceeding draw wins. If there
is none, the other arms are drawn given that they are below L. L is chosen such that this happens once in about K steps.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel, rare_kernel, single_dispatch
from abex.samplers import crossover
from abex.samplers.buckets import Buckets, new_buckets
from abex.samplers.gumbel import APART, NOWHERE, average_exceeding
from abex.samplers.interface import changed, distribution, draw
from abex.samplers.largest_beta import largest_beta, stirling_series
from abex.samplers.sound_buckets import sound_buckets
from abex.samplers.trials import drop_bounds, make_fit, refile, try_arm
from abex.schema import ArmNumbers, Checked, Count, Rebuilt, Scratch, Within, positions
from abex.support.randomness import argmax

MOST_HOT = 64
LOG_HALF = math.log(0.5)
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class BetaScan(NamedTuple):
    """Room for the draws of all arms."""

    score: Annotated[NDArray[np.float64], Scratch()]  # (K,)


class BetaThreshold(Scalars):
    """The level L with its logarithms, and what is kept with it."""

    level: Annotated[float, Within(-NOWHERE, NOWHERE)]  # L; NOWHERE before the first decision
    log: Annotated[float, Within()]  # ln L
    rest: Annotated[float, Within()]  # 1 - L
    log_rest: Annotated[float, Within()]  # ln(1 - L)
    drift: Annotated[float, Within()]  # how much has happened since L was chosen
    zero: Annotated[float, Checked()]  # a zero of the buckets' weights, see `average_exceeding`
    unit: Annotated[float, Checked()]  # points on average for a mass of 1 there
    hots: Annotated[int, Count()]  # how many arms are hot
    serial: Annotated[int, Count()]  # decisions


class BetaExceedance(NamedTuple):
    """The logarithms of the arms' call rates, filed, the hot arms, and L."""

    norm: Annotated[NDArray[np.float64], Within()]  # (K,), logarithm of the density's constant
    logs: Annotated[NDArray[np.float64], Within()]  # (K,), ln lambda_k
    called: Annotated[NDArray[np.int64], Scratch()]  # (K,), the last decision that called the arm
    place: Annotated[NDArray[np.int32], Rebuilt()]  # (K,), where it stands among the hot arms, -1 elsewhere
    hot: Annotated[NDArray[np.int64], ArmNumbers()]  # (MOST_HOT,)
    buckets: Annotated[Buckets, Checked()]
    threshold: Annotated[BetaThreshold, Checked()]

    def restored(self, state: Any, fresh: Any) -> BetaExceedance:
        """What does not follow from the posteriors and L is made anew, and so is L."""
        seen = state.successes + state.failures > fresh.successes + fresh.failures
        if rates_hold(self, state) and sound_buckets(self.buckets, self.logs, seen, 0.0) is self.buckets:
            threshold = self.threshold
            threshold.serial, threshold.zero = 0, NOWHERE  # no arm was called by decision 1
            return self._replace(place=positions(self.hot, threshold.hots, self.place, "hot"))
        return new_exceedance(state.successes, state.failures, seen)


def rates_hold(sampler: BetaExceedance, state: Any) -> bool:
    """Whether the stored rates and the hot arms are those of the posteriors at the level, up to rounding."""
    a, b = state.successes, state.failures
    threshold = sampler.threshold
    cut, log, rest, log_rest, drift = (
        threshold.level,
        threshold.log,
        threshold.rest,
        threshold.log_rest,
        threshold.drift,
    )
    hots = threshold.hots
    if hots > MOST_HOT or np.unique(sampler.hot[:hots]).size < hots or drift < 0.0:
        return False
    loose = 1e-6 + 1e-12 * (a + b)  # of logarithms
    if (np.abs(log_norms(a, b) - sampler.norm) > loose).any():
        return False
    if cut == NOWHERE:
        return True  # the next decision chooses a level and works out all else
    if not (0.0 < cut < 1.0 and rest > 0.0 and abs(cut + rest - 1.0) < 1e-12):
        return False
    if abs(math.log(cut) - log) > 1e-9 or abs(math.log(rest) - log_rest) > 1e-9:
        return False
    with np.errstate(all="ignore"):
        slope = (b - 1.0) / rest - (a - 1.0) / cut
        fall = slope * rest
        envelope = np.log(np.where(np.abs(fall) > 1e-9, -np.expm1(-fall) / slope, rest))
        envelope = np.where(fall < -50.0, -fall - np.log(-slope), envelope)
        chance = np.minimum(sampler.norm + (a - 1.0) * log + (b - 1.0) * log_rest + envelope, 0.0)
        rate = np.log(np.maximum(-np.log1p(-np.exp(chance)), 1e-300))
    loose = loose + 1e-9 * np.abs(chance)
    hot = np.zeros(a.size, bool)
    hot[sampler.hot[:hots]] = True
    certain = np.abs(chance - LOG_HALF) > loose  # whether it is hot
    if ((chance > LOG_HALF) != hot)[certain].any() or (sampler.logs[hot] != APART).any():
        return False
    return not (np.abs(rate - sampler.logs) > 4.0 * loose)[~hot].any()


def new_beta(
    successes: NDArray[np.float64], failures: NDArray[np.float64], seen: NDArray[np.bool_]
) -> BetaScan | BetaExceedance:
    """A sampler of the largest draw of these posteriors; below 1 a density has no tangent above it and all are drawn."""
    n = successes.size
    if n <= crossover.BETA or min(successes.min(), failures.min()) < 1.0:
        return BetaScan(np.zeros(n))
    return new_exceedance(successes, failures, seen)


def new_exceedance(
    successes: NDArray[np.float64], failures: NDArray[np.float64], seen: NDArray[np.bool_]
) -> BetaExceedance:
    """No level yet."""
    return BetaExceedance(norm=log_norms(successes, failures), **no_level(seen))


def no_level(seen: NDArray[np.bool_]) -> dict[str, Any]:
    """Fields of a sampler that has neither a level nor hot arms yet."""
    n = seen.size
    return {
        "logs": np.zeros(n),
        "called": np.zeros(n, np.int64),
        "place": np.full(n, -1, np.int32),
        "hot": np.zeros(MOST_HOT, np.int64),
        "buckets": new_buckets(seen.astype(np.float64), 0.0),
        "threshold": BetaThreshold(level=NOWHERE, zero=NOWHERE),
    }


def log_norms(successes: NDArray[np.float64], failures: NDArray[np.float64]) -> NDArray[np.float64]:
    """`log_norm` of every posterior; most of many arms share theirs."""
    pairs, which = np.unique(
        successes + 1j * failures, return_inverse=True
    )  # complex numbers are sorted fast
    return np.array([log_norm(pair.real, pair.imag) for pair in pairs])[which]


@draw.register(BetaScan)
@kernel
def largest_of_all(sampler: BetaScan, state: Any, t: int, rng: Any) -> int:
    """The largest draw, found by drawing for every arm."""
    for k in range(sampler.score.size):
        sampler.score[k] = rng.beta(state.successes[k], state.failures[k])
    return argmax(sampler.score, rng)


@changed.register(BetaScan)
@kernel
def changed_by_scan(sampler: BetaScan, state: Any, arm: int) -> None:
    """A scan remembers nothing."""


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


@single_dispatch
def shapes_of(sampler: Any, state: Any, arm: int) -> tuple[float, float]:
    """The parameters of the arm's posterior (kernel)."""
    return state.successes[arm], state.failures[arm]


@kernel
def set_level(sampler: Any, logit: float) -> None:
    """Move the level."""
    sampler.threshold.level = 1.0 / (1.0 + math.exp(-logit))
    sampler.threshold.log = -math.log1p(math.exp(-logit))
    sampler.threshold.rest = 1.0 / (1.0 + math.exp(logit))
    sampler.threshold.log_rest = -math.log1p(math.exp(logit))


@kernel
def steepness(sampler: Any, state: Any, arm: int) -> float:
    """How fast the logarithm of the density falls at the level."""
    a, b = shapes_of(sampler, state, arm)
    return float((b - 1.0) / sampler.threshold.rest - (a - 1.0) / sampler.threshold.level)


@kernel
def log_envelope(slope: float, width: float) -> float:
    """Logarithm of the integral of exp(-slope x) from 0 to the width."""
    fall = slope * width
    if fall < -50.0:
        return -fall - math.log(-slope)
    return math.log(-math.expm1(-fall) / slope if abs(fall) > 1e-9 else width)


@kernel
def log_density(sampler: Any, state: Any, arm: int) -> float:
    """Logarithm of the posterior density at the level."""
    a, b = shapes_of(sampler, state, arm)
    return float(
        sampler.norm[arm] + (a - 1.0) * sampler.threshold.log + (b - 1.0) * sampler.threshold.log_rest
    )


@single_dispatch
def chance_bound(sampler: Any, state: Any, arm: int) -> float:
    """M: no smaller than the chance that the arm's draw exceeds the level (kernel)."""
    log = log_density(sampler, state, arm) + log_envelope(
        steepness(sampler, state, arm), sampler.threshold.rest
    )
    return math.exp(min(0.0, log))


@single_dispatch
def proposal_slope(sampler: Any, state: Any, arm: int) -> float:
    """The rate s of the draw from g (kernel)."""
    return steepness(sampler, state, arm)


@single_dispatch
def accepted(sampler: Any, state: Any, arm: int, above: float, slope: float, rng: Any) -> bool:
    """Whether a coin of chance f(x)/g(x) falls, so much above the level (kernel)."""
    threshold = sampler.threshold
    log = (state.successes[arm] - 1.0) * math.log1p(above / threshold.level)
    log = log + (state.failures[arm] - 1.0) * math.log1p(-above / threshold.rest) + slope * above
    return bool(log >= 0.0 or rng.random() < math.exp(log))


@kernel
def assurance(sampler: Any, state: Any, arm: int) -> float:
    """About -ln(chance that the arm's draw is below the level)."""
    slope, height = steepness(sampler, state, arm), log_density(sampler, state, arm)
    chance = height + log_envelope(slope, sampler.threshold.rest)
    if chance <= LOG_HALF:
        return math.exp(chance)
    return max(0.5, -height - log_envelope(-slope, sampler.threshold.level))


@kernel
def set_rate(sampler: Any, state: Any, arm: int) -> None:
    """The call rate of an arm at the present level; whether it is hot."""
    chance = chance_bound(sampler, state, arm)
    where = sampler.place[arm]
    if chance > 0.5:
        if where < 0:
            if sampler.threshold.hots == MOST_HOT:
                sampler.threshold.level = NOWHERE  # too many: the next decision chooses another level
                return
            sampler.place[arm] = sampler.threshold.hots
            sampler.hot[sampler.threshold.hots] = arm
            sampler.threshold.hots += 1
        sampler.logs[arm] = APART
        return
    if where >= 0:
        last = sampler.threshold.hots - 1
        moved = sampler.hot[last]
        sampler.hot[where] = moved
        sampler.place[moved] = where
        sampler.place[arm] = -1
        sampler.threshold.hots = last
    sampler.logs[arm] = math.log(max(-math.log1p(-chance), 1e-300))


@kernel
def total_assurance(sampler: Any, state: Any, logit: float) -> float:
    """Minus the logarithm of the chance that nobody exceeds a level, about; the level is moved there."""
    set_level(sampler, logit)
    total = 0.0
    for k in range(sampler.logs.size):
        total += assurance(sampler, state, k)
    return total


@single_dispatch
def choose_level(sampler: Any, state: Any) -> None:
    """The level at which nobody exceeds it once in about K decisions, by bisection; then all rates anew (kernel)."""
    target = max(2.0, math.log(sampler.logs.size))
    low, high = -30.0, 30.0
    for _ in range(14):
        logit = 0.5 * (low + high)
        if total_assurance(sampler, state, logit) > target:
            low = logit
        else:
            high = logit
    stand_at(sampler, state, low)


@rare_kernel
def stand_at(sampler: Any, state: Any, logit: float) -> None:
    """Move the level there, or higher where too many arms would be hot; all rates anew."""
    n_arms = sampler.logs.size
    set_level(sampler, logit)
    again = True
    while again:
        sampler.threshold.hots = 0
        for k in range(n_arms):
            sampler.place[k] = -1
        for k in range(n_arms):
            set_rate(sampler, state, k)
        again = sampler.threshold.level == NOWHERE
        logit += 0.25
        if again:
            set_level(sampler, logit)
    sampler.threshold.drift = 0.0
    drop_bounds(sampler.buckets)
    make_fit(sampler.buckets, sampler.logs, 1.0)


@rare_kernel
def highest_below(sampler: Any, state: Any, best: int, top: float, rng: Any) -> int:
    """The best arm given that none exceeds the level, where the hot arms are drawn and ``best`` has the largest draw."""
    for k in range(sampler.logs.size):
        if sampler.place[k] >= 0:
            continue
        value = 2.0
        a, b = shapes_of(sampler, state, k)
        while value > sampler.threshold.level:
            value = rng.beta(a, b)
        if value > top:
            best, top = k, value
    return best


@kernel
def largest_of_exceeding(sampler: Any, state: Any, patience: float, rng: Any) -> int:
    """The arm of the largest draw; after ``patience`` decisions at which none exceeds the level it is chosen anew."""
    buckets = sampler.buckets
    many = 8.0 * sampler.logs.size
    if sampler.threshold.level != NOWHERE:
        make_fit(buckets, sampler.logs, 1.0)
    average = average_exceeding(buckets, sampler.threshold)
    if (
        sampler.threshold.level == NOWHERE
        or average > 2.0 * math.log(many) + 4.0
        or sampler.threshold.drift > many
    ):
        choose_level(sampler, state)
        average = average_exceeding(buckets, sampler.threshold)
    level, rest = sampler.threshold.level, sampler.threshold.rest
    best, top = -1, -1.0
    for j in range(sampler.threshold.hots):
        a, b = shapes_of(sampler, state, sampler.hot[j])
        value = rng.beta(a, b)
        if value > top:
            best, top = sampler.hot[j], value
    sampler.threshold.serial += 1
    clock = rng.standard_exponential()
    while clock < average:
        arm = try_arm(buckets, sampler.logs, 1.0, rng)
        if arm >= 0 and sampler.called[arm] != sampler.threshold.serial:
            sampler.called[arm] = sampler.threshold.serial
            slope = proposal_slope(sampler, state, arm)
            above = rng.random() * rest
            if abs(slope * rest) > 1e-9:
                above = -math.log1p(above / rest * math.expm1(-slope * rest)) / slope
            value = level + above
            if value > top and value < 1.0 and accepted(sampler, state, arm, above, slope, rng):
                best, top = arm, value
        clock += rng.standard_exponential()
    if top > level:
        return int(best)
    sampler.threshold.drift += many / patience
    return highest_below(sampler, state, best, top, rng)


@draw.register(BetaExceedance)
@kernel
def draw_exceeding(sampler: BetaExceedance, state: Any, t: int, rng: Any) -> int:
    """The arm of the largest draw."""
    return largest_of_exceeding(sampler, state, 4.0, rng)


@kernel
def refile_posterior(sampler: Any, state: Any, arm: int) -> None:
    """File an arm by its new posterior."""
    sampler.threshold.drift += 1.0
    if sampler.threshold.level != NOWHERE:
        set_rate(sampler, state, arm)
    refile(sampler.buckets, arm, sampler.logs[arm])


@changed.register(BetaExceedance)
@kernel
def changed_posterior(sampler: BetaExceedance, state: Any, arm: int) -> None:
    """The posterior of an arm has changed."""
    sampler.norm[arm] = log_norm(state.successes[arm], state.failures[arm])
    refile_posterior(sampler, state, arm)


@distribution.register(BetaScan)
@kernel
def distribution_of_scan(sampler: BetaScan, state: Any, t: int, out: Any) -> None:
    """The probability of each arm to have the largest draw."""
    largest_beta(state.successes, state.failures, out)


@distribution.register(BetaExceedance)
@kernel
def distribution_of_exceedance(sampler: BetaExceedance, state: Any, t: int, out: Any) -> None:
    """The probability of each arm to have the largest draw."""
    largest_beta(state.successes, state.failures, out)
