r"""The largest of independent Beta draws whose counts fade at every step, by draws of the arms that can win.

As in `abex.samplers.beta`, with bounds that hold for a while (`abex.samplers.pace`). The posterior of an arm after more steps
is Beta with parameters :math:`a_0+cS,\ b_0+cF`, c falling from 1 to :math:`\gamma^{K+1}`. The logarithm of its density at the
level L is :math:`(a-1)\ln L+(b-1)\ln(1-L)-\ln B(a,b)`; :math:`\ln B` is convex in both parameters, so this is concave in c and
lies below its tangent at :math:`c=1`, and the slope s of the envelope is linear in c. So the larger end of the tangent
and the smaller end of s give an envelope :math:`\bar g\ge g\ge f` for all of that time. An arm is called with the mass of
:math:`\bar g`, its draw x is from :math:`\bar g` and accepted with probability :math:`f(x)/\bar g(x)`, f the density of now.
Its constant :math:`-\ln B` is mostly not needed: the tangent at the last filing is above it, and below it is
the tangent less :math:`\frac12(1-c)^2(S^2\psi'(a)+F^2\psi'(b))`; only between the two it is worked out.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel
from abex.samplers.beta import (
    LOG_HALF,
    MOST_HOT,
    BetaThreshold,
    accepted,
    chance_bound,
    choose_level,
    largest_of_exceeding,
    log_envelope,
    log_norm,
    no_level,
    proposal_slope,
    refile_posterior,
    set_rate,
    shapes_of,
    stand_at,
    total_assurance,
)
from abex.samplers.buckets import Buckets
from abex.samplers.gumbel import APART, NOWHERE
from abex.samplers.interface import changed, distribution, draw
from abex.samplers.largest_beta import largest_beta
from abex.samplers.pace import UNPACED, Pace, keep_renewed, move_pace, renew_all, renew_bound, set_pace
from abex.samplers.sound_buckets import sound_buckets
from abex.samplers.trials import refile
from abex.schema import ArmNumbers, Checked, FixedAtStart, Rebuilt, Scratch, Within, positions

ROUNDING = 1e-12  # of logarithms of densities, for each observation
STRIDE = 0.125  # of the logit of the level
PATIENCE = 16.0  # decisions below the level that cost as much as choosing another


class BetaPrior(NamedTuple):
    """The parameters of every arm's prior."""

    successes: float
    failures: float


class FadingBeta(NamedTuple):
    """The logarithms of the arms' call rates, filed, with their envelopes, the hot arms, and L."""

    norm: Annotated[
        NDArray[np.float64], Within()
    ]  # (K,), logarithm of the density's constant when last looked at
    logs: Annotated[NDArray[np.float64], Within()]  # (K,), ln lambda_k
    heights: Annotated[NDArray[np.float64], Within()]  # (K,), logarithm of the envelope at L
    slopes: Annotated[NDArray[np.float64], Within()]  # (K,), how fast it falls
    rises: Annotated[NDArray[np.float64], Scratch()]  # (K,), at most the derivative of `norm` in c
    filed: Annotated[NDArray[np.int64], Scratch()]  # (K,), the step of `norm` and `rises`, 0 if not known
    called: Annotated[NDArray[np.int64], Scratch()]  # (K,), the last decision that called the arm
    place: Annotated[NDArray[np.int32], Rebuilt()]  # (K,), where it stands among the hot arms, -1 elsewhere
    hot: Annotated[NDArray[np.int64], ArmNumbers()]  # (MOST_HOT,)
    buckets: Annotated[Buckets, Checked()]
    threshold: Annotated[BetaThreshold, Checked()]
    pace: Annotated[Pace, Checked()]
    prior: Annotated[BetaPrior, FixedAtStart()]
    shrink: float  # of counts over K + 1 steps
    decay: float  # of their logarithm over one

    def restored(self, state: Any, fresh: Any) -> FadingBeta:
        """Where the bounds do not hold now, they and the level are made anew: the distribution does not depend on them."""
        seen = state.successes + state.failures > sum(self.prior)
        holds = bounds_hold(self, state) and sound_buckets(self.buckets, self.logs, seen, 0.0) is self.buckets
        if not (holds and self.pace.cursor < seen.size):
            return fading_beta(state, self.prior, self.decay, self.pace)
        threshold = self.threshold
        threshold.serial, threshold.zero = 0, NOWHERE  # no arm was called by decision 1
        return self._replace(place=positions(self.hot, threshold.hots, self.place, "hot"))


def bounds_hold(sampler: FadingBeta, state: Any) -> bool:
    """Whether the envelopes lie above the densities of now, and the rates and the hot arms are theirs."""
    threshold, hots = sampler.threshold, sampler.threshold.hots
    if not 0 <= hots <= MOST_HOT or np.unique(sampler.hot[:hots]).size < hots or threshold.drift < 0.0:
        return False
    if threshold.level == NOWHERE:
        return True
    level, rest = threshold.level, threshold.rest
    if not (0.0 < level < 1.0 and rest > 0.0 and abs(level + rest - 1.0) < 1e-12):
        return False
    if abs(math.log(level) - threshold.log) > 1e-9 or abs(math.log(rest) - threshold.log_rest) > 1e-9:
        return False
    from scipy.special import gammaln

    prior = sampler.prior
    a = prior.successes + (state.successes - prior.successes) / sampler.pace.factor
    b = prior.failures + (state.failures - prior.failures) / sampler.pace.factor
    height = (
        gammaln(a + b) - gammaln(a) - gammaln(b) + (a - 1.0) * threshold.log + (b - 1.0) * threshold.log_rest
    )
    slope = (b - 1.0) / rest - (a - 1.0) / level
    loose = 1e-6 + 1e-9 * (a + b)
    if (height > sampler.heights + loose).any() or (
        slope < sampler.slopes - loose * (1.0 + np.abs(slope))
    ).any():
        return False
    mass = sampler.heights + [log_envelope(float(s), rest) for s in sampler.slopes]
    hot = np.zeros(a.size, bool)
    hot[sampler.hot[:hots]] = True
    if (sampler.logs[hot] != APART).any() or (mass[~hot] > LOG_HALF + 1e-9).any():
        return False
    rates = np.log(np.maximum(-np.log1p(-np.exp(np.minimum(mass[~hot], LOG_HALF))), 1e-300))
    return not (np.abs(rates - sampler.logs[~hot]) > 1e-6 * (1.0 + np.abs(rates))).any()


def new_fading_beta(state: Any, prior: tuple[float, float], gamma: float, pace: Pace) -> FadingBeta:
    """No level yet; counts fade by gamma a step."""
    return fading_beta(state, BetaPrior(*prior), math.log(gamma), pace)


def fading_beta(state: Any, prior: BetaPrior, decay: float, pace: Pace) -> FadingBeta:
    """No level yet; the logarithm of counts falls by ``decay`` a step."""
    n = state.successes.size
    seen = state.successes + state.failures > sum(prior)
    pace.renewed, pace.cursor = UNPACED, 0
    return FadingBeta(
        norm=np.zeros(n),
        heights=np.zeros(n),
        slopes=np.zeros(n),
        rises=np.zeros(n),
        filed=np.zeros(n, np.int64),
        **no_level(seen),
        pace=pace,
        prior=prior,
        shrink=math.exp(decay * (n + 1)),
        decay=decay,
    )


set_pace.register(FadingBeta)(move_pace)  # posteriors are wider now


@shapes_of.register(FadingBeta)
@kernel
def faded_shapes(sampler: FadingBeta, state: Any, arm: int) -> tuple[float, float]:
    """The prior and what has not faded."""
    a, b = sampler.prior.successes, sampler.prior.failures
    factor = sampler.pace.factor
    return a + (state.successes[arm] - a) / factor, b + (state.failures[arm] - b) / factor


@kernel
def digamma_bound(x: float, upper: bool) -> float:
    """A bound on the derivative of ln Gamma at x >= 1, to 1/(120 x^4)."""
    y = 1.0 / (x * x)
    low = math.log(x) - 0.5 / x - y / 12.0
    return low + y * y / 120.0 if upper else low


@chance_bound.register(FadingBeta)
@kernel
def lasting_bound(sampler: FadingBeta, state: Any, arm: int) -> float:
    """The mass of an envelope that holds for K + 1 steps."""
    threshold = sampler.threshold
    a, b = shapes_of(sampler, state, arm)
    won, lost = a - sampler.prior.successes, b - sampler.prior.failures
    height = log_norm(a, b)
    sampler.norm[arm] = height
    height += (a - 1.0) * threshold.log + (b - 1.0) * threshold.log_rest
    slope = (b - 1.0) / threshold.rest - (a - 1.0) / threshold.level
    faded = (1.0 - sampler.shrink) * (won + lost)
    sampler.filed[arm] = sampler.pace.step
    sampler.rises[arm] = 0.0
    if faded > 0.0:
        # at most the derivative of the norm in c, and of the height
        rise = (
            (won + lost) * digamma_bound(a + b, False)
            - won * digamma_bound(a, True)
            - lost * digamma_bound(b, True)
        )
        sampler.rises[arm] = rise
        rise += won * threshold.log + lost * threshold.log_rest
        height += max(0.0, -rise * (1.0 - sampler.shrink))
        later = slope - (1.0 - sampler.shrink) * (lost / threshold.rest - won / threshold.level)
        slope = min(slope, later)
    height += ROUNDING * (1000.0 + a + b)
    sampler.heights[arm] = height
    sampler.slopes[arm] = slope
    return math.exp(min(0.0, height + log_envelope(slope, threshold.rest)))


@proposal_slope.register(FadingBeta)
@kernel
def lasting_slope(sampler: FadingBeta, state: Any, arm: int) -> float:
    """That of the envelope."""
    return float(sampler.slopes[arm])


@accepted.register(FadingBeta)
@kernel
def accepted_faded(sampler: FadingBeta, state: Any, arm: int, above: float, slope: float, rng: Any) -> bool:
    """A coin of chance the density of now over the envelope."""
    threshold = sampler.threshold
    a, b = shapes_of(sampler, state, arm)
    log = (a - 1.0) * (threshold.log + math.log1p(above / threshold.level))
    log += (b - 1.0) * (threshold.log_rest + math.log1p(-above / threshold.rest))
    log += slope * above - sampler.heights[arm]
    coin = math.log(1.0 - rng.random()) - log  # it falls where this is below the norm of now
    if sampler.filed[arm] > 0:
        low, high = norm_bounds(sampler, arm, a, b)
        if coin < low or coin >= high:
            return bool(coin < low)
    return bool(coin < log_norm(a, b))


@kernel
def norm_bounds(sampler: FadingBeta, arm: int, a: float, b: float) -> tuple[float, float]:
    """Between which numbers `log_norm` of the present parameters lies."""
    left = math.exp(sampler.decay * (sampler.pace.step - sampler.filed[arm]))  # c
    gone = 1.0 - left
    won, lost = (a - sampler.prior.successes) / left, (b - sampler.prior.failures) / left
    high = sampler.norm[arm] - gone * sampler.rises[arm] + ROUNDING * (1000.0 + won + lost)
    x, y, z = 1.0 / a, 1.0 / b, 1.0 / (a + b)
    # how far the derivative is above `rises` at most, and how fast it grows
    wide = won * x * x * x * x + lost * y * y * y * y + (won + lost) * z * z * z * z
    bend = won * won * trigamma_bound(x) + lost * lost * trigamma_bound(y)
    low = high - gone * (wide / 120.0 + 0.5 * gone * bend) - 2.0 * ROUNDING * (1000.0 + won + lost)
    return low, high


@kernel
def trigamma_bound(inverse: float) -> float:
    """At least the second derivative of ln Gamma at 1 / inverse, by 1/(30 x^5) at most."""
    return inverse * (1.0 + inverse * (0.5 + inverse / 6.0))


@renew_bound.register(FadingBeta)
@kernel
def renew_envelope(sampler: FadingBeta, state: Any, arm: int) -> None:
    """That of one arm; the prior does not fade."""
    threshold = sampler.threshold
    prior = sampler.prior
    seen = state.successes[arm] > prior.successes or state.failures[arm] > prior.failures
    if seen and threshold.level != NOWHERE:
        set_rate(sampler, state, arm)
        refile(sampler.buckets, arm, sampler.logs[arm])


@choose_level.register(FadingBeta)
@rare_kernel
def follow_level(sampler: FadingBeta, state: Any) -> None:
    """As for counts that stay, but from where it was, in a few looks at all arms: it has to follow often."""
    target = max(2.0, math.log(sampler.logs.size))
    threshold = sampler.threshold
    low, high, stride = -30.0, 30.0, STRIDE
    logit = threshold.log - threshold.log_rest if threshold.level != NOWHERE else 0.0
    while high - low > STRIDE:
        if total_assurance(sampler, state, logit) > target:
            low = logit
            logit = min(logit + stride, 0.5 * (low + high)) if high == 30.0 else 0.5 * (low + high)
        else:
            high = logit
            logit = max(logit - stride, 0.5 * (low + high)) if low == -30.0 else 0.5 * (low + high)
        stride *= 2.0
    stand_at(sampler, state, low)


@renew_all.register(FadingBeta)
@rare_kernel
def renew_envelopes(sampler: FadingBeta, state: Any) -> None:
    """Choose the level, and all of them."""
    for k in range(sampler.norm.size):
        a, b = shapes_of(sampler, state, k)
        sampler.norm[k] = log_norm(a, b)
    choose_level(sampler, state)


@draw.register(FadingBeta)
@kernel
def draw_fading(sampler: FadingBeta, state: Any, t: float, rng: Any) -> int:
    """The arm of the largest draw."""
    keep_renewed(sampler, state, sampler.norm.size, 1)
    return largest_of_exceeding(sampler, state, PATIENCE, rng)


@changed.register(FadingBeta)
@kernel
def changed_fading(sampler: FadingBeta, state: Any, arm: int) -> None:
    """The posterior of an arm has changed."""
    refile_posterior(sampler, state, arm)


@distribution.register(FadingBeta)
@kernel
def distribution_of_fading(sampler: FadingBeta, state: Any, t: float, out: Any) -> None:
    """The probability of each arm to have the largest draw."""
    successes, failures = np.empty(out.size), np.empty(out.size)
    for k in range(out.size):
        successes[k], failures[k] = shapes_of(sampler, state, k)
    largest_beta(successes, failures, out)
