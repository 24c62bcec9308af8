"""How often the 95 % intervals of a stored panel cover the truth: the panel is the world, panels are drawn from it.

Each stratum of a line is resampled with replacement to its own size; the mean of the whole panel is the truth. Prints, line by
line, how often the interval of the mean and that of the difference to the first line cover it, beside what 20 plain
runs would have done.

    python benchmarks/interval_coverage.py RESULTS-FOLDER facebook-comparison-v2 --panels 1000
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from abex.lab.experiments import Experiment, collect
from abex.lab.experiments.outcomes import MIN_RUNS, LineResult
from abex.lab.results import Store
from abex.support.intervals import Strata, difference_of, mean_of
from abex.support.randomness import stream


def resampled(strata: Strata, rng: np.random.Generator) -> np.ndarray:
    """Runs drawn with replacement within each stratum."""
    drawn = np.zeros(strata.of.size, np.int64)
    for stratum in range(strata.weight.size):
        here = np.flatnonzero(strata.of == stratum)
        drawn[here] = rng.choice(here, here.size)
    return drawn


def coverage(
    line: LineResult, first: LineResult, panels: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Shares of panels whose intervals cover: of the mean, of the difference to ``first``, of the mean of 20 plain runs."""
    strata = line.strata or Strata.one(line.final.size)
    others = first.strata or Strata.one(first.final.size)
    common = np.isin(line.replications, first.replications)
    place = {run: at for at, run in enumerate(first.replications)}
    mean = mean_of(line.final, strata).mean
    gap = mean - mean_of(first.final, others).mean
    weights = strata.of_runs()
    inside = np.zeros(3)
    for _ in range(panels):
        picked = resampled(strata, rng)
        low, high = mean_of(line.final[picked], strata, MIN_RUNS).interval()
        inside[0] += low <= mean <= high
        # a run that both have is drawn for both: they stay paired
        theirs = resampled(others, rng)
        for at in np.flatnonzero(common):
            run = place.get(line.replications[picked[at]])
            if run is not None:
                theirs[place[line.replications[at]]] = run
        low, high = difference_of(
            line.final[picked],
            line.replications,
            first.final[theirs],
            first.replications,
            strata,
            others,
            MIN_RUNS,
        ).interval()
        inside[1] += low <= gap <= high
        few = rng.choice(line.final, 20, p=weights / weights.sum())
        low, high = mean_of(few).interval()
        inside[2] += low <= mean <= high
    return tuple(inside / panels)  # type: ignore[return-value]


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("experiments", nargs="+")
    parser.add_argument("--panels", type=int, default=1000)
    asked = parser.parse_args()
    rng = stream(1, "coverage")
    print(f"{'line':28s} {'runs':>7s} {'mean':>7s} {'difference':>11s} {'20 runs':>8s}")
    with Store(asked.results / "cells.sqlite") as store:
        for name in asked.experiments:
            outcome = collect(Experiment.from_json(store.experiments()[name]), store)
            print(name)
            seen: set[str] = set()
            for line in outcome.lines:
                if line.played in seen:
                    continue
                seen.add(line.played)
                mean, difference, few = coverage(line, outcome.lines[0], asked.panels, rng)
                gap = f"{difference:11.1%}" if line is not outcome.lines[0] else " " * 11
                print(f"{line.label:28s} {line.final.size:7,d} {mean:7.1%} {gap} {few:8.1%}", flush=True)


if __name__ == "__main__":
    main()
