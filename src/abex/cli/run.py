"""`abex run`: one experiment, built-in or a person's own file."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import click

from abex.cli.experiment_options import draw_figures, open_store, work_options
from abex.cli.help import examples
from abex.cli.progress_reporter import ProgressReporter
from abex.cli.signals import exit_on_signal

if TYPE_CHECKING:
    from abex.lab.sweeps.task import Task


@click.command(
    epilog=examples("abex run facebook-comparison", "abex run mine.toml --dry-run"),
)
@click.argument("what", metavar="NAME|FILE.toml")
@click.option("--dry-run", is_flag=True, help="List the cells and estimate the time; compute nothing.")
@work_options
@exit_on_signal()
def command(what: str, dry_run: bool, folder: str, **work: Any) -> None:
    """Run one experiment: compute what is missing, draw its figures, judge its claims."""
    experiment = find(what)
    with open_store(folder) as store:
        if dry_run:
            show_plan(experiment, store, work["as_json"])
            return
        outcome = run_one(experiment, store, **work)
        if work["as_json"]:
            print_events(outcome)
        elif not work["quiet"]:
            print_losses(outcome)
            print_claims(outcome, measured=True)
        paths = draw_figures(outcome, folder, False if work["quiet"] or work["as_json"] else None)
        if paths and not (work["quiet"] or work["as_json"]):
            click.echo(
                f"figures: {paths[0].with_suffix('')}.*, {paths[-1].with_suffix('')}.*; `abex report` makes the page"
            )


def find(what: str) -> Any:
    """The experiment of a file, or the built-in one of that name."""
    from abex.lab.experiments import experiment_of, read_experiment

    return read_experiment(what) if what.endswith(".toml") or os.path.isfile(what) else experiment_of(what)


def run_one(
    experiment: Any,
    store: Any,
    workers: int | None,
    executor: str,
    quiet: bool,
    as_json: bool,
) -> Any:
    """Run an experiment with the options of the command line; returns its outcome."""
    from abex.lab.experiments import collect, run_experiment
    from abex.lab.sweeps.executors import executor_of
    from abex.lab.sweeps.sweep import raise_on_failure

    reporter = ProgressReporter(experiment.id, quiet, as_json)
    with executor_of(executor, workers) as computing:
        statuses = run_experiment(experiment, store, computing, reporter)
    reporter.finish(statuses)
    for status in statuses:
        raise_on_failure(status)
    return collect(experiment, store)


def show_plan(experiment: Any, store: Any, as_json: bool) -> float:
    """What a run would do; returns about how many seconds of CPU time it takes."""
    from abex.cli.output import duration, print_table
    from abex.lab.experiments.execution import plan

    rows = plan(experiment, store)
    seconds = math.fsum(row[4] for row in rows)
    if as_json:
        names = ("line", "policy", "cells", "missing", "cpu_seconds")
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
        return seconds
    shown = [(label, text, str(cells), str(missing), f"{s:.1f}") for label, text, cells, missing, s in rows]
    title = f"{experiment.id}: {experiment.title}, length {experiment.length:,}"
    print_table(title, ("line", "policy", "cells", "missing", "about CPU s"), shown, (2, 3, 4))
    click.echo(
        f"{sum(row[3] for row in rows)} cells to compute, {duration(seconds)} of CPU time once compiled"
    )
    return seconds


def print_events(outcome: Any) -> None:
    """The final losses and the verdicts, a JSON object a line."""
    from abex.lab.experiments.verdicts import judge

    for drawn in outcome.lines:
        click.echo(json.dumps(line_event(outcome.experiment.id, drawn, outcome.experiment.task)))
    for verdict in judge(outcome):
        event = {
            "experiment": outcome.experiment.id,
            "claim": verdict.claim.text,
            "answer": verdict.answer,
            "p": verdict.p,
        }
        click.echo(json.dumps({**event, "measured": verdict.measured}))


def print_losses(outcome: Any) -> None:
    """The final losses as a table."""
    from abex.cli.output import print_table

    task = outcome.experiment.task
    rows, spread = [], {}
    for drawn in outcome.lines:
        found, spread = drawn.estimate(), task.spread(drawn)
        low, high = found.interval()
        interval = f"{low:.2f} .. {high:.2f}" if math.isfinite(low) else "too few runs"
        numbers = (f"{found.mean:.2f}", interval, *spread.values(), f"{len(drawn.replications):,}")
        rows.append((drawn.label, drawn.policy, *numbers))
    loss = outcome.loss_name.split(",")[0].split(" (")[0]
    columns = ("line", "policy drawn", loss, "95 % interval", *spread, "runs")
    print_table(outcome.experiment.title, columns, rows, tuple(range(2, len(columns))))


def print_claims(outcome: Any, measured: bool = False) -> None:
    """A line for each claim: its verdict, the experiment and the claim; with what was ``measured`` where that is asked for."""
    from abex.lab.experiments.verdicts import OPEN, judge

    for verdict in judge(outcome):
        numbers = f" -- {verdict.measured}" if measured else ""
        click.echo(f"{verdict.answer:<{len(OPEN)}}  {outcome.experiment.id}: {verdict.claim.text}{numbers}")


def print_totals(outcomes: list[Any], quiet: bool, as_json: bool) -> None:
    """How many claims stand once the verdicts are corrected across all of them."""
    from abex.lab.experiments.verdicts import PLURAL, judge_all

    verdicts = [verdict for found in judge_all(outcomes) for verdict in found]
    if quiet or not verdicts:
        return
    counts = {answer: sum(v.overall == answer for v in verdicts) for answer in PLURAL}
    if as_json:
        click.echo(json.dumps({"claims": len(verdicts), "correction": "Holm", **counts}))
        return
    shown = ", ".join(f"{count} {PLURAL[answer]}" for answer, count in counts.items())
    click.echo(f"{len(verdicts)} claims, corrected across all of them (Holm): {shown}")


def line_event(experiment: str, drawn: Any, task: Task) -> dict[str, Any]:
    """What a line of an experiment came to, as plain values."""
    found = drawn.estimate()
    low, high = (float(bound) if math.isfinite(bound) else None for bound in found.interval())
    numbers = {
        "mean": float(found.mean),
        "low": low,
        "high": high,
        "median": drawn.quantile(0.5),
        "q95": drawn.quantile(0.95),
    }
    event = {
        "experiment": experiment,
        "line": drawn.label,
        "policy": drawn.policy,
        "played": drawn.played,
        **numbers,
    }
    return {**event, "runs": len(drawn.replications)} | task.numbers(drawn)
