"""Who won: by bets on propensities or by sums of rewards, which arms are alike, what is missing, and the sentence for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.inference.betting import Comparison, leading_arm, left_over
from abex.inference.standing import PRIOR, Arm, headings, rows
from abex.inference.sums import difference_growth
from abex.kernels import compile_alone, kernel
from abex.support.divergence import bernoulli_kl
from abex.support.errors import UserError, real_number
from abex.support.tables import text_table

BETS, SUMS = "bets", "sums"
ASSUMED = "that the level of no arm moves"
#: What a test needs beyond ln(1/risk): its mixture, and the draws that another allocation would have used better.
OVERHEAD = {BETS: 2.5, SUMS: 4.5}


class Winner(NamedTuple):
    """What may be said of arms that are compared while one looks."""

    winner: str | int | None  # the best arm, where that is sure enough
    sentence: str
    leader: str | int | None  # the arm of the largest mean
    #: arms none of which is better than the leader by as much as matters, where that is sure
    alike: tuple[str | int, ...]
    remaining: int | None  # roughly how many more decisions on `rival` it takes, one digit
    risk: float
    method: str  # "bets" on the propensities, or "sums" of leaders, which assume levels that do not move
    rival: str | int | None = None  # the arm that is hardest to tell from the leader
    control: str | int | None = None  # whom lifts are against
    arms: tuple[Arm, ...] = ()  # a table of the arms, where it was asked for
    coin: bool = True  # whether all rewards are 0 or 1, so that lifts are relative

    def __str__(self) -> str:
        return self.sentence

    def table(self) -> str:
        """The arms with their intervals, lifts and chances to be best, and the sentence."""
        table = text_table(headings(self.control, self.coin), rows(self.arms, self.control, self.coin))
        return "\n".join([table, "", self.sentence, PRIOR])

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return self._asdict() | {"arms": [one._asdict() for one in self.arms]}


@kernel
def refute_by_sums(state: Comparison, out: NDArray[np.float64]) -> None:
    r"""Logarithm of the evidence of sums against each arm's being the best.

    For arm k the least over m of :math:`S_+(L,m)+S_-(k,m)`, L all plays that leaders made but those of k: while k is the best
    and m its mean, both are supermartingales.
    """
    count, total = 0.0, 0.0
    for k in range(out.size):
        count += state.leading[k]
        total += state.leading_sums[k]
    for k in range(out.size):
        n, s = count - state.leading[k], total - state.leading_sums[k]
        out[k] = difference_growth(n, s, state.observations[k], state.sums[k], 1.0, 0.0, 1.0)


def log_evidence(state: Comparison, method: str) -> NDArray[np.float64]:
    """Logarithm of the evidence against each arm's being the best."""
    if method == BETS:
        return np.log(state.evidence)
    found = np.zeros(state.sums.size)
    compile_alone(refute_by_sums)(state, found)
    return found


def best_arm(state: Comparison, risk: float, method: str) -> int:
    """The winner's place; -1 while there is none, -2 where every arm was refuted, which happens when the best one changes."""
    if method == BETS:
        return left_over(state, 1.0 / risk)
    stays = np.flatnonzero(log_evidence(state, method) < math.log(1.0 / risk))
    return int(stays[0]) if stays.size == 1 else -1 if stays.size else -2


def none_better(state: Comparison, at_least: float, risk: float) -> bool:
    r"""Whether no arm is better than the leader by ``at_least``, a difference of rewards in [0, 1], wrong with at most ``risk``.

    For each arm k the least over m of :math:`S_-(k,m+d)+S_+(l,m)` is at least :math:`\ln\frac{K-1}{risk}`: whatever leads, one
    wrong claim needs the best arm refuted, so the union is over the leaders. It assumes levels that do not move.
    """
    lead, n_arms = leading_arm(state), state.sums.size
    if lead < 0 or state.observations.min() <= 0.0:
        return False
    growth, level = compile_alone(difference_growth), math.log((n_arms - 1) / risk)
    one = state.observations[lead], state.sums[lead]
    return all(
        growth(state.observations[k], state.sums[k], *one, 1.0, at_least, -1.0) >= level
        for k in range(n_arms)
        if k != lead
    )


def weakest_rival(state: Comparison, lead: int, open_: NDArray[np.bool_]) -> tuple[int, float]:
    """The open arm that is hardest to tell from the leader, and the likelihood ratio of both, as of Bernoulli rewards."""
    n, s = state.observations, state.sums
    rivals = [int(k) for k in np.flatnonzero(open_) if k != lead]
    ratios = []
    for k in rivals:
        mean = (s[lead] + s[k]) / max(n[lead] + n[k], 1.0)
        pairs = ((n[arm], s[arm] / max(n[arm], 1.0)) for arm in (lead, k))
        # an arm that was never tried tells nothing
        ratios.append(sum(count * bernoulli_kl(rate, mean) for count, rate in pairs if count))
    place = int(np.argmin(ratios))
    return rivals[place], ratios[place]


def forecast(state: Comparison, risk: float, method: str) -> tuple[int, int] | None:
    r"""The rival that is hardest to tell from the leader, and roughly how many more decisions on it that takes, one digit.

    With the likelihood ratio Z of both after n plays of the rival, it takes as many as lead to :math:`n'(Z+1)/n` of what the test
    needs. Plays of the rival are counted, not all decisions: a policy that plays it ever less often gives evidence with these
    alone. None where nothing can be said.
    """
    lead = leading_arm(state)
    if lead < 0:
        return None
    rival, ratio = weakest_rival(state, lead, log_evidence(state, method) < math.log(1.0 / risk))
    played = float(state.observations[rival])
    if not played:
        return None
    needed = math.log(1.0 / risk) + OVERHEAD[method]
    more = max(played * (needed / (ratio + 1.0) - 1.0), 0.05 * played, 1.0)
    return rival, rounded(more)


def rounded(number: float) -> int:
    """One digit of a number.

    >>> rounded(12_345.0), rounded(96.0), rounded(0.3)
    (10000, 100, 1)
    """
    size: int = 10 ** math.floor(math.log10(max(number, 1.0)))
    return max(round(number / size) * size, 1)


def verdict(
    state: Comparison,
    labels: Sequence[str | int],
    *,
    risk: float = 0.05,
    at_least: float | None = None,
    method: str = BETS,
    scale: float = 1.0,
    low: float = 0.0,
    given: str = "",
) -> Winner:
    """What may be said of the arms now, by a test that may be looked at as often as one likes.

    ``at_least`` is the difference that matters, in rewards that are ``low`` plus ``scale`` times those of the state; ``given`` is
    what else is assumed.

    >>> from abex.inference.betting import compared
    >>> state, _ = compared([0, 1] * 200, [0.0, 1.0] * 200, [[0.5, 0.5]], 2)
    >>> print(verdict(state, ["red", "blue"]))
    blue is best (wrong in at most 5 % of such experiments)
    """
    risk = checked_risk(risk)
    if len(labels) < 2:
        raise UserError("a winner needs two arms that are compared, and there is one alone")
    if at_least is not None:
        at_least = real_number("at_least", at_least, above=0.0, most=scale)
    lead = leading_arm(state)
    leader = labels[lead] if lead >= 0 else None
    place = best_arm(state, risk, method)
    wrong = f"wrong in at most {100 * risk:.3g} % of such experiments"
    said = [*([ASSUMED] if method != BETS else []), *([given] if given else [])]
    assumed = f", assuming {' and '.join(said)}" if said else ""
    level = " and ".join([ASSUMED, *([given] if given else [])])
    if place >= 0:
        return Winner(
            labels[place], f"{labels[place]} is best ({wrong}{assumed})", leader, (), 0, risk, method
        )
    if place == -2:
        sentence = "no winner: at some time each arm was shown not to be the best, so the best one changes"
        return Winner(None, sentence, leader, (), None, risk, method)
    if at_least is not None and none_better(state, at_least / scale, risk):
        others = ", ".join(str(label) for k, label in enumerate(labels) if k != lead)
        sentence = f"keep {leader}: {others} cannot be better by {at_least:g} ({wrong}, assuming {level})"
        return Winner(None, sentence, leader, tuple(labels), 0, risk, method)
    total = state.observations.sum()
    if total > 0.0 and state.sums.sum() in (0.0, total):
        paid = f"all rewards so far are {low + scale * (state.sums[0] > 0.0):g}: nothing tells the arms apart"
        return Winner(None, f"not yet: {paid}", leader, (), None, risk, method)
    found = forecast(state, risk, method)
    if found is None:
        return Winner(
            None, "not yet: too little was observed to say how long", leader, (), None, risk, method
        )
    rival, more = labels[found[0]], found[1]
    sentence = f"not yet: roughly {more:,} more decisions on {rival} to tell it from {leader}"
    return Winner(None, sentence, leader, (), more, risk, method, rival)


def checked_risk(risk: float) -> float:
    """A risk within (0, 1/2]."""
    return real_number("risk", risk, above=0.0, most=0.5)
