"""MOSS: upper confidence bounds that vanish at an arm's fair share of the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from abex.kernels import kernel
from abex.policies.index import IndexPolicy, IndexState
from abex.policies.policy import Setting
from abex.samplers.interface import flat_until, index_of, level_at, reaching_level
from abex.support.parameters import HUGE, MOST_STEPS, real, whole


class MossState(IndexState):
    r"""Index :math:`\hat\mu_k+\sqrt{f\ln_+(\ell/N_k)/N_k}`, the level an arm's fair share of the steps."""

    horizon: float  # nan: the current step
    factor: float


@level_at.register(MossState)
@kernel
def moss_level(state: MossState, t: float) -> float:
    """The steps of the horizon, or so far, over the arms."""
    return (t if math.isnan(state.horizon) else state.horizon) / state.means.size


@index_of.register(MossState)
@kernel
def moss_index(state: MossState, arm: int, level: float) -> float:
    """The mean plus a width that vanishes at the fair share."""
    n = state.observations[arm] if state.observations[arm] > 0.0 else 1.0
    return state.means[arm] + (0.0 if level <= n else math.sqrt(state.factor * math.log(level / n) / n))  # type: ignore[no-any-return]


@reaching_level.register(MossState)
@kernel
def moss_reaching(state: MossState, arm: int, value: float) -> float:
    """The inverse of the index."""
    count, above = state.observations[arm], value - state.means[arm]
    return count * math.exp(min(count * above * above / state.factor, 600.0))  # type: ignore[no-any-return]


@flat_until.register(MossState)
@kernel
def moss_rest(state: MossState, arm: int) -> float:
    """Up to its fair share an arm's index is its mean alone."""
    return float(state.observations[arm])


@dataclass(frozen=True)
class MOSS(IndexPolicy):
    r"""Upper confidence bounds that shrink to zero at the fair share of the horizon.

    Play the largest :math:`\hat\mu_k+\sqrt{\ln_+\!\big(H/(K N_k)\big)/N_k}`.

    Parameters
    ----------
    horizon : int or None
        The number of steps H to tune for; None takes the horizon of the run. Beyond H the bounds keep vanishing at
        H / K observations: a run that is longer is warned about, and `report` counts the observations past H.
    anytime : float or None
        Where given, no horizon is needed or used: the index is
        :math:`\hat\mu_k+\sqrt{\frac{1+a}{2}\ln_+\!\big(t/(K N_k)\big)/N_k}` with this a. 1.35 is the authors' choice, and what
        the name ``MOSS-anytime`` stands for.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.tournament`), O(K) for a few arms.

    References
    ----------
    Audibert and Bubeck 2009, Figure 1 and Theorem 5: regret at most :math:`49\sqrt{KT}`. Degenne and Perchet 2016,
    Section 2 (MOSS-anytime) and Theorem 3.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(MOSS(horizon=100), n_arms=2, seed=0)
    >>> bad, good = player.update_many([(0, 0.0)] * 9), player.update_many([(1, 1.0)] * 9)
    >>> player.select()
    1
    >>> anytime = Player("MOSS-anytime", n_arms=2, seed=0)
    >>> while anytime.update(0, 0.0) and anytime.select() == 0:
    ...     pass
    >>> anytime.policy
    MOSS(horizon=None, anytime=1.35)
    """

    horizon: int | None = whole(None, least=1, most=MOST_STEPS, or_none=True)
    anytime: float | None = real(None, above=-1.0, most=HUGE, or_none=True)
    law = "MOSS"
    variants: ClassVar = {name: {"anytime": 1.35} for name in ("MOSS-anytime", "AnytimeMOSS")}

    @property
    def needs_horizon(self) -> bool:
        """Only where neither a horizon nor the anytime form is chosen."""
        return self.horizon is None and self.anytime is None

    record = MossState

    def numbers(self, setting: Setting) -> dict[str, float]:
        """Its horizon, or that of the run; none for the anytime form."""
        if self.anytime is not None:
            return {"horizon": math.nan, "factor": 0.5 * (1.0 + self.anytime)}
        return {"horizon": float(self.horizon or self.horizon_of(setting)), "factor": 1.0}
