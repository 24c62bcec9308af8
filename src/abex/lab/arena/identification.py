"""Scores of the group *identification*: how long a policy plays until a test at risk .01 names the winner.

**Score on an instance**: the median stop over the least time that anybody needs (`abex.theory.garivier_kaufmann`); a
run without a winner counts as one that stops at the horizon, 15 times that time, and a median there is a lower bound. **Of a
policy**: geometric mean and largest score, with an interval by a bootstrap over instances and replications. **Regret at the
stop** is over that of uniform choice, geometric mean of the means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.lab.arena.instances import Instance
from abex.lab.arena.scores import BOOTSTRAPS, UNIFORM
from abex.lab.arena.study import RISK, Entry, method_of
from abex.lab.sweeps.problems import bandit_problem
from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.randomness import stream
from abex.theory import garivier_kaufmann

Floats = NDArray[np.float64]


class Stops(NamedTuple):
    """What came of the runs of a policy on an instance."""

    over_bound: Floats  # steps to the winner over the least time that anybody needs
    decided: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    regret: Floats


Results = Mapping[tuple[str, str], Stops]


def stops_of(instance: Instance, arrays: list[dict[str, NDArray[Any]]]) -> Stops:
    """The runs, from the arrays of all cells of a policy on an instance."""
    stop, winner, regret = (
        np.concatenate([one[name] for one in arrays]) for name in ("stop", "winner", "regret")
    )
    means = bandit_problem(instance.problem)[0].true_means
    decided = winner >= 0
    return Stops(
        stop / garivier_kaufmann(means, RISK), decided, decided & (winner != np.argmax(means)), regret
    )


def stop_table(results: Results, entries: Sequence[Entry], instances: Sequence[Instance]) -> Any:
    """A data frame of texts, a row for each policy that played all of the instances, soonest first."""
    with needed():
        from pandas import DataFrame

    names = [one.name for one in instances]
    if any((UNIFORM, name) not in results for name in names):
        raise UserError("nothing to score yet: uniform choice, the yardstick, has not played every instance")
    rows = []
    for entry in entries:
        if any((entry.label, name) not in results for name in names):
            continue
        runs = [results[entry.label, name] for name in names]
        medians = np.array([np.median(one.over_bound) for one in runs])
        low, high = np.quantile(_bootstrap(runs), (0.025, 0.975))
        losses = [
            one.regret.mean() / results[UNIFORM, name].regret.mean()
            for one, name in zip(runs, names, strict=True)
        ]
        undecided = 1.0 - np.mean(np.concatenate([one.decided for one in runs]))
        wrong = int(sum(one.wrong.sum() for one in runs))
        worst = int(medians.argmax())
        row = {
            "policy": entry.label,
            "test": method_of(entry.policy),
            "median stop over the least (95 % interval)": f"{_geometric(medians):.2f} ({low:.2f} to {high:.2f})",
            "worst": f"{medians[worst]:.1f} ({names[worst]})",
            "runs without a winner": f"{undecided:.1%}",
            "wrong winners": f"{wrong:,} of {sum(one.wrong.size for one in runs):,}",
            "regret over uniform's": f"{_geometric(np.array(losses)):.2f}",
        }
        rows.append((_geometric(medians), row))
    return DataFrame([row for _, row in sorted(rows, key=lambda pair: pair[0])])


def _geometric(values: Floats) -> float:
    return float(np.exp(np.log(values).mean()))


def _bootstrap(runs: Sequence[Stops]) -> Floats:
    """Geometric means of medians, of instances and replications drawn with replacement."""
    rng = stream(1, "identification bootstrap")
    medians = np.array(
        [np.median(rng.choice(one.over_bound, (BOOTSTRAPS, one.over_bound.size)), axis=1) for one in runs]
    )
    chosen = rng.integers(0, len(runs), (BOOTSTRAPS, len(runs)))
    return np.asarray(np.exp(np.log(medians[chosen, np.arange(BOOTSTRAPS)[:, None]]).mean(axis=1)))
