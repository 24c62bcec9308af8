"""`abex simulate`: a comparison from the command line."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from abex.cli.help import (
    WholeNumber,
    can_be_written,
    check_graph_is_there,
    examples,
    load_own,
    number_option,
    own_option,
    print_table,
    whole,
)
from abex.environments import Bernoulli, SpecialArm, known_environments
from abex.graphs import Graph
from abex.simulation.arguments import MAX_HORIZON
from abex.support.errors import UserError, real_number, whole_number
from abex.support.parameters import MOST_ARMS, parse_value
from abex.support.randomness import stream

DEFAULT = ("Evidence", "Thompson", "UCB1", "ABE", "Uniform")


@click.command(
    epilog=examples(
        "abex simulate --policy Evidence --policy Thompson --arms 0.75,0.5x9 --horizon 1e5",
        "abex simulate --arms special --graph edges.txt --policy Thompson --policy ELP",
        'abex simulate --own mine.py --policy "MyPolicy(scale=2)" --policy Evidence',
    ),
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help='A policy, such as "UCB1(scale=0.5)" or TS-N; repeat for more.',
)
@own_option
@click.option(
    "--environment",
    "world",
    help='Where to play instead of --arms: "Beta([0.6, 0.4])", or one of your own.',
)
@click.option(
    "--arms",
    default="0.75,0.5x9",
    show_default=True,
    help="Means of rewards of 0 and 1: 0.75,0.5x9 or random:1000 (uniform, seeded).",
)
@click.option(
    "--graph",
    "edges",
    help="File of edges (SNAP, .gz): what a pull shows; --arms special hides one better arm in it.",
)
@click.option(
    "--delay",
    help='How late rewards come: "Geometric(200)", "Fixed(50)", "Uniform(0, 400, never=0.1)", or 50.',
)
@number_option("--batch", 1, "Rewards are learned after every so many decisions.")
@number_option("--horizon", 10_000, "Steps; 1e5 is understood.", most=MAX_HORIZON)
@number_option("--replications", 100, "Independent repetitions.")
@number_option("--seed", 0, "Names all random numbers.", least=0)
@click.option(
    "--workers",
    type=WholeNumber(1),
    default=None,
    help="Threads; all cores unless given. The numbers do not depend on it.",
)
@click.option(
    "--out",
    default="abex-simulate",
    show_default=True,
    help="Name of the files: figure (.png), curves (.npz), table (.csv).",
)
def command(
    policies: tuple[str, ...], own: tuple[str, ...], world: str | None, arms: str,
    edges: str | None, delay: str | None, batch: int, horizon: int, replications: int, seed: int,
    workers: int | None, out: str,
) -> None:  # fmt: skip
    """Compare policies on arms with the given means: a table, a figure and the numbers.

    All policies face the same rewards, so their differences are paired.
    """
    from abex.simulation import simulate
    from abex.simulation.arguments import as_policies

    load_own(own)
    graph = None if edges is None else Graph.read(edges)
    if world is not None:
        environment: Any = parse_environment(world)
    elif arms == "special":
        if graph is None:
            raise UserError(
                "--arms special hides one better arm among the nodes of a graph: pass --graph FILE"
            )
        environment = SpecialArm(graph.n_arms)
    else:
        environment = Bernoulli(parse_arms(arms, seed))
    chosen = as_policies(policies or DEFAULT)
    for policy in chosen:
        check_graph_is_there(policy, graph)
    target = Path(out)
    can_be_written(out)
    began = time.monotonic()
    curves = simulate(
        chosen, environment, graph=graph, delay=delay, batch=batch, horizon=horizon, replications=replications, seed=seed,
        workers=workers,
    )  # fmt: skip
    rows = summary_rows(curves)
    kind = "Bernoulli" if world is None else type(environment).__name__
    where = f"{environment.n_arms} {kind} arms" + ("" if graph is None else f", {graph.n_edges} edges")
    where += f", delay {delay}" * (delay is not None) + f", batches of {batch}" * (batch > 1)
    title = f"{where}, horizon {horizon:,}, {replications:,} replications, {time.monotonic() - began:.1f} s"
    columns = ("policy", "mean regret", "95 % interval", "median", "optimal pulls", "ns/step", "remarks")
    print_table(title, columns, rows, (1, 2, 3, 4, 5))
    curves.plot(target.with_name(f"{target.name}.png"))
    curves.save(target.with_name(f"{target.name}.npz"))
    write_table(target.with_name(f"{target.name}.csv"), curves)
    click.echo(f"wrote {out}.png, {out}.npz and {out}.csv")


def parse_environment(text: str) -> Any:
    """The environment ``Name(parameter=value, ...)``.

    >>> parse_environment("Bernoulli([0.9, 0.5])").n_arms
    2
    """
    hint = "; `abex list environments` shows all"
    known = known_environments(installed=True)
    return parse_value(text, "environment", known, example="Beta([0.6, 0.4])", hint=hint)


def parse_arms(text: str, seed: int) -> Any:
    """Means from ``0.75,0.5x9`` or ``random:K``.

    >>> parse_arms("0.75,0.5x3", 0)
    [0.75, 0.5, 0.5, 0.5]
    """
    if text.startswith("random:"):
        return stream(seed, "arms").random(
            whole("--arms random:", text.removeprefix("random:"), 1, MOST_ARMS)
        )
    means: list[float] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(?:x\s*(\d{1,20}))?\s*", part)
        if match is None:
            raise UserError(
                f"cannot read --arms {text!r} at {part!r}: write means such as 0.75,0.5x9, or random:1000"
            )
        try:
            mean = float(match[1])
        except ValueError:
            raise UserError(f"cannot read --arms {text!r}: {match[1]!r} is not a number") from None
        mean = real_number("a mean of --arms", mean, least=0.0, most=1.0)
        means += [mean] * whole_number("a repetition in --arms", int(match[2] or 1), least=1, most=MOST_ARMS)
    return means


def summary_rows(curves: Any) -> list[tuple[str, ...]]:
    """A row for each policy, least mean regret first; a run too short to be timed has no speed.

    The median stands beside the mean: a rare disaster, one run in a hundred, may decide a mean and leaves a median as it is.
    """
    rows: list[tuple[str, ...]] = []
    for name, mean, interval, rate in curves.table():
        median = f"{float(curves.quantile(name, 0.5)[-1]):.1f}"
        speed = float(np.median(curves.nanoseconds[curves.index(name)]))
        pace = f"{speed:.0f}" if speed >= 0.5 else "-"  # too short a run for the clock
        report = ", ".join(f"{key.replace('_', ' ')} {v:g}" for key, v in curves.report(name).items())
        rows.append((name, mean, interval, median, rate, pace, report))
    return rows


def write_table(path: Path, curves: Any) -> None:
    """Mean and interval at every checkpoint as CSV."""
    from abex.support.files import write_atomically

    lines = ["policy,step,regret,low,high,optimal_pull_rate"]
    for name in curves.policies:
        low, high = curves.band(name)
        quoted = '"' + name.replace('"', '""') + '"'
        rate = curves.optimal_pull_rate(name)
        columns = zip(curves.checkpoints, curves.mean(name), low, high, rate, strict=True)
        lines += [f"{quoted},{step},{m:.10g},{a:.10g},{b:.10g},{s:.6g}" for step, m, a, b, s in columns]
    write_atomically(path, ("\n".join(lines) + "\n").encode())
