"""`abex arena`: every policy, or one's own, on the instances of a grid, and the scores."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from abex.cli.help import WholeNumber, examples, load_own, own_option
from abex.cli.sweep import SweepReporter, open_store, work_options
from abex.support.extras import demand


@click.command(
    epilog=examples(
        "abex arena --policy Thompson --policy Evidence",
        "abex arena --grid train --own mine.py --policy MyPolicy --policy all",
        "abex arena --group identification",
    ),
)
@click.option(
    "--grid",
    type=click.Choice(("train", "test")),
    default="test",
    show_default=True,
    help="Where to play: choose parameters on train, look at test once.",
)
@click.option(
    "--group",
    default=None,
    help="Only one group of instances: stochastic, graphs, late, changing, adversarial, shop, boosting; or identification, which "
    "is scored by the time until the winner is known.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="A policy to play beside uniform choice; repeat for more, `all` for all of the library, which play unless one is given.",
)
@own_option
@click.option(
    "--replications", default=None, type=WholeNumber(1), help="At most so many of each; 200 unless given."
)
@click.option("--dry-run", is_flag=True, help="Say what would be played; compute nothing.")
@work_options
def command(
    grid: str, group: str | None, policies: tuple[str, ...], own: tuple[str, ...], replications: int | None,
    dry_run: bool,
    folder: str, workers: int | None, executor: str, as_json: bool,
) -> None:  # fmt: skip
    """Play policies against each other on many instances, score them, and draw the page of all scores."""
    demand("report")
    from abex.lab.arena import study
    from abex.lab.arena.guide import answers
    from abex.lab.arena.identification import stop_table, stops_of
    from abex.lab.arena.instances import IDENTIFICATION
    from abex.lab.arena.page import markdown_table, write_page
    from abex.lab.arena.score_tables import guide_table
    from abex.lab.arena.scores import score_all
    from abex.lab.sweeps.executors import executor_of
    from abex.lab.sweeps.sweep import raise_on_failure

    most = study.REPLICATIONS if replications is None else replications
    entries = chosen(policies, load_own(own), identifies=group == IDENTIFICATION)
    instances, missing = study.playable(study.instances_of(grid, group))
    name = f"{study.NAME}-{grid}"
    if missing:
        click.echo(f"abex: without data, not played: {', '.join(missing)}; see `abex data`", err=True)
    if dry_run:
        plan(entries, instances, grid, most)
        return
    with open_store(folder) as store:
        reporter = SweepReporter(name, as_json)
        with executor_of(executor, workers) as computing:
            status = study.run(
                entries, instances, grid, store, computing, lambda state: reporter("running", state), most
            )
        reporter.finish([status])
        raise_on_failure(status)
        if group == IDENTIFICATION:
            stops = study.collect(entries, instances, grid, store, most, stops_of)
            show_stops(stop_table(stops, entries, instances), Path(folder), f"{name}-{group}", as_json)
            return
        results = study.collect(entries, instances, grid, store, most)
    scores = score_all(results, instances)
    paths = write_page(Path(folder), name, results, entries, instances)
    if as_json:
        for score in scores:
            click.echo(json.dumps(dataclasses.asdict(score)))
    else:
        show(f"{name}: {len(instances)} instances", scores)
        click.echo(markdown_table(guide_table(answers(results, entries, instances))))
        click.echo(f"page: {paths[0]}; numbers: {paths[1]}; tables: {paths[2]}")


def chosen(policies: tuple[str, ...], code: dict[str, str], identifies: bool) -> list[Any]:
    """The policies that a person asked for, uniform choice among them; all of the library unless one did."""
    from abex.lab.arena.study import entry_of, library

    every = not policies or "all" in policies
    found = library(identifies) if every else [entry_of("Uniform")]
    return list(dict.fromkeys([*found, *(entry_of(name, code) for name in policies if name != "all")]))


def plan(entries: list[Any], instances: list[Any], grid: str, most: int) -> None:
    """How many cells and runs there are."""
    from abex.lab.arena import study

    pairs = [(e, i) for e in entries for i in instances if study.can_play(e.policy, i)]
    runs = sum(study.replications_for(e.policy, i, most) for e, i in pairs)
    steps = sum(study.replications_for(e.policy, i, most) * i.horizon for e, i in pairs)
    click.echo(
        f"{grid}: {len(entries)} policies, {len(instances)} instances, {len(pairs)} pairs, {runs:,} runs, {steps:,} steps"
    )


def show_stops(frame: Any, folder: Path, name: str, as_json: bool) -> None:
    """The table of identification, on the screen and as a file."""
    from abex.cli.help import print_table
    from abex.lab.arena.page import markdown_table, write

    write(folder / f"{name}.md", markdown_table(frame))
    if as_json:
        click.echo(frame.to_json(orient="records", lines=True).rstrip())
    else:
        print_table(name, frame.columns, frame.itertuples(index=False), (2, 4, 5, 6))
        click.echo(f"table: {folder / name}.md")


def show(title: str, scores: list[Any]) -> None:
    """The table of scores."""
    from abex.cli.help import print_table
    from abex.lab.arena.score_tables import score_table

    frame = score_table(scores)
    print_table(title, frame.columns, frame.itertuples(index=False), (1, 2, 3))
