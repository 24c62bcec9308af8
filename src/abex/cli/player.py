"""`abex player`: shared players from the command line; what an application does by `Player.open`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from abex.cli.help import examples
from abex.support.errors import UserError, shown, whole_number

STORE = "sqlite:///players.db"
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@click.group(
    epilog=examples(
        'abex player create banner --arm red --arm green --store "sqlite:///shop.db"',
        "abex player decide banner",
        "abex player reward banner ID 1",
        "abex player summary banner",
    )
)
def command() -> None:
    """Players that many processes share: create, decide, reward, look."""


store_option = click.option(
    "--store",
    "url",
    default=STORE,
    show_default=True,
    envvar="ABEX_STORE",
    help="Where players are kept: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE ($ABEX_STORE).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of words.")


def duration(text: str) -> timedelta:
    """A time such as 30s or 2h.

    >>> duration("90m")
    datetime.timedelta(seconds=5400)
    """
    match = re.fullmatch(r"([0-9]+[.]?[0-9]*)(ms|s|m|h|d)", text)
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not 0.0 < seconds < 1e13:
        raise click.BadParameter(f"{shown(text)} is no time such as 30s, 15m, 2h or 7d")
    return timedelta(seconds=seconds)


def number_of_arms(text: str) -> int:
    """Of `--arms`; names there, as `Player.open` has them, get told their option."""
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(
            f"{shown(text)} is no whole number; give names one by one, such as --arm red --arm green"
        ) from None


@command.command(
    epilog=examples("abex player create banner --policy Thompson --arms 12 --window 30m --rewards 0 5")
)
@click.argument("name")
@click.option(
    "--policy",
    default="Evidence",
    show_default=True,
    help="Such as Thompson or UCB1; `abex list policies` has all.",
)
@click.option("--arm", "labels", multiple=True, help="The name of an arm; once for each.")
@click.option(
    "--arms",
    "n_arms",
    type=number_of_arms,
    metavar="INTEGER",
    help="The number of arms, which are then called 0, 1, ...",
)
@click.option("--horizon", type=float, help="Number of decisions, for policies that are tuned to it.")
@click.option(
    "--rewards", type=float, nargs=2, default=(0.0, 1.0), show_default=True, help="The range of rewards."
)
@click.option(
    "--expire",
    type=duration,
    help="Decisions without a reward expire after this time: 30s, 15m, 2h, 1d. Where silence is an answer, use --window.",
)
@click.option("--window", type=duration, help="A conversion comes within this time, or silence counts: 30m.")
@click.option(
    "--conversions",
    type=click.Choice(["first", "sum", "max"]),
    default="first",
    show_default=True,
    help="Of several conversions in a window, what counts.",
)
@click.option(
    "--corrections", type=duration, help="How long after its first reward a decision can be corrected: 30d."
)
@click.option(
    "--unrewarded", type=float, default=0.0, show_default=True, help="What an expired decision counts."
)
@click.option(
    "--no-propensities", is_flag=True, help="Leave the probabilities of decisions out of the journal."
)
@click.option(
    "--on-new-arms",
    type=click.Choice(["refuse", "add"]),
    default="refuse",
    show_default=True,
    help="What to do about arms that the player, which is there, does not have.",
)
@click.option(
    "--on-missing-arms",
    type=click.Choice(["refuse", "keep", "retire"]),
    default="refuse",
    show_default=True,
    help="What to do about arms of the player that are not given.",
)
@store_option
def create(
    name: str,
    url: str,
    policy: str,
    labels: tuple[str, ...],
    n_arms: int | None,
    no_propensities: bool,
    **terms: Any,
) -> None:
    """Make the player NAME. Nothing happens if it is there and the same."""
    from abex import parse_policy

    chosen = parse_policy(policy)
    if not labels and n_arms is None:
        raise UserError("a player needs arms: --arm NAME for each, or --arms NUMBER")
    if chosen.needs_graph:
        raise UserError(f"{chosen} needs to know the feedback graph, which `abex player` has none of")
    if chosen.needs_horizon and terms["horizon"] is None:
        raise UserError(f"{chosen} needs to know the horizon: pass --horizon")
    propensities = False if no_propensities else None
    player = _opened(url, name, policy, n_arms, arms=list(labels) or None, propensities=propensities, **terms)
    with player:
        click.echo(
            f"player {name!r}: {player.policy} with {player.n_arms} arms, {player.seq()} events so far"
        )


@command.command(epilog=examples("abex player decide banner", "abex player decide banner --count 3 --json"))
@click.argument("name")
@click.option("--count", "-k", type=int, default=1, show_default=True, help="Different arms to try at once.")
@json_option
@store_option
def decide(name: str, url: str, count: int, as_json: bool) -> None:
    """What NAME would try next. Id, arm and probability of each decision are on disk when they are printed."""
    with _opened(url, name) as player:
        whole_number("--count", count, least=1, most=player.n_arms)
        decisions = [player.decide()] if count == 1 else player.decide_many(count)
        player.flush()
        found = [
            {"id": one.id, "arm": one.arm, "probability": one.compute_probability()} for one in decisions
        ]
    if as_json:
        click.echo(json.dumps(found if count > 1 else found[0]))
        return
    for one in found:
        chance = "" if one["probability"] is None else f"  {one['probability']:.4g}"
        click.echo(f"{one['id']}  {one['arm']}{chance}")


@command.command(
    epilog=examples(
        "abex player reward banner 0190a7c8-5d2f-7000-8000-01f2d3c4b5a6 1",
        "abex player reward banner red 0.5 --also green 1",
        "abex player reward banner 0190a7c8-5d2f-7000-8000-01f2d3c4b5a6 0 --correct",
    ),
)
@click.argument("name")
@click.argument("decision")
@click.argument("reward", type=float)
@click.option("--also", multiple=True, type=(str, float), help="A side observation: an arm and what it paid.")
@click.option("--key", help="Of this conversion, where a decision may have several: it counts once.")
@click.option("--correct", is_flag=True, help="The decision has had a reward, and this is the right one.")
@store_option
def reward(
    name: str,
    url: str,
    decision: str,
    reward: float,
    also: tuple[tuple[str, float], ...],
    key: str | None,
    correct: bool,
) -> None:
    """Report the REWARD of a DECISION of NAME. A decision is said by its id, or by the arm that was tried."""
    with _opened(url, name) as player:
        side = {_arm(player, arm): paid for arm, paid in also}
        if correct and side:
            raise UserError("--correct is of one decision: leave --also out")
        if correct:
            new, otherwise = (
                player.correct(decision, reward, key),
                "that is known, or the time for corrections is over",
            )
        else:
            new = player.update(_arm(player, decision), reward, side or None, key)
            otherwise = "that decision has had its reward, has expired or is forgotten"
    click.echo("learned" if new else f"nothing new: {otherwise}")


@command.command(epilog=examples("abex player summary banner", "abex player summary banner --json"))
@click.argument("name", required=False)
@json_option
@store_option
def summary(name: str | None, url: str, as_json: bool) -> None:
    """The arms of NAME: pulls, means with intervals, probabilities. Without a NAME, the players of the store."""
    if name is None:
        from abex.players import Store

        with Store.open(url) as store:
            names = store.names()
        there = "\n".join(names) or f"there are no players in {store.display_url}"
        click.echo(json.dumps(names) if as_json else there)
        return
    from abex.cli.help import print_table

    with _opened(url, name) as player:
        player.refresh()
        found = player.summary()
    if as_json:
        click.echo(found.frame().to_json(orient="records"))
        return
    print_table(found.caption, found.headings, found.cells(), range(1, len(found.headings)))
    if found.footer():
        click.echo(found.footer())


@command.command(
    epilog=examples(
        "abex player winner banner --control red", "abex player winner banner --risk 0.01 --at-least 0.005"
    ),
)
@click.argument("name")
@click.option(
    "--risk", default=0.05, show_default=True, help="Share of such experiments that may name a wrong winner."
)
@click.option("--at-least", type=float, help="The difference of rewards that matters.")
@click.option("--control", help="The arm that lifts are against.")
@json_option
@store_option
def winner(
    name: str, risk: float, at_least: float | None, control: str | None, url: str, as_json: bool
) -> None:
    """The best arm of NAME, or what it takes to know. One may ask as often as one likes."""
    import msgspec

    with _opened(url, name) as player:
        player.refresh()
        found = player.winner(risk, at_least, None if control is None else _arm(player, control))
    click.echo(msgspec.json.encode(found.as_dict()).decode() if as_json else found.table())


@command.command(
    epilog=examples("abex player log banner > log.csv", "abex player log banner --out log.parquet")
)
@click.argument("name")
@click.option("--out", help="A .csv or .parquet file; CSV to the terminal unless given.")
@store_option
def log(name: str, url: str, out: str | None) -> None:
    """Every decision of NAME with its probability and reward. Off-policy evaluation needs nothing else."""
    from abex.support.files import table_bytes, write_atomically

    kind = ".csv" if out is None else Path(out).suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise UserError(f"cannot write the log to {out!r}: its name must end in .csv or .parquet")
    with _opened(url, name) as player:
        frame = player.log()
    frame["arm"] = frame["arm"].map(str)  # a column of Parquet has one type
    content = table_bytes(frame, kind)
    if out is None:
        click.echo(content.decode(), nl=False)
    else:
        write_atomically(out, content)
        click.echo(f"{len(frame):,} decisions in {out}")


@command.command(epilog=examples("abex player compact banner --keep 30d"))
@click.argument("name")
@click.option("--keep", type=duration, help="Keep events of this time up to now, for the log: 12h, 30d.")
@store_option
def compact(name: str, url: str, keep: timedelta | None) -> None:
    """Delete the events of NAME that a snapshot covers. What is deleted is missing from `log`."""
    with _opened(url, name) as player:
        count = player.compact(keep)
        click.echo(f"deleted {count:,} events; the state is that of event {player.seq():,}")


@command.command(
    short_help="A name for players, each for some per cent of the units.",
    epilog=examples(
        "abex player alias home/banner banner-v1=90 banner-v2=10",
        "abex player alias home/banner --rollback",
        "abex player alias",
    ),
)
@click.argument("name", required=False)
@click.argument("split", nargs=-1, metavar="[PLAYER=PERCENT]...")
@click.option("--rollback", is_flag=True, help="Bring back what it was before its last change.")
@click.option("--remove", is_flag=True, help="Let the name stand for nothing any more.")
@store_option
def alias(name: str | None, split: tuple[str, ...], rollback: bool, remove: bool, url: str) -> None:
    """Let NAME stand for players, in decisions and rewards of `abex serve`; without a split, where each alias sends units."""
    from abex.players import Store
    from abex.players.changes import split_text

    asked = [bool(split), rollback, remove]
    if sum(asked) > 1 or (name is None and any(asked)):
        raise UserError(
            "give a NAME and one of a split such as banner-v1=90 banner-v2=10, --rollback, --remove"
        )
    with Store.open(url) as store:
        if name is not None and split:
            store.alias(name, shares(split))
        elif name is not None and (rollback or remove):
            (store.rollback if rollback else store.remove_alias)(name)
        found = store.aliases()
    for one, there in sorted(found.items()):
        if name in (None, one):
            click.echo(f"{one}: {split_text(there)}")


def shares(texts: tuple[str, ...]) -> dict[str, int]:
    """A split as it was typed."""
    try:
        return {player: int(percent) for player, _, percent in (text.partition("=") for text in texts)}
    except ValueError:
        raise UserError(
            f"a split is such as banner-v1=90 banner-v2=10, got {shown(' '.join(texts))}"
        ) from None


@command.command(
    short_help="Who changed what.",
    epilog=examples("abex player changes", "abex player changes --last 1000 --json"),
)
@click.option("--last", default=20, show_default=True, help="So many administrative changes.")
@json_option
@store_option
def changes(last: int, as_json: bool, url: str) -> None:
    """Who changed what: players made, archived, deleted, arms, aliases; the latest first."""
    from abex.cli.help import print_table
    from abex.players import Store

    with Store.open(url) as store:
        found = store.changes(last)
    if as_json:
        click.echo(json.dumps(found))
        return
    cells = [
        [
            str(one["seq"]),
            datetime.fromtimestamp(one["time"] / 1000, UTC).isoformat(" ", "seconds"),
            one["who"],
            one["what"],
            one["name"],
            *(json.dumps(one.get(side)) if side in one else "" for side in ("before", "after")),
        ]
        for one in found
    ]
    print_table("", ["", "when", "who", "what", "name", "before", "after"], cells, ())


def _opened(url: str, name: str, *wanted: Any, **options: Any) -> Any:
    from abex import Player
    from abex.players.arms import OtherArmsError

    try:  # this process makes a few decisions and ends, and a compiler takes half a second
        return Player.open(url, name, *wanted, compiled=False, **options)
    except OtherArmsError as error:
        raise UserError(error.in_shell) from error


def _arm(player: Any, text: str) -> Any:
    """An arm as it was typed: numbers are typed as words too."""
    from abex.players.requests import arm_named

    with player.reading() as now:
        return arm_named(now.arms, text)
