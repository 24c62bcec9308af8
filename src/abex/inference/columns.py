"""The columns of an experiment, checked: who was shown what with which probability, and what it paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.inference.sums import sample_ratio
from abex.support.errors import UserError, brief, nearest, real_number, shown
from abex.support.extras import needed
from abex.support.table_files import line_of

STEADY = 0.02  # by so much probabilities that never change may miss their sum
ALARM = 100.0  # evidence against the shares that is worth a warning
IMPOSSIBLE = 1e12  # evidence at which they cannot be what was said
MOST_ARMS = 1_000

Floats = NDArray[np.float64]


class Trial(NamedTuple):
    """Decisions in their order."""

    labels: list[str]
    arm: NDArray[np.int64]  # (rows,), a place among the labels
    reward: Floats  # (rows,), within [0, 1]
    low: float  # a reward of 0 is this one
    scale: float  # of the rewards
    probabilities: (
        Floats | None
    )  # (rows, K), or (1, K) where they never change; None where those of other arms are unknown
    shares: Floats | None  # those of a design that never changes
    note: str  # what is taken for granted


class Table:
    """A data frame, or a mapping of columns, that knows how to name a row."""

    def __init__(self, frame: Any, where: str) -> None:
        self.frame, self.where = frame, where
        names = frame.columns if hasattr(frame, "columns") else frame
        self.names = [str(name) for name in names]

    def column(self, name: str, what: str) -> NDArray[Any]:
        """The values of a column."""
        if name not in self.names:
            near = nearest(name, self.names) or f"; its columns: {brief(', '.join(self.names), 90)}"
            raise UserError(f"{self.where} has no column {shown(name)} for the {what}{near}")
        values = self.frame[name]
        return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)

    def row(self, wrong: NDArray[np.bool_]) -> str:
        """The first row that is wrong, as a person finds it."""
        return f"{line_of(int(wrong.argmax()), self.where)} of {self.where}"

    def numbers(self, name: str, what: str) -> Floats:
        """The numbers of a column; what is missing or no number is an error that names the line."""
        with needed():
            import pandas as pd

        values = self.column(name, what)
        found = np.asarray(pd.to_numeric(pd.Series(values), errors="coerce"), np.float64)
        wrong = ~np.isfinite(found)
        if wrong.any():
            value = values[wrong].tolist()[0]  # of Python, not of NumPy: nan reads as nan
            raise UserError(f"{self.row(wrong)} has no number for the {what}, but {shown(value)}")
        return found


def trial_of(
    table: Table, arm: str, reward: str, probability: Any, rewards: tuple[float, float] | None
) -> Trial:
    """The decisions of a table."""
    with needed():
        import pandas as pd

    raw = table.column(arm, "arm")
    if raw.size == 0:
        raise UserError(f"{table.where} has no rows")
    place, values = pd.factorize(raw)
    if (place < 0).any():
        raise UserError(f"{table.row(place < 0)} has no arm")
    names = [
        str(int(v)) if isinstance(v, float) and v.is_integer() else str(v)
        for v in np.asarray(values).tolist()
    ]
    if len(names) < 2:
        raise UserError(f"{table.where} has one arm alone, {shown(names[0])}: nothing to compare it with")
    if len(names) > MOST_ARMS:
        raise UserError(f"column {shown(arm)} has {len(names):,} different values: that is no column of arms")
    order = np.argsort(
        np.array(names, dtype=object) if not _all_numbers(names) else np.array(names, float), kind="stable"
    )
    labels, where_is = [names[k] for k in order], np.argsort(order)
    arms = where_is[place].astype(np.int64)
    paid, low, scale = _scaled(table, reward, rewards)
    probabilities, shares, note = _design(table, probability, labels, arms)
    return Trial(labels, arms, paid, low, scale, probabilities, shares, note)


def _all_numbers(names: Sequence[str]) -> bool:
    return all(name.lstrip("-").replace(".", "", 1).isdecimal() for name in names)


def _scaled(table: Table, name: str, rewards: tuple[float, float] | None) -> tuple[Floats, float, float]:
    """Rewards as numbers from 0 to 1, and their range."""
    paid = table.numbers(name, "reward")
    low, high = (0.0, 1.0) if rewards is None else (float(rewards[0]), float(rewards[1]))
    if not (np.isfinite([low, high]).all() and low < high):
        raise UserError(f"the range of rewards must be two numbers, the smaller first, got {rewards}")
    wrong = (paid < low) | (paid > high)
    if wrong.any():
        value = paid[np.flatnonzero(wrong)[0]]
        hint = "; say which rewards are possible, such as 0,100" if rewards is None else ""
        raise UserError(
            f"{table.row(wrong)} has a reward of {value:g}, outside the range {low:g} to {high:g}{hint}"
        )
    if paid.min() == paid.max():
        raise UserError(f"all rewards are {paid[0]:g}: nothing tells the arms apart")
    return (paid - low) / (high - low), low, high - low


def _design(
    table: Table, probability: Any, labels: list[str], arms: NDArray[np.int64]
) -> tuple[Floats | None, Floats | None, str]:
    """The probabilities of all arms at each row where they are known, those that never change, and what is taken for granted."""
    n_arms = len(labels)
    if probability is None:
        found = np.bincount(arms, minlength=n_arms) / arms.size
        note = "probabilities are estimated from the shares of a plain randomised experiment"
        return found[None, :], np.full(n_arms, 1.0 / n_arms), note
    if isinstance(probability, str):
        return _by_column(table, probability, labels, arms)
    if isinstance(probability, Mapping):
        given = {str(label): value for label, value in probability.items()}
        if given.keys() != set(labels):
            odd = sorted(given.keys() ^ set(labels))[0]
            raise UserError(
                f"probabilities must be of the arms {brief(', '.join(labels))}, and {shown(odd)} is not in both"
            )
        shares = np.array([real_number("probability", given[label], above=0.0, most=1.0) for label in labels])
    else:
        shares = np.full(n_arms, real_number("probability", probability, above=0.0, most=1.0))
    if abs(shares.sum() - 1.0) > STEADY:
        raise UserError(
            f"probabilities of the {n_arms} arms add up to {shares.sum():.3g}, not 1: give one for each arm, or their column"
        )
    return (shares / shares.sum())[None, :], shares / shares.sum(), ""


def _by_column(
    table: Table, name: str, labels: list[str], arms: NDArray[np.int64]
) -> tuple[Floats | None, Floats | None, str]:
    """From the probability with which each row's arm was chosen."""
    n_arms, chosen = len(labels), table.numbers(name, "probability")
    wrong = (chosen <= 0.0) | (chosen > 1.0 + 1e-9)
    if wrong.any():
        value = chosen[np.flatnonzero(wrong)[0]]
        raise UserError(
            f"{table.row(wrong)} has a probability of {value:g}: it must be above 0 and at most 1"
        )
    laws, shares = laws_of(chosen, arms, n_arms)
    note = (
        ""
        if laws is not None
        else "probabilities of the arms not chosen are unknown, so levels are assumed not to move"
    )
    return laws, shares, note


def laws_of(chosen: Floats, arms: NDArray[np.int64], n_arms: int) -> tuple[Floats | None, Floats | None]:
    """The probabilities of all arms from those of the chosen ones: known where they never change, and of two arms; and shares."""
    one = np.zeros(n_arms)
    one[arms] = chosen
    if np.allclose(one[arms], chosen, rtol=1e-6) and abs(one.sum() - 1.0) <= STEADY:
        return (one / one.sum())[None, :], one / one.sum()
    if n_arms != 2:
        return None, None
    both = np.empty((arms.size, 2))
    both[np.arange(arms.size), arms] = chosen
    both[np.arange(arms.size), 1 - arms] = 1.0 - chosen
    return np.clip(both, 0.0, 1.0), None


def share_warning(trial: Trial, planned: bool) -> str:
    """A sentence where the shares are not those of the design, at every moment wrong in at most 1 % of such experiments."""
    if trial.shares is None:
        return ""
    counts = np.bincount(trial.arm, minlength=len(trial.labels))
    evidence = sample_ratio(counts, trial.shares)
    if evidence < ALARM:
        return ""
    k = int(np.argmax(np.abs(counts - counts.sum() * trial.shares)))
    found = f"{trial.labels[k]} has {counts[k] / counts.sum():.1%} of the rows where {trial.shares[k]:.1%} were to be expected"
    if planned and evidence >= IMPOSSIBLE:
        raise UserError(f"the probabilities do not fit the shares: {found}")
    return f"sample-ratio mismatch: {found}, which chance does in less than one experiment in {min(evidence, 1e9):,.0f}"
