"""`abex data`: what data sets are there, what is missing, where they come from."""

from __future__ import annotations

import click

from abex.cli.help import examples, print_table
from abex.lab.datasets.registry import (
    CatalogueEntry,
    arrays_for,
    check,
    entries,
    entry_of,
    look,
)
from abex.lab.datasets.source_files import cache
from abex.support.errors import UserError


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "abex data                            the table",
        "abex data fetch mnist                download, check and parse",
        "abex data check                      verify every file that is here",
    ),
)
@click.pass_context
def command(context: click.Context) -> None:
    """Show the data sets: size, checksum state, where they are, licence and citation."""
    if context.invoked_subcommand is not None:
        return
    columns = ("name", "rows", "features", "classes", "state", "where", "licence", "cite")
    rows = []
    for name, entry in entries().items():
        state = check(entry, quick=True)
        where = str(state.place) if state.place else ("scikit-learn" if state.status == "bundled" else "-")
        sizes = (entry.rows, entry.features, entry.classes)
        rows.append((name, *sizes, state.status, where, entry.licence, entry.brief))
    print_table("Data sets", columns, rows, right=(2, 3))
    click.echo(
        f"Searched: $ABEX_DATA, then {cache()}. "
        "`abex data fetch NAME` gets what is missing, `abex data show NAME` tells more."
    )


@command.command(epilog=examples("abex data fetch mnist usps", "abex data fetch all"))
@click.argument("names", nargs=-1, required=True, metavar="NAME...|all")
def fetch(names: tuple[str, ...]) -> None:
    """Download data sets into the cache. What is here already is left as it is."""
    wanted, failures = chosen(names), []
    for entry in wanted:
        try:
            click.echo(f"{entry.name}: {fetched(entry)}")
        except UserError as error:
            if len(wanted) == 1:
                raise
            failures.append(entry.name)
            click.echo(f"abex: {error}", err=True)
    if failures:
        raise UserError(f"{', '.join(failures)} could not be fetched")


@command.command(name="check", epilog=examples("abex data check mnist"))
@click.argument("names", nargs=-1, metavar="[NAME...]")
def check_command(names: tuple[str, ...]) -> None:
    """Compare every file that is here with its checksum."""
    wrong = []
    for entry in chosen(names or ("all",)):
        state = check(entry)
        click.echo(f"{entry.name:<18} {state.status}  {state.detail}".rstrip())
        if state.status in ("damaged", "incomplete"):
            wrong.append(entry.name)
    if wrong:
        raise UserError(
            f"{', '.join(wrong)}: delete the files named above and run `abex data fetch {wrong[0]}`"
        )


@command.command(epilog=examples("abex data show isolet"))
@click.argument("name")
def show(name: str) -> None:
    """Show all about one data set. Description, files with addresses and checksums, licence, full citation."""
    entry = entry_of(name)
    state = check(entry, quick=True)
    sizes = [
        entry.rows,
        entry.features and f"{entry.features} features",
        entry.classes and f"{entry.classes} classes",
    ]
    lines = [
        f"{entry.name}: {entry.description}",
        f"size      {', '.join(size for size in sizes if size)}",
        f"state     {state.status}{f' in {state.place}' if state.place else ''} {state.detail}".rstrip(),
        f"licence   {entry.licence}",
        f"cite      {entry.citation}",
        f"checksum  {entry.checksum or 'not registered'} (SHA-256 of the parsed values)",
    ]
    for part in entry.parts:
        lines.append(f"file      {part.name}{f'  sha256 {part.sha256}' if part.sha256 else ''}")
        lines += [f"          {url}" for url in part.urls]
    click.echo("\n".join(lines))


def chosen(names: tuple[str, ...]) -> list[CatalogueEntry]:
    """The entries that ``names`` mean; ``all`` is every one."""
    if "all" in names:
        return list(entries().values())
    return [entry_of(name) for name in dict.fromkeys(names)]


def fetched(entry: CatalogueEntry) -> str:
    """Fetch a data set unless it is here; what has come of it."""
    if not entry.parts:
        return "comes with scikit-learn"
    if look(entry).status == "there":
        return f"already in {look(entry).place}"
    arrays_for(entry)
    return f"fetched and checked, in {look(entry).place}"
