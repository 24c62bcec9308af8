"""How good the parameters of `recommend` are: a grid of instances, the best fixed choice in hindsight, the paper's parameters.

    python -m benchmarks.recommendation [--arms 3 20 100] [--gap 0.1 0.2 0.4] [--horizon 20000] [--replications 40] [--seed 0]

Hindsight sees the very runs on which it is measured, and so is luckier than any choice made beforehand: ratios to
it overstate the distance.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.environments import Bernoulli
from abex.policies import ABE, parse_policy
from abex.simulation import simulate
from abex.support.progress import Progress
from abex.theory import recommend

ETAS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
AMOUNTS = ((0.0, 0.7), (0.1, 0.7), (0.3, 0.5), (1.0, 0.5), (3.0, 0.3), (10.0, 0.1))  # (c, alpha), carried
FIXED = tuple(ABE(eta=eta, c=c, alpha=alpha, rounding="carry") for eta in ETAS for c, alpha in AMOUNTS)
PAPER = ABE(eta=0.4, c=0.1, alpha=0.7, rounding="floor")
CONTENDERS = (
    "recommended, gap known",
    "recommended, gap unknown",
    "best single fixed choice",
    "the paper's parameters",
)


class BernoulliInstance(NamedTuple):
    """A Bernoulli bandit: its shape, number of arms, smallest gap and means."""

    shape: str
    n_arms: int
    gap: float
    means: tuple[float, ...]


class Study(NamedTuple):
    """Mean regret of the best choice in hindsight and of each contender, per instance."""

    instances: list[BernoulliInstance]
    hindsight: list[tuple[str, float]]
    regret: NDArray[np.float64]  # (instances, contenders)
    single: str  # the one fixed choice with the least mean log regret
    horizon: int
    replications: int


def instances(arms: Iterable[int], gaps: Iterable[float]) -> Iterator[BernoulliInstance]:
    """One good arm among equals, and a ladder of arms: the best is a gap above the next, the others spread below."""
    for n_arms, gap in itertools.product(arms, gaps):
        top = 0.5 + gap / 2.0
        yield BernoulliInstance("one good arm", n_arms, gap, (top, *[top - gap] * (n_arms - 1)))
        lowest = min(0.1, top - gap)
        yield BernoulliInstance(
            "ladder", n_arms, gap, (top, *np.linspace(top - gap, lowest, n_arms - 1).tolist())
        )


def run_study(
    arms: Iterable[int],
    gaps: Iterable[float],
    horizon: int,
    replications: int,
    seed: int,
    show: bool | None = None,
) -> Study:
    """Simulate every choice on every instance; all choices of an instance face the same rewards."""
    cases = list(instances(arms, gaps))
    fixed: list[list[float]] = []
    others: list[list[float]] = []
    with Progress("study", total=sum(case.n_arms + 10 for case in cases), show=show) as bar:
        for case in cases:
            tuned = [recommend(case.n_arms, horizon, case.gap), recommend(case.n_arms, horizon)]
            contenders = [*(parse_policy(advice.policy) for advice in tuned), PAPER]
            distinct = list(dict.fromkeys([*FIXED, *contenders]))
            curves = simulate(
                distinct, Bernoulli(case.means), horizon=horizon, replications=replications, seed=seed,
                checkpoints=[horizon], progress=False,
            )  # fmt: skip
            regret = dict(zip(distinct, curves.regret[:, :, -1].mean(axis=1).tolist(), strict=True))
            fixed.append([regret[policy] for policy in FIXED])
            others.append([regret[policy] for policy in contenders])
            bar.advance(case.n_arms + 10)
    best = [int(np.argmin(row)) for row in fixed]
    single = int(np.argmin(np.log(np.maximum(fixed, 1.0)).mean(axis=0)))
    columns = [
        [known, unknown, row[single], paper]
        for (known, unknown, paper), row in zip(others, fixed, strict=True)
    ]
    return Study(
        cases,
        [(str(FIXED[k]), float(row[k])) for k, row in zip(best, fixed, strict=True)],
        np.array(columns),
        str(FIXED[single]),
        horizon,
        replications,
    )


def ratios(study: Study) -> NDArray[np.float64]:
    """Regret of each contender over that of the best choice in hindsight, (instances, contenders)."""
    return np.asarray(study.regret / np.maximum([value for _, value in study.hindsight], 1.0)[:, None])


def table(study: Study) -> str:
    """The study as text: regret on each instance, then geometric mean and worst ratio to hindsight."""
    short = ("gap known", "unknown", "single", "paper")
    lines = [
        f"Mean regret after {study.horizon:,} steps, {study.replications} runs. Hindsight: the best of {len(FIXED)} fixed "
        "choices on that instance, seen these runs.",
        f"{'instance':<28}{'hindsight':>10}"
        + "".join(f"{name:>11}" for name in short)
        + "   best in hindsight",
    ]
    for case, (name, value), row in zip(study.instances, study.hindsight, study.regret, strict=True):
        label = f"{case.shape}, K={case.n_arms}, gap {case.gap:g}"
        lines.append(f"{label:<28}{value:>10,.0f}" + "".join(f"{x:>11,.0f}" for x in row) + f"   {name}")
    lines.append(f"single fixed choice, best over all instances: {study.single}")
    ratio = ratios(study)
    for position, name in enumerate(CONTENDERS):
        column = ratio[:, position]
        lines.append(
            f"{name:<26} {np.exp(np.log(column).mean()):6.2f} times the regret of hindsight (geometric mean), "
            f"{column.max():.1f} at worst"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arms", type=int, nargs="*", default=[3, 20, 100])
    parser.add_argument("--gap", type=float, nargs="*", default=[0.1, 0.2, 0.4])
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(table(run_study(given.arms, given.gap, given.horizon, given.replications, given.seed)))
