"""Schedule and bounds of ABE for given parameters, in words."""

from __future__ import annotations

import math

from abex.support.errors import real_number, whole_number
from abex.theory.bounds import (
    Bound,
    finite_time_bound,
    log10_first_informative_step,
    theorem_1,
    theorem_1_as_printed,
)
from abex.theory.lemmas import gamma_exponent, log2_burn_in
from abex.theory.published import bge_bound, lai_robbins, ucb1_bound
from abex.theory.schedule import Schedule

MIN_GAP = 1e-12  # two means around 1/2 that are closer are equal in floating point
MAX_STEPS, MAX_ARMS_OF_BOUNDS = 10**100, 10**18  # horizon and arms, of logarithms and of floats


def explain(n_arms: int, horizon: int, gap: float, c: float, alpha: float, eta: float = 0.4) -> str:
    """Schedule and bounds of ABE for one best arm and K - 1 arms a gap below it, as a text of short paragraphs.

    >>> print(explain(333, 10**6, gap=0.25, c=0.1, alpha=0.7).split(". ")[0])
    Pure exploration first happens at step 44,694,502,759 (4.5e10), in outer iteration 27
    """
    horizon = whole_number("horizon", horizon, least=1, most=MAX_STEPS)
    schedule = Schedule(whole_number("n_arms", n_arms, least=2, most=MAX_ARMS_OF_BOUNDS), c, alpha)
    real_number("gap", gap, least=MIN_GAP, most=1.0)
    paragraphs = [schedule_in_words(schedule, horizon)]
    if c > 0.0 and alpha > 0.0:
        paragraphs.append(theorem_in_words(n_arms, horizon, gap, c, alpha, eta))
    else:
        paragraphs.append("Theorem 1 needs c > 0 and alpha > 0: it says nothing here.")
    paragraphs.append(neighbours_in_words(schedule, horizon, gap, eta))
    return "\n\n".join(paragraphs)


def schedule_in_words(schedule: Schedule, horizon: int) -> str:
    """The first exploration slot, and how many there are up to the horizon."""
    first = schedule.first_exploration()
    slots, epoch = schedule.exploration_slots(horizon), schedule.at(horizon).number
    if first is None:
        words = "Pure exploration never happens with these parameters."
    else:
        when = f"{first.step:,}" if first.step is not None and first.log10_step < 18.0 else ""
        size = number(first.log10_step)
        where = f"step {when} ({size})" if when and first.log10_step >= 6.0 else f"step {when or size}"
        words = f"Pure exploration first happens at {where}, in outer iteration {number(math.log10(first.epoch))}."
    share = f"{slots / horizon:.2%}"
    words += (
        f" Up to step {horizon:,} (outer iteration {epoch}) it takes {slots:,} slots, {share} of all, "
        f"{schedule.sweeps(horizon):,} complete sweeps over the {schedule.n_arms:,} arms."
    )
    if slots == 0:
        carried = Schedule(schedule.n_arms, schedule.c, schedule.alpha, "carry").exploration_slots(horizon)
        words += " So up to this horizon ABE is plain Boltzmann exploration, whatever c and alpha say."
        if carried:
            words += f' With rounding="carry" the same c and alpha would explore in {carried:,} slots.'
    return words


def theorem_in_words(n_arms: int, horizon: int, gap: float, c: float, alpha: float, eta: float) -> str:
    """The step from which Theorem 1 applies, and its bound at the horizon."""
    gaps = [gap] * (n_arms - 1)
    start = log2_burn_in(gap, n_arms, c, alpha) * math.log10(2.0)
    useful = log10_first_informative_step(gaps, c, alpha, eta)
    lost = horizon * gap
    corrected, printed = (
        theorem_1(gaps, horizon, c, alpha, eta),
        theorem_1_as_printed(gaps, horizon, c, alpha, 0.0),
    )
    gamma = gamma_exponent(gap, c, alpha)
    return (
        f"Theorem 1 applies from step {number(start)} (gamma = {number(math.log10(gamma))}), and says more "
        f'than "every step is lost" from a horizon of {number(useful)} steps on. At {horizon:,} steps its bound is '
        f"{number(corrected.log10)} with all constants (as printed, without its O-term, {number(printed.log10)}); "
        f"losing every step would cost {amount(lost)}: {verdict(corrected, lost)}."
    )


def neighbours_in_words(schedule: Schedule, horizon: int, gap: float, eta: float) -> str:
    """Our finite-time bound, published bounds of other policies, and the lower bound."""
    gaps = [gap] * (schedule.n_arms - 1)
    top = 0.5 + gap if gap < 0.5 else 0.5 + gap / 2.0
    lost = horizon * gap
    slope = lai_robbins([top] + [top - gap] * len(gaps))

    def said(bound: float) -> str:
        return "no better than losing every step" if bound >= 0.999 * lost else amount(bound)

    ours = said(finite_time_bound(gaps, horizon, schedule, eta))
    floor = slope * math.log(horizon)
    here = (
        f"{amount(floor)} here"
        if floor < lost
        else f"which says nothing yet: by {horizon:,} steps losing every one costs {amount(lost)}"
    )
    return (
        f"Our finite-time bound for this very schedule (eta = {eta:g}): "
        f"{ours if ours.startswith('no') else f'regret at most {ours}'}. For comparison, published bounds: UCB1 "
        f"{said(ucb1_bound(gaps, horizon))}, Boltzmann-Gumbel {said(bge_bound(gaps, horizon))}. As the horizon grows no "
        f"consistent policy does better than {slope:,.3g} ln T (Bernoulli {top:g} against {top - gap:g}), {here}."
    )


def amount(regret: float) -> str:
    """A regret as text: whole steps, below ten three digits.

    >>> amount(1234.5), amount(0.1234), amount(0.0)
    ('1,234', '0.123', '0')
    """
    return f"{regret:,.0f}" if regret >= 10.0 else f"{regret:.3g}"


def verdict(bound: Bound, lost: float) -> str:
    """Whether a bound says more than that every step is lost."""
    return "the bound is empty" if bound.log10 >= math.log10(lost) else "the bound is not empty"


def number(log10: float) -> str:
    """A positive number of any size as text, from its log10.

    >>> number(1.5), number(10.65), number(75754.2), number(float("inf"))
    ('32', '4.5e10', '10^75,754', 'beyond 10^(10^308)')
    """
    if log10 == math.inf:
        return "beyond 10^(10^308)"
    if log10 < 5.0:
        return f"{10.0**log10:,.3g}" if log10 < 1.0 else f"{10.0**log10:,.0f}"
    if log10 < 300.0:
        mantissa, exponent = f"{10.0 ** (log10 % 1.0):.1f}", math.floor(log10)
        return f"{mantissa}e{exponent}" if mantissa != "10.0" else f"1.0e{exponent + 1}"
    return f"10^{log10:,.0f}" if log10 < 1e15 else f"10^({number(math.log10(log10))})"
