"""Does a claim hold? Decided from the results by a rule that is stated with the answer, never by hand.

Every rule looks at paired differences d = loss of the first line - loss of another line at the end of the run, or at
the step that the claim names, with Student's interval over replications, and a margin below which a difference does not
matter. The intervals of a claim hold together with 95 % confidence (Bonferroni: each of m has level 1 - 0.05/m), so that
a claim against many lines is not refuted by luck:

``better``
    holds if every interval lies below 0, does not hold if one lies above -margin, cannot be told otherwise.
``as good``
    "as well as or better": holds if every interval lies below the margin, does not hold if one lies above 0 and its
    mean beyond the margin, cannot be told otherwise.
``best``
    the first line has the least loss of all named: holds if every interval lies below 0 (a line that is equal in every
    run is the same algorithm and does not count), does not hold if one lies above 0, cannot be told otherwise.
``explores``
    the first line used at least one slot for pure exploration in some replication.
``flat``
    the lines do not differ: holds if every interval lies within the margin, does not hold if one lies outside.
``sooner``
    the first line gets down to the other's final mean loss plus the margin in less CPU time than the other: d = ln of its
    seconds - ln of the other's mean seconds, over replications. Holds if every interval lies below 0, does not hold if one
    lies above 0 or if some replication never gets there, cannot be told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abex.experiments.base import Claim
from abex.experiments.outcomes import LEVEL, Drawn, Outcome, interval, paired

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"
EXPLORED = "exploration_slots"


@dataclass(frozen=True)
class Verdict:
    """A claim, what was measured, and whether it holds."""

    claim: Claim
    measured: str
    answer: str
    rule: str


def judge(outcome: Outcome) -> list[Verdict]:
    """The verdicts on all claims of an experiment."""
    return [_judge(claim, outcome) for claim in outcome.experiment.claims]


def _judge(claim: Claim, outcome: Outcome) -> Verdict:
    first = outcome.get(claim.first)
    if first is None:
        return Verdict(claim, f"{claim.first} has not been run", OPEN, claim.rule)
    if claim.rule == "explores":
        slots = first.numbers.get(EXPLORED)
        if slots is None:
            return Verdict(claim, f"{claim.first} does not report its exploration slots", OPEN, claim.rule)
        text = f"{np.mean(slots):,.0f} of {first.step[-1]:,.0f} slots were pure exploration (mean of {len(slots)} runs)"
        return Verdict(claim, text, HOLDS if max(slots) > 0 else FAILS, claim.rule)
    unit = " points" if outcome.experiment.kind == "boosting" else ""
    level = 1.0 - (1.0 - LEVEL) / max(1, len(claim.second))
    parts, intervals = [], []
    for label in claim.second:
        other = outcome.get(label)
        if claim.rule == "sooner" and other is not None:
            text, one = _sooner(first, other, claim.margin, level)
        else:
            text, one = _difference(first, other, claim.at, level, unit)
        parts.append(f"{label}: {text}")
        intervals.append(one)
    runs = f"({len(first.replications)} runs{f', at {claim.at:,}' if claim.at else ''})"
    against = "against" if claim.rule == "sooner" else "minus"
    text = f"{claim.first} {against} {'; '.join(parts)} {runs}"
    return Verdict(claim, text, _answer(claim, intervals), claim.rule)


Interval = tuple[float, float, float]  # low, mean, high
NOTHING_KNOWN: Interval = (-np.inf, np.nan, np.inf)


def _difference(
    first: Drawn, other: Drawn | None, at: int | None, level: float, unit: str
) -> tuple[str, Interval]:
    differences = np.array([]) if other is None else paired(first, other, at)
    differences = differences[~np.isnan(differences)]
    if differences.size < 2:
        return "fewer than two paired runs", NOTHING_KNOWN
    low, high = interval(differences, level)
    mean = float(differences.mean())
    return f"{mean:+.3g}{unit} [{float(low):+.3g}, {float(high):+.3g}]", (float(low), mean, float(high))


def _sooner(first: Drawn, other: Drawn, margin: float, level: float) -> tuple[str, Interval]:
    goal = max(
        float(other.final.mean()) + margin, float(other.final.min())
    )  # rounding must not lift it out of reach
    there = other.seconds_to(goal)
    reference = float(there[np.isfinite(there)].mean())
    taken = first.seconds_to(goal)
    if not np.isfinite(taken).all():
        missed = int((~np.isfinite(taken)).sum())
        return f"{missed} of {taken.size} runs never get down to {goal:.3g}", (np.inf, np.inf, np.inf)
    if taken.size < 2:
        return "fewer than two runs", NOTHING_KNOWN
    logs = np.log(taken / reference)
    low, high = interval(logs, level)
    text = (
        f"down to {goal:.3g} after {np.exp(np.log(taken).mean()):.3g} s of CPU time, not {reference:.3g} s "
    )
    text += f"(ratio [{float(np.exp(low)):.2g}, {float(np.exp(high)):.2g}])"
    return text, (float(low), float(logs.mean()), float(high))


def _answer(claim: Claim, intervals: list[Interval]) -> str:
    margin = claim.margin
    holds: Callable[[float, float, float], bool]
    fails: Callable[[float, float, float], bool]
    if claim.rule == "better":
        holds, fails = lambda low, mean, high: high < 0.0, lambda low, mean, high: low > -margin
    elif claim.rule == "as good":
        holds = lambda low, mean, high: high <= margin  # noqa: E731
        fails = lambda low, mean, high: low > 0.0 and mean > margin  # noqa: E731
    elif claim.rule in ("best", "sooner"):
        holds = lambda low, mean, high: high < 0.0 or low == high == 0.0  # noqa: E731
        fails = lambda low, mean, high: low > 0.0  # noqa: E731
    else:
        holds = lambda low, mean, high: -margin <= low and high <= margin  # noqa: E731
        fails = lambda low, mean, high: low > margin or high < -margin  # noqa: E731
    if intervals and all(holds(*one) for one in intervals):
        return HOLDS
    return FAILS if any(fails(*one) for one in intervals) else OPEN


RULES_IN_WORDS = {
    "better": "holds if every paired interval lies below 0; does not hold if one lies wholly above -margin",
    "as good": "holds if every paired interval lies below the margin; does not hold if one lies above 0 and its mean "
    "beyond the margin",
    "best": "holds if every paired interval lies below 0, lines that are equal in every run left aside; does not hold if "
    "one lies wholly above 0",
    "explores": "holds if any slot was pure exploration",
    "flat": "holds if every paired interval lies within the margin; does not hold if one lies wholly outside",
    "sooner": "CPU seconds until the loss is down to the other line's final mean plus the margin, as a ratio to the other's "
    "seconds: holds if every interval lies below 1; does not hold if one lies wholly above 1 or a run never gets there",
}
