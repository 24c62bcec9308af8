"""`abex report`: the HTML page from what the store holds."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from abex.cli.help import examples
from abex.cli.sweep import no_results, open_store, store_option


@click.command(epilog=examples("abex report --open"))
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@store_option
def command(show: bool, folder: str) -> None:
    """Write report.html into the results folder: verdicts, interactive figures, tables; it works offline from a file."""
    from abex.lab.report import write_report

    path = Path(folder) / "report.html"
    with open_store(folder, must_exist=True) as store:
        if not len(store):
            raise no_results(folder)
        size = write_report(store, path)
    click.echo(f"{path} ({size / 1e6:.1f} MB)")
    if show and not webbrowser.open(path.resolve().as_uri()):
        click.echo(f"abex: no browser could be started, open {path} yourself", err=True)
