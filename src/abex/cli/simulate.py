"""`abex simulate`: a comparison from the command line."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from abex.cli.output import can_be_written, console, table
from abex.cli.stopping import promptly
from abex.environments import Bernoulli, Beta, ClippedGaussian, SpecialArm
from abex.errors import UserError, real_number, whole_number
from abex.graphs import Graph
from abex.policies.base import MOST_ARMS
from abex.randomness import stream

LAWS = {"bernoulli": Bernoulli, "beta": Beta, "gaussian": ClippedGaussian}
DEFAULT = ("ABE(eta=1.0)", "Thompson", "UCB1", "Uniform")


@click.command(
    epilog='Example:  abex simulate --policy "ABE(eta=1)" --policy Thompson --arms 0.75,0.5x9 --horizon 1e5',
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--policy", "policies", multiple=True, help='A policy, such as "ABE(eta=1)" or TS-N; repeat for more.'
)
@click.option(
    "--arms",
    default="0.75,0.5x9",
    show_default=True,
    help="Means: 0.75,0.5x9 or random:1000 (uniform, seeded).",
)
@click.option(
    "--rewards",
    type=click.Choice(list(LAWS)),
    default="bernoulli",
    show_default=True,
    help="Law of the rewards.",
)
@click.option(
    "--graph",
    "edges",
    help="File of edges (SNAP, .gz): what a pull shows; --arms special hides one better arm in it.",
)
@click.option("--directed", is_flag=True, help='A line "u v" of --graph says only that pulling u shows v.')
@click.option("--horizon", default="10000", show_default=True, help="Steps; 1e5 is understood.")
@click.option("--replications", default="100", show_default=True, help="Independent repetitions.")
@click.option("--seed", default="0", show_default=True, help="Names all random numbers.")
@click.option(
    "--workers", default=None, help="Threads; all cores unless given. The numbers do not depend on it."
)
@click.option("--level", default=0.95, show_default=True, help="Confidence of intervals and bands.")
@click.option(
    "--out",
    default="abex-simulate",
    show_default=True,
    help="Name of the files: figure (.png), curves (.npz), table (.csv).",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@promptly()
def command(
    policies: tuple[str, ...], arms: str, rewards: str, edges: str | None, directed: bool,
    horizon: str, replications: str, seed: str,
    workers: str | None, level: float, out: str, quiet: bool,
) -> None:  # fmt: skip
    """Compare policies on arms with the given means: a table, a figure and the numbers.

    All policies face the same rewards, so their differences are paired.
    """
    from abex.simulation import simulate

    numbers: dict[str, Any] = {
        "horizon": _whole("--horizon", horizon),
        "replications": _whole("--replications", replications),
        "seed": _whole("--seed", seed),
        "workers": None if workers is None else _whole("--workers", workers),
    }
    graph = None if edges is None else Graph.read(edges, directed=directed)
    if arms == "special":
        if graph is None:
            raise UserError(
                "--arms special hides one better arm among the nodes of a graph: pass --graph FILE"
            )
        if rewards != "bernoulli":
            raise UserError(f"--arms special pays 0 or 1: leave --rewards {rewards} out, or name the means")
        environment: Any = SpecialArm(graph.n_arms)
    else:
        environment = LAWS[rewards](parse_arms(arms, numbers["seed"] or 0))
    target = Path(out)
    can_be_written(out)
    began = time.monotonic()
    curves = simulate(
        policies or DEFAULT, environment, graph=graph, progress=False if quiet else None, **numbers
    )
    rows = summary_rows(curves, level)
    where = f"{environment.n_arms} {rewards} arms" + ("" if graph is None else f", {graph.n_edges} edges")
    title = f"{where}, horizon {numbers['horizon']}, {numbers['replications']} replications, {time.monotonic() - began:.1f} s"
    console().print(
        table(
            title,
            ["policy", f"regret ({level:.0%} interval)", "best arm", "ns/step", "remarks"],
            rows,
            (1, 2, 3),
        )
    )
    curves.plot(target.with_name(f"{target.name}.png"), level=level)
    curves.save(target.with_name(f"{target.name}.npz"))
    write_table(target.with_name(f"{target.name}.csv"), curves, level)
    click.echo(f"wrote {out}.png, {out}.npz and {out}.csv")


def parse_arms(text: str, seed: int) -> Any:
    """Means from ``0.75,0.5x9`` or ``random:K``.

    >>> parse_arms("0.75,0.5x3", 0)
    [0.75, 0.5, 0.5, 0.5]
    """
    if text.startswith("random:"):
        count = whole_number(
            "--arms random:", _whole("--arms random:", text.removeprefix("random:")), least=1, most=MOST_ARMS
        )
        return stream(seed, "arms").random(count)
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


def _whole(name: str, text: str) -> int:
    try:
        value: Any = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise UserError(f"{name} must be a whole number, got {text!r}") from None
    return whole_number(name, value, least=0)


def summary_rows(curves: Any, level: float) -> list[tuple[str, ...]]:
    """A row for each policy, least regret first."""
    rows: list[tuple[str, ...]] = []
    for name in sorted(curves.policies, key=lambda name: float(curves.mean(name)[-1])):
        mean = float(curves.mean(name)[-1])
        low, high = (float(side[-1]) for side in curves.band(name, level))
        interval = f"{mean:.1f} [{low:.1f}, {high:.1f}]" if low == low else f"{mean:.1f}"
        speed = float(np.median(curves.nanoseconds[curves.index(name)]))
        remarks = ", ".join(
            f"{key.replace('_', ' ')} {value:g}" for key, value in curves.report(name).items()
        )
        rows.append((name, interval, f"{float(curves.best_share(name)[-1]):.1%}", f"{speed:.0f}", remarks))
    return rows


def write_table(path: Path, curves: Any, level: float) -> None:
    """Mean and interval at every checkpoint as CSV."""
    from abex.files import write_atomically

    lines = ["policy,step,regret,low,high,best_share"]
    for name in curves.policies:
        low, high = curves.band(name, level)
        quoted = '"' + name.replace('"', '""') + '"'
        columns = zip(curves.checkpoints, curves.mean(name), low, high, curves.best_share(name), strict=True)
        lines += [f"{quoted},{step},{m:.10g},{a:.10g},{b:.10g},{s:.6g}" for step, m, a, b, s in columns]
    write_atomically(path, ("\n".join(lines) + "\n").encode())
