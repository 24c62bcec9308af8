r"""A tuner with a reason: how much exploration a problem needs, and how ABE's parameters provide it.

**Need.** Observing the best arm n times, with noise of standard deviation sigma, leaves a chance of about
:math:`e^{-n\Delta^2/2\sigma^2}` that it looks worse than it should by the gap, and then the rest of the horizon is lost. An observation
of all arms costs :math:`K\Delta`. The sum :math:`K\Delta n + T\Delta e^{-n\Delta^2/2\sigma^2}` is least near
:math:`n = 2\sigma^2L/\Delta^2` with :math:`L = \ln(1 + T\Delta^2/2\sigma^2K)`: Lai and Robbins' amount, with the horizon it has.

**Boltzmann sampling alone** gives an arm a gap below the best the probability :math:`e^{-x}/(1+(K-1)e^{-x})`,
:math:`x = \eta\Delta\sqrt t`. Its pulls over all time add up to

.. math:: \int_0^\infty\frac{e^{-x}}{1+(K-1)e^{-x}}\,dt = \frac{2\,g_K}{\eta^2\Delta^2},\qquad g_K = \frac{-\mathrm{Li}_2(-(K-1))}{K-1},

the same multiple of :math:`1/\Delta^2` as the need, whatever the gap: one eta fits all gaps. But it happens once, early, and
luck decides; forced sweeps come back in every epoch. `recommend` takes half of the need from each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from abex.errors import real_number, whole_number
from abex.theory.bounds import finite_time_bound
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
        """The policy as a person would type it."""
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
        Difference between the best mean and the next, if known. Otherwise forced exploration is made for the
        geometric middle :math:`(2\sigma^2|\xi|/T)^{1/4}` between the smallest gap that the horizon can resolve and 1,
        so that it never costs more than the minimax order :math:`\sqrt{|\xi|T}`.
    sweep
        Pulls that show every arm once: the size of xi (or of a dominating set) on a feedback graph, K without.
    sigma
        Standard deviation of a reward, 1/2 at most for rewards in [0, 1]. Rewards of size 0.001 need 0.001.

    Examples
    --------
    >>> advice = recommend(10, 20_000, gap=0.25)
    >>> advice.policy
    "ABE(eta=0.797, c=2.8, alpha=0.1, rounding='carry')"
    """
    n_arms = whole_number("n_arms", n_arms, least=2)
    horizon = whole_number("horizon", horizon, least=1)
    sigma = real_number("sigma", sigma, above=0.0)
    pulls = whole_number("sweep", n_arms if sweep is None else sweep, least=1, most=n_arms)
    resolvable = math.sqrt(2.0 * sigma**2 * pulls / horizon)  # the gap at which L = ln 2
    if gap is None:
        aim, safe, alpha = math.sqrt(min(1.0, resolvable)), 1.0, 1.0
    else:
        aim = safe = real_number("gap", gap, above=0.0, most=1.0)
        alpha = 0.1
    need = 2.0 * sigma**2 * math.log1p((aim / resolvable) ** 2) / aim**2
    logarithm = max(1.0, math.log1p((safe / resolvable) ** 2))
    eta = math.sqrt(leak_constant(n_arms) * n_arms / pulls / (sigma**2 * (1.0 - FORCED) * logarithm))
    epochs = math.floor(lemma_1_upper(horizon, n_arms) + 1e-12)
    c = FORCED * need / math.fsum(i**alpha for i in range(1, epochs + 1))
    eta, c = three_digits(eta), three_digits(c)
    schedule = Schedule(n_arms, c, alpha, "carry")
    reasons = _reasons(n_arms, horizon, gap, aim, need, eta, c, alpha, pulls, schedule)
    return Recommendation(eta, c, alpha, "carry", reasons)


def leak_constant(n_arms: int) -> float:
    r""":math:`g_K = -\mathrm{Li}_2(-(K-1))/(K-1)`: Boltzmann sampling pulls a sub-optimal arm :math:`2g_K/(\eta\Delta)^2` times.

    >>> leak_constant(2)        # pi^2 / 12
    0.822...
    """
    from scipy.special import spence  # spence(z) = Li2(1 - z)

    return float(-spence(float(n_arms)) / (n_arms - 1))


def three_digits(value: float) -> float:
    """``value`` to three significant digits: nobody types more, and the analysis knows less.

    >>> three_digits(0.123456), three_digits(4567.8)
    (0.123, 4570.0)
    """
    return float(f"{value:.3g}")


def _reasons(
    n_arms: int, horizon: int, gap: float | None, aim: float, need: float,
    eta: float, c: float, alpha: float, pulls: int, schedule: Schedule,
) -> tuple[str, ...]:  # fmt: skip
    per_arm = "observations of every arm" if pulls < n_arms else "pulls of every arm"
    known = (
        f"a gap of {aim:.3g}"
        if gap is not None
        else f"no gap is given; for {aim:.3g}, the middle of what counts,"
    )
    words = [
        f"{known} over {horizon:,} steps needs about {need:.3g} {per_arm} before one may commit",
        f"eta={eta:g}: Boltzmann sampling explores by itself, 2 x {leak_constant(n_arms):.3g} / (eta gap)^2 pulls of an arm, "
        "and then stops for ever; this eta makes that half of the need, whatever the gap",
        f"c={c:g}: the other half comes from {FORCED * need:.3g} forced sweeps spread over the epochs; they repair what "
        "early bad luck spoilt",
    ]
    if gap is None:
        words.append("alpha=1: later epochs sweep more, so that smaller gaps are covered the longer it runs")
    else:
        words.append(
            "alpha=0.1: each epoch doubles the steps at stake and so must halve the chance of error, for which the same number of "
            "sweeps does; above 0, so that a smaller gap than the one given is found in the end"
        )
    first = Schedule(n_arms, c, alpha, "floor").first_exploration()
    late = "never" if first is None else f"at step 1e{first.log10_step:.0f}" if first.epoch > 1 else "at once"
    words.append(
        f"rounding='carry': fractions of a sweep count; with the paper's floor exploration would begin {late}"
    )
    if gap is not None:
        bound = finite_time_bound([gap] * (n_arms - 1), horizon, schedule, eta)
        words.append(
            f"proved: regret at most {bound:,.0f} of {horizon * gap:,.0f} if every step were lost (bandit feedback)"
        )
    return tuple(words)
