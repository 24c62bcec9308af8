"""The value of a policy from a log, by several estimators, and a sentence where the log cannot answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.evaluation.estimators import ESTIMATORS, Contributions, graph_ips, ips
from abex.evaluation.log import Log, as_log
from abex.evaluation.sequence import value_of
from abex.evaluation.target import Target, as_target
from abex.evaluation.uncertainty import at_every_moment, for_one_look
from abex.support.errors import UserError, one_of, real_number
from abex.support.tables import html_table

MIN_EFFECTIVE = 30.0
MIN_INFORMATIVE = 5.0
MAX_WEIGHT_BIAS = 0.02  # of the mean weight, which is 1
LEVEL = 0.95
HEADINGS = ("estimator", "value", "interval", "effective size", "largest weight", "remark")
FOR_ONE_LOOK = "those of the estimators are for one look, the last one holds at every moment"
AT_EVERY_MOMENT = "the probabilities of this log change, and the interval holds at every moment"


class EstimateResult(NamedTuple):
    """What one estimator says, and how sure that is.

    The interval is for one look where the probabilities of the log never change, else it is the one that holds at every moment.
    It is that one too where ``reason`` says why the log cannot tell; ``value`` is NaN then, and ``raw`` what it would have been.
    """

    estimator: str
    value: float
    interval: tuple[float, float]
    effective: float
    largest_weight: float
    reason: str
    raw: float

    def cells(self) -> tuple[str, ...]:
        """For people, under `HEADINGS`."""
        value = "cannot tell" if math.isnan(self.value) else f"{self.value:.5g}"
        low, high = self.interval
        ends = "" if math.isnan(low) else f"[{low:.5g}, {high:.5g}]"
        return (
            self.estimator,
            value,
            ends,
            f"{self.effective:,.0f}",
            f"{self.largest_weight:.3g}",
            self.reason,
        )


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The verdicts of all estimators about one policy.

    Attributes
    ----------
    verdicts : tuple of EstimateResult
        One for each estimator.
    always : EstimateResult
        The interval of the value that holds at every moment, whatever policy made the log, however often one looks.
    note : str
        What the intervals are good for.
    """

    policy: str
    rows: int
    learned: int
    level: float
    probabilities: NDArray[np.float64]
    verdicts: tuple[EstimateResult, ...]
    always: EstimateResult
    note: str

    def __getitem__(self, estimator: str) -> EstimateResult:
        for verdict in self.verdicts:
            if verdict.estimator == estimator:
                return verdict
        raise UserError(
            f"there is no estimator {estimator!r}; there are {', '.join(v.estimator for v in self.verdicts)}"
        )

    @property
    def confident(self) -> bool:
        """Whether any estimator has an answer."""
        return any(not verdict.reason for verdict in self.verdicts)

    def rows_of_table(self) -> list[tuple[str, ...]]:
        """A table for people under `HEADINGS`."""
        return [one.cells() for one in (*self.verdicts, self.always)]

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return html_table(HEADINGS, self.rows_of_table(), f"{self.policy} on {self.rows:,} rows; {self.note}")

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        learned = f", learned from the {self.learned:,} rows before" if self.learned else ""
        lines = [f"{self.policy} on {self.rows:,} rows{learned}; {self.note}"]
        for estimator, value, ends, effective, largest, reason in self.rows_of_table():
            said = f"{value} in {ends}" + (f": {reason}" if reason else "")
            lines.append(f"  {estimator:<15} {said} (effective size {effective}, largest weight {largest})")
        return "\n".join(lines)


def evaluate(
    log: Log,
    policy: Any,
    *,
    estimators: Sequence[str] | None = None,
    learn: float = 0.5,
    rewards: tuple[float, float] | None = None,
    graph: Any = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Evaluation:
    r"""The value of a policy, its mean reward per decision, from the log of another one.

    Parameters
    ----------
    log : Log
        Decisions with their probabilities.
    policy : dict, array, Policy or str
        A distribution over the arms. Or a policy, which learns from the first part of the log, as from things tried
        elsewhere; its distribution then is valued, frozen, on the rest: the value is that of playing on with what it
        has learned, without learning more, and no row is used twice. `abex.evaluation.replay` values a policy while it
        learns.
    estimators : sequence of str, optional
        Some of "replay", "IPS", "SNIPS", "direct", "doubly robust", "graph-IPS"; all unless given, the last for logs with
        side observations.
    learn : float
        The part of the log from which a policy learns.
    rewards : (low, high), optional
        The range of rewards; (0, 1) if all are in it.
    graph : Graph, optional
        For policies that must know the feedback graph.
    level : float
        Confidence of the intervals.
    seed : int
        Names the random numbers of replay.

    Returns
    -------
    Evaluation
        One verdict an estimator, and an interval that holds at every moment. Where arms that the policy would choose were never
        logged, or the effective sample size is below 30, a sentence stands instead of a number, and the interval says what is
        known all the same.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.choice(3, 2000, p=[0.6, 0.3, 0.1])
    >>> log = Log(range(3), arm, np.array([0.6, 0.3, 0.1])[arm], rng.random(2000) < np.array([0.2, 0.4, 0.6])[arm])
    >>> found = evaluate(log, {2: 1.0})["SNIPS"]
    >>> found.interval[0] < 0.6 < found.interval[1], round(found.effective)
    (True, 199)
    """
    as_log(log)
    level = real_number("level", level, above=0.0, most=1.0 - 1e-6)
    learn = real_number("learn", learn, least=0.0, most=1.0)
    span = _range(log, rewards)
    target = as_target(policy, log, learn, span, graph)
    names = list(estimators) if estimators is not None else [
        name for name in ESTIMATORS if name != "graph-IPS" or log.side is not None
    ]  # fmt: skip
    always = _always(target, span, level)
    verdicts = tuple(
        _verdict(one_of("estimators", name, ESTIMATORS), target, span, level, seed, always) for name in names
    )
    note = FOR_ONE_LOOK if target.log.is_steady else AT_EVERY_MOMENT
    return Evaluation(
        target.name, len(target.log), target.learned, level, target.probabilities, verdicts, always, note
    )


def _range(log: Log, rewards: tuple[float, float] | None) -> tuple[float, float]:
    values = log.reward if log.side is None else np.append(log.reward, log.side.reward)
    if rewards is None:
        rewards = (0.0, 1.0)
    try:
        low, high = (float(end) for end in rewards)
    except (TypeError, ValueError):
        raise UserError(f"rewards must be a pair (low, high), got {rewards!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(f"rewards must be a pair (low, high) with low < high, got {rewards!r}")
    if values.min() < low or values.max() > high:
        raise UserError(
            f"the log has rewards from {values.min():g} to {values.max():g}: "
            f"declare their range with rewards=(low, high), it is ({low:g}, {high:g}) now"
        )
    return low, high


def _always(valued: Target, span: tuple[float, float], level: float) -> EstimateResult:
    """The interval that holds at every moment, h-weighted where laws are known and nothing was seen beside."""
    log, target = valued.log, valued.chances
    name = "IPS" if log.side is None else "graph-IPS"
    given = (ips if log.side is None else graph_ips)(log, target)
    value, (least, most) = given.value(), at_every_moment(given, span, level)
    if log.side is None and log.laws is not None:
        low, scale = span[0], span[1] - span[0]
        found = value_of(log.arm, (log.reward - low) / scale, target[0], log.laws, 1.0 - level)
        if not math.isnan(found[0]):  # else the log never chooses among all that the policy plays
            value, least, most = (low + scale * end for end in found)
    reason = reason_against(name, log, target, given, span, valued.learned)
    largest = float(given.shares.max(initial=0.0))
    return EstimateResult(
        "at every moment",
        math.nan if reason else value,
        (least, most),
        given.effective,
        largest,
        reason,
        value,
    )


def _verdict(
    name: str, valued: Target, span: tuple[float, float], level: float, seed: int, always: EstimateResult
) -> EstimateResult:
    estimator: Any = ESTIMATORS[name]
    log, target = valued.log, valued.chances
    given: Contributions = estimator(log, target, seed) if name == "replay" else estimator(log, target)
    raw, largest = given.value(), float(given.shares.max(initial=0.0))
    if name == "direct":
        largest *= log.units.start.size  # in the units of the others, where 1 is a row of an even log
    reason = reason_against(name, log, target, given, span, valued.learned)
    shown = for_one_look(given, span, level) if log.is_steady and not reason else always.interval
    return EstimateResult(name, math.nan if reason else raw, shown, given.effective, largest, reason, raw)


def reason_against(
    name: str,
    log: Log,
    target: NDArray[np.float64],
    given: Contributions,
    span: tuple[float, float],
    learned: int,
) -> str:
    """Why the log, after the rows that were learned from, cannot answer, in a sentence; empty if it can."""
    seen, effective = log.counts(), given.effective
    shows = "tries"
    if name == "graph-IPS" and log.side is not None:
        seen, shows = seen + np.bincount(log.side.arm, minlength=log.n_arms), "shows"
    elif (
        name == "direct"
    ):  # its means are no better than the rows that they come from are alike those of the policy
        effective = min(effective, ips(log, target).effective)
    share = _share_of_arms(log, target)
    never = np.flatnonzero((share > 0.0) & (seen == 0))
    if never.size:
        arm, spent = log.arms[int(never[share[never].argmax()])], float(share[never].sum())
        others = f" and {never.size - 1} more" if never.size > 1 else ""
        later = " after the rows that were learned from" if learned else ""
        return f"the log never {shows} arm {arm!r}{others}{later}, where the policy spends {spent:.2%} of its decisions"
    many = f"{log.units.start.size:,} {'batches' if log.has_batches else 'rows'}"
    made_at_once = (
        "" if log.has_batches else "; if several decisions were made at once, a column batch must say which"
    )
    return refusal_reason(given, span, many, shows, effective, made_at_once)


def refusal_reason(
    given: Contributions,
    span: tuple[float, float],
    many: str,
    shows: str = "tries",
    effective: float | None = None,
    made_at_once: str = "",
) -> str:
    """Why an estimate of these contributions cannot be relied on, in a sentence; empty if it can."""
    effective = given.effective if effective is None else effective
    if effective < MIN_EFFECTIVE:
        return (
            f"{many} are worth {effective:.1f} here, fewer than {MIN_EFFECTIVE:.0f}: "
            f"the log hardly {shows} what the policy would"
        )
    mean, spread = float(given.weights.mean()), float(given.weights.std()) / math.sqrt(given.weights.size)
    if abs(mean - 1.0) > max(MAX_WEIGHT_BIAS, 4.0 * spread):
        return (
            f"the weights average {mean:.2f}, not 1: at times the log could not choose what the policy would, "
            f"or its probabilities are wrong{made_at_once if mean <= 0.75 else ''}"
        )
    worth = given.informative_rows(span)
    if 0.0 < worth < MIN_INFORMATIVE:
        return f"the value rests on few rows: those with a rare reward are worth {worth:.1f}, fewer than {MIN_INFORMATIVE:.0f}"
    return ""


def _share_of_arms(log: Log, target: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the decisions that the target would spend on each arm."""
    decided = np.bincount(log.units.kind) / len(log)
    return (decided / log.units.sizes) @ np.atleast_2d(target)
