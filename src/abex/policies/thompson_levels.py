r"""Thompson sampling without a draw for every arm: only for those that can win.

Fix a level L. Arm k's draw exceeds L with a probability :math:`p_k` that has no closed form, but for
:math:`a,b\ge 1` the Beta density f is log-concave and lies below its tangent at L,
:math:`g(x)=f(L)e^{-s(x-L)}`, :math:`s=\frac{b-1}{1-L}-\frac{a-1}{L}`, so that
:math:`p_k\le M_k=f(L)\,(1-e^{-s(1-L)})/s`. **So, exactly:** let arm k be called with probability :math:`M_k`,
independently; if called, draw x from g and let it exceed L with the draw x if a coin of chance :math:`f(x)/g(x)` falls;
that has probability :math:`M_k\cdot p_k/M_k`, and x then has the density f given :math:`x>L`. Calls come from a Poisson
process: arm k is called when it has at least one point of rate :math:`\lambda_k=-\ln(1-M_k)` (trials from `Levels` of
:math:`\ln\lambda_k`). *Hot* arms, with :math:`M_k>1/2`, are drawn as they are. The largest exceeding draw wins. If there
is none, the other arms are drawn given that they are below L. L is chosen such that this happens once in about K steps.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel
from abex.policies.exceedance import APART, NOWHERE, average_exceeding
from abex.policies.levels import STALE, Levels, make_fit, new_levels, refile_arm, try_arm
from abex.policies.schema import Arms, Checked, Count, Grown, Rebuilt, Scratch, Within, positions
from abex.policies.sound_levels import sound_levels

MOST_HOT = 64
LOG_HALF = math.log(0.5)
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
HOTS, SERIAL = 0, 1  # places of `BetaLevels.clock`
# Of `BetaLevels.cut`: L, ln L, 1 - L, ln(1 - L), and how much has happened since L was chosen.
CUT, LOG, REST, LOG_REST, DRIFT = 0, 1, 2, 3, 4


class BetaLevels(NamedTuple):
    """Posteriors, the logarithms of their call rates, filed, the hot arms, and L."""

    successes: Annotated[NDArray[np.float64], Grown()]  # (K,), prior included
    failures: Annotated[NDArray[np.float64], Grown()]  # (K,), prior included
    norm: Annotated[NDArray[np.float64], Within()]  # (K,), logarithm of the density's constant
    logs: Annotated[NDArray[np.float64], Within()]  # (K,), ln lambda_k
    called: Annotated[NDArray[np.int64], Scratch()]  # (K,), the last decision that called the arm
    place: Annotated[NDArray[np.int32], Rebuilt()]  # (K,), where it stands among the hot arms, -1 elsewhere
    hot: Annotated[NDArray[np.int64], Arms()]  # (MOST_HOT,)
    levels: Annotated[Levels, Checked()]
    clock: Annotated[NDArray[np.int64], Count()]  # (2,)
    cut: Annotated[NDArray[np.float64], Within(-NOWHERE, NOWHERE)]  # (5,)
    unit: Annotated[NDArray[np.float64], Scratch()]  # (2,), see `average_exceeding`
    resample: bool

    def restored(self, fresh: BetaLevels) -> BetaLevels:
        """What does not follow from the posteriors and L is made anew, and so is L."""
        seen = self.successes + self.failures > fresh.successes + fresh.failures
        known = self._replace(clock=np.array([self.clock[HOTS], 0]))  # no arm was called by decision 1
        if rates_hold(known) and sound_levels(known.levels, known.logs, seen, 0.0) is known.levels:
            place = positions(known.hot, int(known.clock[HOTS]), known.place, "hot")
            return known._replace(place=place)
        return new_beta_levels(self.successes, self.failures, seen, self.resample)


def rates_hold(state: BetaLevels) -> bool:
    """Whether the stored rates and the hot arms are those of the posteriors at the level, up to rounding."""
    a, b = state.successes, state.failures
    cut, log, rest, log_rest, drift = (float(number) for number in state.cut)
    hots = int(state.clock[HOTS])
    if hots > MOST_HOT or np.unique(state.hot[:hots]).size < hots or drift < 0.0:
        return False
    from scipy.special import gammaln

    loose = 1e-6 + 1e-12 * (a + b)  # of logarithms
    if (np.abs(gammaln(a + b) - gammaln(a) - gammaln(b) - state.norm) > loose).any():
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
        chance = np.minimum(state.norm + (a - 1.0) * log + (b - 1.0) * log_rest + envelope, 0.0)
        rate = np.log(np.maximum(-np.log1p(-np.exp(chance)), 1e-300))
    loose = loose + 1e-9 * np.abs(chance)
    hot = np.zeros(a.size, bool)
    hot[state.hot[:hots]] = True
    certain = np.abs(chance - LOG_HALF) > loose  # whether it is hot
    if ((chance > LOG_HALF) != hot)[certain].any() or (state.logs[hot] != APART).any():
        return False
    return not (np.abs(rate - state.logs) > 4.0 * loose)[~hot].any()


def new_beta_levels(
    successes: Annotated[NDArray[np.float64], Grown()],
    failures: NDArray[np.float64],
    seen: NDArray[np.bool_],
    resample: bool,
) -> BetaLevels:
    """The record of arms with these posteriors."""
    n = successes.size
    pairs, which = np.unique(
        successes + 1j * failures, return_inverse=True
    )  # complex numbers are sorted fast
    norms = np.array([log_norm(pair.real, pair.imag) for pair in pairs])
    return BetaLevels(
        successes=successes,
        failures=failures,
        norm=norms[which],
        logs=np.zeros(n),
        called=np.zeros(n, np.int64),
        place=np.full(n, -1, np.int32),
        hot=np.zeros(MOST_HOT, np.int64),
        levels=new_levels(seen.astype(np.float64), 0.0),
        clock=np.zeros(2, np.int64),
        cut=np.array([NOWHERE, 0.0, 0.0, 0.0, 0.0]),
        unit=np.array([NOWHERE, 0.0]),
        resample=resample,
    )


@kernel
def log_gamma(x: float) -> float:
    """Ln Gamma(x) for x > 0 to about 1e-14 (Stirling); math.lgamma rounds differently in compiled code."""
    shift = 1.0
    while x < 10.0:
        shift *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x
    return (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + series - math.log(shift)


@kernel
def log_norm(a: float, b: float) -> float:
    """Logarithm of the constant of the Beta density."""
    return log_gamma(a + b) - log_gamma(a) - log_gamma(b)


@kernel
def set_cut(state: Any, logit: float) -> None:
    """Move the level."""
    state.cut[CUT] = 1.0 / (1.0 + math.exp(-logit))
    state.cut[LOG] = -math.log1p(math.exp(-logit))
    state.cut[REST] = 1.0 / (1.0 + math.exp(logit))
    state.cut[LOG_REST] = -math.log1p(math.exp(logit))


@kernel
def steepness(state: Any, arm: int) -> float:
    """How fast the logarithm of the density falls at the level."""
    above = (state.failures[arm] - 1.0) / state.cut[REST]
    return float(above - (state.successes[arm] - 1.0) / state.cut[CUT])


@kernel
def log_envelope(slope: float, width: float) -> float:
    """Logarithm of the integral of exp(-slope x) from 0 to the width."""
    fall = slope * width
    if fall < -50.0:
        return -fall - math.log(-slope)
    return math.log(-math.expm1(-fall) / slope if abs(fall) > 1e-9 else width)


@kernel
def log_density(state: Any, arm: int) -> float:
    """Logarithm of the posterior density at the level."""
    log = state.norm[arm] + (state.successes[arm] - 1.0) * state.cut[LOG]
    return float(log + (state.failures[arm] - 1.0) * state.cut[LOG_REST])


@kernel
def chance_bound(state: Any, arm: int) -> float:
    """M: no smaller than the chance that the arm's draw exceeds the level."""
    log = log_density(state, arm) + log_envelope(steepness(state, arm), state.cut[REST])
    return math.exp(min(0.0, log))


@kernel
def assurance(state: Any, arm: int) -> float:
    """About -ln(chance that the arm's draw is below the level)."""
    slope, height = steepness(state, arm), log_density(state, arm)
    chance = height + log_envelope(slope, state.cut[REST])
    if chance <= LOG_HALF:
        return math.exp(chance)
    return max(0.5, -height - log_envelope(-slope, state.cut[CUT]))


@kernel
def set_rate(state: Any, arm: int) -> None:
    """The call rate of an arm at the present level; whether it is hot."""
    chance = chance_bound(state, arm)
    where = state.place[arm]
    if chance > 0.5:
        if where < 0:
            if state.clock[HOTS] == MOST_HOT:
                state.cut[CUT] = NOWHERE  # too many: the next decision chooses another level
                return
            state.place[arm] = state.clock[HOTS]
            state.hot[state.clock[HOTS]] = arm
            state.clock[HOTS] += 1
        state.logs[arm] = APART
        return
    if where >= 0:
        last = state.clock[HOTS] - 1
        moved = state.hot[last]
        state.hot[where] = moved
        state.place[moved] = where
        state.place[arm] = -1
        state.clock[HOTS] = last
    state.logs[arm] = math.log(max(-math.log1p(-chance), 1e-300))


@rare_kernel
def choose_cut(state: Any) -> None:
    """The level at which nobody exceeds it once in about K decisions, by bisection; then all rates anew."""
    n_arms = state.logs.size
    target = max(2.0, math.log(n_arms))
    low, high = -30.0, 30.0
    for _ in range(14):
        logit = 0.5 * (low + high)
        set_cut(state, logit)
        total = 0.0
        for k in range(n_arms):
            total += assurance(state, k)
        if total > target:
            low = logit
        else:
            high = logit
    set_cut(state, low)
    again = True
    while again:
        state.clock[HOTS] = 0
        for k in range(n_arms):
            state.place[k] = -1
        for k in range(n_arms):
            set_rate(state, k)
        again = state.cut[CUT] == NOWHERE
        low += 0.25
        if again:
            set_cut(state, low)
    state.cut[DRIFT] = 0.0
    state.levels.clock[STALE] = 1
    make_fit(state.levels, state.logs, 1.0)


@rare_kernel
def highest_below(state: Any, best: int, top: float, rng: Any) -> int:
    """The best arm given that none exceeds the level, where the hot arms are drawn and ``best`` has the largest draw."""
    state.cut[DRIFT] += 2.0 * state.logs.size  # four such decisions, and the level is chosen anew
    for k in range(state.logs.size):
        if state.place[k] >= 0:
            continue
        value = 2.0
        while value > state.cut[CUT]:
            value = rng.beta(state.successes[k], state.failures[k])
        if value > top:
            best, top = k, value
    return best


@kernel
def select_beta(state: Any, t: int, rng: Any) -> int:
    """The arm of the largest draw."""
    levels = state.levels
    many = 8.0 * state.logs.size
    if state.cut[CUT] != NOWHERE:
        make_fit(levels, state.logs, 1.0)
    average = average_exceeding(levels, state.unit)
    if state.cut[CUT] == NOWHERE or average > 2.0 * math.log(many) + 4.0 or state.cut[DRIFT] > many:
        choose_cut(state)
        average = average_exceeding(levels, state.unit)
    level, rest = state.cut[CUT], state.cut[REST]
    best, top = -1, -1.0
    for j in range(state.clock[HOTS]):
        value = rng.beta(state.successes[state.hot[j]], state.failures[state.hot[j]])
        if value > top:
            best, top = state.hot[j], value
    state.clock[SERIAL] += 1
    clock = rng.standard_exponential()
    while clock < average:
        arm = try_arm(levels, state.logs, 1.0, rng)
        if arm >= 0 and state.called[arm] != state.clock[SERIAL]:
            state.called[arm] = state.clock[SERIAL]
            slope = steepness(state, arm)
            above = rng.random() * rest
            if abs(slope * rest) > 1e-9:
                above = -math.log1p(above / rest * math.expm1(-slope * rest)) / slope
            value = level + above
            if value > top and value < 1.0:
                log = (state.successes[arm] - 1.0) * math.log1p(above / level)
                log += (state.failures[arm] - 1.0) * math.log1p(-above / rest) + slope * above
                if log >= 0.0 or rng.random() < math.exp(log):
                    best, top = arm, value
        clock += rng.standard_exponential()
    return int(best) if top > level else highest_below(state, best, top, rng)


@kernel
def learn_levels(state: Any, seen: int) -> None:
    """The posterior of an arm has changed."""
    state.norm[seen] = log_norm(state.successes[seen], state.failures[seen])
    state.cut[DRIFT] += 1.0
    if state.cut[CUT] != NOWHERE:
        set_rate(state, seen)
    refile_arm(state.levels, seen, state.logs[seen])
