"""What a player knows of its arms: as a table for terminal and notebook, and who won among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abex.inference.betting import MOST_COMPARED
from abex.inference.standing import arms_of, checked_control, is_coin, mean_interval
from abex.inference.winner import BETS, SUMS, Winner, checked_risk, verdict
from abex.players.arms import Label
from abex.players.state import CONVERSIONS, PlayerState
from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.tables import html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
TOLD = "that whether and when a reward is told does not depend on what it is"
MOST_SHOWN = 30  # rows of a printed table
COUNTS, IN_WINDOWS = ("pulls", "observations"), ("pulls", "mature", "pending", "conversions")
HEADINGS = ("mean", "interval", "probability", "recent share")


class ArmSummary(NamedTuple):
    """What is known of one arm."""

    arm: Label
    pulls: int  # decisions
    observations: int  # rewards, side observations included
    mean: float  # of them; not a number before the first
    low: float
    high: float  # the interval
    probability: float  # of being chosen by the next decision; not a number where that is not known
    recent_share: float  # of the last 1,000 decisions
    mature: int | None = None  # with a window: decisions whose answer is in
    pending: int | None = None  # and those whose window is open, be there a conversion or not
    conversions: int | None = None  # of both


class Summary(tuple[ArmSummary, ...]):
    """One `ArmSummary` for each arm, in their order; it prints as a table.

    The intervals hold the true means with probability 95 % each at all moments together, however often one looks and whatever
    the distribution of the rewards within their range (`abex.inference.sums`), as long as the mean stays what it is. With a
    window, a mean is what was paid so far over the sum of G(age) of all decisions, and its interval knows how many of them still
    wait; of delays longer than the oldest decision nothing can be known, so both begin to hold after a few mean delays.
    """

    caption: str  # what stands above them
    unknown: str | None

    def __new__(cls, rows: Any, unknown: str | None = None) -> Summary:
        """Rows, and why the probabilities are not known."""
        self = super().__new__(cls, rows)
        self.caption, self.unknown = "", unknown
        return self

    def frame(self) -> pd.DataFrame:
        """The table as a pandas DataFrame, a row for each arm."""
        with needed():
            import pandas

        return pandas.DataFrame(list(self), columns=list(ArmSummary._fields))

    @property
    def counts(self) -> tuple[str, ...]:
        """The fields that say how many there are."""
        return IN_WINDOWS if self and self[0].mature is not None else COUNTS

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the table."""
        return "arm", *self.counts, *HEADINGS

    def cells(self) -> Iterator[tuple[str, ...]]:
        """The rows as words; of very many arms those pulled most."""
        rows = self if len(self) <= MOST_SHOWN else sorted(self, key=lambda row: -row.pulls)[:MOST_SHOWN]
        for row in rows:
            interval = f"{_number(row.low)} to {_number(row.high)}"
            chance, share = _percent(row.probability), _percent(row.recent_share)
            counts = [f"{getattr(row, name):,}" for name in self.counts]
            yield str(row.arm), *counts, _number(row.mean), interval, chance, share

    def footer(self) -> str:
        """What to say below a table that has not all arms."""
        return f"the {MOST_SHOWN} of {len(self):,} arms pulled most" if len(self) > MOST_SHOWN else ""

    def __repr__(self) -> str:
        return "\n".join(filter(None, [self.caption, text_table(self.headings, self.cells()), self.footer()]))

    def _repr_html_(self) -> str:
        return html_table(self.headings, self.cells(), " ".join(filter(None, [self.caption, self.footer()])))


def summarise(replica: PlayerState, limit: int | None = None, chances: Any = None) -> Summary:
    """The table of a player, or of the ``limit`` arms chosen most; ``chances`` are their probabilities, where they are known."""
    tallies, terms, unknown = replica.tallies, replica.settings, None
    if chances is None:
        try:
            chances = replica.probabilities(replica.steps + 1)
        except UserError as error:
            unknown = str(error)
            chances = np.full(replica.n_arms, math.nan)
    places = np.sort(np.argsort(-tallies.pulls, kind="stable")[:limit])
    shares: dict[int, int] = {}
    for number in tallies.recent:
        shares[number] = shares.get(number, 0) + 1
    recent = max(1, len(tallies.recent))
    known = replica.bets.comparison()
    counts, sums = known.observations[places], known.sums[places]
    weighed = None if replica.windows is None else replica.windows.weighed(places)
    if weighed is None:
        means = np.divide(sums, counts, out=np.full(counts.size, math.nan), where=counts > 0.0)
        lows, highs = mean_interval(is_coin(known), 1.0 - LEVEL, counts, sums, known.squares[places])
    else:
        means = weighed.means()
        lows, highs = weighed.intervals(1.0 - LEVEL)
    rows = []
    for row, (place, number) in enumerate(
        zip(places.tolist(), replica.arms.numbers[places].tolist(), strict=True)
    ):
        windows: tuple[int, ...] = ()
        if weighed is not None:
            windows = (
                int(weighed.mature[row]),
                int(weighed.pending[row]),
                int(tallies.table[CONVERSIONS, place]),
            )
        rows.append(
            ArmSummary(
                replica.arms.label(number),
                int(tallies.pulls[place]),
                int(tallies.observations[place]),
                terms.shown(float(means[row])),
                terms.shown(float(lows[row])),
                terms.shown(float(highs[row])),
                float(chances[place]),
                shares.get(number, 0) / recent if tallies.recent else math.nan,
                *windows,
            )
        )
    return Summary(rows, unknown)


def winner_of(state: PlayerState, risk: float, at_least: float | None, control: Any) -> Winner:
    """What may be said of the arms now: by bets where most decisions were bet on, else by sums; with a table of them."""
    labels, settings = state.arms.all_labels(), state.settings
    if len(labels) > MOST_COMPARED:
        raise UserError(f"who won is told of up to {MOST_COMPARED:,} arms, and there are {len(labels):,}")
    risk = checked_risk(risk)
    control = None if control is None else checked_control(control, labels)
    bets, known = state.bets, state.bets.comparison()
    found = verdict(
        known,
        labels,
        risk=risk,
        at_least=at_least,
        method=BETS if 2 * bets.bet >= bets.counted else SUMS,
        low=settings.low,
        scale=settings.high - settings.low,
        given=TOLD if bets.late else "",
    )
    coin = is_coin(known)
    arms = arms_of(
        known,
        labels,
        coin=coin,
        low=settings.low,
        scale=settings.high - settings.low,
        control=control,
        risk=risk,
    )
    return found._replace(control=control, arms=tuple(arms), coin=coin)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}" if abs(value) < 1e5 else f"{value:.4g}"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100.0 * value:.1f} %"
