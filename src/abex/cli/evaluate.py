"""`abex evaluate`: what other policies would have earned, from the log of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from abex.cli.help import (
    can_be_written,
    check_graph_is_there,
    examples,
    load_own,
    own_option,
    print_table,
    whole,
)
from abex.support.errors import UserError, one_of, real_number

if TYPE_CHECKING:
    from abex.evaluation.evaluating import EstimateResult

COLUMNS = ["policy", "estimator", "value", "low", "high", "effective", "largest_weight", "remark"]


@click.command(
    epilog=examples(
        'abex evaluate clicks.csv --policy Uniform --policy "Thompson" --out clicks',
        'abex evaluate clicks.parquet --policy \'{"red": 0.5, "blue": 0.5}\' --estimator SNIPS',
        "abex evaluate bts-men.csv.gz --arms 34 --policy Uniform",
    ),
)
@click.argument("log")
@click.option(
    "--policy", "policies", multiple=True,
    help='A policy, such as "Thompson", or a distribution, {"red": 0.5, "blue": 0.5}; repeat for more. [default: Uniform]',
)  # fmt: skip
@click.option(
    "--estimator", "estimators", multiple=True,
    help="replay, IPS, SNIPS, direct, doubly robust or graph-IPS; repeat for more. All unless given.",
)  # fmt: skip
@click.option(
    "--arms", help="How many arms there are, called 0, 1, ..., where not all of them are in the log."
)
@click.option("--rewards", type=float, nargs=2, help="The range of rewards, such as 0 5; 0 1 unless given.")
@click.option(
    "--player", help="Name of a player, where LOG is the URL of its store, such as sqlite:///shop.db."
)
@click.option(
    "--learn", default=0.5, show_default=True, help="The part of the log from which a policy learns first."
)
@click.option(
    "--replay", "learning", is_flag=True, help="Also let each policy learn along the log, by rejection."
)
@click.option("--graph", "edges", help="File of edges, for policies that must know the feedback graph.")
@own_option
@click.option("--out", default=None, help="Name of the files to write: figure (.png) and table (.csv).")
def command(
    log: str, policies: tuple[str, ...], estimators: tuple[str, ...], arms: str | None,
    rewards: tuple[float, float] | None,
    player: str | None, learn: float, learning: bool, edges: str | None, own: tuple[str, ...], out: str | None,
) -> None:  # fmt: skip
    """Value policies on LOG, decisions of another policy with their probabilities and rewards: CSV, Parquet or dsjson.

    A policy learns from the first part of the log; what it has learned is valued on the rest. Where the log cannot answer, a
    sentence says why.
    """
    from abex.evaluation import Log, evaluate, replay
    from abex.evaluation.estimators import ESTIMATORS
    from abex.evaluation.evaluating import HEADINGS, EstimateResult
    from abex.graphs import Graph
    from abex.policies import parse_policy

    for name in estimators:
        one_of("estimator", name, ESTIMATORS)
    load_own(own)
    real_number("--learn", learn, least=0.0, most=1.0)
    if out is not None:
        can_be_written(out)
    chosen = [_policy(text) for text in policies or ("Uniform",)]
    names = None if arms is None else range(whole("--arms", arms, 1, 10**6))
    graph = None if edges is None else Graph.read(edges)
    if player is None and "://" in log:
        raise UserError(f"{log!r} is the URL of a store: --player says whose log it is")
    read = Log.read(log, arms=names) if player is None else _journal(log, player)
    for policy in chosen:
        if isinstance(policy, str):
            if policy in map(str, read.arms):
                always = json.dumps({policy: 1.0})
                raise UserError(
                    f"{policy!r} is an arm and no policy: --policy '{always}' values playing it always"
                )
            check_graph_is_there(parse_policy(policy), graph)
    rows: list[tuple[str, EstimateResult]] = []
    for policy in chosen:
        found = evaluate(
            read,
            policy,
            estimators=estimators or None,
            learn=learn,
            rewards=rewards,
            graph=graph,
        )
        name = found.policy if isinstance(policy, str) else json.dumps(policy)
        rows += [(name, one) for one in (*found.verdicts, found.always)]
        if learning and isinstance(policy, str):
            lived = replay(read, policy, graph=graph)
            remark = lived.reason or f"while it learns, over its first {lived.steps:,} steps"
            counted = float(lived.steps), 1.0, remark, lived.value
            rows.append((name, EstimateResult("replay, learning", lived.value, lived.interval, *counted)))
    title = f"{len(read):,} decisions on {read.n_arms} arms, 95 % intervals; {found.note}"
    print_table(title, ("policy", *HEADINGS), [(name, *one.cells()) for name, one in rows], (2, 3, 4, 5))
    if out is not None:
        _write(rows, read, out)


def _policy(text: str) -> Any:
    """A policy's text, or the distribution of a JSON object."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise UserError(
            f"cannot read the distribution {text!r}: write " + '{"red": 0.5, "blue": 0.5}'
        ) from None


def _journal(url: str, name: str) -> Any:
    """The log of a shared player."""
    from abex.evaluation import Log
    from abex.players import Player

    with Player.open(url, name) as player:
        return Log.from_player(player)


def _write(rows: list[tuple[str, EstimateResult]], log: Any, out: str) -> None:
    """The figure and the table."""
    from pandas import DataFrame

    from abex.support.files import table_bytes, write_atomically

    numbers = [
        (name, one.estimator, one.value, *one.interval, one.effective, one.largest_weight, one.reason)
        for name, one in rows
    ]
    target = Path(out)
    write_atomically(
        target.with_name(f"{target.name}.csv"), table_bytes(DataFrame(numbers, columns=COLUMNS), ".csv")
    )
    policy_values(rows, float(log.reward.mean()), target.with_name(f"{target.name}.png"))
    click.echo(f"wrote {out}.png and {out}.csv")


def policy_values(rows: list[tuple[str, EstimateResult]], logged: float, path: Path) -> None:
    """Values of policies from a log with their intervals, a line each; ``logged`` is the mean reward of the log itself."""
    from abex.support.figures import canvas, entitle, save, style_of

    figure, axes = canvas(figsize=(7.2, 1.4 + 0.32 * len(rows)))
    policies = list(dict.fromkeys(name for name, _ in rows))
    for place, (name, one) in enumerate(rows):
        y, look = len(rows) - 1 - place, style_of(policies.index(name))
        if one.value == one.value:
            axes.plot(one.interval, [y, y], color=look["color"], linewidth=1.6)
            axes.plot([one.value], [y], marker="o", markersize=5, color=look["color"])
        else:
            axes.text(
                logged, y, "  the log cannot tell", va="center", fontsize=8.5, color="#555555", style="italic"
            )
    axes.axvline(logged, color="#555555", linewidth=0.9, linestyle=":")
    names = [f"{name[:36]}, {one.estimator}" for name, one in reversed(rows)]
    axes.set_yticks(range(len(rows)), names, fontsize=8.5)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel("mean reward per decision")
    entitle(axes, "Value of policies from the log", "95 % intervals; dotted: mean reward of the log itself")
    save(figure, path)
