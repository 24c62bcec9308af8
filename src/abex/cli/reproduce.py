"""`abex reproduce`: the main job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from abex.cli.help import examples
from abex.cli.run import draw_figures, print_claims, print_events, print_plan, run_one
from abex.cli.sweep import can_write, open_store, work_options
from abex.support.errors import UserError
from abex.support.extras import demand


@click.command(epilog=examples("abex reproduce --quick", "abex reproduce --only facebook --workers 4"))
@click.option("--quick", is_flag=True, help="Small scale, built-in data, no download: a minute.")
@click.option("--dry-run", is_flag=True, help="List the cells; compute nothing.")
@click.option("--only", multiple=True, help="Experiments whose name contains this; repeat for more.")
@work_options
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
    as_json = work["as_json"]
    skipped, outcomes = [], []
    with open_store(folder) as store:
        for name, build in builders.items():
            try:
                experiment = build()
            except MissingData as error:
                skipped.append(name)
                click.echo(f"abex: {name} is left out: {error}", err=True)
                continue
            if dry_run:
                print_plan(experiment, store, as_json)
                continue
            outcome = run_one(experiment, store, **work)
            (print_events if as_json else print_claims)(outcome)
            draw_figures(outcome, folder, as_json)
            outcomes.append(outcome)
        print_totals(outcomes, as_json)
        if not dry_run and can_write(folder):
            report = Path(folder) / "report.html"
            size = write_report(store, report)
            if not as_json:
                click.echo(f"report: {report} ({size / 1e6:.1f} MB), figures: {Path(folder) / 'figures'}")
    if len(skipped) == len(builders):
        raise UserError(
            f"nothing was run: the data of {'all ' * (len(skipped) > 1)}{len(skipped)} experiments are missing, "
            "as said above; `abex data` shows what there is"
        )
    if skipped:
        click.echo(
            f"abex: {len(skipped)} of {len(builders)} experiments were left out for want of data", err=True
        )


def print_totals(outcomes: list[Any], as_json: bool) -> None:
    """How many claims stand once the verdicts are corrected across all of them."""
    from abex.lab.experiments.verdicts import PLURAL, judge_all

    verdicts = [verdict for found in judge_all(outcomes) for verdict in found]
    if not verdicts:
        return
    counts = {answer: sum(v.overall == answer for v in verdicts) for answer in PLURAL}
    if as_json:
        click.echo(json.dumps({"claims": len(verdicts), "correction": "Holm", **counts}))
        return
    shown = ", ".join(f"{count} {PLURAL[answer]}" for answer, count in counts.items())
    click.echo(f"{len(verdicts)} claims, corrected across all of them (Holm): {shown}")
