"""The instances of the arena, read from ``instances.toml``, which says what is in them and how they are written."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import NormalDist
from typing import Any

from abex.support.errors import one_of

VERSION = 3
GRIDS = ("train", "test")
GROUPS = ("stochastic", "graphs", "late", "changing", "adversarial", "shop", "boosting")
IDENTIFICATION = "identification"  # scored by the time to a winner, where all others are by what is lost
SEEDS = {"train": 101, "test": 202}
Spec = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """One problem of the arena: what is played, for how long, and how often at most."""

    name: str
    group: str
    problem: Spec
    horizon: int = 10_000  # or iterations
    most: int | None = None  # replications, where each takes long

    @property
    def plain_bernoulli(self) -> bool:
        """Whether it has Bernoulli rewards of fixed means, bandit feedback, and nothing else."""
        return self.group == "stochastic" and self.problem["environment"]["name"] in (
            "Bernoulli",
            "SpecialArm",
        )


@cache
def grid_of(name: str, groups: tuple[str, ...] = GROUPS) -> tuple[Instance, ...]:
    """The instances of groups of a grid, of all that are scored by what is lost unless given.

    In the group *boosting* a policy names the features that AdaBoost.MH splits.
    What it loses there is the share of rows that the classifier gets wrong at the end (`abex.lab.sweeps.boosting_cells`): that of
    the best policy after as many iterations stands in the place of the least regret.
    """
    one_of("grid", name, GRIDS)
    written = tomllib.loads(files(__package__).joinpath("instances.toml").read_text(encoding="utf-8"))
    return tuple(_instance(group, **line) for group in groups for line in written[name][group])


def _instance(
    group: str, name: str, horizon: int = 10_000, most: int | None = None, **problem: Any
) -> Instance:
    return Instance(name, group, _expanded(problem), horizon, most)


def _expanded(value: Any) -> Any:
    """A value of the file, with what a table of one function stands for in its place."""
    if isinstance(value, list):
        return [_expanded(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _expanded(one) for key, one in value.items()}
    (name, *more) = found
    if more or name not in FUNCTIONS:
        return found
    return FUNCTIONS[name](*found[name])


def evenly(low: float, high: float, count: int) -> list[float]:
    """Numbers from low to high at equal distances."""
    return [round(low + (high - low) * k / (count - 1), 6) for k in range(count)]


def repeated(*runs: tuple[Any, int]) -> list[Any]:
    """Each value as often as it says."""
    return [value for value, count in runs for _ in range(count)]


def turning(means: list[float], count: int, step: int) -> list[list[float]]:
    """The means of ``count`` phases, handed on by ``step`` arms from phase to phase."""
    n = len(means)
    return [[means[(k - phase * step) % n] for k in range(n)] for phase in range(count)]


def uniforms(centres: list[float], width: float, count: int = 16) -> list[list[float]]:
    """Values that stand for uniform rewards around each centre."""
    return [[round(c + width * ((j + 0.5) / count - 0.5), 9) for j in range(count)] for c in centres]


def paretos(scales: list[float], tail: float, count: int = 40) -> list[list[float]]:
    """Values that stand for Pareto rewards of these scales, cut off at 1."""
    return [
        [round(min(1.0, s * ((j + 0.5) / count) ** (-1.0 / tail)), 9) for j in range(count)] for s in scales
    ]


def bernoulli(*means: float) -> Spec:
    """Bernoulli arms."""
    return {"name": "Bernoulli", "means": list(means)}


def one_good_arm(n_arms: int, best: float, other: float) -> Spec:
    """One good Bernoulli arm among equal ones, at a place that is drawn."""
    return {"name": "SpecialArm", "K": n_arms, "best": best, "other": other}


def discrete(values: list[list[float]], probabilities: list[list[float]] | None = None) -> Spec:
    """Arms of a few values each, equally likely unless probabilities are given."""
    return {"name": "Discrete", "values": values, "probabilities": probabilities}


def sure(*values: float) -> Spec:
    """Arms that always give the same reward."""
    return discrete([[value] for value in values])


def two_valued(means: list[float], low: float, high: float) -> Spec:
    """Arms of two values, the higher one with the given probabilities."""
    return discrete([[low, high]] * len(means), [[round(1.0 - p, 12), p] for p in means])


def constrained(low: list[float], high: list[float], first: int, growth: float, horizon: int) -> Spec:
    """Zimmert and Seldin 2021: levels rise and fall in growing phases, gaps stay."""
    lengths: list[int] = []
    while sum(lengths) < horizon:
        lengths.append(int(first * growth ** len(lengths)))
    means = [low if phase % 2 == 0 else high for phase in range(len(lengths))]
    return {"name": "Phases", "means": means, "lengths": lengths, "against": "fixed arm"}


def season(levels: list[float], swing: float, day: int, of_week: float, horizon: int) -> Spec:
    """Rates that all swing together, by ``swing`` in a day and by ``of_week`` in a week: 24 steps a day."""
    hour = day / 24
    count = math.ceil(horizon / hour)
    turn = [2.0 * math.pi * (j + 0.5) / 24 for j in range(count)]
    factors = [(1.0 + swing * math.sin(x)) * (1.0 + of_week * math.sin(x / 7)) for x in turn]
    means = [[round(level * factor, 9) for level in levels] for factor in factors]
    return phases(means, [round(hour * (j + 1)) - round(hour * j) for j in range(count)])


def weekends(weekday: list[float], weekend: list[float], day: int, horizon: int) -> Spec:
    """Rates of five days, and others of the two that follow."""
    count = math.ceil(horizon / (7 * day))
    return phases([weekday, weekend] * count, [5 * day, 2 * day] * count)


def novelty(means: list[float], boosts: list[float], life: int, horizon: int) -> Spec:
    """Rates that begin higher, each by its share, which falls by e in a ``life``: ten steps a life."""
    count = math.ceil(10 * horizon / life)
    left = [math.exp(-(j + 0.5) / 10) for j in range(count)]
    path = [[round(m * (1.0 + b * x), 9) for m, b in zip(means, boosts, strict=True)] for x in left]
    return phases(path, [life // 10] * count)


def phases(means: list[list[float]], lengths: list[int]) -> Spec:
    """Bernoulli arms whose means change, against the best arm of each step."""
    return {"name": "Phases", "means": means, "lengths": lengths, "against": "each step"}


def purchases(rates: list[float], medians: list[float], sigma: float, count: int = 20) -> Spec:
    """Nothing, or a log-normal amount, at these rates: ``count`` quantiles of it, 1 at most."""
    steps = [math.exp(sigma * NormalDist().inv_cdf((j + 0.5) / count)) for j in range(count)]
    values = [[0.0, *(round(min(1.0, median * x), 9) for x in steps)] for median in medians]
    return discrete(values, [[round(1.0 - rate, 12), *[rate / count] * count] for rate in rates])


def ring(n: int, directed: bool) -> Spec:
    """Every arm shows the next one."""
    return {"name": "edges", "n": n, "edges": [[k, (k + 1) % n] for k in range(n)], "directed": directed}


def hub(n: int) -> Spec:
    """Arm 0 shows all others and is shown by none."""
    return {"name": "edges", "n": n, "edges": [[0, k] for k in range(1, n)], "directed": True}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(evenly, repeated, turning, uniforms, paretos, ring, hub),
        *(bernoulli, one_good_arm, discrete, sure, two_valued, constrained),
        *(season, weekends, novelty, phases, purchases),
    )
}
