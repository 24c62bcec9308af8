"""Does a claim hold? Decided from the results by a rule that is stated with the answer, never by hand.

Every rule looks at differences d = loss of the first line - loss of another line at the end of the run, or at the step
that the claim names, with Student's interval (`abex.support.intervals`): over runs, paired and in their strata; in boosting over
runs and test rows. A margin says up to where a difference does not matter. The intervals of a claim hold together with
95 % confidence (Bonferroni: each of m has level 1 - 0.05/m), so that a claim against many lines is not refuted by luck:

``better``
    holds if every interval lies below 0, does not hold if one lies above -margin, cannot be told otherwise.
``as good``
    "as well as or better": holds if every interval lies below the margin, does not hold if one lies above 0 and its
    mean beyond the margin, cannot be told otherwise.
``best``
    the first line has the least loss of all named: holds if every interval lies below 0, does not hold if one lies
    above 0, cannot be told otherwise. Lines that are the same algorithm do not count, unless all of them are.
``explores``
    the first line used at least one slot for pure exploration in some replication.
``flat``
    the lines do not differ: holds if every interval lies within the margin, does not hold if one lies outside.
``sooner``
    the first line gets down to every loss on the other's way in less CPU time than the other: d = ln of its seconds -
    ln of the other's, over replications, at each of the target losses (`ratio_curve`) down to its least plus the margin, the
    other line being drawn until its loss on validation stops falling. Holds if every interval lies below 0, does not hold if
    one lies above 0 or if half of the replications never get there, cannot be told otherwise.

Two lines that are one and the same algorithm at this length (`same_algorithm`) have d = 0 exactly, whatever their runs say.
`judge_all` corrects once more, across all claims (Holm): beside the answer of a claim by itself stands the one that
holds together with all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from abex.lab.experiments.experiment import Claim, brief
from abex.lab.experiments.outcomes import (
    MIN_RUNS,
    ExperimentResult,
    LineResult,
    compared,
    ratio_curve,
    same_algorithm,
)
from abex.support.intervals import LEVEL, Estimate, holm
from abex.support.tables import html_table

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"
PLURAL = {HOLDS: "hold", FAILS: "do not hold", OPEN: "cannot be told"}
EXPLORED = "exploration_slots"
SAME = "the same algorithm at this length"
RISK = 1.0 - LEVEL


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim, what was measured, and whether it holds: by itself, and together with all others.

    ``p`` is the least p at which the answer is more than "cannot be told", corrected within the claim; None where no chance is
    involved. ``overall_p`` is corrected across all claims, and ``overall`` is the answer that survives it.
    """

    claim: Claim
    measured: str
    answer: str
    rule: str
    p: float | None = None
    overall_p: float | None = None
    overall: str = ""

    def _repr_html_(self) -> str:
        return Verdicts([self])._repr_html_()


class Verdicts(list[ClaimVerdict]):
    """The verdicts on the claims of an experiment; they print as a table."""

    HEADINGS = ("claim", "answer", "with all others", "measured", "rule")

    def _rows(self) -> list[tuple[str, ...]]:
        return [(one.claim.text, one.answer, one.overall or "-", one.measured, one.rule) for one in self]

    def __repr__(self) -> str:
        return "\n".join(f"{one.claim.text}: {one.answer} ({one.measured})" for one in self) or "no claims"

    def _repr_html_(self) -> str:
        return html_table(self.HEADINGS, self._rows())


def judge(outcome: ExperimentResult) -> Verdicts:
    """The verdicts on all claims of an experiment, corrected across them."""
    return judge_all([outcome])[0]


def judge_all(outcomes: Iterable[ExperimentResult]) -> list[Verdicts]:
    """The verdicts on the claims of several experiments, corrected across all of them (Holm)."""
    judged = [[_judge(claim, outcome) for claim in outcome.experiment.claims] for outcome in outcomes]
    p_values = [verdict.p for verdicts in judged for verdict in verdicts if verdict.p is not None]
    corrected = iter(holm(p_values))
    return [Verdicts(_together(verdict, corrected) for verdict in verdicts) for verdicts in judged]


def _together(verdict: ClaimVerdict, corrected: Iterable[float]) -> ClaimVerdict:
    if verdict.p is None:
        return replace(verdict, overall=verdict.answer)
    p = next(iter(corrected))
    return replace(verdict, overall_p=p, overall=verdict.answer if p <= RISK else OPEN)


def _judge(claim: Claim, outcome: ExperimentResult) -> ClaimVerdict:
    first = outcome.get(claim.first)
    if first is None:
        return ClaimVerdict(claim, f"{claim.first} has not been run", OPEN, claim.rule)
    if claim.rule == "explores":
        return _explores(claim, first)
    unit = outcome.experiment.task.unit
    others = [(label, outcome.get(label)) for label in claim.second]
    same = [label for label, other in others if other is not None and same_algorithm(first, other)]
    parts = [f"{label}: {SAME}" for label in same]
    rivals = [(label, other) for label, other in others if label not in same]
    found: list[Estimate] = [Estimate(0.0, 0.0, np.inf)] * (
        len(same) if claim.rule != "best" or not rivals else 0
    )
    level = 1.0 - RISK / max(1, len(rivals))
    missed = False
    for label, other in rivals:
        if claim.rule == "sooner" and other is not None:
            text, estimates, missed = _sooner(first, other, claim.margin)
            found += estimates
        else:
            text, one = _difference(first, other, claim.at, level, unit)
            found.append(one)
        parts.append(f"{label}: {text}")
    against = "against" if claim.rule == "sooner" else "minus"
    plural = "s" * (len(first.replications) != 1)
    runs = f"({len(first.replications):,} run{plural}{f', at {claim.at:,}' if claim.at else ''})"
    text = f"{claim.first} {against} {'; '.join(parts)} {runs if rivals else ''}".strip()
    if not rivals:
        exact = Estimate(0.0, 0.0, np.inf)
        return ClaimVerdict(claim, text, _answer(claim, [exact])[0], claim.rule)
    if missed:
        return ClaimVerdict(claim, text, FAILS, claim.rule)
    answer, p = _answer(claim, found)
    return ClaimVerdict(claim, text, answer, claim.rule, p)


def _explores(claim: Claim, first: LineResult) -> ClaimVerdict:
    slots = first.numbers.get(EXPLORED)
    if slots is None and first.played not in ("", first.policy):
        text = f"0 of {first.step[-1]:,.0f} slots are pure exploration: {SAME} as {brief(first.played)}"
        return ClaimVerdict(claim, text, FAILS, claim.rule)
    if slots is None:
        return ClaimVerdict(claim, f"{claim.first} does not report its exploration slots", OPEN, claim.rule)
    text = f"{np.mean(slots):,.0f} of {first.step[-1]:,.0f} slots were pure exploration (mean of {len(slots):,} runs)"
    return ClaimVerdict(claim, text, HOLDS if max(slots) > 0 else FAILS, claim.rule)


def full_search_line(outcome: ExperimentResult) -> LineResult | None:
    """The line that another is claimed to be sooner than, None where there is no such claim or it has not been run."""
    labels = [
        label for claim in outcome.experiment.claims if claim.rule == "sooner" for label in claim.second
    ]
    return outcome.get(labels[0]) if labels else None


NOTHING_KNOWN = Estimate(np.nan, np.nan, 1.0)


def _difference(
    first: LineResult, other: LineResult | None, at: int | None, level: float, unit: str
) -> tuple[str, Estimate]:
    found = None if other is None else compared(first, other, at)
    if found is None or not np.isfinite(found.error):
        return f"fewer than {MIN_RUNS} paired runs", NOTHING_KNOWN
    low, high = found.interval(level)
    return f"{_signed(found.mean)}{unit} [{_signed(low)}, {_signed(high)}]", found


def _signed(value: float) -> str:
    """Three digits, or all of them before the point.

    >>> _signed(-0.01234), _signed(-2531.7)
    ('-0.0123', '-2,532')
    """
    return f"{value:+,.0f}" if abs(value) >= 1_000.0 else f"{value:+.3g}"


def _sooner(first: LineResult, other: LineResult, margin: float) -> tuple[str, list[Estimate], bool]:
    """What the curve of ratios says: in words, its estimates, and whether half of the runs miss a target."""
    curve = ratio_curve(first, other)
    rows = [row for row in curve if row[0] >= curve[-1][0] + margin] or curve[:1]
    missed = [(target, share) for target, _, share, _ in rows if share <= 0.5]
    level = 1.0 - RISK / len(rows)
    shown = [row for row in (rows[0], rows[len(rows) // 2], rows[-1]) if np.isfinite(row[1].error)]
    texts = []
    for target, found, share, seconds in dict.fromkeys(shown):
        low, high = np.exp(found.interval(level))
        part = "" if share == 1.0 else f", {share:.0%} of the runs"
        texts.append(
            f"{np.exp(found.mean):.2g} of its {seconds:.2g} s [{low:.2g}, {high:.2g}] to {target:.3g} %{part}"
        )
    if missed:
        texts.append(f"{1.0 - missed[0][1]:.0%} of the runs never get down to {missed[0][0]:.3g}")
    limit = "" if other.ended else f", cut at {other.step[-1]:,.0f} before it had surely stopped falling"
    estimates = [found if share == 1.0 else NOTHING_KNOWN for _, found, share, _ in rows]
    return f"{'; '.join(texts) or 'too few runs'}{limit}", estimates, bool(missed)


def _answer(claim: Claim, found: list[Estimate]) -> tuple[str, float]:
    """The answer, and the p-value that goes with it: each comparison's times their number."""
    holds, fails = TESTS[claim.rule]
    if not found:
        return OPEN, 1.0
    for_it = min(1.0, len(found) * max(holds(one, claim.margin) for one in found))
    against = min(1.0, len(found) * min(fails(one, claim.margin) for one in found))
    answer = HOLDS if for_it <= RISK else FAILS if against <= RISK else OPEN
    return answer, for_it if answer == HOLDS else against if answer == FAILS else min(for_it, against)


Test = Callable[[Estimate, float], float]


def _flat_holds(one: Estimate, margin: float) -> float:
    if one.error == 0.0:
        return 0.0 if abs(one.mean) <= margin else 1.0
    return max(one.p_above(-margin), one.p_below(margin))


def _at_most(one: Estimate, margin: float) -> float:
    if one.error == 0.0:
        return 0.0 if one.mean <= margin else 1.0
    return one.p_below(margin)


#: for each rule the p-values of "holds" and of "does not hold" for one comparison
TESTS: dict[str, tuple[Test, Test]] = {
    "better": (
        lambda one, margin: one.p_below(),
        lambda one, margin: _at_most(Estimate(-one.mean, one.error, one.freedom), margin),
    ),
    "as good": (_at_most, lambda one, margin: one.p_above() if one.mean > margin else 1.0),
    "best": (lambda one, margin: _at_most(one, 0.0), lambda one, margin: one.p_above()),
    "flat": (_flat_holds, lambda one, margin: min(one.p_above(margin), one.p_below(-margin))),
    "sooner": (lambda one, margin: one.p_below(), lambda one, margin: one.p_above()),
}

RULES_IN_WORDS = {
    "better": "holds if every interval of the difference lies below 0; does not hold if one lies wholly above -margin",
    "as good": "holds if every interval lies below the margin; does not hold if one lies above 0 and its mean beyond the margin",
    "best": "holds if every interval lies below 0, lines that are the same algorithm left aside; does not hold if one lies "
    "wholly above 0",
    "explores": "holds if any slot was pure exploration",
    "flat": "holds if every interval lies within the margin; does not hold if one lies wholly outside",
    "sooner": "CPU seconds until the loss is down to each of the target losses on the other line's way, as a ratio to the "
    "other's: holds if every interval lies below 1; does not hold if one lies wholly above 1 or half of the runs miss it",
}
