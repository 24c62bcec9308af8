"""The value of a policy from a log, by several estimators, and a sentence where the log cannot answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError, one_of, real_number
from abex.evaluation.estimators import ESTIMATORS, Contributions, ips
from abex.evaluation.log import Log, as_log
from abex.evaluation.target import as_target
from abex.evaluation.uncertainty import bca, bernstein
from abex.tables import html_table

LEAST_EFFECTIVE = 30.0
LEAST_TELLING = 5.0
LEAST_ASTRAY = 0.02  # of the mean weight, which is 1
LEVEL = 0.95


class Verdict(NamedTuple):
    """What one estimator says. Where ``reason`` says why it cannot, numbers are NaN, and ``raw`` is what it would have said."""

    estimator: str
    value: float
    bootstrap: tuple[float, float]
    bernstein: tuple[float, float]
    effective: float
    largest_weight: float
    reason: str
    raw: float


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The verdicts of all estimators about one policy."""

    policy: str
    rows: int
    learned: int
    level: float
    probabilities: NDArray[np.float64]
    verdicts: tuple[Verdict, ...]

    def __getitem__(self, estimator: str) -> Verdict:
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
        """A table for people: estimator, value, both intervals, effective size, largest weight, remark."""
        table: list[tuple[str, ...]] = []
        for one in self.verdicts:
            numbers = (
                ("cannot tell", "", "")
                if one.reason
                else (f"{one.value:.5g}", _interval(one.bootstrap), _interval(one.bernstein))
            )
            table.append(
                (one.estimator, *numbers, f"{one.effective:,.0f}", f"{one.largest_weight:.3g}", one.reason)
            )
        return table

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        headings = (
            "estimator",
            "value",
            "bootstrap",
            "Bernstein",
            "effective size",
            "largest weight",
            "remark",
        )
        return html_table(headings, self.rows_of_table(), f"{self.policy} on {self.rows:,} rows")

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        learned = f", learned from the {self.learned:,} rows before" if self.learned else ""
        lines = [f"{self.policy} on {self.rows:,} rows{learned}"]
        for row in self.rows_of_table():
            said = f"{row[1]} in {row[2]}" if not row[6] else f"{row[1]}: {row[6]}"
            lines.append(f"  {row[0]:<14} {said} (effective size {row[4]}, largest weight {row[5]})")
        return "\n".join(lines)


def _interval(ends: tuple[float, float]) -> str:
    return f"[{ends[0]:.5g}, {ends[1]:.5g}]"


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
        Names the random numbers of replay and bootstrap.

    Returns
    -------
    Evaluation
        One verdict an estimator. Where arms that the policy would choose were never logged, or the effective sample
        size is below 30, it holds a sentence instead of a number.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.choice(3, 2000, p=[0.6, 0.3, 0.1])
    >>> log = Log(range(3), arm, np.array([0.6, 0.3, 0.1])[arm], rng.random(2000) < np.array([0.2, 0.4, 0.6])[arm])
    >>> found = evaluate(log, {2: 1.0})["SNIPS"]
    >>> found.bootstrap[0] < 0.6 < found.bootstrap[1], round(found.effective)
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
    verdicts = tuple(
        _verdict(one_of("estimators", name, ESTIMATORS), target.log, target.probabilities, span, level, seed)
        for name in names
    )
    return Evaluation(target.name, len(target.log), target.learned, level, target.probabilities, verdicts)


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


def _verdict(
    name: str, log: Log, target: NDArray[np.float64], span: tuple[float, float], level: float, seed: int
) -> Verdict:
    estimator: Any = ESTIMATORS[name]
    given: Contributions = estimator(log, target, seed) if name == "replay" else estimator(log, target)
    raw, largest = given.value(), float(given.weights.max(initial=0.0))
    reason = why_not(name, log, target, given, span)
    bounds = (math.nan, math.nan), (math.nan, math.nan)
    if not reason:
        bounds = bca(given, span, level, seed), bernstein(given, span, level)
    if name == "direct":
        largest *= len(log)  # in the units of the others, where 1 is a row of an even log
    return Verdict(name, math.nan if reason else raw, *bounds, given.effective, largest, reason, raw)


def why_not(
    name: str, log: Log, target: NDArray[np.float64], given: Contributions, span: tuple[float, float]
) -> str:
    """Why the log cannot answer, in a sentence; empty if it can."""
    seen, effective = log.counts(), given.effective
    shows = "tries"
    if name == "graph-IPS" and log.side is not None:
        seen, shows = seen + np.bincount(log.side.arm, minlength=log.n_arms), "shows"
    elif (
        name == "direct"
    ):  # its means are no better than the rows that they come from are alike those of the policy
        effective = min(effective, ips(log, target).effective)
    never = np.flatnonzero((target > 0.0) & (seen == 0))
    if never.size:
        arm, share = log.arms[int(never[target[never].argmax()])], float(target[never].sum())
        others = f" and {never.size - 1} more" if never.size > 1 else ""
        return (
            f"the log never {shows} arm {arm!r}{others}, where the policy spends {share:.2%} of its decisions"
        )
    if effective < LEAST_EFFECTIVE:
        return (
            f"{len(log):,} rows are worth {effective:.1f} here, fewer than {LEAST_EFFECTIVE:.0f}: "
            f"the log hardly {shows} what the policy would"
        )
    weights = given.weights if name == "graph-IPS" else ips(log, target).weights
    astray = abs(float(weights.mean()) - 1.0)
    if astray > max(LEAST_ASTRAY, 4.0 * float(weights.std()) / math.sqrt(len(log))):
        return (
            f"the weights average {weights.mean():.2f}, not 1: at times the log could not choose what the policy would, "
            "or its probabilities are wrong"
        )
    telling = given.telling(span)
    if 0.0 < telling < LEAST_TELLING:
        return f"the value rests on few rows: those with a rare reward are worth {telling:.1f}, fewer than {LEAST_TELLING:.0f}"
    return ""
