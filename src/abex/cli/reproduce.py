"""`abex reproduce`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from abex.cli.experiment_options import can_write, draw_figures, open_store, work_options
from abex.cli.help import examples
from abex.cli.output import duration
from abex.cli.run import print_claims, print_events, print_totals, run_one, show_plan
from abex.cli.signals import exit_on_signal
from abex.support.errors import UserError
from abex.support.extras import demand


@click.command(epilog=examples("abex reproduce --quick", "abex reproduce --only facebook --workers 4"))
@click.option("--quick", is_flag=True, help="Small scale, built-in data, no download: a minute.")
@click.option("--dry-run", is_flag=True, help="List the cells and estimate the time; compute nothing.")
@click.option("--only", multiple=True, help="Experiments whose name contains this; repeat for more.")
@work_options
@exit_on_signal()
def command(quick: bool, dry_run: bool, only: tuple[str, ...], folder: str, **work: Any) -> None:
    """Run every experiment of the paper, draw its figures, judge its claims, write the report.

    What is stored is not computed again: after a kill, run the same command. Data that are missing are
    named, and the rest goes on.
    """
    demand("report")
    from abex.lab.experiments import known_experiments
    from abex.lab.report import write_report
    from abex.lab.sweeps.problems import MissingData

    builders = {
        name: build
        for name, build in known_experiments().items()
        if name.endswith("-quick") == quick and (not only or any(word in name for word in only))
    }
    if not builders:
        raise UserError(
            f"no experiment's name contains {' or '.join(map(repr, only))} (`abex list` shows all)"
        )
    skipped, outcomes = [], []
    seconds = 0.0
    with open_store(folder) as store:
        for name, build in builders.items():
            try:
                experiment = build()
            except MissingData as error:
                skipped.append(name)
                click.echo(f"abex: {name} is left out: {error}", err=True)
                continue
            if dry_run:
                seconds += show_plan(experiment, store, work["as_json"])
                continue
            outcome = run_one(experiment, store, **work)
            if work["as_json"]:
                print_events(outcome)
            elif not work["quiet"]:
                print_claims(outcome)
            draw_figures(outcome, folder, False if work["quiet"] or work["as_json"] else None)
            outcomes.append(outcome)
        if dry_run and not work["as_json"] and len(skipped) < len(builders):
            click.echo(
                f"in all {duration(seconds)} of CPU time once compiled (cells that panels share are counted in each)"
            )
        if not dry_run:
            print_totals(outcomes, work["quiet"], work["as_json"])
        if not dry_run and can_write(folder):
            size = write_report(store, Path(folder) / "report.html")
            if not (work["quiet"] or work["as_json"]):
                click.echo(
                    f"report: {Path(folder) / 'report.html'} ({size / 1e6:.1f} MB), figures: {Path(folder) / 'figures'}"
                )
    if len(skipped) == len(builders):
        raise UserError(
            f"nothing was run: the data of {'all ' * (len(skipped) > 1)}{len(skipped)} experiments are missing, "
            "as said above; `abex data` shows what there is"
        )
    if skipped:
        click.echo(
            f"abex: {len(skipped)} of {len(builders)} experiments were left out for want of data", err=True
        )
