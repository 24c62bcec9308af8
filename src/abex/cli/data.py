"""`abex data`: what data sets are there, what is missing, where they come from."""

from __future__ import annotations

from pathlib import Path

import click

from abex.cli.help import examples
from abex.cli.output import print_table
from abex.lab.datasets.registry import (
    CatalogueEntry,
    check,
    download,
    entries,
    entry_of,
    import_from,
    look,
)
from abex.lab.datasets.source_files import cache
from abex.support.errors import UserError


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "abex data                            the table",
        "abex data fetch mnist                download, check and parse",
        "abex data fetch all --from ~/files   import files you already have",
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


@command.command(
    short_help="Download data sets, or import files you already have.",
    epilog=examples(
        "abex data fetch mnist usps", "abex data fetch all", "abex data fetch epinions --from ~/Downloads"
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...|all")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    help="Import files from this folder, do not download.",
)
def fetch(names: tuple[str, ...], folder: Path | None) -> None:
    """Download data sets into the cache, or import files you already have."""
    wanted = chosen(names)
    if folder is not None and not folder.is_dir():
        raise UserError(f"--from {folder} is not a folder")
    failures = []
    for entry in wanted:
        try:
            fetch_one(entry, folder)
        except UserError as error:
            failures.append(str(error))
            if len(wanted) > 1:
                click.echo(f"{entry.name}: {error}", err=True)
    if failures:
        raise UserError(
            failures[0] if len(wanted) == 1 else f"{len(failures)} of {len(wanted)} could not be fetched"
        )


@command.command(
    name="check", short_help="Compare every file with its checksum.", epilog=examples("abex data check mnist")
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
def check_command(names: tuple[str, ...]) -> None:
    """Read every file that is here and compare its checksum with the registered one."""
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


@command.command(
    short_help="Description, files, checksums, licence and citation.",
    epilog=examples("abex data show isolet"),
)
@click.argument("name")
def show(name: str) -> None:
    """Show all about one data set: description, files and addresses, checksums, licence, full citation."""
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


def fetch_one(entry: CatalogueEntry, folder: Path | None) -> None:
    """Fetch or import one data set and say so."""
    if not entry.parts:
        click.echo(f"{entry.name}: comes with scikit-learn")
    elif folder is not None:
        copied = import_from(entry, folder)
        click.echo(f"{entry.name}: {len(copied)} files checked and copied to {copied[0].parent}")
    elif look(entry).status == "there":
        click.echo(f"{entry.name}: already in {look(entry).place}")
    else:
        download(entry)
        click.echo(f"{entry.name}: fetched and checked, in {look(entry).place}")
