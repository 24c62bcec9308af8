"""Piecewise-stationary Bernoulli arms: phases, random rotations, published problems, random walks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.environments.stochastic import HasMeans, as_means
from abex.kernels import Record, kernel
from abex.support.errors import UserError, shown, whole_number
from abex.support.parameters import MOST_STEPS, choice, real, whole
from abex.support.randomness import uniform_at, unit, word_at
from abex.support.reading import check_size

AGAINST = ("each step", "fixed arm")
FINEST = 10_000  # pieces of a smooth path: the means stay for a 10,000th of the horizon
Path = tuple[NDArray[np.int64], NDArray[np.float64]]  # the steps before each piece, the means in it


class PathWorld(Record):
    """Where each piece of the path begins, the means in it, and the mean of the arm that the regret is against."""

    key: np.uint64
    begins: NDArray[np.int64]  # (pieces,), the steps before a piece
    means: NDArray[np.float64]  # (pieces, K)
    benchmark_mean: NDArray[np.float64]  # (pieces,)


@kernel
def piece_at(world: Any, t: int) -> int:
    """The piece of step t, by bisection; the last one stays for ever."""
    low, high = 0, world.begins.size
    while high - low > 1:
        middle = (low + high) // 2
        if world.begins[middle] < t:
            low = middle
        else:
            high = middle
    return low


class Piecewise(Environment):
    """Bernoulli arms along a path of means, with regret against the best arm of each step or the best fixed one."""

    against: str

    @abstractmethod
    def path(self, key: np.uint64, horizon: int) -> Path:
        """Pieces of the path, for a horizon."""

    def open(self, key: np.uint64, horizon: int) -> PathWorld:
        """The path, and what is earned by the arm of the comparison."""
        begins, means = self.path(key, horizon)
        benchmark = means.max(axis=1)
        if self.against == "fixed arm":
            ends = np.minimum(np.append(begins[1:], horizon), horizon)
            steps = np.maximum(ends - begins, 0)
            benchmark = means[:, int((steps[:, None] * means).sum(axis=0).argmax())].copy()
        return PathWorld(key=key, begins=begins, means=means, benchmark_mean=benchmark)

    def changes(self, horizon: int) -> list[int]:
        """Where a piece begins."""
        begins, _ = self.path(np.uint64(0), horizon)
        return [int(step) + 1 for step in begins[1:] if step < horizon]

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """1 with the arm's present probability."""
        return 1.0 if uniform_at(world.key, t, arm) < world.means[piece_at(world, t), arm] else 0.0

    @staticmethod
    @kernel
    def gap(world: Any, t: int, arm: int) -> float:
        """What the arm of the comparison earns more."""
        piece = piece_at(world, t)
        return float(world.benchmark_mean[piece] - world.means[piece, arm])

    @staticmethod
    @kernel
    def best(world: Any, t: int, arm: int) -> bool:
        """The arm earns as much as that of the comparison."""
        piece = piece_at(world, t)
        return bool(world.means[piece, arm] >= world.benchmark_mean[piece])


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


@dataclass(frozen=True)
class Switching(HasMeans, Piecewise):
    """Bernoulli arms whose means are dealt out anew, by a random rotation, after every ``period`` steps.

    Parameters
    ----------
    means : sequence of float
        The means to deal out.
    period : int
        Steps between two deals.
    against : {"each step", "fixed arm"}
        The regret counts the mean of the best arm of each step (dynamic regret), or that of the arm with the largest sum of means
        in the replication, which may be negative.

    Examples
    --------
    >>> Switching([0.2, 0.8], period=100).n_arms
    2
    """

    means: Any
    period: int = whole(1000, least=1, most=MOST_STEPS)
    against: str = choice("each step", AGAINST)

    def path(self, key: np.uint64, horizon: int) -> Path:
        """The random rotations of the means that the key names."""
        deals: Any = np.arange(-(-horizon // self.period))
        check_size(24 * deals.size * self.n_arms, f"{deals.size:,} deals of means")
        with np.errstate(over="ignore"):  # words wrap around
            share: Any = unit(word_at(~key, deals, 0))
        shifts = (share * self.n_arms).astype(np.int64)
        return deals * self.period, np.array(self.means)[
            (np.arange(self.n_arms) + shifts[:, None]) % self.n_arms
        ]


def pieces(rows: Sequence[Sequence[float]], shares: Sequence[float]) -> Callable[[int], Path]:
    """Means that stay for these shares of the horizon."""
    before = np.concatenate([[0.0], np.cumsum(shares)[:-1]]) / sum(shares)

    def path(horizon: int) -> Path:
        begins = np.floor(before * horizon + 1e-9).astype(np.int64)
        return begins, np.array(rows, np.float64)

    return path


def smooth(means: Callable[[NDArray[np.float64]], list[NDArray[np.float64]]]) -> Callable[[int], Path]:
    """Means as functions of the share of the horizon that is over."""

    def path(horizon: int) -> Path:
        begins = np.unique(np.linspace(0, horizon, min(horizon, FINEST), endpoint=False).astype(np.int64))
        values = means((begins + 1.0) / horizon)
        return begins, np.clip(np.stack(np.broadcast_arrays(*values), axis=1), 0.0, 1.0)

    return path


PROBLEMS: dict[str, Callable[[int], Path]] = {
    "garivier-moulines-1": pieces([[0.5, 0.3, 0.4], [0.5, 0.3, 0.9], [0.5, 0.3, 0.4]], [3, 2, 5]),
    "garivier-moulines-2": smooth(lambda u: [0.5 + 0.4 * np.cos(6.0 * math.pi * u), np.array(0.5)]),
    "besson-1": pieces(
        [[0.3, 0.5, 0.9], [0.3, 0.2, 0.9], [0.3, 0.2, 0.1], [0.7, 0.2, 0.1], [0.7, 0.5, 0.1]], [1] * 5
    ),
    "besson-2": pieces(
        [[0.4, 0.5, 0.9], [0.5, 0.4, 0.7], [0.6, 0.3, 0.5], [0.7, 0.2, 0.3], [0.8, 0.1, 0.1]], [1] * 5
    ),
    "besson-3": pieces([[0.1, 0.2, 0.9], [0.4, 0.9, 0.1], [0.5, 0.1, 0.2], [0.2, 0.2, 0.3]], [1] * 4),
    "besson-4": pieces(
        [[0.1, 0.5, 0.9], [0.3, 0.4, 0.1], [0.5, 0.3, 0.2], [0.7, 0.4, 0.3], [0.1, 0.5, 0.2]], [4, 1, 1, 1, 1]
    ),
    "besson-5": pieces(
        [
            [0.071, 0.041, 0.032, 0.030, 0.020, 0.011],
            [0.055, 0.053, 0.032, 0.030, 0.008, 0.011],
            [0.040, 0.063, 0.032, 0.030, 0.008, 0.011],
            [0.040, 0.042, 0.043, 0.030, 0.008, 0.011],
            [0.030, 0.032, 0.055, 0.030, 0.008, 0.011],
            [0.030, 0.032, 0.020, 0.030, 0.008, 0.021],
            [0.020, 0.022, 0.020, 0.045, 0.008, 0.021],
            [0.020, 0.022, 0.020, 0.057, 0.008, 0.011],
            [0.020, 0.022, 0.034, 0.057, 0.022, 0.011],
        ],
        [1] * 9,
    ),
    "one-arm-dies": pieces([[0.9, 0.6, 0.5, 0.4, 0.3], [0.0, 0.6, 0.5, 0.4, 0.3]], [1, 1]),
    "boosting-trend": smooth(
        lambda u: [
            peak / np.sqrt(1.0 + late * u)
            for peak, late in ((0.9, 40.0), (0.5, 2.0), (0.7, 12.0), (0.3, 0.5))
        ]
    ),
}
SMOOTH = ("garivier-moulines-2", "boosting-trend")


@dataclass(frozen=True)
class Published(Piecewise):
    r"""A problem that changes, by its name; all are stretched to the horizon.

    ========================  ==================================================================================================
    ``garivier-moulines-1``   three arms; the third is the best one from 30 % to 50 % of the horizon
    ``garivier-moulines-2``   :math:`0.5+0.4\cos(6\pi t/T)` against 0.5
    ``besson-1``              three arms, one of them changes at each of four times
    ``besson-2``              three arms, all change at each of four times, one rises while another falls
    ``besson-3``              three arms, large changes at three times
    ``besson-4``              three arms, one long piece and four short ones
    ``besson-5``              six arms with small means (a recommender's), nine pieces
    ``one-arm-dies``          five arms, the best one pays nothing from half of the horizon on
    ``boosting-trend``        four arms whose means fall, the best ones fastest, as edges do while a booster learns
    ========================  ==================================================================================================

    The first seven are those of Garivier and Moulines 2011, Figures 1 and 2, and of Besson, Kaufmann, Maillard and Seznec 2022,
    problems 1 to 5, as public code and a survey give them, not as read in the publications; the guide "When the world changes"
    names the source of each.

    Parameters
    ----------
    problem : str
        One of the names.
    against : {"each step", "fixed arm"}
        The regret counts the mean of the best arm of each step (dynamic regret), or that of the arm with the largest sum of
        means, which may be negative.

    Examples
    --------
    >>> Published("besson-1").changes(1000)
    [201, 401, 601, 801]
    """

    problem: str = choice("garivier-moulines-1", PROBLEMS)
    against: str = choice("each step", AGAINST)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return int(PROBLEMS[self.problem](10)[1].shape[1])

    def path(self, key: np.uint64, horizon: int) -> Path:
        """That of the problem."""
        return PROBLEMS[self.problem](horizon)

    def changes(self, horizon: int) -> list[int]:
        """Where a piece begins, none on a smooth path."""
        return [] if self.problem in SMOOTH else super().changes(horizon)


@dataclass(frozen=True)
class RandomWalk(HasMeans, Piecewise):
    r"""Bernoulli arms whose means walk at random between 0 and 1, another way in every replication.

    After every ``every`` steps each mean moves by an independent :math:`N(0,\sigma^2)` number and is reflected at 0 and 1.

    Parameters
    ----------
    means : sequence of float
        Where they begin.
    deviation : float
        The standard deviation :math:`\sigma` of a move.
    every : int
        Steps between two moves.
    against : {"each step", "fixed arm"}
        The regret counts the mean of the best arm of each step, or that of the arm with the largest sum of means.

    Examples
    --------
    >>> RandomWalk([0.4, 0.6], deviation=0.05, every=100).n_arms
    2
    """

    means: Any
    deviation: float = real(0.01, least=0.0, most=1.0)
    every: int = whole(10, least=1, most=MOST_STEPS)
    against: str = choice("each step", AGAINST)

    def path(self, key: np.uint64, horizon: int) -> Path:
        """The walk that the key names."""
        count = (horizon + self.every - 1) // self.every
        check_size(24 * count * self.n_arms, f"a random walk of {count:,} moves")
        rng = np.random.Generator(np.random.PCG64(int(key)))
        moves = rng.normal(0.0, self.deviation, (count, self.n_arms))
        moves[0] = self.means
        folded = np.cumsum(moves, axis=0) % 2.0  # a walk on a circle, folded at both ends
        return np.arange(count, dtype=np.int64) * self.every, 1.0 - np.abs(1.0 - folded)

    def changes(self, horizon: int) -> list[int]:
        """None: the means move all the time."""
        return []
