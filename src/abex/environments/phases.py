"""Arms whose means stay for a while and then change, with regret against the best arm of each step or the best fixed one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from abex.environments.environment import Environment
from abex.environments.piecewise import AGAINST, Path, Piecewise
from abex.environments.stochastic import as_means
from abex.errors import UserError, shown, whole_number
from abex.parameters import MOST_STEPS, choice


@dataclass(frozen=True)
class Phases(Piecewise):
    r"""Bernoulli arms whose means change after given numbers of steps.

    Parameters
    ----------
    means : list of lists of float
        The means of all arms in each phase.
    lengths : sequence of int
        How many steps each phase lasts; the last one goes on beyond its length.
    against : {"each step", "fixed arm"}
        The regret counts the mean of the best arm of each step (dynamic regret), or that of the arm with the largest sum of means
        over the horizon, the regret of the adversarial literature, which may be negative.

    Examples
    --------
    >>> Phases([[0.2, 0.8], [0.9, 0.1]], lengths=[500, 500]).n_arms
    2
    """

    means: Sequence[Sequence[float]]
    lengths: Sequence[int]
    against: str = choice("each step", AGAINST)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("means", "lengths"):
            if not isinstance(getattr(self, name), Sequence | np.ndarray) or len(getattr(self, name)) == 0:
                raise UserError(f"{name} must be a list with an entry for each phase")
        rows = tuple(tuple(as_means("means", row).tolist()) for row in self.means)
        if len({len(row) for row in rows}) > 1:
            raise UserError("means must have the same number of arms in each phase")
        lengths = tuple(whole_number("lengths", one, least=1, most=MOST_STEPS) for one in self.lengths)
        if len(lengths) != len(rows):
            raise UserError(f"lengths must name {len(rows)} phases, got {shown(self.lengths)}")
        object.__setattr__(self, "means", rows)
        object.__setattr__(self, "lengths", lengths)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means[0])

    def path(self, key: np.uint64, horizon: int) -> Path:
        """The phases, whatever the horizon."""
        return np.cumsum([0, *self.lengths[:-1]], dtype=np.int64), np.array(self.means)

    def changes(self, horizon: int) -> list[int]:
        """Where a phase begins."""
        begins = np.cumsum([0, *self.lengths[:-1]], dtype=np.int64)
        return [int(step) + 1 for step in begins[1:] if step < horizon]

    @classmethod
    def examples(cls) -> Iterator[Environment]:
        """Two changes, against the best arm of each step."""
        yield cls([[0.2, 0.8, 0.5], [0.9, 0.1, 0.5], [0.3, 0.2, 0.7]], lengths=[100, 150, 50])
