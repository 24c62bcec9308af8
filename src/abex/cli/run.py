"""`abex run`: one experiment, built-in or a person's own file."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import click

from abex.cli.help import examples, print_table
from abex.cli.sweep import SweepReporter, can_write, open_store, work_options
from abex.support.errors import UserError


@click.command(
    epilog=examples("abex run facebook-comparison", "abex run mine.toml --dry-run"),
)
@click.argument("what", metavar="NAME|FILE.toml")
@click.option("--dry-run", is_flag=True, help="List the cells; compute nothing.")
@work_options
def command(what: str, dry_run: bool, folder: str, **work: Any) -> None:
    """Run one experiment: compute what is missing, draw its figures, judge its claims."""
    experiment = find(what)
    with open_store(folder) as store:
        if dry_run:
            print_plan(experiment, store, work["as_json"])
            return
        outcome = run_one(experiment, store, **work)
        if work["as_json"]:
            print_events(outcome)
        else:
            print_losses(outcome)
            print_claims(outcome, measured=True)
        paths = draw_figures(outcome, folder, work["as_json"])
        if paths and not work["as_json"]:
            click.echo(
                f"figures: {paths[0].with_suffix('')}.*, {paths[-1].with_suffix('')}.*; `abex report` makes the page"
            )


def find(what: str) -> Any:
    """The experiment of a file, or the built-in one of that name."""
    from abex.lab.experiments import experiment_of, read_experiment

    return read_experiment(what) if what.endswith(".toml") or os.path.isfile(what) else experiment_of(what)


def run_one(experiment: Any, store: Any, workers: int | None, executor: str, as_json: bool) -> Any:
    """Run an experiment with the options of the command line; returns its outcome."""
    from abex.lab.experiments import collect, run_experiment
    from abex.lab.sweeps.executors import executor_of
    from abex.lab.sweeps.sweep import raise_on_failure

    reporter = SweepReporter(experiment.id, as_json)
    with executor_of(executor, workers) as computing:
        statuses = run_experiment(experiment, store, computing, reporter)
    reporter.finish(statuses)
    for status in statuses:
        raise_on_failure(status)
    return collect(experiment, store)


def draw_figures(outcome: Any, folder: str, as_json: bool) -> list[Path]:
    """The figures of an experiment, in the results folder; none where it may only be read, which is said."""
    from abex.lab.experiments.panels import draw

    if not can_write(folder):
        click.echo(
            f"abex: {outcome.experiment.id} is not drawn: the folder {folder!r} may only be read", err=True
        )
        return []
    try:
        return draw(outcome, Path(folder) / "figures", False if as_json else None)
    except OSError as error:
        raise UserError(f"cannot write figures into {folder!r}: {error.strerror or error}") from error


def print_plan(experiment: Any, store: Any, as_json: bool) -> None:
    """What a run would compute, by line and policy."""
    from abex.lab.experiments.execution import plan

    rows, names = plan(experiment, store), ("line", "policy", "cells", "missing")
    if as_json:
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
        return
    print_table(f"{experiment.id}: {experiment.title}, length {experiment.length:,}", names, rows, (2, 3))
    click.echo(f"{sum(row[3] for row in rows)} cells to compute")


def print_events(outcome: Any) -> None:
    """The final losses and the verdicts, a JSON object a line."""
    from abex.lab.experiments.verdicts import judge

    for drawn in outcome.lines:
        click.echo(json.dumps(line_event(outcome, drawn)))
    for verdict in judge(outcome):
        event = {"claim": verdict.claim.text, "answer": verdict.answer, "p": verdict.p}
        click.echo(json.dumps({"experiment": outcome.experiment.id, **event, "measured": verdict.measured}))


def line_event(outcome: Any, drawn: Any) -> dict[str, Any]:
    """What a line of an experiment came to, as plain values."""
    found = drawn.estimate()
    low, high = (float(bound) if math.isfinite(bound) else None for bound in found.interval())
    names = {
        "experiment": outcome.experiment.id,
        "line": drawn.label,
        "policy": drawn.policy,
        "played": drawn.played,
    }
    numbers = {"mean": float(found.mean), "low": low, "high": high}
    quantiles = {"median": drawn.quantile(0.5), "q95": drawn.quantile(0.95)}
    more = outcome.experiment.task.numbers(drawn)
    return {**names, **numbers, **quantiles, "runs": len(drawn.replications), **more}


def print_losses(outcome: Any) -> None:
    """The final losses as a table."""
    from abex.lab.experiments.experiment import brief

    task = outcome.experiment.task
    rows, spread = [], {}
    for drawn in outcome.lines:
        found, spread = drawn.estimate(), task.spread(drawn)
        low, high = found.interval()
        interval = f"{low:.2f} .. {high:.2f}" if math.isfinite(low) else "too few runs"
        numbers = (f"{found.mean:.2f}", interval, *spread.values(), f"{len(drawn.replications):,}")
        rows.append((drawn.label, brief(drawn.policy), *numbers))
    loss = outcome.loss_name.split(",")[0].split(" (")[0]
    columns = ("line", "policy drawn", loss, "95 % interval", *spread, "runs")
    print_table(outcome.experiment.title, columns, rows, tuple(range(2, len(columns))))


def print_claims(outcome: Any, measured: bool = False) -> None:
    """A line for each claim: its verdict, the experiment and the claim; with what was ``measured`` where that is asked for."""
    from abex.lab.experiments.verdicts import OPEN, judge

    for verdict in judge(outcome):
        numbers = f" -- {verdict.measured}" if measured else ""
        click.echo(f"{verdict.answer:<{len(OPEN)}}  {outcome.experiment.id}: {verdict.claim.text}{numbers}")
