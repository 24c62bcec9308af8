r"""Boltzmann-Gumbel exploration (`abex.samplers.gumbel`) whose counts fade at every step.

The logarithm of the points above L, :math:`s_k(\hat\mu_k-L)`, moves towards 0 as :math:`s_k\propto\sqrt{N_k}` falls: below 0 it
is largest when the bound ends (`abex.samplers.pace`), above 0 now. That is what is filed; a point is one of the arm with
probability :math:`\lambda_k/\bar\lambda_k`, which thins the Poisson process of the bound to that of now.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel, rare_kernel
from abex.samplers.gumbel import (
    APART,
    NOWHERE,
    Threshold,
    bearable,
    filed_log,
    is_point,
    largest_of_exceeding,
    learn_exceedance,
    level_chosen,
    log_exceeding,
    new_bounds,
    share_unseen,
    sound_bounds,
    steep_of,
)
from abex.samplers.interface import changed, distribution, draw
from abex.samplers.largest_gumbel import largest_gumbel
from abex.samplers.pace import (
    UNPACED,
    Pace,
    keep_renewed,
    lasting,
    move_pace,
    renew_all,
    renew_bound,
    set_pace,
)
from abex.samplers.trials import drop_bounds, make_fit, refile
from abex.schema import Checked, Rebuilt, Within, agree

RENEWED = 3.0  # bounds a step that arms as many as the memory is long are worth
MOST_RENEWED = 8


class Load(Scalars):
    """What a step pays for points above the level, by the bounds of the moment at which the level was chosen."""

    chosen: Annotated[float, Within(0.0)]


class Steepness(Scalars):
    """Whether the s_k are those of the counts."""

    stale: int  # 1 if all have to be worked out again


class FadingGumbel(NamedTuple):
    """Bounds on the logarithms of what exceeds the level L on average, filed, and L."""

    steep: Annotated[NDArray[np.float64], Rebuilt()]  # (K,), s_k of counts that are too large
    steepness: Annotated[Steepness, Rebuilt()]
    logs: Annotated[NDArray[np.float64], Checked()]  # (K,)
    buckets: Annotated[Any, Checked()]  # `Buckets`, for few arms a `BoundedScan`
    threshold: Annotated[Threshold, Checked()]
    load: Load
    pace: Annotated[Pace, Checked()]
    shrink: float  # of the roots of counts while all bounds are renewed
    each: int  # bounds renewed at each step

    def restored(self, state: Any, fresh: Any) -> FadingGumbel:
        """Where the bounds do not hold now, they and the level are made anew: the distribution does not depend on them."""
        seen, n = state.observations > 0.0, state.observations.size
        level, leader = self.threshold.level, self.threshold.leader
        agree((level == NOWHERE) == (leader < 0), "leader must be an arm where there is a level")
        if level == NOWHERE:
            holds = bool(np.array_equal(self.logs, np.where(seen, 0.0, math.inf)))
        else:
            agree(bool(seen.all()), "there must be no level before every arm was observed")
            logs = np.sqrt(state.observations) / state.scale / self.pace.root * (state.means - level)
            logs[leader] = APART
            holds = bool((logs <= self.logs + 1e-9).all()) and self.logs[leader] == APART
        if not (
            holds and self.pace.cursor < n and sound_bounds(self.buckets, self.logs, seen) is self.buckets
        ):
            return fading_gumbel(state, self.shrink, self.each, self.pace)
        threshold = Threshold(level=level, leader=leader, zero=NOWHERE)
        steep = np.sqrt(state.observations) / state.scale
        return self._replace(steep=steep, steepness=Steepness(), threshold=threshold)


def new_fading_gumbel(state: Any, blank: Any, gamma: float, pace: Pace) -> FadingGumbel:
    """No level yet; counts fade by gamma a step."""
    n_arms = state.observations.size
    each = min(1 + int(RENEWED * (1.0 - gamma) * n_arms), MOST_RENEWED, n_arms)
    return fading_gumbel(state, gamma ** (0.5 * lasting(n_arms, each)), each, pace)


def fading_gumbel(state: Any, shrink: float, each: int, pace: Pace) -> FadingGumbel:
    """No level yet; roots of counts fade by ``shrink`` while all bounds are renewed."""
    pace.renewed, pace.cursor = UNPACED, 0
    return FadingGumbel(
        steep=np.sqrt(state.observations) / state.scale,
        steepness=Steepness(),
        logs=np.full(state.observations.size, math.inf),
        buckets=new_bounds(state.observations),
        threshold=Threshold(level=NOWHERE, leader=-1, zero=NOWHERE),
        load=Load(chosen=0.0),
        pace=pace,
        shrink=shrink,
        each=each,
    )


@set_pace.register(FadingGumbel)
@kernel
def widen(sampler: FadingGumbel, step: int, factor: float, root: float) -> None:
    """The noise is larger now; where all counts were made smaller at last, s_k of every arm has to be worked out again."""
    if factor < sampler.pace.factor:
        sampler.steepness.stale = 1
    move_pace(sampler, step, factor, root)


@kernel
def see_steep(sampler: FadingGumbel, state: Any) -> None:
    """Work out s_k of every arm where it has to be."""
    if sampler.steepness.stale == 1:
        sampler.steepness.stale = 0
        for k in range(sampler.steep.size):
            sampler.steep[k] = math.sqrt(state.observations[k]) / state.scale


@steep_of.register(FadingGumbel)
@kernel
def faded_steep(sampler: FadingGumbel, state: Any, arm: int) -> float:
    """By what has not faded."""
    return float(sampler.steep[arm] / sampler.pace.root)


@filed_log.register(FadingGumbel)
@kernel
def lasting_log(sampler: FadingGumbel, state: Any, arm: int) -> float:
    """The largest logarithm until all bounds have been renewed."""
    log = log_exceeding(sampler, state, arm)
    return float(log * sampler.shrink if log < 0.0 else log)


@is_point.register(FadingGumbel)
@kernel
def is_faded_point(sampler: FadingGumbel, state: Any, arm: int, rng: Any) -> bool:
    """With the quotient of what the arm has now and its bound."""
    return bool(rng.random() < math.exp(log_exceeding(sampler, state, arm) - sampler.logs[arm]))


@bearable.register(FadingGumbel)
@kernel
def still_bearable(sampler: FadingGumbel, load: float, target: float) -> bool:
    """Bounds are above what there is, so it is compared with what it was."""
    return bool(0.6 * sampler.load.chosen < load < 1.5 * sampler.load.chosen + 0.6)


@level_chosen.register(FadingGumbel)
@kernel
def remember_load(sampler: FadingGumbel, load: float) -> None:
    """To compare with."""
    sampler.load.chosen = load


@renew_bound.register(FadingGumbel)
@kernel
def renew_log(sampler: FadingGumbel, state: Any, arm: int) -> None:
    """That of one arm."""
    if sampler.threshold.level != NOWHERE and arm != sampler.threshold.leader:
        log = filed_log(sampler, state, arm)
        sampler.logs[arm] = log
        refile(sampler.buckets, arm, log)


@renew_all.register(FadingGumbel)
@rare_kernel
def renew_logs(sampler: FadingGumbel, state: Any) -> None:
    """All, at the level that there is."""
    if sampler.threshold.level == NOWHERE:
        return
    for k in range(sampler.logs.size):
        if k != sampler.threshold.leader:
            sampler.logs[k] = filed_log(sampler, state, k)
    drop_bounds(sampler.buckets)
    make_fit(sampler.buckets, sampler.logs, 1.0)


@draw.register(FadingGumbel)
@kernel
def draw_fading(sampler: FadingGumbel, state: Any, t: float, rng: Any) -> int:
    """The largest perturbed mean."""
    see_steep(sampler, state)
    keep_renewed(sampler, state, sampler.logs.size, sampler.each)
    return largest_of_exceeding(sampler, state, rng)


@changed.register(FadingGumbel)
@kernel
def changed_fading(sampler: FadingGumbel, state: Any, arm: int) -> None:
    """How often a perturbed mean exceeds the level has changed."""
    see_steep(sampler, state)
    sampler.steep[arm] = math.sqrt(state.observations[arm]) / state.scale
    learn_exceedance(sampler, state, arm)


@distribution.register(FadingGumbel)
@kernel
def distribution_of_fading(sampler: FadingGumbel, state: Any, t: float, out: Any) -> None:
    """The probability of each arm to have the largest perturbed mean; arms never observed come first."""
    if share_unseen(state, out):
        return
    steep = np.empty(out.size)
    for k in range(out.size):
        steep[k] = math.sqrt(state.observations[k]) / (state.scale * sampler.pace.root)
    largest_gumbel(state.means, steep, out)
