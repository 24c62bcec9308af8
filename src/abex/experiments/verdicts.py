"""Does a claim hold? Decided from the results by a rule that is stated with the answer, never by hand.

Every rule looks at paired differences d = loss of the first line - loss of another line at the end of the run, with
Student's interval over replications, and a margin below which a difference does not matter. The intervals of a
claim hold together with 95 % confidence (Bonferroni: each of m has level 1 - 0.05/m), so that a claim against many
lines is not refuted by luck:

``better``
    holds if every interval lies below 0, does not hold if one lies above -margin, cannot be told otherwise.
``as good``
    "as well as or better": holds if every interval lies below the margin, does not hold if one lies above 0 and its
    mean beyond the margin, cannot be told otherwise.
``best``
    the first line has the least loss of all named: holds if every interval lies below 0, does not hold if one
    lies above 0, cannot be told otherwise.
``explores``
    the first line used at least one slot for pure exploration in some replication.
``flat``
    the lines do not differ: holds if every interval lies within the margin, does not hold if one lies outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abex.experiments.base import Claim
from abex.experiments.outcomes import LEVEL, Outcome, interval, paired

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
    parts, intervals = [], []
    for label in claim.second:
        other = outcome.get(label)
        differences = np.array([]) if other is None else paired(first, other)
        if differences.size < 2:
            parts.append(f"{label}: fewer than two paired runs")
            intervals.append((-np.inf, np.nan, np.inf))
            continue
        low, high = interval(differences, 1.0 - (1.0 - LEVEL) / len(claim.second))
        mean = float(differences.mean())
        intervals.append((float(low), mean, float(high)))
        parts.append(f"{label}: {mean:+.3g}{unit} [{float(low):+.3g}, {float(high):+.3g}]")
    text = f"{claim.first} minus {'; '.join(parts)} ({len(first.replications)} runs)"
    return Verdict(claim, text, _answer(claim, intervals), claim.rule)


def _answer(claim: Claim, intervals: list[tuple[float, float, float]]) -> str:
    margin = claim.margin
    holds: Callable[[float, float, float], bool]
    fails: Callable[[float, float, float], bool]
    if claim.rule == "better":
        holds, fails = lambda low, mean, high: high < 0.0, lambda low, mean, high: low > -margin
    elif claim.rule == "as good":
        holds = lambda low, mean, high: high <= margin  # noqa: E731
        fails = lambda low, mean, high: low > 0.0 and mean > margin  # noqa: E731
    elif claim.rule == "best":
        holds, fails = lambda low, mean, high: high < 0.0, lambda low, mean, high: low > 0.0
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
    "best": "holds if every paired interval lies below 0; does not hold if one lies wholly above 0",
    "explores": "holds if any slot was pure exploration",
    "flat": "holds if every paired interval lies within the margin; does not hold if one lies wholly outside",
}
