"""`abex run`: one experiment, built-in or a person's own file."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import click

from abex.cli.stopping import promptly
from abex.cli.workplace import Teller, draw_figures, open_store, work_options


@click.command(
    epilog="Examples:  abex run facebook-comparison    abex run mine.toml --dry-run",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("what", metavar="NAME|FILE.toml")
@click.option("--dry-run", is_flag=True, help="List the cells and estimate the time; compute nothing.")
@work_options
@promptly()
def command(what: str, dry_run: bool, folder: str, **work: Any) -> None:
    """Run one experiment: compute what is missing, draw its figures, judge its claims."""
    experiment = find(what)
    with open_store(folder) as store:
        if dry_run:
            show_plan(experiment, store, work["as_json"])
            return
        outcome = run_one(experiment, store, **work)
        say_verdicts(outcome, work["quiet"], work["as_json"])
        paths = draw_figures(outcome, folder)
        if paths and not (work["quiet"] or work["as_json"]):
            click.echo(
                f"figures: {paths[0].with_suffix('')}.*, {paths[-1].with_suffix('')}.*; `abex report` makes the page"
            )


def find(what: str) -> Any:
    """The experiment of a file, or the built-in one of that name."""
    from abex.experiments import experiment_of, read_experiment

    return read_experiment(what) if what.endswith(".toml") or os.path.isfile(what) else experiment_of(what)


def run_one(
    experiment: Any,
    store: Any,
    workers: int | None,
    executor: str,
    cluster: str | None,
    quiet: bool,
    as_json: bool,
) -> Any:
    """Run an experiment with the options of the command line; returns its outcome."""
    from abex.experiments import collect, run_experiment
    from abex.sweeps.sweep import complain, executor_of

    teller = Teller(experiment.id, quiet, as_json)
    states = run_experiment(experiment, store, executor_of(executor, workers, cluster), teller)
    teller.finish(states)
    for state in states:
        complain(state)
    return collect(experiment, store)


def show_plan(experiment: Any, store: Any, as_json: bool) -> float:
    """What a run would do; returns about how many seconds of CPU time it takes."""
    from abex.cli.output import console, table
    from abex.experiments.running import plan

    rows = plan(experiment, store)
    seconds = math.fsum(row[4] for row in rows)
    if as_json:
        names = ("line", "policy", "cells", "missing", "cpu_seconds")
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
        return seconds
    shown = [(label, text, str(cells), str(missing), f"{s:.1f}") for label, text, cells, missing, s in rows]
    title = f"{experiment.id}: {experiment.title}, length {experiment.length:,}"
    console().print(table(title, ("line", "policy", "cells", "missing", "about CPU s"), shown, (2, 3, 4)))
    click.echo(f"{sum(row[3] for row in rows)} cells to compute, about {seconds:.0f} s of CPU time")
    return seconds


def say_verdicts(outcome: Any, quiet: bool, as_json: bool) -> None:
    """The final losses and the verdicts."""
    from abex.cli.output import console, table
    from abex.experiments.outcomes import interval
    from abex.experiments.verdicts import judge

    if quiet:
        return
    verdicts = judge(outcome)
    if as_json:
        for verdict in verdicts:
            event = {
                "experiment": outcome.experiment.id,
                "claim": verdict.claim.text,
                "answer": verdict.answer,
            }
            click.echo(json.dumps({**event, "measured": verdict.measured}))
        return
    rows = []
    for drawn in outcome.lines:
        low, high = interval(drawn.final)
        numbers = (
            f"{drawn.final.mean():.2f}",
            f"{float(low):.2f} .. {float(high):.2f}",
            str(len(drawn.replications)),
        )
        rows.append((drawn.label, drawn.policy, *numbers))
    columns = (
        "line",
        "policy drawn",
        outcome.loss_name.split(",")[0].split(" (")[0],
        "95 % interval",
        "runs",
    )
    console().print(table(outcome.experiment.title, columns, rows, (2, 3, 4)))
    for verdict in verdicts:
        click.echo(f"{verdict.answer.upper()}: {verdict.claim.text} -- {verdict.measured}")
