"""Scores of the policies of the arena.

**Score of a policy on an instance**: its mean regret over that of the best policy there. Both are at least 0.1 % of the
regret of uniform choice, so that small differences of small regrets do not count, and at least what a policy must lose there
unless it loses more on an instance that differs in one arm (`abex.lab.arena.least_regret`), so that luck does not. **Of a
policy**: geometric mean, mean, 95 % quantile and largest score over the instances it played, with intervals by a bootstrap
over instances and replications. **Linear regret**: a run whose second half cost more than a quarter of what uniform choice
cost there, counted on instances that can be learned: some policy's second half cost at most 5 % of uniform choice's. In
boosting, where the error of a classifier stands in the place of regret, none is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from abex.lab.arena.instances import Instance
from abex.lab.arena.least_regret import least_regret
from abex.lab.arena.study import Played
from abex.support.errors import UserError
from abex.support.randomness import stream

UNIFORM = "Uniform"
FLOOR = 0.001  # of uniform choice's regret
LINEAR = 0.25  # of uniform choice's second half
LEARNED = 0.05
BOOTSTRAPS = 400
Results = Mapping[tuple[str, str], Played]


@dataclass(frozen=True)
class Score:
    """The numbers of a policy over a set of instances."""

    policy: str
    instances: int
    geometric: float
    geometric_interval: tuple[float, float]
    mean: float
    mean_interval: tuple[float, float]
    quantile: float  # 95 %
    worst: float
    worst_instance: str
    linear_runs: int
    runs: int  # on instances that can be learned


def table(
    results: Results, instances: Sequence[Instance]
) -> tuple[list[str], list[Instance], NDArray[np.float64]]:
    """Policies, instances that uniform choice has played, and scores (policies, instances), nan where one was not played."""
    names = list(dict.fromkeys(policy for policy, _ in results))
    played = [one for one in instances if (UNIFORM, one.name) in results]
    if not played:
        raise UserError("nothing to score yet: uniform choice, the yardstick, has played no instance")
    means = np.full((len(names), len(played)), np.nan)
    for i, name in enumerate(names):
        for j, one in enumerate(played):
            if (name, one.name) in results:
                means[i, j] = results[name, one.name].regret.mean()
    return names, played, scored(means, means[names.index(UNIFORM)], leasts_of(played))


def leasts_of(instances: Sequence[Instance]) -> NDArray[np.float64]:
    """What a policy must lose on each instance."""
    return np.array([least_regret(one) for one in instances])


def scored(
    means: NDArray[np.float64], uniform: NDArray[np.float64], least: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean regrets (policies, instances) over the best of each instance, all at least the floors."""
    floored = np.maximum(means, np.maximum(FLOOR * np.abs(uniform), least))
    best: NDArray[np.float64] = np.nanmin(floored, axis=0)
    return floored / best


def score_all(results: Results, instances: Sequence[Instance], seed: int = 1) -> list[Score]:
    """The scores of all policies that played every one of the instances, best geometric mean first."""
    names, played, scores = table(results, instances)
    complete = [i for i in range(len(names)) if not np.isnan(scores[i]).any()]
    drawn = _bootstrap(results, names, played, seed)
    learned = _learnable(results, names, played)
    found = []
    for i in complete:
        row, again = scores[i], drawn[:, i]
        linear, runs = _linear(results, names[i], learned)
        ends = [
            np.quantile(of, (0.025, 0.975)) for of in (np.exp(np.log(again).mean(axis=1)), again.mean(axis=1))
        ]
        found.append(
            Score(
                names[i], row.size, float(np.exp(np.log(row).mean())), (float(ends[0][0]), float(ends[0][1])),
                float(row.mean()), (float(ends[1][0]), float(ends[1][1])), float(np.quantile(row, 0.95)),
                float(row.max()), played[int(row.argmax())].name, linear, runs,
            )
        )  # fmt: skip
    return sorted(found, key=lambda score: score.geometric)


def _bootstrap(results: Results, names: list[str], played: list[Instance], seed: int) -> NDArray[np.float64]:
    """Scores of instances and replications drawn with replacement, (bootstraps, policies, instances).

    All policies face the same rewards in a replication, so the same replications are drawn for all of them.
    """
    means = np.full((BOOTSTRAPS, len(names), len(played)), np.nan)
    for j, one in enumerate(played):
        for i, name in enumerate(names):
            if (name, one.name) in results:
                regret = results[name, one.name].regret
                means[:, i, j] = _drawn_again(seed, one.name, regret.size) @ regret
    uniform, least = means[:, names.index(UNIFORM)], leasts_of(played)
    scores = np.stack([scored(means[b], uniform[b], least) for b in range(BOOTSTRAPS)])
    chosen = stream(seed, "arena bootstrap").integers(0, len(played), (BOOTSTRAPS, len(played)))
    return np.take_along_axis(scores, chosen[:, None, :], axis=2)


@lru_cache(maxsize=512)
def _drawn_again(seed: int, instance: str, runs: int) -> NDArray[np.float64]:
    """The weight of each run of an instance in each bootstrap, (bootstraps, runs)."""
    rng = stream(seed, "arena bootstrap", instance)
    return rng.multinomial(runs, np.full(runs, 1.0 / runs), BOOTSTRAPS) / runs


def _learnable(results: Results, names: list[str], played: list[Instance]) -> dict[str, float]:
    """Instances that can be learned, with what uniform choice loses in a second half."""
    found = {}
    for one in played:
        if one.group == "boosting":
            continue
        uniform = float(results[UNIFORM, one.name].second_half.mean())
        losses = [results[name, one.name].second_half.mean() for name in names if (name, one.name) in results]
        if uniform > 0.0 and min(losses) <= LEARNED * uniform:
            found[one.name] = uniform
    return found


def _linear(results: Results, policy: str, learned: dict[str, float]) -> tuple[int, int]:
    """Runs of linear regret, and runs in all, on instances that can be learned."""
    linear, runs = 0, 0
    for name, uniform in learned.items():
        second = results[policy, name].second_half
        linear += int((second > LINEAR * uniform).sum())
        runs += second.size
    return linear, runs
