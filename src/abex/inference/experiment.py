"""An experiment read off its rows: a table, who won or what is missing, a figure, a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from abex.inference.betting import compared
from abex.inference.columns import Floats, Table, Trial, share_warning, trial_of
from abex.inference.standing import PRIOR, Arm, arms_of, checked_control, headings, mean_interval, rows
from abex.inference.winner import BETS, SUMS, Winner, best_arm, checked_risk, verdict
from abex.support.tables import html_table, text_table

HEAVY = 3  # rewards that may carry a mean
CARRIED = 0.2  # of a sum, if so few carry it
LOOKS = 80  # in the figure, and for the moment at which sums decide
MOST_LINES = 6  # of arms in the figure
FIGURE = "Mean reward of each arm over the rows"


@dataclass(frozen=True)
class Experiment:
    """What an experiment shows; `plot` draws it and `write` makes a page.

    Attributes
    ----------
    arms : list of Arm
        A row for each arm.
    winner : Winner
        Who won, or what is missing.
    decided_at : int or None
        How many rows it took.
    control : str or None
        Whom lifts are against.
    notes : list of str
        What is taken for granted, and warnings.
    """

    arms: list[Arm]
    winner: Winner
    decided_at: int | None
    control: str | None
    notes: list[str]
    trial: Trial
    risk: float
    is_coin: bool  # whether all rewards are 0 or 1

    def rows(self) -> list[list[str]]:
        """The table as text."""
        return rows(self.arms, self.control, self.is_coin)

    def headings(self) -> list[str]:
        """Of the table."""
        return headings(self.control, self.is_coin)

    def __str__(self) -> str:
        table = text_table(self.headings(), self.rows())
        return "\n".join([table, "", self.sentence(), *self.notes, PRIOR])

    def sentence(self) -> str:
        """Who won and when, or what is missing."""
        when = f", after {self.decided_at:,} of {self.trial.arm.size:,} rows" if self.decided_at else ""
        return f"{self.winner.sentence}{when}"

    def _repr_html_(self) -> str:
        """For notebooks."""
        below = "".join(f"<p>{escape(text)}</p>" for text in (self.sentence(), *self.notes, PRIOR))
        return html_table(self.headings(), self.rows()) + below

    def plot(self, path: str | Path | None = None) -> Any:
        """Intervals of the rates over time, and the moment of stopping."""
        from abex.support.figures import canvas, entitle, save, style_of

        figure, axes = canvas(figsize=(7.2, 4.2))
        looks, rates, lows, highs = self._over_time()
        for position, place in enumerate(self._drawn()):
            look = style_of(position)
            axes.plot(looks, rates[:, place], label=self.arms[place].label, **look)
            axes.fill_between(
                looks, lows[:, place], highs[:, place], color=look["color"], alpha=0.12, linewidth=0
            )
        if self.decided_at:
            axes.axvline(self.decided_at, color="#555555", linewidth=0.9, linestyle=":")
            axes.annotate(
                " decided", (self.decided_at, 0.03), xycoords=("data", "axes fraction"), fontsize=8.5
            )
        last = [self.arms[place].interval for place in self._drawn()]
        low, high = min(one[0] for one in last), max(one[1] for one in last)
        axes.set_ylim(
            max(self.trial.low, low - 2.0 * (high - low)),
            min(self.trial.low + self.trial.scale, high + 2.0 * (high - low)),
        )
        axes.set_xscale("log")
        axes.set_xlabel("rows")
        axes.set_ylabel("mean reward")
        axes.legend(loc="upper right", fontsize=8.5)
        entitle(axes, FIGURE, f"{1 - self.risk:.0%} intervals that hold at every moment")
        return save(figure, path)

    def _drawn(self) -> list[int]:
        """The places of the arms in the figure: the best, and the control."""
        order = sorted(range(len(self.arms)), key=lambda k: -self.arms[k].rate)[:MOST_LINES]
        labels = [one.label for one in self.arms]
        return list(dict.fromkeys([*([labels.index(self.control)] if self.control else []), *order]))[
            :MOST_LINES
        ]

    def _over_time(self) -> tuple[Any, Floats, Floats, Floats]:
        """Looks, and rates with the ends of their intervals at each."""
        trial = self.trial
        looks = moments_to_look(trial.arm.size)
        rates, lows, highs = (np.full((looks.size, len(self.arms)), np.nan) for _ in range(3))
        for k in self._drawn():
            mine = trial.arm == k
            n = np.cumsum(mine)[looks - 1]
            s = np.cumsum(trial.reward * mine)[looks - 1]
            q = np.cumsum(trial.reward**2 * mine)[looks - 1]
            seen = n > 0
            rates[seen, k] = s[seen] / n[seen]
            lows[seen, k], highs[seen, k] = mean_interval(self.is_coin, self.risk, n[seen], s[seen], q[seen])
        return looks, *(trial.low + trial.scale * values for values in (rates, lows, highs))

    def write(self, path: str | Path) -> None:
        """A page of its own: sentence, table, figure; nothing is fetched from anywhere."""
        from abex.support.figures import image_tag
        from abex.support.files import write_atomically
        from abex.web import resource

        notes = "".join(f"<p class=about>{escape(text)}</p>" for text in (*self.notes, PRIOR))
        title = escape(self.sentence())
        page = (
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>"
            f"<title>{title}</title><style>{resource('abex.web', 'style.css')}</style><body><h1>{title}</h1>"
            f"<div class=wide>{html_table(self.headings(), self.rows())}</div>"
            f"<div class=figure>{image_tag(self.plot(), FIGURE)}</div>{notes}</body></html>\n"
        )
        write_atomically(path, page.encode())


def moments_to_look(rows: int) -> Any:
    """Rows at which the figure looks: evenly on a logarithmic axis, the last included."""
    return np.unique(np.geomspace(min(10, rows), rows, LOOKS).astype(np.int64))


def experiment(
    frame: Any,
    *,
    arm: str = "arm",
    reward: str = "reward",
    control: str | None = None,
    probability: str | float | Mapping[str, float] | None = None,
    rewards: tuple[float, float] | None = None,
    risk: float = 0.05,
    at_least: float | None = None,
    where: str = "the table",
) -> Experiment:
    """Who won an experiment, and whether one may stop, however often one has looked.

    Parameters
    ----------
    frame : data frame of pandas or polars, or mapping of columns
        A row for each decision, oldest first.
    arm, reward : str
        The columns of the arm and of the reward.
    control : str, optional
        The arm that lifts are against.
    probability : str, float or dict, optional
        The column of the probability with which each row's arm was chosen, or the probability of every arm, or one for each.
        None: a plain randomised experiment, whose probabilities are estimated from the shares.
    rewards : (float, float), optional
        The range of rewards, 0 to 1 unless given.
    risk : float
        At most this share of such experiments names a wrong winner, and leaves an interval.
    at_least : float, optional
        The difference of rewards that matters: where no arm can be better by so much, one may stop too.
    where : str
        What messages call the table; with the name of a file of text they name lines of it.

    Examples
    --------
    >>> rows = {"variant": ["A", "B"] * 300, "clicked": [0, 1, 0, 0, 0, 1] * 100}
    >>> print(experiment(rows, arm="variant", reward="clicked", control="A").sentence())
    B is best (wrong in at most 5 % of such experiments), after 26 of 600 rows
    """
    risk = checked_risk(risk)
    trial = trial_of(Table(frame, where), arm, reward, probability, rewards)
    label = None if control is None else checked_control(str(control), trial.labels)
    method = SUMS if trial.probabilities is None else BETS
    n_arms = len(trial.labels)
    chances = np.zeros((1, n_arms)) if trial.probabilities is None else trial.probabilities
    state, row = compared(trial.arm, trial.reward, chances, n_arms, risk)
    if method == SUMS:
        row = row_of_sums(trial, risk)
    found = verdict(state, trial.labels, risk=risk, at_least=at_least, method=method, scale=trial.scale)
    coin = bool(((trial.reward == 0.0) | (trial.reward == 1.0)).all())
    heavy = [] if coin else heavy_tails(trial)
    notes = [trial.note, share_warning(trial, probability is not None), *heavy]
    arms = arms_of(
        state,
        trial.labels,
        coin=coin,
        low=trial.low,
        scale=trial.scale,
        control=label,
        risk=risk,
    )
    decided = row + 1 if row >= 0 and found.winner is not None else None
    return Experiment(arms, found, decided, label, [text for text in notes if text], trial, risk, coin)


def row_of_sums(trial: Trial, risk: float) -> int:
    """The first of the looks at which sums name a winner, -1 if none does."""
    n_arms = len(trial.labels)
    for look in moments_to_look(trial.arm.size):
        state, _ = compared(trial.arm[:look], trial.reward[:look], np.zeros((1, n_arms)), n_arms, risk)
        if best_arm(state, risk, SUMS) >= 0:
            return int(look) - 1
    return -1


def heavy_tails(trial: Trial) -> list[str]:
    """A sentence for each arm whose mean a few rewards carry."""
    found: list[str] = []
    for k, label in enumerate(trial.labels):
        paid = trial.reward[trial.arm == k]
        if paid.size > 10 * HEAVY and paid.sum() > 0.0:
            share = np.partition(paid, -HEAVY)[-HEAVY:].sum() / paid.sum()
            if share >= CARRIED:
                found.append(
                    f"the mean of {label} is carried by {HEAVY} rows, which make {share:.0%} of its sum"
                )
    return found
