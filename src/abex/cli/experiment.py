"""`abex experiment`: who won an experiment, and whether one may stop."""

from __future__ import annotations

import json
from typing import Any

import click

from abex.cli.help import can_be_written, examples
from abex.support.errors import UserError


@click.command(
    epilog=examples(
        "abex experiment results.csv --arm variant --reward clicked --control A --report result.html",
        "abex experiment orders.parquet --arm variant --reward revenue --rewards 0 500",
        "abex experiment log.csv --arm item_id --reward click --probability propensity_score",
    ),
)
@click.argument("table")
@click.option("--arm", required=True, help="The column that says which arm a row had.")
@click.option("--reward", required=True, help="The column of what it paid.")
@click.option("--control", help="The arm that lifts are against.")
@click.option(
    "--probability",
    help='With which probability arms were chosen: a column, a number, or {"A": 0.9, "B": 0.1}; their shares unless given.',
)
@click.option("--rewards", type=float, nargs=2, help="The range of rewards, such as 0 500; 0 1 unless given.")
@click.option(
    "--risk", default=0.05, show_default=True, help="Share of such experiments that may name a wrong winner."
)
@click.option(
    "--at-least", type=float, help="The difference that matters: stop too where no arm is better by it."
)
@click.option("--out", help="Write the figure to this file (.png, .svg, .pdf).")
@click.option("--report", help="Write a page to this file (.html).")
def command(
    table: str, arm: str, reward: str, control: str | None, probability: str | None,
    rewards: tuple[float, float] | None,
    risk: float, at_least: float | None, out: str | None, report: str | None,
) -> None:  # fmt: skip
    """Say who won the experiment in TABLE, rows in the order of time: CSV or Parquet. One may look as often as one likes."""
    from abex.inference.experiment import experiment
    from abex.support.figures import kind_of
    from abex.support.reading import short_path
    from abex.support.table_files import read_columns

    for name in filter(None, (out, report)):
        can_be_written(name)
    if out is not None:
        kind_of(out)
    found = experiment(
        read_columns(table),
        arm=arm,
        reward=reward,
        control=control,
        probability=design_of(probability),
        rewards=rewards,
        risk=risk,
        at_least=at_least,
        where=short_path(table),
    )
    click.echo(str(found))
    if out is not None:
        found.plot(out)
    if report is not None:
        found.write(report)


def design_of(text: str | None) -> Any:
    """A number, the probability of each arm as JSON, or the name of a column."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    if not text.lstrip().startswith("{"):
        return text
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise UserError(f"cannot read the probabilities {text!r}: write " + '{"A": 0.9, "B": 0.1}') from None
