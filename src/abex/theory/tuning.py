r"""Parameters of ABE from theory: how much exploration a problem needs, and how they provide it.

**Need.** Observing the best arm n times, with noise of standard deviation sigma, leaves a chance of about
:math:`e^{-n\Delta^2/2\sigma^2}` that it looks worse than it should by the gap, and then the rest of the horizon is
lost. An observation of all arms costs :math:`K\Delta`. The sum :math:`K\Delta n + T\Delta e^{-n\Delta^2/2\sigma^2}` is
least near :math:`n = 2\sigma^2L/\Delta^2`, :math:`L = \ln(1 + T\Delta^2/2\sigma^2K)`: the amount of Lai and Robbins,
for a horizon that is finite.

**Boltzmann sampling alone** gives an arm a gap below the best the probability
:math:`e^{-x}/(1+(K-1)e^{-x})`, :math:`x = \eta\Delta\sqrt t`. Its pulls over all time add up to

.. math:: \int_0^\infty\frac{e^{-x}}{1+(K-1)e^{-x}}\,dt = \frac{2\,g_K}{\eta^2\Delta^2},\qquad
          g_K = \frac{-\mathrm{Li}_2(-(K-1))}{K-1},

the same multiple of :math:`1/\Delta^2` as the need, whatever the gap: one eta fits all gaps. But it happens
once, early, and by chance; forced sweeps come back in every epoch. `recommend` takes half of the need
from each. It is an estimate, not a theorem: the proofs credit the sweeps alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from abex.support.errors import real_number, whole_number
from abex.support.extras import needed
from abex.theory.bounds import finite_time_bound
from abex.theory.explanation import MAX_ARMS_OF_BOUNDS, MAX_STEPS, MIN_GAP, amount, number
from abex.theory.lemmas import lemma_1_upper
from abex.theory.schedule import Schedule

FORCED = 0.5  # share of the need that the sweeps provide; Boltzmann sampling provides the rest


@dataclass(frozen=True)
class Recommendation:
    """Parameters of ABE and the reasons for them, in words."""

    eta: float
    c: float
    alpha: float
    rounding: str
    reasons: tuple[str, ...]

    @property
    def policy(self) -> str:
        """The policy as text."""
        return f"ABE(eta={self.eta!r}, c={self.c!r}, alpha={self.alpha!r}, rounding={self.rounding!r})"

    def __str__(self) -> str:
        return "\n".join([self.policy, *(f"- {reason}" for reason in self.reasons)])


def recommend(
    n_arms: int, horizon: int, gap: float | None = None, *, sweep: int | None = None, sigma: float = 0.5
) -> Recommendation:
    r"""Parameters of ABE for K arms and a horizon, from the analysis; see the module's text.

    With :math:`L = \ln(1+T\Delta^2/2\sigma^2|\xi|)`, half of the need :math:`n = 2\sigma^2L/\Delta^2` from each source:

    .. math:: \eta = \sqrt{\frac{g_K\,K/|\xi|}{\sigma^2L/2}},\qquad \sum_{i\le\log_2(T/K+2)}c\,i^\alpha = \frac n2

    Parameters
    ----------
    n_arms, horizon
        Number of arms and of steps.
    gap
        Difference between the best mean and the next, if known. Otherwise L is taken at the gap 1, where it is
        largest, and the sweeps are :math:`\sigma\sqrt{T/2|\xi|}`, so that they never cost more than
        :math:`\sigma\sqrt{|\xi|T/2}`: the order that no policy avoids in the worst case.
    sweep
        Pulls that show every arm once: the size of xi (or of a dominating set) on a feedback graph, K without.
    sigma
        Standard deviation of a reward, 1/2 at most for rewards in [0, 1]. Rewards of size 0.001 need 0.001.

    Examples
    --------
    >>> advice = recommend(10, 20_000, gap=0.25)
    >>> advice.policy
    "ABE(eta=0.797, c=1.9, alpha=0.1, rounding='carry')"
    """
    n_arms = whole_number("n_arms", n_arms, least=2, most=MAX_ARMS_OF_BOUNDS)
    horizon = whole_number("horizon", horizon, least=1, most=MAX_STEPS)
    sigma = real_number("sigma", sigma, least=MIN_GAP, most=1.0 / MIN_GAP)
    pulls = whole_number("sweep", n_arms if sweep is None else sweep, least=1, most=n_arms)
    snr = horizon / (2.0 * sigma**2 * pulls)  # times gap^2: how well the horizon resolves a gap
    if gap is None:
        logarithm, alpha = math.log1p(snr), 1.0
        sweeps = sigma**2 * math.sqrt(snr)
    else:
        gap, alpha = real_number("gap", gap, least=MIN_GAP, most=1.0), 0.1
        logarithm = math.log1p(snr * gap**2)
        sweeps = FORCED * 2.0 * sigma**2 * logarithm / gap**2
    leak = leak_constant(n_arms) * n_arms / pulls
    eta = three_digits(math.sqrt(leak / (sigma**2 * (1.0 - FORCED) * max(1.0, logarithm))))
    epochs = math.floor(lemma_1_upper(horizon, n_arms) + 1e-12)
    c = three_digits(sweeps / math.fsum(i**alpha for i in range(1, epochs + 1)))
    reasons = (
        _why_so_much(n_arms, horizon, gap, sweeps, sigma),
        f"eta={eta:g}: Boltzmann sampling explores by itself, {2.0 * leak:.3g} / (eta gap)^2 observations of each arm, "
        "early, and then stops for ever; this eta makes that half of the need, whatever the gap",
        f"c={c:g}: {sweeps:.3g} forced sweeps spread over {epochs} epochs repair what early bad luck spoilt",
        WHY_ALPHA[gap is not None],
        _why_carry(Schedule(n_arms, c, alpha)),
        *_what_is_proved(n_arms, horizon, gap, Schedule(n_arms, c, alpha, "carry"), eta, pulls),
    )
    return Recommendation(eta, c, alpha, "carry", reasons)


def leak_constant(n_arms: int) -> float:
    r""":math:`g_K = -\mathrm{Li}_2(-(K-1))/(K-1)`: Boltzmann sampling pulls a sub-optimal arm :math:`2g_K/(\eta\Delta)^2` times.

    >>> leak_constant(2)        # pi^2 / 12
    0.822...
    """
    with needed():
        from scipy.special import spence  # spence(z) = Li2(1 - z)

    return float(-spence(float(n_arms)) / (n_arms - 1))


def three_digits(value: float) -> float:
    """``value`` to three significant digits: nobody types more, and the analysis knows less.

    >>> three_digits(0.123456), three_digits(4567.8)
    (0.123, 4570.0)
    """
    return float(f"{value:.3g}")


WHY_ALPHA = (
    "alpha=1: later epochs sweep more, so that smaller gaps are covered the longer it runs",
    "alpha=0.1: an epoch doubles the steps at stake and so must halve the chance of error, which takes the same number "
    "of sweeps each time; above 0, so that a gap smaller than the one given is found in the end",
)


def _why_so_much(n_arms: int, horizon: int, gap: float | None, sweeps: float, sigma: float) -> str:
    if gap is None:
        return (
            f"no gap is given: {sweeps:.3g} sweeps over {horizon:,} steps never cost more than sigma sqrt(K T / 2), "
            "the order that no policy avoids in the worst case"
        )
    return (
        f"a gap of {gap:g} over {horizon:,} steps needs about {sweeps / FORCED:.3g} observations of each of {n_arms} arms, "
        f"the amount of Lai and Robbins; {FORCED:.0%} of it is forced"
    )


def _why_carry(floored: Schedule) -> str:
    first = floored.first_exploration()
    if first is not None and first.epoch == 1:
        return "rounding='carry': fractions of a sweep count instead of being dropped in every epoch"
    late = "never" if first is None else f"only at step {number(first.log10_step)}"
    return (
        f"rounding='carry': fractions of a sweep count; with the paper's floor exploration would begin {late}"
    )


def _what_is_proved(
    n_arms: int, horizon: int, gap: float | None, schedule: Schedule, eta: float, pulls: int
) -> tuple[str, ...]:
    if gap is None or pulls < n_arms:
        return ()
    bound, lost = finite_time_bound([gap] * (n_arms - 1), horizon, schedule, eta), horizon * gap
    if bound < 0.99 * lost:
        return (f"proved: regret at most {amount(bound)}, where {amount(lost)} would be every step lost",)
    return ("proved: nothing at so little exploration, since the bound credits the forced sweeps alone",)
